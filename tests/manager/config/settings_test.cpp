// Settings: what each takes, where its value comes from, and what is said when it is wrong.
#include "manager/config/settings.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <set>

#include "manager/refusal.h"
#include "temporary_folder.h"
#include "tenon/error.h"
#include "tenon/expression.h"

namespace tenon {
namespace {

using test::contains;
using test::refusal;

using Folder = test::TemporaryFolder;

using Variables = std::map<std::string, std::string>;

ConfigSources sources(Variables variables = {}, std::vector<std::pair<std::string, std::string>> flags = {},
                      std::string file = "") {
  return {.file = std::move(file),
          .flags = std::move(flags),
          .environment =
              [variables = std::move(variables)](const char* name) {
                const auto found = variables.find(name);
                return found == variables.end() ? std::string() : found->second;
              },
          .system_file = "/nonexistent/config.toml"};
}

Config loaded(Variables variables, std::vector<std::pair<std::string, std::string>> flags = {}) {
  return load_config(sources(std::move(variables), std::move(flags))).config;
}

TEST(Settings, WithoutAnySourceEveryValueIsTheDefault) {
  const LoadedConfig here = load_config(sources());
  EXPECT_EQ(here.config, Config{});
  for (const Setting& setting : settings()) EXPECT_EQ(here.origins.at(setting.name), "default") << setting.name;
  EXPECT_TRUE(here.warnings.empty());
}

TEST(Settings, NamesAndVariablesAreUniqueAndExplained) {
  std::set<std::string> names, variables;
  for (const Setting& setting : settings()) {
    EXPECT_TRUE(names.insert(setting.name).second) << setting.name;
    EXPECT_FALSE(setting.doc.empty()) << setting.name;
    EXPECT_FALSE(setting.takes.empty()) << setting.name;
    for (const std::string& variable : setting.variables) EXPECT_TRUE(variables.insert(variable).second) << variable;
  }
  for (const char* variable : {"COMPUTE_PREFER", "COMPUTE_ALLOW_TPU", "COMPUTE_TPU_BATCH_FACTOR"})
    EXPECT_TRUE(variables.count(variable)) << variable;
}

TEST(Settings, EveryValueShownCanBeSetAgain) {
  Config config;
  config.prefer = "tpu";
  config.linger_seconds = 2.5;
  config.prices = {{"cuda:0", 3.5}, {"NVIDIA H200", 4}};
  config.platform_priority = {DeviceKind::gpu, DeviceKind::cpu};
  config.memory_strategy = MemoryStrategy::custom;
  config.memory_fraction = 0.3;
  Config copy;
  for (const Setting& setting : settings())
    if (setting.set && setting.name != "environment") setting.set(copy, setting.get(config));
  EXPECT_EQ(copy, config);
}

TEST(Settings, AFlagIsStrongerThanTheEnvironmentAndThatThanTheFile) {
  if (!can_read_config_files()) GTEST_SKIP() << "built without toml++";
  const Folder folder;
  const std::string file = folder.write("config.toml", "prefer = \"tpu\"\nrouting = \"fastest\"\nprefetch = 7\n");
  const LoadedConfig here =
      load_config(sources({{"TENON_PREFER", "gpu"}, {"TENON_ROUTING", "cheapest"}}, {{"prefer", "cpu"}}, file));
  EXPECT_EQ(here.config.prefer, "cpu");
  EXPECT_EQ(here.config.routing, RoutingMode::cheapest);
  EXPECT_EQ(here.config.prefetch, 7);
  EXPECT_EQ(here.origins.at("prefer"), "--set");
  EXPECT_EQ(here.origins.at("routing"), "TENON_ROUTING");
  EXPECT_EQ(here.origins.at("prefetch"), file + " line 3");
  EXPECT_EQ(here.origins.at("worth"), "default");
  EXPECT_EQ(here.file, file);
}

TEST(Settings, TheOlderVariablesAreHonouredAndTheNewOnesAreStronger) {
  const Config config = loaded({{"COMPUTE_PREFER", "tpu"}, {"COMPUTE_ALLOW_TPU", "false"}, {"COMPUTE_TPU_BATCH_FACTOR", "64"}});
  EXPECT_EQ(config.prefer, "tpu");
  EXPECT_FALSE(config.allow_tpu);
  EXPECT_EQ(config.tpu_batch_factor, 64);
  EXPECT_EQ(loaded({{"COMPUTE_PREFER", "tpu"}, {"TENON_PREFER", "cpu"}}).prefer, "cpu");
}

TEST(Settings, TheFileIsTheNamedOneOrTheFirstOfTheUsualPlaces) {
  const Folder folder;
  const std::string given = folder.write("given.toml", "prefetch = 3\n");
  const std::string xdg = folder.write("xdg/tenon/config.toml", "prefetch = 4\n");
  const std::string home = folder.write("home/.config/tenon/config.toml", "prefetch = 5\n");
  const std::string system = folder.write("etc/config.toml", "prefetch = 6\n");
  const auto chosen = [&](Variables variables) {
    ConfigSources from = sources(std::move(variables));
    from.system_file = system;
    return find_config_file(from);
  };
  EXPECT_EQ(chosen({{"TENON_CONFIG", given}, {"XDG_CONFIG_HOME", folder / "xdg"}}), given);
  EXPECT_EQ(chosen({{"XDG_CONFIG_HOME", folder / "xdg"}, {"HOME", folder / "home"}}), xdg);
  EXPECT_EQ(chosen({{"HOME", folder / "home"}}), home);
  EXPECT_EQ(chosen({{"HOME", folder / "nowhere"}}), system);
}

TEST(Settings, AFileThatIsNamedMustBeThere) {
  EXPECT_TRUE(contains(refusal([] { load_config(sources({{"TENON_CONFIG", "/nonexistent/a.toml"}})); }, ErrorCode::not_found),
                       "/nonexistent/a.toml"));
  EXPECT_TRUE(contains(refusal([] { load_config(sources({}, {}, "/nonexistent/b.toml")); }, ErrorCode::not_found), "--config"));
}

TEST(Settings, TablesOfTheFileAreReadEntryByEntry) {
  if (!can_read_config_files()) GTEST_SKIP() << "built without toml++";
  const Folder folder;
  const std::string file = folder.write("config.toml", R"(platform_priority = ["gpu", "cpu"]
[prices]
"cuda:0" = 3.5
tpu = 1
[environment]
XLA_FLAGS = "--a=1,2 --b"
[[sim]]
architecture = "wormhole"
open = 0.25
[[sim]]
architecture = "tpu"
id = "sim-tpu:7"
)");
  const Config config = load_config(sources({}, {}, file)).config;
  EXPECT_EQ(config.platform_priority, (std::vector{DeviceKind::gpu, DeviceKind::cpu}));
  EXPECT_EQ(config.prices, (std::map<std::string, double>{{"cuda:0", 3.5}, {"tpu", 1}}));
  EXPECT_EQ(config.environment, (std::map<std::string, std::string>{{"XLA_FLAGS", "--a=1,2 --b"}}));
  ASSERT_EQ(config.simulated.size(), 2u);
  EXPECT_EQ(config.simulated[0].architecture, "wormhole");
  EXPECT_EQ(config.simulated[0].open_seconds, 0.25);
  EXPECT_EQ(config.simulated[1].id, "sim-tpu:7");
}

TEST(Settings, AVariableOfTheUserIsStrongerThanTheFilesEnvironmentTable) {
  if (!can_read_config_files()) GTEST_SKIP() << "built without toml++";
  const Folder folder;
  const std::string file = folder.write("config.toml", "[environment]\nXLA_FLAGS = \"file\"\nOTHER = \"file\"\n");
  const Config config = load_config(sources({{"XLA_FLAGS", "user"}}, {}, file)).config;
  EXPECT_EQ(config.environment.at("XLA_FLAGS"), "user");
  EXPECT_EQ(config.environment.at("OTHER"), "file");
}

TEST(Settings, EntriesOfTablesCanBeSetByFlagsOneByOne) {
  const Config config = loaded({{"TENON_PRICES", "gpu=1,tpu=2"}},
                               {{"prices.gpu", "9"}, {"environment.XLA_FLAGS", "--x=1"}, {"prices.NVIDIA H200", "4.5"}});
  EXPECT_EQ(config.prices, (std::map<std::string, double>{{"gpu", 9}, {"tpu", 2}, {"NVIDIA H200", 4.5}}));
  EXPECT_EQ(config.environment.at("XLA_FLAGS"), "--x=1");
}

TEST(Settings, SimulatedDevicesOfFlagsReplaceTheConfiguredOnes) {
  ConfigSources from = sources({{"TENON_SIM", "tpu; gpu"}});
  EXPECT_EQ(load_config(from).config.simulated.size(), 2u);
  from.simulated = {"wormhole,open=0.1"};
  const LoadedConfig here = load_config(from);
  ASSERT_EQ(here.config.simulated.size(), 1u);
  EXPECT_EQ(here.config.simulated[0].architecture, "wormhole");
  EXPECT_EQ(here.origins.at("sim"), "--sim");
}

TEST(Settings, AnUnknownKeyIsAnErrorWithTheNearestName) {
  if (!can_read_config_files()) GTEST_SKIP() << "built without toml++";
  const Folder folder;
  const std::string file = folder.write("config.toml", "prefer = \"cpu\"\nmemory_stratgy = \"balanced\"\n");
  const std::string said = refusal([&] { load_config(sources({}, {}, file)); });
  EXPECT_TRUE(contains(said, "line 2")) << said;
  EXPECT_TRUE(contains(said, "did you mean 'memory_strategy'?")) << said;
  EXPECT_TRUE(contains(refusal([] { loaded({}, {{"prefetchh", "1"}}); }), "did you mean 'prefetch'?"));
  EXPECT_TRUE(contains(refusal([] { loaded({}, {{"nothing_like_it", "1"}}); }), "list of settings"));
  const std::string table = folder.write("table.toml", "[prizes]\ngpu = 1\n");
  EXPECT_TRUE(contains(refusal([&] { load_config(sources({}, {}, table)); }), "prizes"));
}

TEST(Settings, AWrongValueNamesItsOriginAndWhatIsTaken) {
  const std::string said = refusal([] { loaded({{"TENON_MEMORY_FRACTION", "7"}}); });
  EXPECT_TRUE(contains(said, "TENON_MEMORY_FRACTION: memory_fraction is '7', not a number from 0.1 to 1")) << said;
  EXPECT_TRUE(contains(refusal([] { loaded({}, {{"routing", "best"}}); }), "one of prefer, fastest, cheapest, pinned"));
  for (const auto& [name, value] : std::vector<std::pair<std::string, std::string>>{{"prefetch", "2.5"},
                                                                                    {"prefetch", "-1"},
                                                                                    {"prefetch", "nan"},
                                                                                    {"prefetch", ""},
                                                                                    {"prefetch", "3x"},
                                                                                    {"allow_tpu", "maybe"},
                                                                                    {"platform_priority", "gpu,gpu"},
                                                                                    {"platform_priority", "toaster"},
                                                                                    {"linger_seconds", "-1"},
                                                                                    {"prices", "gpu"},
                                                                                    {"prices", "gpu=-1"},
                                                                                    {"prefer", ""},
                                                                                    {"prefer", "two words"},
                                                                                    {"environment", "=x"},
                                                                                    {"threads", "4"}})
    EXPECT_TRUE(contains(refusal([&] { loaded({}, {{name, value}}); }), "--set")) << name << "=" << value;
}

TEST(Settings, WhatIsNoTomlIsRefusedWithTheLine) {
  if (!can_read_config_files()) GTEST_SKIP() << "built without toml++";
  const Folder folder;
  const std::string file = folder.write("config.toml", "prefer = \"cpu\"\nrouting = fastest\n");
  EXPECT_TRUE(contains(refusal([&] { load_config(sources({}, {}, file)); }), "line 2"));
  const std::string date = folder.write("date.toml", "prefer = 1979-05-27\n");
  EXPECT_TRUE(contains(refusal([&] { load_config(sources({}, {}, date)); }), "prefer must be a text"));
  EXPECT_FALSE(refusal([&] { load_config(sources({}, {}, folder / "")); }).empty());
}

TEST(Settings, AKeyTooDeepForTheParserIsRefused) {
  if (!can_read_config_files()) GTEST_SKIP() << "built without toml++";
  const Folder folder;
  std::string deep = "a";
  for (int i = 0; i < 100'000; ++i) deep += ".a";
  for (const std::string& text : {"prefer = \"cpu\"\n[" + deep + "]\n", "\n  " + deep + " = 1\n"}) {
    const std::string file = folder.write("deep.toml", text);
    EXPECT_TRUE(contains(refusal([&] { load_config(sources({}, {}, file)); }), "line 2: a key has more than"));
  }
}

TEST(Settings, SettingsThatContradictEachOtherAreRefused) {
  EXPECT_TRUE(contains(refusal([] { loaded({}, {{"batch_min", "10"}, {"batch_max", "5"}}); }),
                       "batch_min (10) is greater than batch_max (5)"));
  EXPECT_TRUE(contains(refusal([] { loaded({}, {{"routing", "pinned"}}); }), "pinned"));
  EXPECT_EQ(loaded({}, {{"routing", "pinned"}, {"prefer", "cpu:0"}}).routing, RoutingMode::pinned);
}

TEST(Settings, TheFractionOfTheStrongerPlaceDecidesAndOfOnePlaceTheFraction) {
  EXPECT_EQ(loaded({}, {{"memory_fraction", "0.5"}}).budget_fraction(), 0.5);
  const LoadedConfig stronger = load_config(sources({{"TENON_MEMORY_STRATEGY", "aggressive"}}, {{"memory_fraction", "0.5"}}));
  EXPECT_EQ(stronger.config.budget_fraction(), 0.5);
  EXPECT_EQ(stronger.origins.at("memory_strategy"), "--set");
  const LoadedConfig weaker = load_config(sources({{"TENON_MEMORY_FRACTION", "0.5"}}, {{"memory_strategy", "aggressive"}}));
  EXPECT_EQ(weaker.config.budget_fraction(), 0.9);
  const LoadedConfig both = load_config(sources({}, {{"memory_strategy", "conservative"}, {"memory_fraction", "0.5"}}));
  EXPECT_EQ(both.config.budget_fraction(), 0.5);
  ASSERT_EQ(both.warnings.size(), 1u);
  EXPECT_TRUE(contains(both.warnings[0], "memory_strategy conservative has no effect, because memory_fraction is 0.5"));
}

TEST(Settings, AMisspeltVariableIsWarnedOf) {
  setenv("TENON_MEMORY_STRATGY", "balanced", 1);
  const LoadedConfig here = load_config(sources({{"TENON_MEMORY_STRATGY", "balanced"}}));
  unsetenv("TENON_MEMORY_STRATGY");
  ASSERT_EQ(here.warnings.size(), 1u);
  EXPECT_TRUE(contains(here.warnings[0], "did you mean TENON_MEMORY_STRATEGY?"));
}

// They are read where they are used, each with its own way of doing without; here somebody is listening.
TEST(Settings, AVariableWithoutEffectIsWarnedOf) {
  for (const auto& [variable, value] : std::map<std::string, std::string>{{"TENON_LOG", "loud"},
                                                                          {"TENON_LOG_FORMAT", "xml"},
                                                                          {"TENON_ISA", "avx9"},
                                                                          {"TENON_LEDGER_ROWS", "many"},
                                                                          {"TENON_LEDGER_MIB", "0"}}) {
    const LoadedConfig here = load_config(sources({{variable, value}}));
    ASSERT_EQ(here.warnings.size(), 1u) << variable;
    EXPECT_TRUE(contains(here.warnings[0], variable + " is '" + value + "', not ")) << here.warnings[0];
  }
  EXPECT_TRUE(load_config(sources({{"TENON_LOG", "debug"}, {"TENON_ISA", "v3"}, {"TENON_LEDGER_ROWS", "16"}})).warnings.empty());
}

TEST(Settings, KindsGoByTheNamesPeopleUse) {
  EXPECT_EQ(loaded({{"TENON_PREFER", "CUDA"}}).prefer, "gpu");
  EXPECT_EQ(loaded({{"TENON_PREFER", "Auto"}}).prefer, "auto");
  EXPECT_EQ(loaded({{"TENON_PREFER", "sim-gpu:0"}}).prefer, "sim-gpu:0");
  EXPECT_EQ(loaded({}, {{"platform_priority", "cuda, cpu"}}).platform_priority, (std::vector{DeviceKind::gpu, DeviceKind::cpu}));
}

TEST(Settings, WordsForYesAndNo) {
  for (const char* word : {"true", "1", "yes", "ON"})
    EXPECT_EQ(loaded({{"TENON_ISOLATE", word}}).isolate, Isolate::always) << word;
  for (const char* word : {"false", "0", "no", "OFF"})
    EXPECT_EQ(loaded({{"TENON_ISOLATE", word}}).isolate, Isolate::never) << word;
  EXPECT_EQ(loaded({{"TENON_ISOLATE", "auto"}}).isolate, Isolate::automatic);
  EXPECT_EQ(loaded({{"TENON_ISOLATE", "Drivers"}}).isolate, Isolate::drivers);
  for (const char* word : {"false", "0", "No", "off"}) EXPECT_FALSE(loaded({{"TENON_LEDGER", word}}).ledger) << word;
}

TEST(Config, StrategiesStandForFractions) {
  Config config;
  EXPECT_EQ(config.budget_fraction(), 0.75);
  config.memory_strategy = MemoryStrategy::conservative;
  EXPECT_EQ(config.budget_fraction(), 0.6);
  config.memory_strategy = MemoryStrategy::aggressive;
  EXPECT_EQ(config.budget_fraction(), 0.9);
  config.memory_strategy = MemoryStrategy::custom;
  EXPECT_EQ(config.budget_fraction(), 0.75);
  config.memory_strategy = MemoryStrategy::conservative;  // an explicit fraction takes precedence
  for (const double good : {0.1, 1.0}) {
    config.memory_fraction = good;
    EXPECT_EQ(config.budget_fraction(), good);
  }
  for (const double bad : {0.0999, 1.0001, -1.0, std::numeric_limits<double>::quiet_NaN()}) {
    config.memory_fraction = bad;
    EXPECT_TRUE(contains(refusal([&] { config.budget_fraction(); }), "0.1 to 1")) << bad;
    EXPECT_TRUE(contains(refusal([&] { config.check(); }), "memory_fraction")) << bad;
  }
}

TEST(Config, AValueSetByAProgramIsCheckedByTheSameBounds) {
  Config config;
  EXPECT_NO_THROW(config.check());
  config.tpu_batch_factor = 0;
  EXPECT_TRUE(contains(refusal([&] { config.check(); }), "tpu_batch_factor is '0'"));
}

TEST(Config, VariablesForBackendsAreSetOnlyWhenApplied) {
  unsetenv("TENON_TEST_OF_SETTINGS");
  Config config;
  config.environment["TENON_TEST_OF_SETTINGS"] = "value";
  EXPECT_EQ(getenv("TENON_TEST_OF_SETTINGS"), nullptr);
  apply_environment(config);
  EXPECT_STREQ(getenv("TENON_TEST_OF_SETTINGS"), "value");
  unsetenv("TENON_TEST_OF_SETTINGS");
}

TEST(Config, SixtyFourBitResultsAreRefusedWhereTheyAreOff) {
  Config config;
  const Graph wide = parse_expression("cast(x, float64)", {{"x", DType::f32, {2}}});
  const Graph narrow = parse_expression("cast(x, float64) + 1", {{"x", DType::f32, {2}}});
  const Graph plain = parse_expression("x * 2", {{"x", DType::f32, {2}}});
  EXPECT_NO_THROW(check_results(config, wide));
  config.enable_x64 = false;
  EXPECT_TRUE(contains(refusal([&] { check_results(config, wide); }), "enable_x64 is off"));
  EXPECT_NO_THROW(check_results(config, plain));
  EXPECT_THROW(check_results(config, narrow), Error);
}

}  // namespace
}  // namespace tenon
