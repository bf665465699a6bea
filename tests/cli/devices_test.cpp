// devices, report and doctor.
#include <gtest/gtest.h>

#include "cli/cli_testing.h"
#include "cli/device_table.h"
#include "cli/diagnostics.h"
#include "cli/json.h"

namespace tenon::cli::testing {
namespace {

DeviceInfo card() {
  DeviceInfo info;
  info.id = "cuda:0";
  info.kind = DeviceKind::gpu;
  info.name = "A card";
  info.memory_total_bytes = std::uint64_t{80} << 30;
  info.temperature_celsius = 41;
  info.available = false;
  info.reason = "no driver is bound to it";
  info.remedy = "load it";
  return info;
}

std::string shown(const std::vector<DeviceInfo>& devices) {
  std::ostringstream out, err;
  const Console console{.out = out, .err = err};
  return device_table(devices, console);
}

TEST(Devices, ADeviceThatCannotBeUsedSaysWhyBelowItsRow) {
  EXPECT_EQ(shown({card()}),
            "ID      KIND  STATE     MEMORY    TEMP  NAME\n"
            "cuda:0  gpu   unusable  80.0 GiB  41 C  A card\n"
            "  not available: no driver is bound to it\n"
            "  load it\n");
}

TEST(Devices, JsonHasEveryFieldOfADevice) {
  boost::json::object document = tenon({"devices", "--json"}).json();
  boost::json::object& cpu = document["devices"].as_array().at(0).as_object();
  EXPECT_EQ(cpu["id"], "cpu:0");
  for (const char* key : {"kind",
                          "name",
                          "vendor",
                          "backends",
                          "memory_total_bytes",
                          "memory_free_bytes",
                          "available",
                          "reason",
                          "remedy",
                          "aliases",
                          "architecture",
                          "pci_address",
                          "uuid",
                          "serial",
                          "numa_node",
                          "compute_capability",
                          "driver_version",
                          "runtime_version",
                          "firmware_version",
                          "supports_mixed_precision",
                          "supports_distributed",
                          "exclusive",
                          "memory_is_nominal",
                          "power_watts",
                          "power_limit_watts",
                          "temperature_celsius",
                          "cost_per_hour",
                          "cost_is_estimate",
                          "holders",
                          "runtimes",
                          "details"})
    EXPECT_TRUE(cpu.contains(key)) << key;
  EXPECT_TRUE(document.contains("notes"));
  EXPECT_EQ(to_full_json(card())["temperature_celsius"], 41.0);
  EXPECT_TRUE(to_full_json(card())["power_watts"].is_null());
}

TEST(Devices, WatchListsAgain) {
  const Outcome outcome = tenon({"devices", "--watch", "--count", "3", "--interval", "0"});
  EXPECT_EQ(outcome.status, 0);
  std::size_t listings = 0;
  for (std::size_t at = 0; (at = outcome.out.find("cpu:0", at)) != std::string::npos; ++at) ++listings;
  EXPECT_EQ(listings, 3u);
  EXPECT_TRUE(contains(tenon({"devices", "--watch", "--count", "1"}, {.terminal = true}).out, "\033[H"));
  EXPECT_EQ(tenon({"devices", "--count", "3"}).status, 2);
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
