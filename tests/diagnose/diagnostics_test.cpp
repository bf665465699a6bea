#include "tenon/diagnostics.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

#include "device/detect.h"
#include "device/fixture.h"

namespace tenon {
namespace {

const Check* check_named(const std::vector<Check>& checks, std::string_view id) {
  const auto found = std::ranges::find(checks, id, &Check::id);
  return found == checks.end() ? nullptr : &*found;
}

TEST(Diagnostics, WithoutAnAcceleratorSayWhatWasLookedFor) {
  const SystemRoot root = testing::machine("bare_cpu");
  const std::vector<Check> checks = check_accelerators(detect(root), root);
  ASSERT_NE(check_named(checks, "accelerator"), nullptr);
  EXPECT_EQ(check_named(checks, "accelerator")->verdict, Verdict::warn);
  for (const char* vendor : {"nvidia", "amd", "intel", "tpu", "tenstorrent"}) {
    const Check* check = check_named(checks, std::string("accelerator.") + vendor);
    ASSERT_NE(check, nullptr) << vendor;
    EXPECT_FALSE(check->remedy.empty()) << vendor;
  }
}

TEST(Diagnostics, ACardIsCheckedInTheOrderOfWhatItNeeds) {
  const SystemRoot root = testing::machine("n150");
  const std::vector<Check> checks = check_accelerators(detect(root), root);
  EXPECT_EQ(check_named(checks, "accelerator"), nullptr);
  ASSERT_NE(check_named(checks, "tenstorrent:0.driver"), nullptr);
  EXPECT_EQ(check_named(checks, "tenstorrent:0.driver")->verdict, Verdict::pass);
  ASSERT_NE(check_named(checks, "tenstorrent:0.runtime"), nullptr);
  EXPECT_EQ(check_named(checks, "tenstorrent:0.runtime")->verdict, Verdict::warn);
}

TEST(Diagnostics, ADeviceThatWorksPassesEveryProgram) {
  DeviceManager manager;
  std::size_t told = 0;
  const std::vector<Check> checks = check_device(manager, "cpu", {}, [&](const Check&) { ++told; });
  EXPECT_EQ(checks.size(), 5u);
  EXPECT_EQ(told, 5u);
  for (const Check& check : checks) EXPECT_EQ(check.verdict, Verdict::pass) << check.id << ": " << check.text;
}

TEST(Diagnostics, TheReportNamesEveryDeviceAndTheDefault) {
  DeviceManager manager;
  std::ostringstream out;
  print_device_info(manager, out);
  EXPECT_NE(out.str().find("cpu:0"), std::string::npos) << out.str();
  EXPECT_NE(out.str().find("default device: "), std::string::npos) << out.str();
}

}  // namespace
}  // namespace tenon
