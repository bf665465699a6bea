#include "base/log.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <boost/json.hpp>
#include <cstdlib>
#include <thread>

namespace tenon::logging {
namespace {

using Clock = std::chrono::system_clock;
using std::chrono::milliseconds;
using std::chrono::seconds;

// A logger whose clock and lines the test holds.
struct TestLog {
  Clock::time_point now{seconds(1'700'000'000) + milliseconds(45)};
  std::vector<Line> lines;
  Logger logger;

  explicit TestLog(Level level = Level::debug)
      : logger({.level = level, .sink = [this](const Line& line) { lines.push_back(line); }, .now = [this] { return now; }}) {}

  template <typename... Arguments>
  void write(Level level, fmt::format_string<Arguments...> format, Arguments&&... arguments) {
    if (logger.is_enabled(level)) logger.write(level, format, fmt::make_format_args(arguments...));
  }
};

// What a child with these variables writes to its standard error.
std::string stderr_of_child(const std::vector<std::pair<const char*, const char*>>& environment, void (*body)()) {
  std::array<int, 2> ends{};
  EXPECT_EQ(pipe(ends.data()), 0);
  const pid_t child = fork();
  if (child == 0) {
    dup2(ends[1], STDERR_FILENO);
    unsetenv("TENON_LOG");
    unsetenv("TENON_LOG_FORMAT");
    for (const auto& [name, value] : environment) setenv(name, value, 1);
    body();
    _exit(0);
  }
  close(ends[1]);
  std::string text;
  std::array<char, 4096> part{};
  for (ssize_t got = 0; (got = read(ends[0], part.data(), part.size())) > 0;)
    text.append(part.data(), static_cast<std::size_t>(got));
  close(ends[0]);
  waitpid(child, nullptr, 0);
  return text;
}

TEST(Log, ALineHasTimeLevelAndMessage) {
  TestLog here;
  here.write(Level::warn, "{} took {} ms to open", "cuda:0", 812);
  ASSERT_EQ(here.lines.size(), 1U);
  EXPECT_EQ(text_of(here.lines[0]), "2023-11-14T22:13:20.045Z tenon warn: cuda:0 took 812 ms to open");
}

TEST(Log, AsJsonItIsOneObjectALine) {
  TestLog here;
  here.write(Level::error, "close of {} failed:\n\"bus error\"", "tpu:0");
  const std::string text = json_of(here.lines.at(0));
  EXPECT_EQ(text.find('\n'), std::string::npos);
  const boost::json::object line = boost::json::parse(text).as_object();
  EXPECT_EQ(line.at("time").as_string(), "2023-11-14T22:13:20.045Z");
  EXPECT_EQ(line.at("level").as_string(), "error");
  EXPECT_EQ(line.at("pid").as_int64(), getpid());
  EXPECT_EQ(line.at("message").as_string(), "close of tpu:0 failed:\n\"bus error\"");
}

TEST(Log, AMessageCannotBreakTheLineOrCommandTheTerminal) {
  const std::string text = text_of({Level::info, {}, "program \x1b[2J\nevil"});
  EXPECT_TRUE(text.ends_with("program \\x1b[2J\\nevil")) << text;
}

TEST(Log, LinesBelowTheLevelAreNotMade) {
  TestLog here(Level::warn);
  here.write(Level::info, "opened {}", 1);
  EXPECT_TRUE(here.lines.empty());
  here.write(Level::warn, "slow {}", 1);
  EXPECT_EQ(here.lines.size(), 1U);
  TestLog silent(Level::off);
  silent.write(Level::error, "failed {}", 1);
  EXPECT_TRUE(silent.lines.empty());
}

TEST(Log, EveryLevelHasANameAndOtherTextHasNone) {
  for (const Level level : {Level::debug, Level::info, Level::warn, Level::error, Level::off})
    EXPECT_EQ(level_of(name(level)), level);
  EXPECT_EQ(level_of("loud"), std::nullopt);
  EXPECT_EQ(level_of(""), std::nullopt);
}

TEST(Log, ARepeatedLineIsLimitedAndTheRestCounted) {
  TestLog here;
  for (int i = 0; i < 25; ++i) {
    here.write(Level::warn, "close failed {} times", i);
    here.now += milliseconds(100);
  }
  EXPECT_EQ(here.lines.size(), 10U);
  here.now += seconds(10);
  here.write(Level::warn, "close failed {} times", 99);
  EXPECT_EQ(here.lines.size(), 11U);
  here.write(Level::warn, "something else {}", 1);
  EXPECT_EQ(here.lines.back().message, "something else 1");
}

TEST(Log, TheFirstLineOfANewWindowSaysHowManyWereLeftOut) {
  TestLog here;
  const auto repeat = [&](int i) { here.write(Level::warn, "lost {}", i); };
  for (int i = 0; i < 25; ++i) repeat(i);
  here.now += seconds(10);
  repeat(25);
  EXPECT_EQ(here.lines.back().message, "lost 25 (15 similar lines were suppressed)");
  repeat(26);
  EXPECT_EQ(here.lines.back().message, "lost 26");
}

TEST(Log, AClockSetBackDoesNotSilenceIt) {
  TestLog here;
  const auto repeat = [&] { here.write(Level::warn, "again {}", 0); };
  for (int i = 0; i < 25; ++i) repeat();
  here.now -= seconds(3600);
  repeat();
  EXPECT_EQ(here.lines.size(), 11U);
}

TEST(Log, ACaptureTakesTheProcessesLinesAndGivesThemBack) {
  Capture outer;
  {
    const Capture inner;
    debug("inside {}", 1);
    EXPECT_EQ(inner.messages(), std::vector<std::string>{"inside 1"});
  }
  info("outside {}", 2);
  EXPECT_EQ(outer.messages(), std::vector<std::string>{"outside 2"});
  EXPECT_TRUE(outer.has("side 2"));
  EXPECT_FALSE(outer.has("inside"));
}

TEST(Log, ThreadsWriteWholeLines) {
  Capture lines;
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 4; ++thread)
    threads.emplace_back([thread] {
      for (int i = 0; i < 2; ++i) warn("thread {} line {}", thread, i);
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(lines.lines().size(), 8U);
  for (int thread = 0; thread < 4; ++thread) EXPECT_TRUE(lines.has(fmt::format("thread {} line 1", thread)));
}

TEST(Log, ByDefaultWarningsGoToStandardErrorAndInformationDoesNot) {
  const std::string text = stderr_of_child({}, [] {
    info("opened cuda:{}", 0);
    warn("cuda:{} opened slowly", 0);
  });
  EXPECT_TRUE(text.ends_with("Z tenon warn: cuda:0 opened slowly\n")) << text;
  EXPECT_EQ(text.find("opened cuda:0"), std::string::npos);
}

TEST(Log, TheEnvironmentChoosesLevelAndFormat) {
  const std::string text = stderr_of_child({{"TENON_LOG", "info"}, {"TENON_LOG_FORMAT", "json"}}, [] {
    Logger logger(options_of_environment());
    if (!logger.is_enabled(Level::debug)) logger.write(Level::info, "opened cuda:0", {});
  });
  const boost::json::object line = boost::json::parse(text).as_object();
  EXPECT_EQ(line.at("message").as_string(), "opened cuda:0");
  EXPECT_EQ(stderr_of_child({{"TENON_LOG", "off"}},
                            [] {
                              Logger logger(options_of_environment());
                              if (logger.is_enabled(Level::error)) logger.write(Level::error, "failed", {});
                            }),
            "");
}

}  // namespace
}  // namespace tenon::logging
