// What was detected, joined with what can be driven.
#include "manager/inventory.h"

#include <gtest/gtest.h>

#include "tenon/error.h"
#include "tenon/manager.h"

namespace tenon {
namespace {

class FakeBackend final : public Backend {
 public:
  FakeBackend(std::string name, std::vector<DeviceInfo> devices) : name_(std::move(name)), devices_(std::move(devices)) {}
  std::string_view name() const noexcept override { return name_; }
  std::vector<DeviceInfo> devices() override { return devices_; }
  std::unique_ptr<OpenDevice> open(const DeviceInfo&, const OpenOptions&) override { return nullptr; }

 private:
  std::string name_;
  std::vector<DeviceInfo> devices_;
};

DeviceInfo device(std::string id, DeviceKind kind, std::string address = "") {
  DeviceInfo info;
  info.id = std::move(id);
  info.kind = kind;
  info.pci_address = std::move(address);
  return info;
}

DeviceInfo driven(DeviceInfo info, const std::string& backend) {
  info.backends = {backend};
  return info;
}

TEST(Inventory, ADeviceNoBackendDrivesIsListedWithTheReason) {
  const BackendRegistry registry;
  const std::vector<DeviceInfo> devices = inventory({device("tpu:0", DeviceKind::tpu)}, registry);
  ASSERT_EQ(devices.size(), 1u);
  EXPECT_FALSE(devices[0].available);
  EXPECT_EQ(devices[0].reason, "no runtime that can drive it was found");
  EXPECT_FALSE(devices[0].remedy.empty());
}

TEST(Inventory, AReasonFoundBeforeStays) {
  DeviceInfo held = device("tpu:0", DeviceKind::tpu);
  held.available = false;
  held.reason = "in use by pid 7";
  const std::vector<DeviceInfo> devices = inventory({held}, BackendRegistry());
  EXPECT_EQ(devices[0].reason, "in use by pid 7");
}

TEST(Inventory, ACardWhoseMakersPluginWasFoundIsDrivenByPjrt) {
  BackendRegistry registry;
  registry.add(std::make_unique<FakeBackend>("pjrt", std::vector<DeviceInfo>()));
  DeviceInfo with_plugin = device("tpu:0", DeviceKind::tpu);
  with_plugin.runtimes = {{"pjrt", "/opt/libtpu.so", "Google"}};
  const std::vector<DeviceInfo> devices = inventory({with_plugin, device("tpu:1", DeviceKind::tpu)}, registry);
  EXPECT_EQ(devices[0].backends, std::vector<std::string>{"pjrt"});
  EXPECT_TRUE(devices[0].available);
  EXPECT_FALSE(devices[1].available);
}

TEST(Inventory, OneCardOfTwoBackendsIsOneDeviceWithBoth) {
  BackendRegistry registry;
  registry.add(
      std::make_unique<FakeBackend>("cuda", std::vector{driven(device("cuda:0", DeviceKind::gpu, "0000:01:00.0"), "cuda")}));
  registry.add(
      std::make_unique<FakeBackend>("opencl", std::vector{driven(device("opencl:0", DeviceKind::gpu, "0000:01:00.0"), "opencl"),
                                                          driven(device("opencl:1", DeviceKind::cpu), "opencl")}));
  const std::vector<DeviceInfo> devices = inventory({device("cuda:0", DeviceKind::gpu, "0000:01:00.0")}, registry);
  ASSERT_EQ(devices.size(), 2u);
  EXPECT_EQ(devices[0].backends, (std::vector<std::string>{"cuda", "opencl"}));
  EXPECT_TRUE(devices[0].available);
  EXPECT_EQ(devices[1].id, "opencl:1");
}

TEST(Inventory, ASecondWayToTheProcessorHasItsMemoryAndMaker) {
  DeviceInfo processor = device("cpu:0", DeviceKind::cpu);
  processor.vendor = "AMD";
  processor.memory_total_bytes = 1 << 30;
  processor.memory_free_bytes = 1 << 29;
  BackendRegistry registry;
  registry.add(std::make_unique<FakeBackend>("opencl", std::vector{driven(device("opencl:0", DeviceKind::cpu), "opencl"),
                                                                   driven(device("opencl:1", DeviceKind::gpu), "opencl")}));
  const std::vector<DeviceInfo> devices = inventory({processor}, registry);
  ASSERT_EQ(devices.size(), 3u);
  EXPECT_EQ(devices[2].id, "opencl:0") << "listed last";
  EXPECT_EQ(devices[2].same_as, "cpu:0");
  EXPECT_EQ(devices[2].vendor, "AMD");
  EXPECT_EQ(devices[2].memory_total_bytes, 1u << 30);
  EXPECT_EQ(devices[2].memory_free_bytes, 1u << 29);
  EXPECT_TRUE(devices[1].vendor.empty());
  EXPECT_FALSE(devices[1].memory_total_bytes);
  EXPECT_TRUE(devices[1].same_as.empty());
}

TEST(Inventory, ADeviceRequestIsAnIdAnAliasOrAKind) {
  DeviceInfo broken = device("cuda:0", DeviceKind::gpu);
  broken.available = false;
  DeviceInfo second = device("cuda:1", DeviceKind::gpu);
  second.aliases = {"gpu:1"};
  const std::vector<DeviceInfo> devices{broken, second};
  EXPECT_EQ(find_device(devices, "cuda:0")->id, "cuda:0");
  EXPECT_EQ(find_device(devices, "gpu:1")->id, "cuda:1");
  EXPECT_EQ(find_device(devices, "gpu")->id, "cuda:1") << "one that is ready comes first";
  EXPECT_EQ(find_device(devices, "tpu"), nullptr);
  EXPECT_EQ(find_device({devices.data(), 1}, "gpu")->id, "cuda:0") << "and one that is not is better than none: it says why";
}

class Toaster final : public Detector {
 public:
  std::string_view name() const noexcept override { return "toaster"; }
  Detection detect(const SystemRoot&) const override { return {.devices = {device("toaster:0", DeviceKind::other)}}; }
};

TEST(Manager, AProgramCanAddADetector) {
  DeviceManager manager;
  EXPECT_THROW(manager.find("toaster:0"), Error);
  manager.add_detector(std::make_unique<Toaster>());
  EXPECT_EQ(manager.find("toaster:0").reason, "no runtime that can drive it was found");
  try {
    manager.open("toaster:0");
    FAIL() << "opened a toaster";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::unavailable);
  }
}

TEST(Manager, TheProcessorHasTheFactsOfItsDetectorAndItsBackend) {
  const DeviceManager manager;
  const std::vector<DeviceInfo> devices = manager.devices();
  ASSERT_FALSE(devices.empty());
  EXPECT_EQ(devices[0].id, "cpu:0");
  EXPECT_EQ(devices[0].backends, std::vector<std::string>{"cpu"});
  EXPECT_TRUE(devices[0].available);
  EXPECT_TRUE(devices[0].details.contains("usable_cores"));
  EXPECT_EQ(manager.find("auto").id, "cpu:0");
  EXPECT_EQ(manager.find("cpu").id, "cpu:0");
}

}  // namespace
}  // namespace tenon
