#include "server/http/server.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <csignal>
#include <ctime>

#include "base/log.h"
#include "server/http/connection.h"
#include "server/http/problem.h"
#include "server/watch/service_notify.h"
#include "tenon/error.h"

namespace tenon::server {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

constexpr std::chrono::milliseconds kTick{250};
constexpr std::string_view kFull =
    "HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\nConnection: close\r\nContent-Type: application/problem+json\r\n"
    "Content-Length: 102\r\n\r\n"
    "{\"type\":\"/problems/overloaded\",\"title\":\"Service Unavailable\",\"status\":503,\"detail\":\"too many clients\"}";
static_assert(kFull.size() - (kFull.find("\r\n\r\n") + 4) == 102);

std::string http_date() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  gmtime_r(&now, &parts);
  return fmt::format("{:%a, %d %b %Y %H:%M:%S} GMT", parts);
}

asio::ip::address address_of(const std::string& text, const char* hint) {
  error_code error;
  const asio::ip::address address = asio::ip::make_address(text == "localhost" ? std::string("127.0.0.1") : text, error);
  if (error) throw Error(ErrorCode::invalid_argument, fmt::format("'{}' is not an address", text), hint);
  return address;
}

tcp::endpoint endpoint_of(const ServerOptions& options) {
  return {address_of(options.host, "give an address of this machine, such as 127.0.0.1 or 0.0.0.0"), options.port};
}

}  // namespace

struct Server::State {
  ServerOptions options;
  // Before the context: what is pending in it when it goes holds memory that the application counts.
  Application application;
  ConnectionHost host;
  asio::io_context io{1};
  tcp::acceptor acceptor{io};
  asio::steady_timer timer{io};
  asio::signal_set signals{io};
  ServiceNotify notify;
  std::uint16_t port = 0;
  bool is_running = false;
  std::chrono::steady_clock::time_point drain_until;

  State(ServerOptions wanted, DeviceManager& manager)
      : options(std::move(wanted)),
        application(options, manager, [this](std::function<void()> task) { asio::post(io, std::move(task)); }),
        host{options, application} {}

  void accept() {
    acceptor.async_accept([this](error_code error, tcp::socket socket) {
      if (error == asio::error::operation_aborted || !acceptor.is_open()) return;
      if (error) {
        // Out of descriptors, most likely: others will be closed in a moment.
        logging::warn("cannot accept a connection: {}", error.message());
        auto pause = std::make_shared<asio::steady_timer>(io, std::chrono::milliseconds(100));
        pause->async_wait([this, pause](error_code) {
          if (acceptor.is_open()) accept();
        });
        return;
      }
      welcome(std::move(socket));
      accept();
    });
  }

  void welcome(tcp::socket socket) {
    error_code ignored;
    socket.set_option(tcp::no_delay(true), ignored);
    Traffic& traffic = application.traffic();
    ++traffic.accepted;
    if (host.connections.size() >= options.max_connections) {
      ++traffic.refused;
      (void)!send(socket.native_handle(), kFull.data(), kFull.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
      return;
    }
    const tcp::endpoint peer = socket.remote_endpoint(ignored);
    auto connection = std::make_shared<Connection>(std::move(socket), host, peer.address().to_string());
    const auto place = host.connections.insert(host.connections.end(), connection);
    connection->start(place);
  }

  void tick() {
    timer.expires_after(kTick);
    timer.async_wait([this](error_code error) {
      if (error) return;
      host.date = http_date();
      const auto now = std::chrono::steady_clock::now();
      for (auto at = host.connections.begin(); at != host.connections.end();) {
        const std::shared_ptr<Connection> connection = *at++;
        connection->tick(now);
      }
      application.tick();
      notify.watchdog();
      if (host.is_draining && (now >= drain_until || (host.connections.empty() && application.is_drained()))) return io.stop();
      tick();
    });
  }

  void drain() {
    if (host.is_draining) return io.stop();
    host.is_draining = true;
    drain_until = std::chrono::steady_clock::now() + options.drain_timeout;
    notify.stopping();
    error_code ignored;
    acceptor.close(ignored);
    application.drain();
    for (auto at = host.connections.begin(); at != host.connections.end();) {
      const std::shared_ptr<Connection> connection = *at++;
      connection->drain();
    }
    if (host.connections.empty() && application.is_drained()) io.stop();
  }

  void wait_for_signal() {
    signals.async_wait([this](error_code error, int number) {
      if (error) return;
      logging::info("{} received, draining", number == SIGTERM ? "SIGTERM" : "SIGINT");
      drain();
      wait_for_signal();
    });
  }
};

Server::Server(ServerOptions options, DeviceManager& manager) {
  const tcp::endpoint endpoint = endpoint_of(options);
  if (!options.trusted_proxy.empty())
    options.trusted_proxy =
        address_of(options.trusted_proxy, "--trusted-proxy takes the address the proxy connects from").to_string();
  const bool has_login = !options.password_file.empty() || !options.token_file.empty();
  if (!endpoint.address().is_loopback() && !has_login)
    throw Error(ErrorCode::invalid_argument, fmt::format("{} can be reached by others, and there is no login", options.host),
                "add --password-file (tenon serve hash-password) or --token-file");
  state_ = std::make_unique<State>(std::move(options), manager);
}

Server::~Server() {
  if (!state_) return;
  // First the connections, which cancels what their requests wait for; then the workers can end.
  while (!state_->host.connections.empty()) {
    const std::shared_ptr<Connection> connection = state_->host.connections.front();
    connection->close();
  }
  state_->host.unsent.clear();
  state_->application.shut_down();
}

void Server::listen() {
  State& state = *state_;
  const tcp::endpoint endpoint = endpoint_of(state.options);
  error_code error;
  if (const int passed = ServiceNotify::passed_socket(); passed >= 0) {
    sockaddr_storage name{};
    socklen_t length = sizeof name;
    getsockname(passed, reinterpret_cast<sockaddr*>(&name), &length);
    state.acceptor.assign(name.ss_family == AF_INET6 ? tcp::v6() : tcp::v4(), passed, error);
    const tcp::endpoint local = state.acceptor.local_endpoint(error);
    if (!error && !local.address().is_loopback() && !state.application.has_login())
      throw Error(ErrorCode::invalid_argument, "the socket passed in can be reached by others, and there is no login",
                  "add --password-file or --token-file");
  } else {
    state.acceptor.open(endpoint.protocol(), error);
    if (!error) state.acceptor.set_option(tcp::acceptor::reuse_address(true), error);
    if (!error) state.acceptor.bind(endpoint, error);
    if (!error) state.acceptor.listen(4096, error);
  }
  if (error) {
    const bool denied = error == boost::system::errc::permission_denied;
    throw Error(denied ? ErrorCode::permission_denied : ErrorCode::unavailable,
                fmt::format("cannot listen on {} port {}: {}", state.options.host, state.options.port, error.message()),
                "--port chooses another one, --port 0 any that is free");
  }
  state.port = state.acceptor.local_endpoint().port();
}

std::uint16_t Server::port() const noexcept { return state_->port; }

std::string Server::address() const {
  const bool is_v6 = state_->options.host.find(':') != std::string::npos;
  return fmt::format("http://{}{}{}:{}", is_v6 ? "[" : "", state_->options.host, is_v6 ? "]" : "", state_->port);
}

void Server::run() {
  State& state = *state_;
  state.host.date = http_date();
  state.accept();
  state.tick();
  state.notify.ready();
  state.io.run();
}

void Server::stop() {
  asio::post(state_->io, [this] { state_->drain(); });
}

void Server::stop_on_signals() {
  state_->signals.add(SIGTERM);
  state_->signals.add(SIGINT);
  state_->wait_for_signal();
}

}  // namespace tenon::server
