// Configuration and profiles, from outside: processes with an environment, a file and a state of their own.
#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <filesystem>
#include <fstream>

#include "e2e/program.h"
#include "temporary_folder.h"

namespace tenon::testing {
namespace {

class Place : public test::TemporaryFolder {
 public:
  Place() { make_private("run"); }

  struct Outcome {
    int status = 0;
    std::string out, err;
  };
  Outcome tenon(std::vector<std::string> words, std::vector<std::pair<std::string, std::string>> variables = {}) const {
    words.insert(words.begin(), TENON_PROGRAM);
    variables.insert(variables.end(), {{"TENON_RUN_DIR", *this / "run"},
                                       {"TENON_STATE_DIR", *this / "state"},
                                       {"XDG_CONFIG_HOME", *this / "config"},
                                       {"TENON_LEDGER", "false"}});
    Program program(std::move(words), variables);
    program.end_input();
    Outcome outcome;
    outcome.out = program.all_out();
    outcome.err = program.all_err();
    outcome.status = program.exit_status();
    return outcome;
  }
  boost::json::object json(std::vector<std::string> words) const {
    words.emplace_back("--json");
    const Outcome outcome = tenon(std::move(words));
    EXPECT_EQ(outcome.status, 0) << outcome.out << outcome.err;
    return outcome.status == 0 ? boost::json::parse(outcome.out).as_object() : boost::json::object();
  }
};

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

TEST(Configuration, ASimulatedDeviceOfAFlagIsThereForEveryCommand) {
  const Place place;
  const auto devices = place.json({"devices", "--sim", "wormhole,open=0,close=0"});
  bool found = false;
  for (const auto& device : devices.at("devices").as_array()) found |= device.at("id").as_string() == "sim:0";
  EXPECT_TRUE(found);
  const auto result = place.json({"--sim", "wormhole,open=0,close=0", "run", "1 + 1", "--device", "sim:0"});
  EXPECT_EQ(result.at("device").at("id"), "sim:0");
}

TEST(Configuration, AFileInTheUsualPlaceIsRead) {
  const Place place;
  std::filesystem::create_directories(place / "config/tenon");
  std::ofstream(place / "config/tenon/config.toml") << "prefetch = 11\n";
  const Place::Outcome shown = place.tenon({"config", "prefetch", "--json"});
  if (contains(shown.out, "no reader of configuration files")) GTEST_SKIP() << "built without toml++";
  EXPECT_EQ(shown.status, 0) << shown.out;
  EXPECT_TRUE(contains(shown.out, "\"11\"")) << shown.out;
  EXPECT_TRUE(contains(shown.out, "config/tenon/config.toml line 1")) << shown.out;
}

TEST(Configuration, APreferenceThatIsMissingWarnsAndComputesAllTheSame) {
  const Place place;
  const Place::Outcome run = place.tenon({"run", "1 + 1"}, {{"COMPUTE_PREFER", "cuda:77"}});
  EXPECT_EQ(run.status, 0);
  EXPECT_TRUE(contains(run.out, "2")) << run.out;
  EXPECT_TRUE(contains(run.err, "cuda:77 requested but none was found; using cpu:0")) << run.err;
}

TEST(Configuration, PinnedToWhatIsMissingIsAnError) {
  const Place place;
  EXPECT_EQ(place.tenon({"run", "1 + 1", "--set", "routing=pinned", "--set", "prefer=cuda:77"}).status, 3);
}

TEST(Configuration, SixtyFourBitResultsCanBeTurnedOff) {
  const Place place;
  const Place::Outcome refused = place.tenon({"run", "cast(1.5, float64)", "--set", "enable_x64=false"});
  EXPECT_EQ(refused.status, 2) << refused.out;
  EXPECT_TRUE(contains(refused.err, "enable_x64 is off")) << refused.err;
  EXPECT_EQ(place.tenon({"run", "cast(1.5, float64)"}).status, 0);
}

TEST(Profiles, WhatOneProcessMeasuredTheNextOnePredicts) {
  const Place place;
  const auto measured = [&](std::vector<std::string> more = {}) {
    std::vector<std::string> words{"run", "x * 2", "x=[1, 2, 3]", "--device", "cpu:0", "--explain"};
    words.insert(words.end(), more.begin(), more.end());
    return place.json(words).at("route").at("considered").at(0).at("measured").as_bool();
  };
  EXPECT_FALSE(measured());
  EXPECT_TRUE(measured());
  EXPECT_TRUE(std::filesystem::exists(place / "state/profile.json"));
  EXPECT_FALSE(measured({"--set", "profile=false"}));
}

TEST(Profiles, FastestDoesNotOpenADeviceForATinyProgram) {
  const Place place;
  const auto result = place.json({"run", "1 + 1", "--sim", "gpu,open=5", "--set", "prefer=auto", "--set", "routing=fastest",
                                  "--set", "allow_simulated=true", "--explain"});
  EXPECT_EQ(result.at("device").at("id"), "cpu:0");
  EXPECT_TRUE(contains(std::string(result.at("route").at("reason").as_string()), "fastest: ")) << result.at("route").at("reason");
}

TEST(TheProgram, LoadsNoRuntimeToSayHowItIsConfigured) {
  const Place place;
  EXPECT_EQ(place.tenon({"config"}, {{"LD_DEBUG", "libs"}, {"LD_DEBUG_OUTPUT", place / "loader"}}).status, 0);
  std::string loaded;
  for (const auto& entry : std::filesystem::directory_iterator(place / ""))
    if (entry.path().filename().string().starts_with("loader."))
      loaded += std::string(std::istreambuf_iterator<char>(std::ifstream(entry.path()).rdbuf()), {});
  ASSERT_TRUE(contains(loaded, "find library")) << "LD_DEBUG has no effect here";
  for (const char* runtime : {"libcuda", "libOpenCL", "libtpu", "pjrt", "libnvidia-ml"})
    EXPECT_FALSE(contains(loaded, runtime)) << runtime;
}

}  // namespace
}  // namespace tenon::testing
