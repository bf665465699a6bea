// devices, report and doctor.
#include <gtest/gtest.h>

#include <chrono>
#include <set>

#include "cli/cli_testing.h"
#include "diagnose/device_programs.h"
#include "manager/ledger/store.h"

namespace tenon::cli::testing {
namespace {

TEST(Devices, JsonIsADocumentOfWholeDevices) {
  const boost::json::object document = tenon({"devices", "--json"}).json();
  EXPECT_EQ(document.at("schema"), 2);
  EXPECT_EQ(document.at("devices").at(0).at("id"), "cpu:0");
  EXPECT_TRUE(document.at("devices").at(0).as_object().contains("firmware_version"));
  EXPECT_TRUE(document.at("notes").is_array());
}

TEST(Devices, WatchListsAgain) {
  const Outcome outcome = tenon({"devices", "--watch", "--count", "3", "--interval", "0.01"});
  EXPECT_EQ(outcome.status, 0);
  std::size_t listings = 0;
  for (std::size_t at = 0; (at = outcome.out.find("cpu:0", at)) != std::string::npos; ++at) ++listings;
  EXPECT_EQ(listings, 3u);
  EXPECT_TRUE(contains(tenon({"devices", "--watch", "--count", "1"}, {.terminal = true}).out, "\033[H"));
  EXPECT_EQ(tenon({"devices", "--count", "3"}).status, 2);
}

TEST(Devices, WatchedAsJsonIsOneDocumentALine) {
  const Outcome outcome = tenon({"devices", "--watch", "--count", "2", "--interval", "0.01", "--json"});
  std::istringstream lines(outcome.out);
  int count = 0;
  for (std::string line; std::getline(lines, line); ++count)
    EXPECT_EQ(boost::json::parse(line).as_object().at("schema"), 2) << line;
  EXPECT_EQ(count, 2);
}

TEST(Devices, IdsAloneAreLinesOrOneListOrOneListEachTime) {
  const std::vector<std::string> ids{"devices", "--ids", "--sim", "wormhole"};
  const auto with = [&](std::initializer_list<std::string> more) {
    std::vector<std::string> arguments = ids;
    arguments.insert(arguments.end(), more);
    return tenon(arguments);
  };
  const std::string lines = with({}).out;
  EXPECT_TRUE(lines.starts_with("cpu:0\n")) << lines;
  EXPECT_TRUE(contains(lines, "\nsim:0\n")) << lines;

  const boost::json::object document = with({"--json"}).json();
  EXPECT_EQ(document.at("schema"), 1);
  std::string listed;
  for (const boost::json::value& id : document.at("ids").as_array()) listed += std::string(id.as_string()) + "\n";
  EXPECT_EQ(listed, lines);

  EXPECT_EQ(with({"--watch", "--count", "2", "--interval", "0.01"}).out, lines + lines);
  const std::string line = boost::json::serialize(document) + "\n";
  EXPECT_EQ(with({"--watch", "--count", "2", "--interval", "0.01", "--json"}).out, line + line);
}

TEST(Devices, OneDeviceShowsAllThatIsKnown) {
  for (const char* request : {"cpu:0", "CPU:0", "0", "cpu"}) {
    const Outcome outcome = tenon({"devices", request});
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    EXPECT_TRUE(outcome.out.starts_with("cpu:0  ")) << outcome.out;
    EXPECT_TRUE(contains(outcome.out, "architecture")) << outcome.out;
  }
  EXPECT_EQ(tenon({"devices", "sim", "--sim", "wormhole", "--json"}).json().at("devices").as_array().size(), 1u);
  EXPECT_EQ(tenon({"devices", "nosuch"}).status, 3);
}

TEST(Devices, ChosenFieldsAreATableOrCsv) {
  EXPECT_EQ(tenon({"devices", "cpu:0", "--fields", "id,kind", "--format", "csv"}).out, "id,kind\ncpu:0,cpu\n");
  const std::string table = tenon({"devices", "cpu:0", "--fields", "kind, id"}).out;
  EXPECT_EQ(table, "kind  id\ncpu   cpu:0\n");
  EXPECT_TRUE(tenon({"devices", "--format", "csv"}).out.starts_with("id,kind,name,"));
  const Outcome misspelt = tenon({"devices", "--fields", "vendr"});
  EXPECT_EQ(misspelt.status, 2);
  EXPECT_TRUE(contains(misspelt.err, "did you mean 'vendor'?")) << misspelt.err;
  EXPECT_EQ(tenon({"devices", "--fields", "id", "--json"}).status, 2);
}

TEST(Pick, PrintsTheBestDeviceThatFits) {
  EXPECT_EQ(tenon({"pick", "--kind", "cpu"}).out, "cpu:0\n");
  EXPECT_EQ(tenon({"pick", "--kind", "tenstorrent", "--simulated", "--sim", "wormhole"}).out, "sim:0\n");
  EXPECT_EQ(tenon({"pick", "--kind", "cpu", "--free-memory", "1KiB", "--json"}).json().at("devices").at(0).at("id"), "cpu:0");
  const Outcome large = tenon({"pick", "--kind", "cpu", "--free-memory", "9000TiB"});
  EXPECT_EQ(large.status, 4);
  EXPECT_TRUE(contains(large.err, "cpu:0: ")) << large.err;
  EXPECT_EQ(tenon({"pick", "--kind", "cpu", "--count", "2"}).status, 4);
  EXPECT_EQ(tenon({"pick", "--kind", "toaster"}).status, 2);
  EXPECT_EQ(tenon({"pick", "--kind", "other"}).status, 3);
}

TEST(Reset, ClosesASimulatedDeviceAndRefusesTheCpu) {
  const Outcome done = tenon({"reset", "sim:0", "--yes", "--sim", "wormhole,open=0,close=0"});
  EXPECT_EQ(done.status, 0) << done.err;
  EXPECT_TRUE(contains(done.out, "sim:0: closed")) << done.out;
  const Outcome unconfirmed = tenon({"reset", "sim:0", "--sim", "wormhole,open=0,close=0"});
  EXPECT_EQ(unconfirmed.status, 2);
  EXPECT_TRUE(contains(unconfirmed.err, "nobody uses it or waits for it")) << unconfirmed.err;
  EXPECT_TRUE(contains(unconfirmed.err, "add --yes")) << unconfirmed.err;
  const Outcome cpu = tenon({"reset", "cpu:0", "--yes"});
  EXPECT_NE(cpu.status, 0);
  EXPECT_TRUE(contains(cpu.err, "nothing to reset")) << cpu.err;
}

TEST(Report, HasEverySection) {
  const Outcome text = tenon({"report"});
  EXPECT_EQ(text.status, 0) << text.err;
  for (const char* section : {"Current device\n", "All devices\n", "Configuration\n", "Frameworks\n", "Routing\n",
                              "Recommendations\n", "cpu:0", "threads"})
    EXPECT_TRUE(contains(text.out, section)) << section;
  boost::json::object document = tenon({"report", "--json"}).json();
  EXPECT_EQ(document["current_device"].as_object()["id"], "cpu:0");
  EXPECT_EQ(document["routing_mode"], "auto");
  for (const char* key : {"all_devices", "configuration", "frameworks", "recommendations"})
    EXPECT_TRUE(document[key].is_array()) << key;
  EXPECT_EQ(tenon({"report", "--verbose"}).status, 0);
}

TEST(Report, HasRoutingBatchesAndCosts) {
  const Folder folder;
  const Surroundings here{.environment = {{"TENON_STATE_DIR", folder / "state"}, {"TENON_BATCH_MAX", "1"}}};
  const Outcome text = tenon({"report"}, here);
  for (const char* section :
       {"Batches\n", "Costs\n", "no device usage is recorded yet", "TENON_BATCH_MAX", "tpu > tenstorrent > gpu > cpu"})
    EXPECT_TRUE(contains(text.out, section)) << section << '\n' << text.out;
  boost::json::object document = tenon({"report", "--json"}, here).json();
  EXPECT_EQ(document.at("routing").at("mode"), "prefer");
  EXPECT_EQ(document.at("routing").at("platform_priority").as_array().size(), 4U);
  EXPECT_EQ(document.at("batch_config").at("max_batch_size").as_int64(), 1);
  EXPECT_EQ(document.at("costs").at("problem"), "no device usage is recorded yet");
  document = tenon({"report", "--json", "--set", "prefer=cpu:0"}, here).json();
  EXPECT_EQ(document.at("routing_mode"), "manual");
}

TEST(Report, SaysWhatDevicesCostInTheLastThirtyDays) {
  if (!ledger_is_built()) GTEST_SKIP() << "this build has no SQLite";
  const Folder folder;
  Use use{
      .begin = std::chrono::system_clock::now() - std::chrono::hours(48), .device = "cuda:0", .kind = "gpu", .program = "train"};
  use.open_seconds = 3600;
  use.compute_seconds = 36;
  use.price_per_hour = 3.5;
  use.price_is_estimate = true;
  LedgerStore(folder / "ledger.db").append({&use, 1});
  const Surroundings here{.environment = {{"TENON_STATE_DIR", folder / ""}}};
  const Outcome text = tenon({"report"}, here);
  EXPECT_TRUE(contains(text.out, "~$3.50, open 1 h, computing 36.0 s")) << text.out;
  EXPECT_TRUE(contains(text.out, "computed for 1.0 % of the 1 h it was open")) << text.out;
  EXPECT_TRUE(contains(text.out, "built-in estimates")) << text.out;
  const boost::json::object document = tenon({"report", "--json"}, here).json();
  EXPECT_EQ(document.at("costs").at("devices").at(0).at("device"), "cuda:0");
  EXPECT_DOUBLE_EQ(document.at("costs").at("cost_dollars").as_double(), 3.5);
}

TEST(Report, ADeviceThatWasFoundButNotSelectedIsMentioned) {
  const Outcome text = tenon({"report", "--sim", "wormhole", "--set", "prefer=cpu"});
  EXPECT_TRUE(contains(text.out, "was found but not selected")) << text.out;
  EXPECT_TRUE(contains(text.out, "--device sim:0")) << text.out;
}

TEST(Doctor, TheProcessorPassesAllFive) {
  const Outcome outcome = tenon({"doctor", "--device", "cpu", "--json"});
  boost::json::object document = outcome.json();
  int passed = 0;
  for (boost::json::value& check : document["checks"].as_array())
    for (const char* id : {"cpu:0.basic", "cpu:0.network", "cpu:0.matmul", "cpu:0.generative", "cpu:0.memory"})
      if (check.as_object()["id"] == id) {
        EXPECT_EQ(check.as_object()["verdict"], "PASS") << check.as_object()["text"];
        ++passed;
      }
  EXPECT_EQ(passed, 5);
  EXPECT_LE(outcome.status, 1) << "accelerators of this machine may be warned of, nothing fails";
}

TEST(Doctor, LooksAtTheHostToo) {
  const Folder folder;
  const Surroundings here{.environment = {{"TENON_STATE_DIR", folder / "state"}, {"TENON_RUN_DIR", folder / "run"}}};
  const boost::json::object document = tenon({"doctor", "--device", "cpu", "--json"}, here).json();
  std::set<std::string> ids;
  for (const boost::json::value& check : document.at("checks").as_array()) ids.emplace(check.at("id").as_string());
  for (const char* id : {"host.memory", "host.configuration", "host.run_directory", "host.ledger"})
    EXPECT_TRUE(ids.contains(id)) << id;
}

TEST(Doctor, ADamagedPlaceForTheLedgerIsAWarning) {
  const Folder folder;
  std::filesystem::create_directory(folder / "ledger.db");
  const Outcome outcome = tenon({"doctor", "--device", "cpu"}, {.environment = {{"TENON_STATE_DIR", folder / ""}}});
  EXPECT_EQ(outcome.status, ledger_is_built() ? 1 : 0) << outcome.out;
}

TEST(Doctor, ABrokenConfigurationIsAFailedCheckAndTheRestIsLookedAt) {
  const Folder folder;
  std::ofstream(folder / "config.toml") << "prefr = 1\n";
  const Outcome outcome = tenon({"doctor", "--device", "cpu", "--config", folder / "config.toml"});
  EXPECT_EQ(outcome.status, 2);
  EXPECT_TRUE(contains(outcome.out, "FAIL  host.configuration")) << outcome.out;
  EXPECT_TRUE(contains(outcome.out, "did you mean 'prefer'?")) << outcome.out;
  EXPECT_TRUE(contains(outcome.out, "PASS  cpu:0.basic")) << outcome.out;
  EXPECT_EQ(tenon({"run", "1", "--config", folder / "config.toml"}).status, 2);
}

TEST(Doctor, AFolderForTheLedgerThatCannotBeWrittenIsAWarning) {
  const Folder folder;
  std::ofstream(folder / "file") << "in the way";
  const Outcome outcome = tenon({"doctor", "--device", "cpu"}, {.environment = {{"TENON_STATE_DIR", folder / "file/state"}}});
  EXPECT_EQ(outcome.status, 1);
  EXPECT_TRUE(contains(outcome.out, "WARN  host.ledger")) << outcome.out;
}

TEST(Doctor, ASimulatedDeviceThatFailsMakesItFail) {
  const Outcome outcome = tenon({"doctor", "--device", "sim:0", "--sim", "gpu,open=0,close=0,open_fails=1"});
  EXPECT_EQ(outcome.status, 2) << outcome.out << outcome.err;
  EXPECT_TRUE(contains(outcome.out, "FAIL  sim:0.basic")) << outcome.out;
}

TEST(Doctor, OnlyAndSkipChooseChecks) {
  const auto ids = [](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {"doctor", "--device", "cpu", "--json"});
    std::vector<std::string> all;
    const boost::json::object document = tenon(std::move(arguments)).json();
    for (const boost::json::value& check : document.at("checks").as_array()) all.emplace_back(check.at("id").as_string());
    return all;
  };
  EXPECT_EQ(ids({"--only", "host.memory"}), std::vector<std::string>{"host.memory"}) << "once, whatever drives the CPU";
  EXPECT_EQ(ids({"--only", "cpu:0", "--skip", "cpu:0.network", "--skip", "cpu:0.generative", "--skip", "cpu:0.memory"}),
            (std::vector<std::string>{"cpu:0.basic", "cpu:0.matmul"}));
}

TEST(Doctor, VerdictsAreColoured) {
  const Outcome outcome = tenon({"doctor", "--device", "cpu", "--only", "host.memory", "--color", "always"});
  EXPECT_TRUE(contains(outcome.out, "\033[32mPASS\033[0m")) << outcome.out;
}

TEST(Doctor, ADeviceThatIsNotThereIsAnError) { EXPECT_EQ(tenon({"doctor", "--device", "nosuch"}).status, 3); }

TEST(Diagnostics, AFailedCriticalOneEndsTheRow) {
  const std::vector<Diagnostic> diagnostics{{"wrong", Severity::critical, "two is three", "1.0 + 1", 3, 0},
                                            {"next", Severity::important, "never reached", "1.0", 1, 0}};
  const std::vector<Check> checks = diagnose("cpu:0", process_manager(), diagnostics);
  ASSERT_EQ(checks.size(), 1u);
  EXPECT_EQ(checks[0].verdict, Verdict::fail);
  EXPECT_EQ(checks[0].id, "cpu:0.wrong");
  EXPECT_EQ(checks[0].text, "two is three: expected 3, got 2");
}

TEST(Diagnostics, ErrorsAndInfinitiesFailAndOptionalOnesWarn) {
  const std::vector<Diagnostic> diagnostics{{"infinite", Severity::important, "infinite", "1.0 / 0", 0, 1},
                                            {"error", Severity::important, "error", "no_such_op(1)", 0, 0},
                                            {"optional", Severity::optional, "optional", "1.0", 2, 0},
                                            {"fine", Severity::important, "fine", "1.0", 1, 0}};
  const std::vector<Check> checks = diagnose("cpu:0", process_manager(), diagnostics);
  ASSERT_EQ(checks.size(), 4u);
  EXPECT_EQ(checks[0].verdict, Verdict::fail);
  EXPECT_TRUE(contains(checks[0].text, "not finite")) << checks[0].text;
  EXPECT_EQ(checks[1].verdict, Verdict::fail);
  EXPECT_TRUE(contains(checks[1].text, "not_found")) << checks[1].text;
  EXPECT_EQ(checks[2].verdict, Verdict::warn);
  EXPECT_EQ(checks[3].verdict, Verdict::pass);
}

}  // namespace
}  // namespace tenon::cli::testing
