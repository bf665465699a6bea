// tenon config, and the flags by which every command is configured.
#include <gtest/gtest.h>

#include "cli/cli_testing.h"
#include "manager/config/settings.h"

namespace tenon::cli::testing {
namespace {

boost::json::object setting(const Outcome& outcome, const std::string& name) {
  const boost::json::object document = outcome.json();
  for (const auto& entry : document.at("settings").as_array())
    if (entry.at("name").as_string() == name) return entry.as_object();
  ADD_FAILURE() << "no setting " << name << " in " << outcome.out;
  return {};
}

TEST(ConfigCommand, ShowsEverySettingWithValueAndOrigin) {
  const Outcome shown = tenon({"config"}, {.environment = {{"COMPUTE_PREFER", "cpu"}}});
  EXPECT_EQ(shown.status, 0);
  for (const char* part : {"memory_strategy", "balanced", "default", "COMPUTE_PREFER", "keep_open", "no configuration file"})
    EXPECT_TRUE(contains(shown.out, part)) << part << " in\n" << shown.out;
}

TEST(ConfigCommand, JsonCarriesNameValueOriginDefaultAndVariables) {
  const Outcome shown = tenon({"config", "--json", "--set", "prefetch=5"}, {.environment = {{"COMPUTE_ALLOW_TPU", "false"}}});
  ASSERT_EQ(shown.status, 0) << shown.err;
  EXPECT_EQ(shown.json().at("schema"), 1);
  EXPECT_EQ(setting(shown, "prefetch").at("value"), "5");
  EXPECT_EQ(setting(shown, "prefetch").at("origin"), "--set");
  EXPECT_EQ(setting(shown, "prefetch").at("default"), "2");
  EXPECT_EQ(setting(shown, "allow_tpu").at("value"), "false");
  EXPECT_EQ(setting(shown, "allow_tpu").at("origin"), "COMPUTE_ALLOW_TPU");
  EXPECT_EQ(setting(shown, "memory_strategy").at("origin"), "default");
}

TEST(ConfigCommand, OneSettingIsExplained) {
  const Outcome shown = tenon({"config", "memory_fraction"});
  EXPECT_EQ(shown.status, 0);
  EXPECT_TRUE(contains(shown.out, "memory_fraction = auto")) << shown.out;
  EXPECT_TRUE(contains(shown.out, "a number from 0.1 to 1")) << shown.out;
  EXPECT_TRUE(contains(shown.out, "TENON_MEMORY_FRACTION")) << shown.out;
  EXPECT_FALSE(contains(shown.out, "keep_open")) << shown.out;
}

TEST(ConfigCommand, AnUnknownNameGetsTheNearestOne) {
  const Outcome refused = tenon({"config", "memory_fractoin"});
  EXPECT_EQ(refused.status, 3);
  EXPECT_TRUE(contains(refused.err, "did you mean 'memory_fraction'?")) << refused.err;
}

TEST(ConfigCommand, HelpTeachesWhereValuesComeFrom) {
  const Outcome help = tenon({"config", "--help"});
  EXPECT_EQ(help.status, 0);
  for (const char* part : {"--set NAME=VALUE", "TENON_CONFIG", "[prices]", "[[sim]]"})
    EXPECT_TRUE(contains(help.out, part)) << part;
}

TEST(ConfigFlags, StandBeforeOrBehindTheCommand) {
  for (const std::vector<std::string>& words : {std::vector<std::string>{"--set", "prefer=cpu", "config", "prefer", "--json"},
                                                {"config", "prefer", "--json", "--set", "prefer=cpu"},
                                                {"config", "--set=prefer=cpu", "prefer", "--json"}}) {
    const Outcome shown = tenon(words);
    ASSERT_EQ(shown.status, 0) << shown.out;
    EXPECT_EQ(setting(shown, "prefer").at("value"), "cpu");
  }
}

TEST(ConfigFlags, AWrongValueIsAUsageErrorOfAnyCommand) {
  const Outcome refused = tenon({"run", "1 + 1", "--set", "memory_fraction=2"});
  EXPECT_EQ(refused.status, 2);
  EXPECT_TRUE(contains(refused.err, "memory_fraction is '2', not a number from 0.1 to 1")) << refused.err;
  EXPECT_EQ(tenon({"run", "1 + 1", "--set", "memory_fraction"}).status, 2);
  EXPECT_EQ(tenon({"run", "1 + 1", "--config", "/nonexistent.toml"}).status, 3);
}

TEST(ConfigFlags, CommandsThatUseNoDeviceWorkWithABrokenConfiguration) {
  EXPECT_EQ(tenon({"ops", "softmax"}, {.environment = {{"TENON_ROUTING", "nonsense"}}}).status, 0);
  EXPECT_EQ(tenon({"devices"}, {.environment = {{"TENON_ROUTING", "nonsense"}}}).status, 2);
}

TEST(ConfigFlags, AFileOfOnesOwn) {
  if (!can_read_config_files()) GTEST_SKIP() << "built without toml++";
  const Folder folder;
  std::ofstream(folder / "mine.toml") << "prefetch = 9\n";
  const Outcome shown = tenon({"config", "--json", "--config", folder / "mine.toml"});
  EXPECT_EQ(setting(shown, "prefetch").at("value"), "9");
  EXPECT_EQ(setting(shown, "prefetch").at("origin").as_string(), (folder / "mine.toml") + " line 1");
  std::ofstream(folder / "wrong.toml") << "prefetc = 9\n";
  const Outcome refused = tenon({"devices", "--config", folder / "wrong.toml"});
  EXPECT_EQ(refused.status, 2);
  EXPECT_TRUE(contains(refused.err, "did you mean 'prefetch'?")) << refused.err;
}

}  // namespace
}  // namespace tenon::cli::testing
