// What detection says of every fixture machine.
#include <gtest/gtest.h>

#include <algorithm>

#include "device/detect.h"
#include "device/fixture.h"
#include "device/nvidia/nvidia_management.h"
#include "device/python_packages.h"

namespace tenon::testing {
namespace {

constexpr std::uint64_t kGiB = std::uint64_t{1} << 30;

std::vector<std::string> ids(const std::vector<DeviceInfo>& devices) {
  std::vector<std::string> all;
  for (const DeviceInfo& device : devices) all.push_back(device.id);
  return all;
}

using Ids = std::vector<std::string>;

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

bool drives(const DeviceInfo& device, const std::string& backend, const std::string& library) {
  return std::any_of(device.runtimes.begin(), device.runtimes.end(), [&](const RuntimeInfo& runtime) {
    return runtime.backend == backend && contains(runtime.library, library);
  });
}

TEST(Machines, ABareMachineHasOneDevice) {
  const Detection found = detect(machine("bare_cpu"));
  ASSERT_EQ(ids(found.devices), Ids{"cpu:0"});
  const DeviceInfo& cpu = found.devices[0];
  EXPECT_EQ(cpu.kind, DeviceKind::cpu);
  EXPECT_EQ(cpu.name, "AMD EPYC 7763 64-Core Processor");
  EXPECT_EQ(cpu.vendor, "AMD");
  EXPECT_EQ(cpu.architecture, "x86-64-v3");
  EXPECT_EQ(cpu.memory_total_bytes, 16 * kGiB);
  EXPECT_EQ(cpu.memory_free_bytes, 8 * kGiB);
  EXPECT_EQ(cpu.numa_node, 0);
  EXPECT_EQ(cpu.details.at("cores"), "4");
  EXPECT_EQ(cpu.details.at("usable_cores"), "4");
  EXPECT_EQ(cpu.details.at("packages"), "1");
  EXPECT_EQ(cpu.details.at("caches"), "L1 48K, L2 2048K, L3 61440K");
  EXPECT_EQ(cpu.details.at("instruction_sets"), "sse4_2 avx avx2 fma f16c");
  EXPECT_FALSE(cpu.supports_mixed_precision);
  EXPECT_EQ(cpu.cost_per_hour, 0);
  EXPECT_TRUE(cpu.available);
  EXPECT_TRUE(found.notes.empty());
}

TEST(Machines, AContainerIsAsBigAsItsLimits) {
  const DeviceInfo cpu = detect_devices(machine("container")).at(0);
  EXPECT_EQ(cpu.memory_total_bytes, 2 * kGiB);
  EXPECT_EQ(cpu.memory_free_bytes, 2 * kGiB - kGiB / 2);
  EXPECT_EQ(cpu.details.at("usable_cores"), "2");
  EXPECT_EQ(cpu.details.at("threads"), "8");
  EXPECT_EQ(cpu.architecture, "x86-64-v4");
  EXPECT_TRUE(cpu.supports_mixed_precision);
}

TEST(Machines, EightCardsAreEightDevicesInTheirOrder) {
  const std::vector<DeviceInfo> devices = detect_devices(machine("h100x8"));
  ASSERT_EQ(ids(devices), (Ids{"cpu:0", "cuda:0", "cuda:1", "cuda:2", "cuda:3", "cuda:4", "cuda:5", "cuda:6", "cuda:7"}));
  EXPECT_EQ(devices[0].details.at("packages"), "2");
  EXPECT_EQ(devices[0].details.at("numa_nodes"), "2");
  EXPECT_EQ(devices[1].pci_address, "0000:1b:00.0");
  EXPECT_EQ(devices[1].aliases, Ids{"gpu:0"});
  EXPECT_EQ(devices[8].aliases, Ids{"gpu:7"});
  EXPECT_EQ(devices[1].numa_node, 0);
  EXPECT_EQ(devices[8].numa_node, 1);
  for (std::size_t i = 1; i < devices.size(); ++i) {
    EXPECT_EQ(devices[i].kind, DeviceKind::gpu);
    EXPECT_EQ(devices[i].name, "NVIDIA H100 80GB HBM3");
    EXPECT_EQ(devices[i].architecture, "Hopper");
    EXPECT_EQ(devices[i].compute_capability, "9.0");
    EXPECT_EQ(devices[i].driver_version, "580.159.04");
    EXPECT_EQ(devices[i].memory_total_bytes, 80 * kGiB);
    EXPECT_TRUE(devices[i].memory_is_nominal);
    EXPECT_TRUE(devices[i].supports_distributed);
    EXPECT_TRUE(devices[i].supports_mixed_precision);
    EXPECT_TRUE(devices[i].available) << devices[i].reason;
    EXPECT_TRUE(devices[i].cost_is_estimate);
    for (std::size_t j = 1; j < i; ++j) EXPECT_NE(devices[i].uuid, devices[j].uuid);
  }
}

TEST(Machines, OneCardSeenByThreeRuntimesIsOneDevice) {
  const std::vector<DeviceInfo> devices = detect_devices(machine("h200"));
  ASSERT_EQ(ids(devices), (Ids{"cpu:0", "cuda:0"}));
  const DeviceInfo& card = devices[1];
  EXPECT_EQ(card.name, "NVIDIA H200");
  EXPECT_EQ(card.uuid, "GPU-f1d03723-30d8-0b34-ca6b-550f3d48609a");
  EXPECT_EQ(card.numa_node, 0) << "the kernel does not say, but there is only one";
  EXPECT_FALSE(card.supports_distributed);
  EXPECT_TRUE(drives(card, "opencl", "libnvidia-opencl.so.1"));
  EXPECT_TRUE(drives(card, "pjrt", "/xla_cuda_plugin.so"));
  EXPECT_EQ(card.runtimes.size(), 2u) << "lib64 of an environment is a link to lib";
  EXPECT_FALSE(drives(card, "opencl", "pocl"));
  EXPECT_TRUE(drives(devices[0], "opencl", "libpocl"));
}

TEST(Machines, TheVariablesOfOpenClsLoadersAreObeyed) {
  const auto libraries = [](std::map<std::string, std::string> environment) {
    std::vector<std::string> names;
    for (const DeviceInfo& device :
         detect_devices(SystemRoot({.root = fixtures() / "h200", .environment = std::move(environment)})))
      for (const RuntimeInfo& runtime : device.runtimes)
        if (runtime.backend == "opencl") names.push_back(runtime.library);
    return names;
  };
  const std::string pocl = "libpocl.so.2.12.0", nvidia = "libnvidia-opencl.so.1";
  EXPECT_EQ(libraries({}), (Ids{pocl, nvidia}));
  EXPECT_EQ(libraries({{"OPENCL_VENDOR_PATH", "/nowhere"}}), Ids{});
  EXPECT_EQ(libraries({{"OPENCL_VENDOR_PATH", "/nowhere"}, {"OCL_ICD_VENDORS", "/etc/OpenCL/vendors"}}), (Ids{pocl, nvidia}));
  EXPECT_EQ(libraries({{"OCL_ICD_VENDORS", "nvidia.icd"}}), Ids{nvidia});
  EXPECT_EQ(libraries({{"OCL_ICD_VENDORS", "/etc/OpenCL/vendors/pocl.icd"}}), Ids{pocl});
  EXPECT_EQ(libraries({{"OCL_ICD_VENDORS", "/opt/libnvidia-opencl.so"}}), Ids{"/opt/libnvidia-opencl.so"});
  EXPECT_EQ(libraries({{"OPENCL_VENDOR_PATH", "/nowhere"}, {"OCL_ICD_FILENAMES", "libpocl.so.2:" + nvidia + ":" + nvidia}}),
            (Ids{"libpocl.so.2", nvidia}));
}

TEST(Machines, WhatTheManagementSoftwareSaysJoinsTheSameCard) {
  const std::vector<DeviceInfo> answered = parse_nvidia_smi(
      "NVIDIA H200, GPU-f1d03723-30d8-0b34-ca6b-550f3d48609a, 00000000:00:06.0, 1653724056447, 143771, 143156, 9.0, "
      "580.159.04, 130.00, 700.00, 41, 96.00.A5.00.1A\n"
      "nonsense, 1, 2\n");
  ASSERT_EQ(answered.size(), 1u);
  std::vector<DeviceInfo> read = detect_devices(machine("h200"));
  const std::vector<DeviceInfo> cards = combine_nvidia({read.at(1)}, answered);
  ASSERT_EQ(ids(cards), Ids{"cuda:0"});
  EXPECT_EQ(cards[0].memory_total_bytes, 143771 * (std::uint64_t{1} << 20));
  EXPECT_EQ(cards[0].memory_free_bytes, 143156 * (std::uint64_t{1} << 20));
  EXPECT_FALSE(cards[0].memory_is_nominal);
  EXPECT_EQ(cards[0].power_watts, 130);
  EXPECT_EQ(cards[0].power_limit_watts, 700);
  EXPECT_EQ(cards[0].temperature_celsius, 41);
  EXPECT_EQ(cards[0].serial, "1653724056447");
  EXPECT_EQ(cards[0].pci_address, "0000:00:06.0");
  EXPECT_FALSE(cards[0].runtimes.empty());
}

TEST(Machines, CardsTheSoftwareDoesNotKnowComeLast) {
  DeviceInfo known, unknown;
  known.pci_address = "0000:02:00.0";
  unknown.pci_address = "0000:01:00.0";
  unknown.available = false;
  unknown.reason = "no driver is bound to it";
  const std::vector<DeviceInfo> cards = combine_nvidia({unknown, known}, {known});
  ASSERT_EQ(cards.size(), 2u);
  EXPECT_EQ(cards[0].pci_address, "0000:02:00.0");
  EXPECT_EQ(cards[1].id, "cuda:1");
  EXPECT_EQ(cards[1].reason, "no driver is bound to it");
}

TEST(Machines, AnInstinctIsReadFromTheKernelAlone) {
  const std::vector<DeviceInfo> devices = detect_devices(machine("mi300x"));
  ASSERT_EQ(ids(devices), (Ids{"cpu:0", "rocm:0"}));
  const DeviceInfo& card = devices[1];
  EXPECT_EQ(card.name, "AMD Instinct MI300X");
  EXPECT_EQ(card.architecture, "gfx942");
  EXPECT_EQ(card.memory_total_bytes, 192 * kGiB);
  EXPECT_EQ(card.memory_free_bytes, 190 * kGiB);
  EXPECT_FALSE(card.memory_is_nominal);
  EXPECT_EQ(card.uuid, "3f7a1c0e5b2d9946");
  EXPECT_EQ(card.driver_version, "6.7.0");
  EXPECT_EQ(card.runtime_version, "ROCm 6.1.0-82");
  EXPECT_EQ(card.temperature_celsius, 38);
  EXPECT_EQ(card.power_watts, 141);
  EXPECT_EQ(card.power_limit_watts, 750);
  EXPECT_EQ(card.details.at("utilization"), "37 %");
  EXPECT_EQ(card.aliases, Ids{"gpu:0"});
  EXPECT_TRUE(drives(card, "opencl", "libamdocl64"));
  EXPECT_TRUE(card.available) << card.reason;
}

TEST(Machines, TheFirstGpuIsTheCardNotTheProcessorsOwnGraphics) {
  const std::vector<DeviceInfo> devices = detect_devices(machine("arc"));
  ASSERT_EQ(ids(devices), (Ids{"cpu:0", "xpu:0", "xpu:1"}));
  EXPECT_TRUE(devices[1].details.contains("integrated"));
  EXPECT_EQ(devices[1].aliases, Ids{"gpu:1"});
  EXPECT_EQ(devices[1].memory_total_bytes, std::nullopt);
  EXPECT_EQ(devices[2].name, "Intel Arc A770");
  EXPECT_EQ(devices[2].aliases, Ids{"gpu:0"});
  EXPECT_EQ(devices[2].memory_total_bytes, 16 * kGiB);
  EXPECT_EQ(devices[2].temperature_celsius, 52);
  EXPECT_TRUE(drives(devices[2], "opencl", "libigdrcl"));
}

TEST(Machines, TpusAreKnownByTheirPciIds) {
  struct Host {
    const char *name, *chip, *node;
    std::size_t chips;
    std::uint64_t memory;
  };
  for (const Host& host : {Host{"tpu_v4", "v4", "/dev/accel0", 4, 32 * kGiB}, Host{"tpu_v5e", "v5e", "/dev/vfio/0", 8, 16 * kGiB},
                           Host{"tpu_v6e", "v6e", "/dev/vfio/0", 1, 32 * kGiB}}) {
    SCOPED_TRACE(host.name);
    const Detection found = detect(machine(host.name));
    ASSERT_EQ(found.devices.size(), 1 + host.chips);
    const DeviceInfo& first = found.devices[1];
    EXPECT_EQ(first.id, "tpu:0");
    EXPECT_EQ(first.kind, DeviceKind::tpu);
    EXPECT_EQ(first.name, std::string("Google TPU ") + host.chip);
    EXPECT_EQ(first.architecture, host.chip);
    EXPECT_EQ(first.memory_total_bytes, host.memory);
    EXPECT_TRUE(first.memory_is_nominal);
    EXPECT_EQ(first.details.at("node"), host.node);
    EXPECT_TRUE(first.exclusive);
    EXPECT_EQ(first.supports_distributed, host.chips > 1);
    EXPECT_TRUE(first.available) << first.reason;
    EXPECT_TRUE(found.notes.empty());
  }
  EXPECT_TRUE(drives(detect_devices(machine("tpu_v6e")).at(1), "pjrt", "libtpu/libtpu.so"));
}

TEST(Machines, ANameOfATpuAloneIsAHintAndNoDevice) {
  const Detection found = detect(machine("tpu_hint"));
  EXPECT_EQ(ids(found.devices), Ids{"cpu:0"});
  ASSERT_EQ(found.notes.size(), 1u);
  EXPECT_TRUE(contains(found.notes[0], "my-tpu")) << found.notes[0];
}

TEST(Machines, TenstorrentCardsTellWhatTheyAre) {
  struct Card {
    const char *machine, *name, *architecture;
    std::uint64_t memory;
  };
  for (const Card& card :
       {Card{"n150", "Tenstorrent n150", "wormhole", 12 * kGiB}, Card{"n300", "Tenstorrent n300", "wormhole", 24 * kGiB},
        Card{"p150", "Tenstorrent p150a", "blackhole", 32 * kGiB}}) {
    SCOPED_TRACE(card.machine);
    const std::vector<DeviceInfo> devices = detect_devices(machine(card.machine));
    ASSERT_EQ(ids(devices), (Ids{"cpu:0", "tenstorrent:0"}));
    const DeviceInfo& found = devices[1];
    EXPECT_EQ(found.kind, DeviceKind::tenstorrent);
    EXPECT_EQ(found.name, card.name);
    EXPECT_EQ(found.architecture, card.architecture);
    EXPECT_EQ(found.memory_total_bytes, card.memory);
    EXPECT_TRUE(found.memory_is_nominal);
    EXPECT_EQ(found.serial, "01000145117000");
    EXPECT_EQ(found.uuid, "0xabcd0000");
    EXPECT_EQ(found.firmware_version, "18.7.0.0");
    EXPECT_EQ(found.driver_version, "2.10.0");
    EXPECT_EQ(found.details.at("ai_clock"), "1000 MHz");
    EXPECT_EQ(found.temperature_celsius, 45);
    EXPECT_EQ(found.power_watts, 36);
    EXPECT_TRUE(found.exclusive);
    EXPECT_TRUE(found.available) << found.reason;
  }
}

TEST(Machines, AnOldTenstorrentDriverTellsLessAndTheCardStillWorks) {
  for (const auto& [name, architecture, version] :
       {std::tuple{"n150_old_driver", "wormhole", "1.29"}, std::tuple{"p150_old_driver", "blackhole", "1.31"}}) {
    SCOPED_TRACE(name);
    const DeviceInfo card = detect_devices(machine(name)).at(1);
    EXPECT_EQ(card.name, std::string("Tenstorrent ") + architecture);
    EXPECT_EQ(card.driver_version, version);
    EXPECT_EQ(card.serial, "");
    EXPECT_EQ(card.temperature_celsius, std::nullopt);
    EXPECT_TRUE(card.available) << card.reason;
  }
}

TEST(Machines, ACardWithoutPermissionSaysSo) {
  const DeviceInfo card = detect_devices(machine("no_permission")).at(1);
  EXPECT_EQ(card.name, "Tenstorrent n150");
  EXPECT_FALSE(card.available);
  EXPECT_EQ(card.reason, "no permission to read and write /dev/tenstorrent/0");
  EXPECT_TRUE(contains(card.remedy, "chmod a+rw /dev/tenstorrent/0")) << card.remedy;
}

TEST(Machines, ACardHeldByAnotherProcessNamesIt) {
  struct Held {
    const char* machine;
    int pid;
    const char* command;
  };
  for (const Held& held :
       {Held{"held", 4242, "python3"}, Held{"held_old_driver", 77, "tt-smi"}, Held{"tpu_held", 4711, "train"}}) {
    SCOPED_TRACE(held.machine);
    const DeviceInfo card = detect_devices(machine(held.machine)).at(1);
    EXPECT_FALSE(card.available);
    EXPECT_EQ(card.holders, std::vector<int>{held.pid});
    EXPECT_EQ(card.reason, "in use by pid " + std::to_string(held.pid) + " (" + held.command + ")");
    EXPECT_TRUE(contains(card.remedy, "kill " + std::to_string(held.pid))) << card.remedy;
  }
}

TEST(Machines, ACardWithoutDriverHidesNotTheOther) {
  const std::vector<DeviceInfo> devices = detect_devices(machine("two_cards_one_driver"));
  ASSERT_EQ(ids(devices), (Ids{"cpu:0", "cuda:0", "cuda:1"}));
  EXPECT_TRUE(devices[1].available) << devices[1].reason;
  EXPECT_EQ(devices[1].memory_total_bytes, 40 * kGiB);
  EXPECT_FALSE(devices[2].available);
  EXPECT_EQ(devices[2].name, "GA100 [A100 SXM4 40GB]");
  EXPECT_EQ(devices[2].reason, "no driver is bound to it");
  EXPECT_TRUE(contains(devices[2].remedy, "modprobe nvidia")) << devices[2].remedy;
}

TEST(Machines, FrameworksAreFoundByTheirMetadata) {
  const auto packages = installed_packages(machine("h200"), {"torch", "tensorflow", "jax"});
  ASSERT_EQ(packages.size(), 2u);
  EXPECT_EQ(packages[0].name, "jax");
  EXPECT_EQ(packages[0].version, "0.11.2");
  EXPECT_EQ(packages[1].name, "torch");
  EXPECT_EQ(packages[1].version, "2.11.0");
}

TEST(Machines, NonsenseInEveryFileGivesAPlainCpu) {
  for (unsigned seed = 0; seed < 2; ++seed) {
    const NoiseMachine noise(seed, false);
    const Detection found = detect(noise.root());
    ASSERT_EQ(ids(found.devices), Ids{"cpu:0"}) << "seed " << seed;
    EXPECT_TRUE(found.devices[0].available);
    for (const std::string& note : found.notes) EXPECT_FALSE(contains(note, "failed")) << note;
  }
}

TEST(Machines, CardsAmongNonsenseAreListedAndNothingIsBelievedOfThem) {
  for (unsigned seed = 0; seed < 2; ++seed) {
    const NoiseMachine noise(seed, true);
    const Detection found = detect(noise.root());
    EXPECT_GT(found.devices.size(), 10u) << "seed " << seed;
    for (const std::string& note : found.notes) EXPECT_FALSE(contains(note, "failed")) << note;
    for (const DeviceInfo& device : found.devices) {
      for (const std::string& text : {device.name, device.uuid, device.serial, device.firmware_version, device.driver_version})
        EXPECT_TRUE(std::all_of(text.begin(), text.end(), [](char c) { return c >= 0x20 && c < 0x7f; })) << device.id;
      if (device.temperature_celsius) EXPECT_LT(*device.temperature_celsius, 1000);
    }
  }
}

}  // namespace
}  // namespace tenon::testing
