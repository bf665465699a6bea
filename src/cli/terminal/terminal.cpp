#include "cli/terminal/terminal.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "tenon/error.h"

namespace tenon::cli {
namespace {

constexpr std::string_view kEnter = "\033[?1049h\033[?25l\033[H\033[2J";
constexpr std::string_view kLeave = "\033[?25h\033[?1049l";
constexpr std::array kEndings = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};

// What the handlers need; plain, as they may run at any moment.
termios original{};
int wake_fd = -1;
struct sigaction previous[32];  // by signal, as they were

void write_all(std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = write(STDOUT_FILENO, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return;
    text.remove_prefix(static_cast<std::size_t>(written));
  }
}

void enter_raw_mode() {
  termios raw = original;
  // Ctrl-C stays a signal.
  raw.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
  raw.c_cc[VMIN] = 0;
  raw.c_cc[VTIME] = 0;
  tcsetattr(STDIN_FILENO, TCSANOW, &raw);
  write_all(kEnter);
}

void leave_raw_mode() {
  write_all(kLeave);
  tcsetattr(STDIN_FILENO, TCSANOW, &original);
}

void end_by(int signal) {
  leave_raw_mode();
  sigaction(signal, &previous[signal], nullptr);
  raise(signal);
}

void wake(int) {
  const int before = errno;
  if (write(wake_fd, "r", 1) < 0) errno = before;
}

void stop(int) {
  const int before = errno;
  leave_raw_mode();
  raise(SIGSTOP);
  // Here again after SIGCONT.
  enter_raw_mode();
  if (write(wake_fd, "r", 1) < 0) errno = before;
  errno = before;
}

void handle(int signal, void (*handler)(int)) {
  struct sigaction action{};
  action.sa_handler = handler;
  sigemptyset(&action.sa_mask);
  sigaction(signal, &action, &previous[signal]);
}

}  // namespace

bool Terminal::is_possible() {
  const char* kind = std::getenv("TERM");
  return isatty(STDIN_FILENO) != 0 && isatty(STDOUT_FILENO) != 0 && (kind == nullptr || std::strcmp(kind, "dumb") != 0);
}

Terminal::Terminal() {
  std::array<int, 2> ends{};
  if (tcgetattr(STDIN_FILENO, &original) != 0 || pipe2(ends.data(), O_CLOEXEC | O_NONBLOCK) != 0)
    throw Error(ErrorCode::unavailable, "this terminal cannot show a live table", "use --once");
  wake_ = FileDescriptor(ends[0]);
  wake_fd = ends[1];
  for (const int signal : kEndings) handle(signal, end_by);
  handle(SIGWINCH, wake);
  handle(SIGTSTP, stop);
  enter_raw_mode();
}

Terminal::~Terminal() {
  leave_raw_mode();
  for (const int signal : kEndings) sigaction(signal, &previous[signal], nullptr);
  sigaction(SIGWINCH, &previous[SIGWINCH], nullptr);
  sigaction(SIGTSTP, &previous[SIGTSTP], nullptr);
  close(std::exchange(wake_fd, -1));
}

TerminalSize Terminal::size() const {
  winsize size{};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0 || size.ws_row == 0) return {};
  return {.width = size.ws_col, .height = size.ws_row};
}

void Terminal::show(const std::vector<std::string>& lines) const {
  std::string text = "\033[H";
  for (std::size_t i = 0; i < lines.size(); ++i) {
    text += lines[i] + "\033[0m\033[K";
    // Not after the last line of a full screen: that would scroll it.
    if (i + 1 < lines.size()) text += "\r\n";
  }
  write_all(text + "\033[J");
}

Terminal::Input Terminal::wait(std::chrono::milliseconds timeout, std::string& keys) const {
  keys.clear();
  std::array<pollfd, 2> watched{
      {{.fd = STDIN_FILENO, .events = POLLIN, .revents = 0}, {.fd = wake_.get(), .events = POLLIN, .revents = 0}}};
  const int ready = poll(watched.data(), watched.size(), static_cast<int>(timeout.count()));
  if (ready < 0 && errno != EINTR) return Input::ended;
  std::array<char, 64> buffer{};
  if ((watched[1].revents & POLLIN) != 0 || ready < 0) {
    while (read(wake_.get(), buffer.data(), buffer.size()) > 0) {
    }
    return Input::resized;
  }
  if ((watched[0].revents & POLLIN) != 0) {
    const ssize_t got = read(STDIN_FILENO, buffer.data(), buffer.size());
    if (got <= 0) return Input::ended;
    keys.assign(buffer.data(), static_cast<std::size_t>(got));
    return Input::keys;
  }
  if ((watched[0].revents & (POLLHUP | POLLERR | POLLNVAL)) != 0) return Input::ended;
  return Input::nothing;
}

}  // namespace tenon::cli
