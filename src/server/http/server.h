// Server: Tenon over HTTP.
//
// One thread does all input and output; whatever computes or may wait runs in workers, so a slow client or a busy device delays
// nobody else. Lifetime: the manager must outlive it. Thread safety: run() in one thread; stop() and is_running() from any.
//
//   Server server({.port = 0}, manager);
//   server.listen();
//   std::jthread thread([&] { server.run(); });
//   ... http://127.0.0.1:<server.port()>/ ...
//   server.stop();
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "server/options.h"
#include "tenon/manager.h"

namespace tenon::server {

class Server {
 public:
  // Throws invalid_argument: a host other than loopback without a password or token file, or one of these files unusable.
  Server(ServerOptions options, DeviceManager& manager);
  ~Server();

  // Binds and listens; takes over a socket of systemd where one was passed. Throws unavailable, permission_denied.
  void listen();
  std::uint16_t port() const noexcept;
  std::string address() const;  // "http://127.0.0.1:8080"

  // Serves until stop(), then lets running requests end within the drain timeout.
  void run();
  // Begins to drain. A second call ends at once.
  void stop();
  // SIGTERM and SIGINT call stop(). Before run().
  void stop_on_signals();
  // After run(): cancels what still runs and waits a few seconds for it; devices that do not answer are given up. False if a
  // thread is stuck in a driver even so: then the process must end without destroying the server.
  bool end();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tenon::server
