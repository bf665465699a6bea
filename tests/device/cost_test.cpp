#include "device/cost.h"

#include <gtest/gtest.h>

namespace tenon {
namespace {

DeviceInfo card() {
  DeviceInfo device{.id = "cuda:0", .kind = DeviceKind::gpu, .name = "NVIDIA H200"};
  device.aliases = {"gpu:0"};
  return device;
}

TEST(Cost, AKnownModelHasAnEstimate) {
  DeviceInfo device = card();
  estimate_cost(device);
  EXPECT_EQ(device.cost_per_hour, 3.5);
  EXPECT_TRUE(device.cost_is_estimate);
}

TEST(Cost, AGivenPriceIsNoEstimate) {
  DeviceInfo device = card();
  estimate_cost(device);
  apply_prices(device, {{"cuda:0", 2.25}});
  EXPECT_EQ(device.cost_per_hour, 2.25);
  EXPECT_FALSE(device.cost_is_estimate);
}

TEST(Cost, TheMostExactPriceCounts) {
  const std::map<std::string, double> all = {{"cuda:0", 1}, {"gpu:0", 2}, {"NVIDIA H200", 3}, {"gpu", 4}};
  for (const auto& [name, expected] : {std::pair("cuda:0", 1.0), {"gpu:0", 2.0}, {"NVIDIA H200", 3.0}, {"gpu", 4.0}}) {
    std::map<std::string, double> prices = all;
    // Only what is less exact than |name|, and |name|.
    std::erase_if(prices, [&](const auto& entry) { return entry.second < expected; });
    DeviceInfo device = card();
    apply_prices(device, prices);
    EXPECT_EQ(device.cost_per_hour, expected) << name;
  }
}

TEST(Cost, APriceOfAnotherDeviceChangesNothing) {
  DeviceInfo device = card();
  apply_prices(device, {{"cuda:1", 9}, {"tpu", 9}});
  EXPECT_EQ(device.cost_per_hour, std::nullopt);
}

}  // namespace
}  // namespace tenon
