#include "server/http/server.h"

#include <fcntl.h>
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <netinet/tcp.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <csignal>
#include <ctime>

#include "base/log.h"
#include "base/threads/arrivals.h"
#include "server/compute/thread_priority.h"
#include "server/http/connection.h"
#include "server/http/own_heap.h"
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

// Programs that the server starts (a vendor's tool, a worker) must not keep its sockets open. Boost 1.81 does not set the flag.
void keep_from_children(int fd) { fcntl(fd, F_SETFD, FD_CLOEXEC); }

// As many descriptors as the system allows, and some left over for devices, files and workers.
std::size_t connections_that_fit(std::size_t wanted) {
  constexpr rlim_t kOthers = 256;
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return wanted;
  const rlim_t needed = static_cast<rlim_t>(wanted) + kOthers;
  if (limit.rlim_cur < needed) {
    rlimit raised{std::min(limit.rlim_max, needed), limit.rlim_max};
    if (setrlimit(RLIMIT_NOFILE, &raised) == 0) limit = raised;
  }
  if (limit.rlim_cur >= needed) return wanted;
  const std::size_t fits = limit.rlim_cur > 2 * kOthers ? limit.rlim_cur - kOthers : std::max<std::size_t>(limit.rlim_cur / 2, 1);
  logging::warn("this process may open {} files: {} connections at once instead of {}", limit.rlim_cur, fits, wanted);
  return fits;
}

int make_bell() {
  const int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (fd < 0) throw Error(ErrorCode::resource_exhausted, "no file descriptor is left for the server");
  return fd;
}

tcp::endpoint endpoint_of(const ServerOptions& options) {
  return {address_of(options.host, "use an address of this machine, such as 127.0.0.1 or 0.0.0.0"), options.port};
}

}  // namespace

struct Server::State {
  ServerOptions options;
  // What other threads give this one to do. Not through asio::post(), whose lock a thread may hold while it is interrupted.
  Arrivals<std::function<void()>> posted;
  const int bell_fd = make_bell();
  // Before the context: what is pending in it when it goes holds memory that the application counts.
  Application application;
  ConnectionHost host;
  asio::io_context io{1};
  asio::posix::stream_descriptor bell{io, bell_fd};
  tcp::acceptor acceptor{io};
  asio::steady_timer timer{io};
  asio::signal_set signals{io};
  ServiceNotify notify;
  std::uint16_t port = 0;
  bool is_running = false;
  std::chrono::steady_clock::time_point drain_until, cancel_at;

  State(ServerOptions wanted, DeviceManager& manager)
      : options(std::move(wanted)),
        application(options, manager, [this](std::function<void()> task) { post(std::move(task)); }),
        host{options, application} {}

  void post(std::function<void()> task) {
    if (posted.push(std::move(task))) eventfd_write(bell_fd, 1);
  }

  void take_posted() {
    bell.async_wait(asio::posix::stream_descriptor::wait_read, [this](error_code error) {
      if (error) return;
      eventfd_t ignored;
      eventfd_read(bell_fd, &ignored);
      for (auto tasks = posted.take(); !tasks.empty();)
        guarded("cannot do what another thread has asked for", [&] { tasks.pop()(); });
      take_posted();
    });
  }

  // What a handler throws costs the connection it was about, never the server.
  template <class Step>
  void guarded(const char* what, Step step) noexcept {
    try {
      step();
    } catch (const std::exception& error) {
      logging::error("{}: {}", what, error.what());
    }
  }

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
      guarded("cannot serve a connection", [&] { welcome(std::move(socket)); });
      accept();
    });
  }

  void welcome(tcp::socket socket) {
    error_code ignored;
    keep_from_children(socket.native_handle());
    socket.set_option(tcp::no_delay(true), ignored);
    Traffic& traffic = application.traffic();
    ++traffic.accepted;
    const std::string address = socket.remote_endpoint(ignored).address().to_string();
    if (host.connections.size() >= options.max_connections || has_all_it_may(address)) {
      ++traffic.refused;
      (void)!send(socket.native_handle(), kFull.data(), kFull.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
      return;
    }
    auto connection = std::make_shared<Connection>(std::move(socket), host, address);
    const auto place = host.connections.insert(host.connections.end(), connection);
    connection->start(place);
  }

  // One address may not take every connection; behind the trusted proxy all clients have one.
  bool has_all_it_may(const std::string& address) const {
    if (address == options.trusted_proxy) return false;
    const std::size_t limit = options.max_connections_of_address != 0 ? options.max_connections_of_address
                                                                      : std::max<std::size_t>(options.max_connections / 4, 1);
    const auto count = host.of_address.find(address);
    return count != host.of_address.end() && count->second >= limit;
  }

  void tick() {
    timer.expires_after(kTick);
    timer.async_wait([this](error_code error) {
      if (error) return;
      host.date = http_date();
      const auto now = std::chrono::steady_clock::now();
      for (auto at = host.connections.begin(); at != host.connections.end();) {
        const std::shared_ptr<Connection> connection = *at++;
        guarded("cannot end a connection in time", [&] { connection->tick(now); });
      }
      guarded("cannot look after the server's state", [&] { application.tick(); });
      notify.watchdog();
      if (host.is_draining && now >= cancel_at) cancel_all();
      if (host.is_draining && (now >= drain_until || (host.connections.empty() && application.is_drained()))) return io.stop();
      tick();
    });
  }

  // In the last part of the drain time, so that who waits still gets an answer.
  void cancel_all() {
    application.cancel_all();
    for (const std::shared_ptr<Connection>& connection : host.connections) connection->cancel();
  }

  void drain() {
    if (host.is_draining) return io.stop();
    host.is_draining = true;
    drain_until = std::chrono::steady_clock::now() + options.drain_timeout;
    cancel_at = drain_until - std::min<std::chrono::milliseconds>(options.drain_timeout / 4, std::chrono::seconds(3));
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

  // Cancels what their requests wait for, so that the workers can end.
  void close_connections() {
    while (!host.connections.empty()) {
      const std::shared_ptr<Connection> connection = host.connections.front();
      connection->close();
    }
    host.unsent.clear();
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
        address_of(options.trusted_proxy, "--trusted-proxy must be the address from which the proxy connects").to_string();
  const bool has_login = !options.password_file.empty() || !options.token_file.empty();
  if (!endpoint.address().is_loopback() && !has_login)
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{} is reachable from other machines, but no login is configured", options.host),
                "add --password-file (tenon serve hash-password) or --token-file");
  options.max_connections = connections_that_fit(options.max_connections);
  state_ = std::make_unique<State>(std::move(options), manager);
}

Server::~Server() {
  if (!state_) return;
  state_->close_connections();
  state_->application.shut_down();
  state_->posted.take();  // it may hold memory that the application counts
}

bool Server::end() {
  constexpr std::chrono::seconds kPatience{1};
  state_->close_connections();
  return state_->application.shut_down(kPatience);
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
      throw Error(ErrorCode::invalid_argument,
                  "the inherited socket is reachable from other machines, but no login is configured",
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
                "use another --port; --port 0 selects a free one");
  }
  keep_from_children(state.acceptor.native_handle());
  state.port = state.acceptor.local_endpoint().port();
}

std::uint16_t Server::port() const noexcept { return state_->port; }

std::string Server::address() const {
  // The addresses that stand for all of a machine's are none to open.
  const std::string& given = state_->options.host;
  const std::string host = given == "0.0.0.0" ? "127.0.0.1" : given == "::" ? "::1" : given;
  const bool is_v6 = host.find(':') != std::string::npos;
  return fmt::format("http://{}{}{}:{}", is_v6 ? "[" : "", host, is_v6 ? "]" : "", state_->port);
}

void Server::run() {
  State& state = *state_;
  set_own_nice(own_nice() + kConnectionsNice);
  const OwnHeap heap;
  state.host.date = http_date();
  state.accept();
  state.take_posted();
  state.tick();
  state.notify.ready();
  for (bool is_done = false; !is_done;)
    state.guarded("a handler of the server failed", [&] {
      state.io.run();
      is_done = true;
    });
}

void Server::stop() {
  state_->post([this] { state_->drain(); });
}

void Server::stop_on_signals() {
  state_->signals.add(SIGTERM);
  state_->signals.add(SIGINT);
  state_->wait_for_signal();
}

}  // namespace tenon::server
