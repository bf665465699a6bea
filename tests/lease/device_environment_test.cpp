#include "lease/device_environment.h"

#include <gtest/gtest.h>

namespace tenon {
namespace {

using Variables = std::vector<std::pair<std::string, std::string>>;

TEST(DeviceEnvironment, EachRuntimeIsToldInItsOwnWay) {
  EXPECT_EQ(visibility_variables({.id = "cuda:3", .kind = DeviceKind::gpu, .vendor = "NVIDIA"}),
            (Variables{{"CUDA_VISIBLE_DEVICES", "3"}}));
  EXPECT_EQ(visibility_variables({.id = "tenstorrent:1", .kind = DeviceKind::tenstorrent}),
            (Variables{{"TT_VISIBLE_DEVICES", "1"}}));
  EXPECT_EQ(visibility_variables({.id = "tpu:0", .kind = DeviceKind::tpu}), (Variables{{"TPU_VISIBLE_CHIPS", "0"}}));
  EXPECT_TRUE(visibility_variables({.id = "cpu:0", .kind = DeviceKind::cpu}).empty());
  EXPECT_TRUE(visibility_variables({.id = "rocm:0", .kind = DeviceKind::gpu, .vendor = "AMD"}).empty());
  EXPECT_TRUE(visibility_variables({.id = "tpu", .kind = DeviceKind::tpu}).empty());
}

TEST(DeviceEnvironment, LeaseNamesAreReadBack) {
  const LeaseName name{"cuda:0", 17};
  EXPECT_EQ(name.text(), "cuda:0@17");
  const auto read = LeaseName::parse(name.text());
  ASSERT_TRUE(read);
  EXPECT_EQ(read->device, "cuda:0");
  EXPECT_EQ(read->epoch, 17u);
  for (const char* bad : {"", "cuda:0", "@1", "cuda:0@", "cuda:0@x", "cuda:0@1 "}) EXPECT_FALSE(LeaseName::parse(bad)) << bad;
}

}  // namespace
}  // namespace tenon
