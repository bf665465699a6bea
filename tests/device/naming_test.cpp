// The forms in which a device may be named, and what each vendor's card needs.
#include "device/naming.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "device/advice.h"
#include "device/detect.h"
#include "device/fixture.h"

namespace tenon::testing {
namespace {

DeviceInfo card() {
  DeviceInfo device;
  device.id = "cuda:0";
  device.kind = DeviceKind::gpu;
  device.vendor = "NVIDIA";
  device.aliases = {"gpu:0"};
  device.uuid = "GPU-1a2b3c4d-0000-1111-2222-333344445555";
  device.pci_address = "0000:1b:00.0";
  device.details["node"] = "/dev/nvidia0";
  return device;
}

TEST(Naming, ADeviceHasManyNames) {
  for (const char* text : {"cuda:0", "CUDA:0", "gpu:0", "GPU:0", "GPU-1a2b3c4d-0000-1111-2222-333344445555", "1A2B3C4D",
                           "gpu-1a2b3c4d", "0000:1b:00.0", "1B:00.0", "00000000:1B:00.0", "/dev/nvidia0"})
    EXPECT_TRUE(is_named(card(), text)) << text;
  for (const char* text : {"", "cuda", "gpu", "cuda:1", "1a2b", "0000:1c:00.0", "/dev/nvidia1", "/dev/nvidia00", "0"})
    EXPECT_FALSE(is_named(card(), text)) << text;
  DeviceInfo other;
  other.id = "opencl:0";
  EXPECT_TRUE(is_named(other, "OpenCL"));
}

TEST(Naming, NumbersArePlacesInTheList) {
  DeviceInfo first;
  first.id = "cpu:0";
  const std::vector<DeviceInfo> devices{first, card()};
  EXPECT_EQ(id_of_number(devices, "1"), "cuda:0");
  EXPECT_EQ(id_of_number(devices, "2"), "2");
  EXPECT_EQ(id_of_number(devices, "cpu:0"), "cpu:0");
  EXPECT_FALSE(device_number("1x"));
}

std::vector<CardStep> steps_on(const std::string& fixture) {
  const SystemRoot root = machine(fixture);
  for (const DeviceInfo& device : detect(root).devices)
    if (device.kind != DeviceKind::cpu) return steps_of(root, device);
  return {};
}

TEST(Advice, ATenstorrentCardWithoutItsRuntimeNamesThePackage) {
  const std::vector<CardStep> steps = steps_on("n150");
  ASSERT_EQ(steps.size(), 5u);
  const char* const names[] = {"card", "driver", "node", "permission", "runtime"};
  for (std::size_t i = 0; i < 5; ++i) EXPECT_EQ(steps[i].name, names[i]);
  for (std::size_t i = 0; i < 4; ++i) EXPECT_TRUE(steps[i].is_met) << steps[i].name << ": " << steps[i].text;
  EXPECT_FALSE(steps[4].is_met);
  EXPECT_NE(steps[4].remedy.find("pip install ttnn"), std::string::npos) << steps[4].remedy;
  EXPECT_NE(steps[4].remedy.find("docs/tenstorrent.md"), std::string::npos) << steps[4].remedy;
}

TEST(Advice, OnABareMachineEveryVendorWasLookedFor) {
  const std::vector<SearchResult> results = search_accelerators(machine("bare_cpu"));
  ASSERT_EQ(results.size(), 5u);
  for (const SearchResult& result : results) {
    EXPECT_FALSE(result.is_found) << result.id;
    EXPECT_FALSE(result.text.empty());
    EXPECT_NE(result.remedy.find("docs/"), std::string::npos) << result.remedy;
  }
}

TEST(Advice, CardsOnTheBusAreCounted) {
  const std::vector<SearchResult> results = search_accelerators(machine("h100x8"));
  const auto nvidia = std::ranges::find(results, "nvidia", &SearchResult::id);
  ASSERT_NE(nvidia, results.end());
  EXPECT_TRUE(nvidia->is_found);
  EXPECT_NE(nvidia->text.find("8 cards"), std::string::npos) << nvidia->text;
}

}  // namespace
}  // namespace tenon::testing
