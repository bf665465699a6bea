#include "present/device/device.h"

#include "present/present_testing.h"

namespace tenon::present::testing {
namespace {

DeviceInfo unusable_card() {
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

// Every field has a value.
DeviceInfo whole_card() {
  DeviceInfo info = unusable_card();
  info.vendor = "Maker";
  info.backends = {"cuda", "opencl"};
  info.memory_free_bytes = std::uint64_t{1} << 30;
  info.aliases = {"gpu:0"};
  info.architecture = "Hopper";
  info.pci_address = "0000:1b:00.0";
  info.uuid = "GPU-1";
  info.serial = "S-1";
  info.numa_node = 1;
  info.compute_capability = "9.0";
  info.driver_version = "580.1";
  info.runtime_version = "CUDA 13.0";
  info.firmware_version = "96.0";
  info.supports_mixed_precision = info.supports_distributed = info.exclusive = true;
  info.memory_is_nominal = info.cost_is_estimate = true;
  info.power_watts = 120.5;
  info.power_limit_watts = 700;
  info.cost_per_hour = 3.5;
  info.holders = {7, 8};
  info.runtimes = {{"cuda", "libcuda.so.1", "Maker"}};
  info.details = {{"bus_width", "5120"}};
  return info;
}

TEST(Device, JsonHasEveryField) {
  EXPECT_EQ(
      json_of([](JsonWriter& json) { write_device(json, whole_card()); }),
      R"({"id":"cuda:0","kind":"gpu","name":"A card","simulated":false,"vendor":"Maker","architecture":"Hopper",)"
      R"("backends":["cuda","opencl"],"aliases":["gpu:0"],"same_as":null,"available":false,"reason":"no driver is bound to it",)"
      R"("remedy":"load it","exclusive":true,"memory_total_bytes":85899345920,"memory_free_bytes":1073741824,)"
      R"("memory_is_nominal":true,"pci_address":"0000:1b:00.0","uuid":"GPU-1","serial":"S-1","numa_node":1,)"
      R"("compute_capability":"9.0","driver_version":"580.1","runtime_version":"CUDA 13.0","firmware_version":"96.0",)"
      R"("supports_mixed_precision":true,"supports_distributed":true,"power_watts":120.5,"power_limit_watts":700.0,)"
      R"("temperature_celsius":41.0,"cost_per_hour":3.5,"cost_is_estimate":true,"holders":[7,8],)"
      R"("runtimes":[{"backend":"cuda","library":"libcuda.so.1"}],"details":{"bus_width":"5120"}})");
}

TEST(Device, WhatIsNotKnownIsNullAndNeverAnEmptyText) {
  DeviceInfo nameless;
  nameless.id = "cpu:0";
  nameless.name = "A processor";
  const std::string text = json_of([&](JsonWriter& json) { write_device(json, nameless); });
  EXPECT_EQ(text.find("\"\""), std::string::npos) << text;
  for (const char* key : {"vendor", "architecture", "reason", "remedy", "memory_total_bytes", "memory_free_bytes", "pci_address",
                          "uuid", "serial", "numa_node", "compute_capability", "driver_version", "runtime_version",
                          "firmware_version", "power_watts", "power_limit_watts", "temperature_celsius", "cost_per_hour"})
    EXPECT_NE(text.find("\"" + std::string(key) + "\":null"), std::string::npos) << key;
}

TEST(Device, TheBriefFormIsForAnswers) {
  EXPECT_EQ(json_of([](JsonWriter& json) { write_device_brief(json, whole_card()); }),
            R"({"id":"cuda:0","kind":"gpu","name":"A card","simulated":false})");
}

TEST(DeviceTable, ADeviceThatCannotBeUsedSaysWhyBelowItsRow) {
  EXPECT_EQ(device_table(std::vector{unusable_card()}, {}),
            "ID      KIND  STATE     MEMORY    TEMP  NAME\n"
            "cuda:0  gpu   unusable  80.0 GiB  41 C  A card\n"
            "  not available: no driver is bound to it\n"
            "  load it\n");
}

TEST(DeviceTable, TheFirstRowIsBoldWhereThereIsColour) {
  const std::string text = device_table(std::vector{unusable_card()}, {.has_colour = true}, 2);
  EXPECT_TRUE(text.starts_with("\033[1m  ID")) << text;
  EXPECT_EQ(device_table({}, {}), "");
}

TEST(DeviceFacts, AreAllThatIsKnownInWords) {
  std::string text;
  for (const auto& [key, value] : device_facts(whole_card())) text += key + ": " + value + "\n";
  EXPECT_EQ(text,
            "aliases: gpu:0\nvendor: Maker\narchitecture: Hopper\ncompute capability: 9.0\nPCI address: 0000:1b:00.0\n"
            "UUID: GPU-1\nserial: S-1\nNUMA node: 1\nmemory: 80.0 GiB (nominal), 1.00 GiB free\ndriver: 580.1\n"
            "runtime: CUDA 13.0\nfirmware: 96.0\nmixed precision: yes\ndistributed: yes\nsharing: one process at a time\n"
            "power: 120 W of 700 W\ntemperature: 41 C\ncost: $3.50 per hour (estimate)\nin use by: pid 7, 8\n"
            "cuda: libcuda.so.1\nbus width: 5120\n");
}

}  // namespace
}  // namespace tenon::present::testing
