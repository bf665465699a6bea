#include "base/log.h"

#include <fmt/chrono.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <boost/json.hpp>
#include <cstdlib>
#include <map>
#include <mutex>

#include "base/threads/fork_mutex.h"

namespace tenon::logging {
namespace {

using Clock = std::chrono::system_clock;

constexpr std::array<std::string_view, 5> kNames = {"debug", "info", "warn", "error", "off"};
constexpr int kLinesOfOnePlace = 10;
constexpr std::chrono::seconds kWindow{10};

std::string time_text(Clock::time_point when) {
  const auto milliseconds = std::chrono::duration_cast<std::chrono::milliseconds>(when.time_since_epoch()).count();
  const std::int64_t rest = ((milliseconds % 1000) + 1000) % 1000;
  const std::time_t seconds = static_cast<std::time_t>((milliseconds - rest) / 1000);
  return fmt::format("{:%Y-%m-%dT%H:%M:%S}.{:03}Z", fmt::gmtime(seconds), rest);
}

// A message may contain a program's name or a path: keep it on one line and free of terminal control sequences.
std::string printable(std::string_view message) {
  std::string text;
  text.reserve(message.size());
  for (const char c : message) {
    const auto code = static_cast<unsigned char>(c);
    if (c == '\n')
      text += "\\n";
    else if (code < 0x20 || code == 0x7f)
      text += fmt::format("\\x{:02x}", code);
    else
      text += c;
  }
  return text;
}

void write_to_stderr(std::string text) {
  text += '\n';
  const char* from = text.data();
  std::size_t left = text.size();
  while (left > 0) {
    const ssize_t written = ::write(STDERR_FILENO, from, left);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return;
    from += written;
    left -= static_cast<std::size_t>(written);
  }
}

std::atomic<Logger*> current{nullptr};

}  // namespace

std::string_view name(Level level) noexcept { return kNames[static_cast<std::size_t>(level)]; }

std::optional<Level> level_of(std::string_view text) noexcept {
  const auto found = std::find(kNames.begin(), kNames.end(), text);
  if (found == kNames.end()) return std::nullopt;
  return static_cast<Level>(found - kNames.begin());
}

std::string text_of(const Line& line) {
  return fmt::format("{} tenon {}: {}", time_text(line.when), name(line.level), printable(line.message));
}

std::string json_of(const Line& line) {
  return boost::json::serialize(boost::json::object{
      {"time", time_text(line.when)}, {"level", name(line.level)}, {"pid", getpid()}, {"message", line.message}});
}

// How often each call site, identified by the address of its format, has written in its window.
struct Logger::Places {
  struct Place {
    Clock::time_point window_begin;
    int written = 0, left_out = 0;
  };
  ForkMutex mutex;
  std::map<const char*, Place> all;

  // nullopt: suppress this line. Otherwise the number of lines suppressed before it.
  std::optional<int> admit(const char* format, Clock::time_point now) {
    Place& place = all[format];
    // A clock that was set back also starts a new window.
    if (now >= place.window_begin + kWindow || now < place.window_begin) {
      const int left_out = place.left_out;
      place = {.window_begin = now, .written = 1};
      return left_out;
    }
    if (place.written == kLinesOfOnePlace) {
      ++place.left_out;
      return std::nullopt;
    }
    ++place.written;
    return 0;
  }
};

Logger::Logger(Options options) : level_(options.level), options_(std::move(options)), places_(std::make_unique<Places>()) {
  if (!options_.sink) options_.sink = [](const Line& line) { write_to_stderr(text_of(line)); };
}

Logger::~Logger() = default;

void Logger::write(Level level, fmt::string_view format, fmt::format_args arguments) noexcept {
  try {
    Line line{.level = level, .when = options_.now(), .message = {}};
    const std::lock_guard lock(places_->mutex);
    const std::optional<int> left_out = places_->admit(format.data(), line.when);
    if (!left_out) return;
    line.message = fmt::vformat(format, arguments);
    if (*left_out > 0) line.message += fmt::format(" ({} similar lines were suppressed)", *left_out);
    options_.sink(line);
  } catch (...) {
    // If there is no memory for the line, drop it.
  }
}

Logger::Options options_of_environment() {
  const auto given = [](const char* variable) {
    const char* value = std::getenv(variable);
    return std::string(value != nullptr ? value : "");
  };
  Logger::Options options;
  const std::string level = given("TENON_LOG");
  options.level = level_of(level).value_or(Level::warn);
  if (given("TENON_LOG_FORMAT") == "json") options.sink = [](const Line& line) { write_to_stderr(json_of(line)); };
  return options;
}

Logger& process_logger() noexcept {
  if (Logger* logger = current.load(std::memory_order_acquire)) return *logger;
  // Never destroyed, because late threads and destructors of static objects may still write.
  static Logger* const process = new Logger(options_of_environment());
  Logger* expected = nullptr;
  current.compare_exchange_strong(expected, process, std::memory_order_acq_rel);
  return expected != nullptr ? *expected : *process;
}

struct Capture::State {
  mutable std::mutex mutex;
  std::vector<Line> lines;
};

Capture::Capture()
    : state_(std::make_shared<State>()),
      logger_({.level = Level::debug,
               .sink =
                   [state = state_](const Line& line) {
                     const std::lock_guard lock(state->mutex);
                     state->lines.push_back(line);
                   }}),
      before_(&process_logger()) {
  current.store(&logger_, std::memory_order_release);
}

Capture::~Capture() { current.store(before_, std::memory_order_release); }

std::vector<Line> Capture::lines() const {
  const std::lock_guard lock(state_->mutex);
  return state_->lines;
}

std::vector<std::string> Capture::messages() const {
  std::vector<std::string> messages;
  for (const Line& line : lines()) messages.push_back(line.message);
  return messages;
}

bool Capture::has(std::string_view part) const {
  const std::vector<std::string> all = messages();
  return std::any_of(all.begin(), all.end(), [&](const std::string& message) { return message.find(part) != std::string::npos; });
}

}  // namespace tenon::logging
