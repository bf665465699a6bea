#include <gtest/gtest.h>

#include "cli/cli_testing.h"
#include "cli/terminal/top_screen.h"

namespace tenon::cli {
namespace {

using testing::contains;
using testing::Folder;
using Key = TopScreen::Key;

Turnstile::Position place(bool is_holding, int pid) {
  Turnstile::Position made;
  made.is_holding = is_holding;
  made.is_known = true;
  made.pid = pid;
  made.is_in_this_pid_namespace = true;
  made.command = "train.py";
  made.since = std::chrono::system_clock::now();
  return made;
}

DeviceSample device(const std::string& id, std::optional<double> utilisation = std::nullopt, std::uint64_t used_gib = 0) {
  DeviceSample sample;
  sample.device.id = sample.queue.device = id;
  sample.device.kind = DeviceKind::gpu;
  sample.device.name = "A card";
  sample.device.memory_total_bytes = std::uint64_t{80} << 30;
  sample.device.memory_free_bytes = (std::uint64_t{80} - used_gib) << 30;
  sample.utilisation = utilisation;
  return sample;
}

std::string joined(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += line + '\n';
  return text;
}

// The ids in the order they are listed.
std::vector<std::string> listed(const TopScreen& screen) {
  std::vector<std::string> ids;
  for (const std::string& line : screen.plain()) ids.push_back(line.substr(0, line.find(' ')));
  ids.erase(ids.begin());
  return ids;
}

TEST(Sparkline, HasACharacterForEachValue) {
  EXPECT_EQ(sparkline({0.0, 0.5, 1.0}, false), "▁▅█");
  EXPECT_EQ(sparkline({0.0, std::nullopt, 1.0}, true), "_ #");
  EXPECT_EQ(sparkline({-3.0, 7.0}, true), "_#");
  EXPECT_EQ(sparkline({}, false), "");
}

TEST(Fitted, CutsAtCharactersNotBytes) {
  EXPECT_EQ(fitted("▁▂▃", 2), "▁▂");
  EXPECT_EQ(fitted("abc", 10), "abc");
  EXPECT_EQ(fitted("abc", 0), "");
}

TEST(DeviceSample, StateSaysWhoHasIt) {
  DeviceSample sample = device("cuda:0");
  EXPECT_EQ(sample.state(), "free");
  EXPECT_EQ(sample.holder(), "");
  sample.queue.is_dirty = true;
  EXPECT_EQ(sample.state(), "dirty");
  sample.device.available = false;
  sample.device.reason = "no driver";
  EXPECT_EQ(sample.state(), "unusable");
  EXPECT_EQ(sample.holder(), "no driver");
  sample.device.holders = {7, 9};
  EXPECT_EQ(sample.state(), "in use");
  EXPECT_EQ(sample.holder(), "pid 7, 9");
  sample.queue.places = {place(true, 4711), place(false, 4712), place(false, 4713)};
  EXPECT_EQ(sample.state(), "held");
  EXPECT_TRUE(contains(sample.holder(), "4711")) << sample.holder();
  EXPECT_EQ(sample.waiting(), 2);
  sample.queue.places[0].kind = TicketKind::shared;
  EXPECT_EQ(sample.state(), "shared");
}

TEST(Utilisation, IsWhatTheMakersSoftwareSays) {
  DeviceInfo card;
  card.kind = DeviceKind::gpu;
  EXPECT_EQ(utilisation_of(card, 0.5), std::nullopt) << "the load of the CPU is not that of the card";
  card.details["utilization"] = "37 %";
  EXPECT_DOUBLE_EQ(utilisation_of(card, std::nullopt).value(), 0.37);
  card.details["utilization"] = "unknown";
  EXPECT_EQ(utilisation_of(card, std::nullopt), std::nullopt);
  DeviceInfo processor;
  EXPECT_EQ(utilisation_of(processor, 0.5), 0.5);
}

TEST(TopScreen, ShowsWhatIsKnownOfEachDevice) {
  TopScreen screen;
  DeviceSample card = device("cuda:0", 0.37, 20);
  card.device.power_watts = 310;
  card.device.power_limit_watts = 700;
  card.device.temperature_celsius = 61;
  card.queue.places = {place(true, 4711), place(false, 4712)};
  screen.add({.when = {}, .devices = {card}});
  const std::string text = joined(screen.lines({.width = 200, .height = 30}));
  for (const char* part :
       {"cuda:0", "held", "1 wait", "37 %", "20.0 GiB of 80.0 GiB", "310 of 700 W", "61 C", "4711", "waits, 1"})
    EXPECT_TRUE(contains(text, part)) << part << '\n' << text;
}

TEST(TopScreen, KeepsAHistoryOfItsSamples) {
  TopScreen screen;
  for (const double value : {0.0, 0.5, 1.0}) screen.add({.when = {}, .devices = {device("cuda:0", value)}});
  EXPECT_TRUE(contains(joined(screen.lines({.width = 200})), " ▁▅█ "));
  EXPECT_TRUE(contains(joined(screen.lines({.width = 200, .ascii = true})), " _-# "));
  screen.add({.when = {}, .devices = {device("cuda:1", 1.0)}});
  screen.add({.when = {}, .devices = {device("cuda:0", 1.0)}});
  EXPECT_FALSE(contains(joined(screen.lines({.width = 200})), "▁▅█")) << "a device that was gone starts again";
}

TEST(TopScreen, FitsAnyTerminal) {
  TopScreen screen;
  TopSample sample;
  for (int i = 0; i < 50; ++i) sample.devices.push_back(device("cuda:" + std::to_string(i), 0.5, 10));
  screen.add(sample);
  for (const int height : {1, 2, 5, 10, 24, 100})
    for (const int width : {1, 7, 40, 80, 300}) {
      const std::vector<std::string> lines = screen.lines({.width = width, .height = height});
      EXPECT_LE(lines.size(), static_cast<std::size_t>(height));
      for (const std::string& line : lines) EXPECT_EQ(fitted(line, static_cast<std::size_t>(width)), line);
    }
}

TEST(TopScreen, ScrollsToTheSelectedDevice) {
  TopScreen screen;
  TopSample sample;
  for (int i = 0; i < 50; ++i) sample.devices.push_back(device("cuda:" + std::to_string(i)));
  screen.add(sample);
  EXPECT_EQ(screen.selected(), "cuda:0");
  for (int i = 0; i < 30; ++i) EXPECT_TRUE(screen.press(Key::down));
  EXPECT_EQ(screen.selected(), "cuda:30");
  EXPECT_TRUE(contains(joined(screen.lines({.width = 100, .height = 20})), "> cuda:30"));
  screen.press(Key::end);
  EXPECT_EQ(screen.selected(), "cuda:49");
  screen.press(Key::down);
  EXPECT_EQ(screen.selected(), "cuda:49");
  screen.press(Key::page_up);
  EXPECT_EQ(screen.selected(), "cuda:39");
  screen.press(Key::home);
  EXPECT_EQ(screen.selected(), "cuda:0");
}

TEST(TopScreen, SortsByWhatTheKeySays) {
  TopScreen screen;
  DeviceSample busy = device("cuda:2", 0.9, 1), full = device("cuda:1", 0.1, 70), wanted = device("cuda:0", 0.0, 0);
  full.queue.places = {place(true, 1), place(false, 2)};
  screen.add({.when = {}, .devices = {wanted, full, busy}});
  using Ids = std::vector<std::string>;
  EXPECT_EQ(listed(screen), (Ids{"cuda:0", "cuda:1", "cuda:2"}));
  screen.press(Key::sort);
  EXPECT_EQ(screen.order(), TopOrder::utilisation);
  EXPECT_EQ(listed(screen), (Ids{"cuda:2", "cuda:1", "cuda:0"}));
  screen.press(Key::sort);
  EXPECT_EQ(listed(screen), (Ids{"cuda:1", "cuda:2", "cuda:0"}));
  screen.press(Key::sort);
  EXPECT_EQ(screen.order(), TopOrder::queue);
  EXPECT_EQ(listed(screen).front(), "cuda:1");
  screen.press(Key::reverse);
  EXPECT_EQ(listed(screen).back(), "cuda:1");
  screen.press(Key::sort);
  EXPECT_EQ(screen.order(), TopOrder::id);
}

TEST(TopScreen, ItsSetupIsALineThatAnotherOneTakesOver) {
  TopScreen first, second;
  EXPECT_EQ(first.setup(), "id forward ");
  first.press(Key::sort);
  first.press(Key::reverse);
  first.press(Key::filter);
  for (const char letter : {'m', 'y', ' ', 'c'}) first.type(letter);
  first.type('\n');
  second.set_up(first.setup());
  EXPECT_EQ(second.setup(), first.setup());
  EXPECT_EQ(second.order(), TopOrder::utilisation);
  for (const char* damaged : {"", "id", "id sideways x", "nothing forward x", "id forward \033[2J"}) second.set_up(damaged);
  EXPECT_EQ(second.setup(), first.setup());
}

TEST(TopScreen, TheSelectionStaysOnItsDeviceWhenTheOrderChanges) {
  TopScreen screen;
  screen.add({.when = {}, .devices = {device("cuda:0", 0.1), device("cuda:1", 0.9)}});
  screen.press(Key::sort);
  EXPECT_EQ(screen.selected(), "cuda:0");
  screen.add({.when = {}, .devices = {device("cuda:1", 0.9)}});
  EXPECT_EQ(screen.selected(), "cuda:1") << "its device is gone";
  screen.add({.when = {}, .devices = {}});
  EXPECT_EQ(screen.selected(), "");
  EXPECT_FALSE(screen.lines({}).empty());
}

TEST(TopScreen, OnlyQuitEndsIt) {
  TopScreen screen;
  for (const Key key : {Key::none, Key::up, Key::down, Key::sort, Key::reverse, Key::home, Key::end})
    EXPECT_TRUE(screen.press(key));
  EXPECT_FALSE(screen.press(Key::quit));
}

TEST(Top, PrintsTheTableOnceWhereThereIsNoTerminal) {
  const Folder folder;
  const testing::Outcome shown = testing::tenon({"top"}, {.environment = {{"TENON_RUN_DIR", folder / "run"}}});
  EXPECT_EQ(shown.status, 0);
  EXPECT_TRUE(shown.out.starts_with("ID")) << shown.out;
  EXPECT_TRUE(contains(shown.out, "cpu:0")) << shown.out;
  EXPECT_FALSE(contains(shown.out, "\033"));
}

TEST(Top, JsonHasEveryDevice) {
  const Folder folder;
  const testing::Outcome shown =
      testing::tenon({"top", "--once", "--json"}, {.environment = {{"TENON_RUN_DIR", folder / "run"}}});
  const boost::json::object document = shown.json();
  EXPECT_EQ(document.at("schema").as_int64(), 1);
  bool has_cpu = false;
  for (const boost::json::value& entry : document.at("devices").as_array()) {
    const boost::json::object& each = entry.as_object();
    for (const char* key :
         {"state", "holder", "waiting", "memory_used_bytes", "utilisation", "power_watts", "temperature_celsius", "queue"})
      EXPECT_TRUE(each.contains(key)) << key;
    // Bytes are whole numbers wherever they stand.
    if (!each.at("memory_used_bytes").is_null()) EXPECT_FALSE(each.at("memory_used_bytes").is_double()) << each;
    has_cpu |= each.at("id").as_string() == "cpu:0";
  }
  EXPECT_TRUE(has_cpu);
}

TEST(Top, AnIntervalOfNothingIsAUsageError) { EXPECT_EQ(testing::tenon({"top", "--interval", "0"}).status, 2); }

TEST(TopScreen, FilterShowsTheDevicesThatContainTheText) {
  TopScreen screen;
  screen.add({std::chrono::system_clock::now(), {device("cuda:0"), device("cuda:1"), device("tenstorrent:0")}});
  EXPECT_TRUE(screen.press(Key::filter));
  for (const char c : std::string("TENs")) screen.type(c);
  EXPECT_TRUE(contains(joined(screen.lines({.width = 120, .height = 30})), "filter: TENs_"));
  EXPECT_EQ(listed(screen), std::vector<std::string>{"tenstorrent:0"});
  EXPECT_EQ(screen.selected(), "tenstorrent:0");
  screen.type('\r');
  EXPECT_FALSE(screen.is_typing());
  screen.press(Key::filter);
  screen.type('\033');
  EXPECT_EQ(listed(screen).size(), 3u);
}

TEST(TopScreen, KillAsksBeforeItNamesTheProcess) {
  TopScreen screen;
  DeviceSample held = device("cuda:0");
  held.queue.places = {place(true, 4711), place(false, 4712)};
  screen.add({std::chrono::system_clock::now(), {held}});
  screen.press(Key::kill);
  EXPECT_TRUE(contains(joined(screen.lines({.width = 120, .height = 30})), "End pid 4711, which holds cuda:0? y/n"));
  screen.type('n');
  EXPECT_FALSE(screen.take_kill());
  screen.press(Key::kill);
  screen.type('y');
  EXPECT_EQ(screen.take_kill(), 4711);
  EXPECT_FALSE(screen.take_kill());
  TopScreen free;
  free.add({std::chrono::system_clock::now(), {device("cuda:0")}});
  free.press(Key::kill);
  EXPECT_FALSE(free.is_typing());
}

}  // namespace
}  // namespace tenon::cli
