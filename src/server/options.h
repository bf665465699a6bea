// ServerOptions: everything about the HTTP server that can be set. A value; tenon serve fills it from its flags.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace tenon::server {

struct ServerOptions {
  std::string host = "127.0.0.1";
  std::uint16_t port = 8080;               // 0: any free one
  std::vector<std::string> allowed_hosts;  // further names the server answers to while there is no login
  std::string password_file, token_file;   // "": none
  std::string trusted_proxy;               // an address whose X-Forwarded-For is believed
  std::string report_directory;            // "": reports in the state directory
  std::string model_folder;                // "": no models, only ops

  std::size_t max_header_bytes = 16 << 10;
  std::size_t max_json_bytes = 8 << 20;
  std::size_t max_body_bytes = 256 << 20;
  std::int64_t max_elements = std::int64_t{1} << 26;
  std::uint64_t max_request_memory = 0;  // 0: 1 GiB, at most a quarter of the machine's
  std::uint64_t max_memory = 0;          // 0: half of what is available
  std::uint64_t max_client_memory = 0;   // of one account or network; 0: a quarter of max_memory
  double max_operations = 4e12;          // arithmetic of one program, all its repeats together
  std::size_t max_waiting = 1024;        // requests
  std::size_t max_connections = 4096;
  std::size_t max_connections_of_address = 0;  // 0: a quarter of max_connections; the trusted proxy may have all
  std::size_t max_streams = 256;               // of events; one account or network has at most a quarter
  std::size_t max_jobs = 64;                   // of one client, unfinished
  std::uint64_t upload_quota_bytes = std::uint64_t{1} << 30;
  double rate_limit = -1;  // requests a second and address; 0: none; below: none on loopback, else 100
  int threads = 0;         // that may compute or wait for a device; 0: 64. One client has at most a quarter of them

  std::chrono::milliseconds header_timeout{10'000};
  // Bodies and answers: each time it ends, at least this many bytes for each second of it must have gone over the wire.
  std::chrono::milliseconds body_timeout{10'000};
  std::size_t least_bytes_a_second = 64 << 10;
  std::chrono::milliseconds idle_timeout{75'000};
  std::chrono::milliseconds write_timeout{30'000};   // without progress
  std::chrono::milliseconds max_run_time{300'000};   // of a computation, from the grant of its device
  std::chrono::milliseconds reset_patience{10'000};  // for programs that run on a device that is to be reset
  std::chrono::milliseconds drain_timeout{25'000};
  std::chrono::seconds session_idle{30 * 60};
  std::chrono::seconds session_total{12 * 3600};
  std::chrono::seconds lockout{15 * 60};
  std::chrono::seconds upload_lifetime{3600};
  std::chrono::seconds result_lifetime{600};

  bool log_requests = false;  // every request, not only the failed ones
};

}  // namespace tenon::server
