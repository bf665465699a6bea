// Application: what the server answers, apart from how bytes come and go.
//
// admit() looks at a header: which route, whether this client may, how long a body may be. answer() runs the route, here or in a
// worker, and gives the answer back in the I/O thread. Lifetime: made before the server listens; ends after all connections.
// Thread safety: everything in the I/O thread.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "server/http/message.h"
#include "server/options.h"
#include "server/routes/routes.h"
#include "tenon/manager.h"

namespace tenon::server {

struct Services;

// What the connections know and the application shows. Changed in the I/O thread, read anywhere.
struct Traffic {
  std::atomic<std::uint64_t> connections{0}, streams{0};
  std::atomic<std::uint64_t> accepted{0}, refused{0}, timed_out{0}, malformed{0};
};

struct Admission {
  const Route* route = nullptr;
  std::vector<std::string> arguments;
  Client client;
  std::string request_id;
  std::size_t max_body_bytes = 0;
  std::optional<Response> refusal;  // instead of running the route
  std::string rate_limit;           // of the field RateLimit; "" without a limit
};

class Application {
 public:
  using Post = std::function<void(std::function<void()>)>;  // runs it in the I/O thread, soon

  Application(const ServerOptions& options, DeviceManager& manager, Post post);
  ~Application();

  Admission admit(const Request& request, const std::string& address);
  // Calls |done| once, in the I/O thread: before it returns where it could answer at once.
  void answer(const Request& request, const Admission& admission, std::stop_token cancel, std::function<void(Response)> done);
  // Counted and logged, when the answer is ready to be sent.
  void finished(const Request& request, const Admission& admission, const Response& response, double seconds);

  // Four times a second.
  void tick();
  // No new work; streams end.
  void drain();
  // Whatever runs is to end: jobs here; requests when their connections close.
  void cancel_all();
  // Ends the threads and hears of devices no more: nothing is posted afterwards.
  void shut_down();
  // The same within a few times |patience|, giving up devices that do not answer. False if threads are stuck in a driver even so:
  // then this object must not be destroyed.
  bool shut_down(std::chrono::milliseconds patience);
  // Nothing runs or waits any more.
  bool is_drained() const;

  MemoryGate& memory() noexcept;
  Traffic& traffic() noexcept;
  const RouteTable& routes() const noexcept;
  bool has_login() const noexcept;

 private:
  std::unique_ptr<Services> services_;
};

}  // namespace tenon::server
