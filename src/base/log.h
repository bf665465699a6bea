// Log lines: what happened to a device or a file that nobody asked about at that moment, on standard error.
//
// TENON_LOG says from which level on (debug, info, warn, error, off; warn when unset), TENON_LOG_FORMAT=json makes each line a
// JSON object. Each line is one write, so that processes that share a terminal do not mix. Of lines from one place in the
// program (one format) ten within ten seconds are written; the next one after that says how many were left out. A line below
// the level costs one comparison. Not in a namespace called log: that is a function's name, here as in mathematics.
//
// Thread safety: everything may be called from anywhere. Nothing here throws or blocks for longer than standard error does.
//
//   logging::warn("{} took {} to open", id, format_seconds(seconds));
//   logging::Capture lines;  ... EXPECT_EQ(lines.messages(), std::vector<std::string>{"cuda:0 took 1.2 s to open"});
#pragma once

#include <fmt/format.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tenon::logging {

enum class Level : std::uint8_t { debug, info, warn, error, off };
std::string_view name(Level level) noexcept;
// None for text that names no level.
std::optional<Level> level_of(std::string_view text) noexcept;

struct Line {
  Level level{};
  std::chrono::system_clock::time_point when;
  std::string message;
};

// "2026-11-15T06:30:12.345Z tenon warn: ..." and {"time": ..., "level": ..., "pid": ..., "message": ...}; no line feed. A
// message's own line feeds and control characters are escaped.
std::string text_of(const Line& line);
std::string json_of(const Line& line);

// What makes lines and where they go. The process has one; tests make their own.
class Logger {
 public:
  struct Options {
    Level level = Level::warn;
    std::function<void(const Line&)> sink = {};  // {}: standard error, as text
    std::function<std::chrono::system_clock::time_point()> now = std::chrono::system_clock::now;
  };
  explicit Logger(Options options);
  ~Logger();

  bool is_enabled(Level level) const noexcept { return level >= level_.load(std::memory_order_relaxed); }
  void write(Level level, fmt::string_view format, fmt::format_args arguments) noexcept;

 private:
  struct Places;
  std::atomic<Level> level_;
  Options options_;
  std::unique_ptr<Places> places_;
};

// As TENON_LOG and TENON_LOG_FORMAT say now.
Logger::Options options_of_environment();

// What this process's lines go through: made from the environment at the first line, or what a Capture has put in its place.
Logger& process_logger() noexcept;

template <typename... Arguments>
void write(Level level, fmt::format_string<Arguments...> format, Arguments&&... arguments) noexcept {
  Logger& logger = process_logger();
  if (logger.is_enabled(level)) logger.write(level, format, fmt::make_format_args(arguments...));
}
template <typename... Arguments>
void debug(fmt::format_string<Arguments...> format, Arguments&&... arguments) noexcept {
  write(Level::debug, format, std::forward<Arguments>(arguments)...);
}
template <typename... Arguments>
void info(fmt::format_string<Arguments...> format, Arguments&&... arguments) noexcept {
  write(Level::info, format, std::forward<Arguments>(arguments)...);
}
template <typename... Arguments>
void warn(fmt::format_string<Arguments...> format, Arguments&&... arguments) noexcept {
  write(Level::warn, format, std::forward<Arguments>(arguments)...);
}
template <typename... Arguments>
void error(fmt::format_string<Arguments...> format, Arguments&&... arguments) noexcept {
  write(Level::error, format, std::forward<Arguments>(arguments)...);
}

// Takes the process's lines for a test, all levels, until dropped; captures may be nested. A thread that still writes to it while
// it is dropped is a mistake of the test.
class Capture {
 public:
  Capture();
  ~Capture();
  Capture(const Capture&) = delete;
  Capture& operator=(const Capture&) = delete;

  std::vector<Line> lines() const;
  std::vector<std::string> messages() const;
  bool has(std::string_view part) const;  // a message with |part| in it

 private:
  struct State;
  std::shared_ptr<State> state_;
  Logger logger_;
  Logger* before_;
};

}  // namespace tenon::logging
