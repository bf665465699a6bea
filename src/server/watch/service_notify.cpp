#include "server/watch/service_notify.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <charconv>
#include <cstddef>
#include <cstdlib>
#include <cstring>

#include "base/system/file_descriptor.h"

namespace tenon::server {
namespace {

long long number_of(const char* name) {
  const char* text = std::getenv(name);
  long long value = 0;
  if (text != nullptr) std::from_chars(text, text + std::strlen(text), value);
  return value;
}

}  // namespace

ServiceNotify::ServiceNotify() {
  if (const char* path = std::getenv("NOTIFY_SOCKET")) path_ = path;
  const long long pid = number_of("WATCHDOG_PID");
  if (pid == 0 || pid == getpid()) interval_ = std::chrono::microseconds(number_of("WATCHDOG_USEC") / 2);
}

void ServiceNotify::watchdog() {
  if (interval_.count() <= 0) return;
  const auto now = std::chrono::steady_clock::now();
  if (now < next_) return;
  next_ = now + interval_;
  send("WATCHDOG=1", std::chrono::seconds(0));
}

void ServiceNotify::send(std::string_view message, std::chrono::seconds patience) const noexcept {
  sockaddr_un address{};
  if (path_.empty() || path_.size() >= sizeof address.sun_path) return;
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path_.data(), path_.size());
  if (address.sun_path[0] == '@') address.sun_path[0] = '\0';  // a name without a file
  const FileDescriptor socket(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!socket) return;
  const timeval limit{.tv_sec = patience.count(), .tv_usec = 0};
  setsockopt(socket.get(), SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
  const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + path_.size());
  (void)!sendto(socket.get(), message.data(), message.size(), MSG_NOSIGNAL | (patience.count() > 0 ? 0 : MSG_DONTWAIT),
                reinterpret_cast<const sockaddr*>(&address), length);
}

int ServiceNotify::passed_socket() noexcept {
  if (number_of("LISTEN_PID") != getpid() || number_of("LISTEN_FDS") < 1) return -1;
  constexpr int kFirst = 3;
  fcntl(kFirst, F_SETFD, FD_CLOEXEC);
  return kFirst;
}

}  // namespace tenon::server
