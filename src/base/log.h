// Log lines on standard error, for events of devices and files that are not part of the answer to a call.
//
// TENON_LOG sets the lowest level that is logged (debug, info, warn, error, off; default warn). TENON_LOG_FORMAT=json writes each
// line as a JSON object. Each line is one write, so lines of processes that share a terminal do not mix. Each call site (one
// format string) may write ten lines in ten seconds; the next line after that reports how many were suppressed. A line below the
// level costs one comparison. The namespace is not called log, because that is the name of a function.
//
// Thread safety: all functions may be called from any thread. None throws or blocks for longer than standard error does.
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
// nullopt if the text is not a level.
std::optional<Level> level_of(std::string_view text) noexcept;

struct Line {
  Level level{};
  std::chrono::system_clock::time_point when;
  std::string message;
};

// "2026-11-15T06:30:12.345Z tenon warn: ..." and {"time": ..., "level": ..., "pid": ..., "message": ...}; without a line feed.
// Line feeds and control characters in the message are escaped.
std::string text_of(const Line& line);
std::string json_of(const Line& line);

// Formats lines and passes them to a sink. The process has one; tests create their own.
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

// Options from the current TENON_LOG and TENON_LOG_FORMAT.
Logger::Options options_of_environment();

// The logger of this process: created from the environment at the first line, unless a Capture has replaced it.
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

// Captures the process's lines of all levels for a test until it is destroyed; captures may be nested. The test must ensure that
// no thread is still writing when it is destroyed.
class Capture {
 public:
  Capture();
  ~Capture();
  Capture(const Capture&) = delete;
  Capture& operator=(const Capture&) = delete;

  std::vector<Line> lines() const;
  std::vector<std::string> messages() const;
  bool has(std::string_view part) const;  // whether a message contains |part|

 private:
  struct State;
  std::shared_ptr<State> state_;
  Logger logger_;
  Logger* before_;
};

}  // namespace tenon::logging
