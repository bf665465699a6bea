// ServiceNotify: what systemd wants to hear of a service (sd_notify), without its library. Nothing when not started by it.
#pragma once

#include <chrono>
#include <string>
#include <string_view>

namespace tenon::server {

class ServiceNotify {
 public:
  ServiceNotify();  // reads NOTIFY_SOCKET and WATCHDOG_USEC

  // Said once, so they wait a while for a service manager that is behind with reading.
  void ready() const { send("READY=1\nSTATUS=serving", std::chrono::seconds(5)); }
  void stopping() const { send("STOPPING=1\nSTATUS=draining", std::chrono::seconds(5)); }
  // Twice within the time the watchdog allows; cheap to call more often.
  void watchdog();

  // The listening socket passed in (LISTEN_FDS), -1 for none.
  static int passed_socket() noexcept;

 private:
  void send(std::string_view message, std::chrono::seconds patience) const noexcept;

  std::string path_;
  std::chrono::microseconds interval_{0};
  std::chrono::steady_clock::time_point next_;
};

}  // namespace tenon::server
