// Detectors together: merging, ids, own detectors, failing ones.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stdexcept>

#include "base/system/child_output.h"
#include "base/system/dynamic_library.h"
#include "device/detect.h"
#include "device/detectors.h"
#include "device/fixture.h"
#include "device/pci.h"
#include "temporary_folder.h"

namespace tenon::testing {
namespace {

class Fixed final : public Detector {
 public:
  explicit Fixed(Detection detection) : detection_(std::move(detection)) {}
  std::string_view name() const noexcept override { return "fixed"; }
  Detection detect(const SystemRoot&) const override { return detection_; }

 private:
  Detection detection_;
};

class Failing final : public Detector {
 public:
  std::string_view name() const noexcept override { return "failing"; }
  Detection detect(const SystemRoot&) const override { throw std::runtime_error("no luck"); }
};

class FailingOddly final : public Detector {
 public:
  std::string_view name() const noexcept override { return "odd"; }
  Detection detect(const SystemRoot&) const override { throw 7; }
};

DeviceInfo device(std::string id, std::string address = "", std::string uuid = "") {
  DeviceInfo info;
  info.id = std::move(id);
  info.kind = DeviceKind::gpu;
  info.pci_address = std::move(address);
  info.uuid = std::move(uuid);
  return info;
}

TEST(Detect, ADetectorThatFailsHidesNoOther) {
  const Failing failing;
  const FailingOddly odd;
  const Fixed fixed({.devices = {device("toaster:0")}});
  const Detector* const detectors[] = {&failing, &odd, &fixed};
  const Detection found = detect_with(machine("bare_cpu"), detectors);
  ASSERT_EQ(found.devices.size(), 1u);
  ASSERT_EQ(found.notes.size(), 2u);
  EXPECT_EQ(found.notes[0], "the detector 'failing' failed: no luck");
  EXPECT_EQ(found.notes[1], "the detector 'odd' failed");
}

TEST(Detect, AProgramsDetectorAddsToTheBuiltInOnes) {
  const Fixed fixed({.devices = {device("toaster:0")}});
  const Detector* const more[] = {&fixed};
  const std::vector<DeviceInfo> devices = detect_devices(machine("n150"), more);
  ASSERT_EQ(devices.size(), 3u);
  EXPECT_EQ(devices[2].id, "toaster:0");
  EXPECT_EQ(devices[2].aliases, std::vector<std::string>{"gpu:0"});
}

TEST(Detect, OneCardIsOneDeviceByAddressOrIdentity) {
  DeviceInfo by_kernel = device("cuda:0", "0000:01:00.0");
  by_kernel.numa_node = 1;
  DeviceInfo by_library = device("opencl:0", "0000:01:00.0", "GPU-1");
  by_library.memory_total_bytes = 5;
  DeviceInfo by_identity = device("vulkan:0", "", "GPU-1");
  by_identity.available = false;
  by_identity.reason = "because";
  const Fixed fixed({.devices = {by_kernel, by_library, by_identity}});
  const Detector* const detectors[] = {&fixed};
  const Detection found = detect_with(machine("bare_cpu"), detectors);
  ASSERT_EQ(found.devices.size(), 1u);
  EXPECT_EQ(found.devices[0].id, "cuda:0");
  EXPECT_EQ(found.devices[0].numa_node, 1);
  EXPECT_EQ(found.devices[0].memory_total_bytes, 5u);
  EXPECT_EQ(found.devices[0].reason, "because");
  EXPECT_EQ(found.devices[0].aliases, (std::vector<std::string>{"opencl:0", "vulkan:0", "gpu:0"}));
}

TEST(Detect, DifferentCardsOfOneIdGetIdsOfTheirOwn) {
  const Fixed fixed({.devices = {device("x:0", "0000:01:00.0"), device("x:0", "0000:02:00.0"), device("y")}});
  const Detector* const detectors[] = {&fixed};
  const Detection found = detect_with(machine("bare_cpu"), detectors);
  ASSERT_EQ(found.devices.size(), 3u);
  EXPECT_EQ(found.devices[1].id, "x:1");
  EXPECT_EQ(found.devices[2].id, "y:0");
}

TEST(Detect, ThisMachineHasAProcessor) {
  const std::vector<DeviceInfo> devices = detect_devices();
  ASSERT_FALSE(devices.empty());
  EXPECT_EQ(devices[0].id, "cpu:0");
  EXPECT_GT(devices[0].memory_total_bytes.value_or(0), 0u);
  EXPECT_NE(devices[0].details.at("usable_cores"), "0");
}

TEST(Pci, AddressesAreWrittenInOneWay) {
  EXPECT_EQ(pci_address("00000000:1B:00.0"), "0000:1b:00.0");
  EXPECT_EQ(pci_address("0000:c1:00.1"), "0000:c1:00.1");
  for (const char* nonsense : {"", "1b:00", "0000:1b:00.0x", "usb1", "0000:zz:00.0"})
    EXPECT_EQ(pci_address(nonsense), "") << nonsense;
}

TEST(SystemRoot, ReadsOnlyRegularFiles) {
  const SystemRoot real;
  EXPECT_TRUE(real.exists("/dev/null"));
  EXPECT_EQ(real.read("/dev/null"), std::nullopt);
  EXPECT_EQ(real.read("/dev/zero"), std::nullopt);
  EXPECT_EQ(real.read("/proc"), std::nullopt);
  EXPECT_TRUE(real.line("/proc/sys/kernel/osrelease").has_value());
  EXPECT_EQ(real.read("/proc/cpuinfo", 10)->size(), 10u);
}

TEST(SystemRoot, NamesAreInNaturalOrder) {
  const std::vector<std::string> names = machine("h100x8").list("/dev");
  EXPECT_EQ(names, (std::vector<std::string>{"nvidia0", "nvidia1", "nvidia2", "nvidia3", "nvidia4", "nvidia5", "nvidia6",
                                             "nvidia7", "nvidiactl"}));
  EXPECT_TRUE(machine("h100x8").list("/nowhere").empty());
}

TEST(SystemRoot, AMachineOfFilesHasItsOwnEnvironmentAndPermissions) {
  const SystemRoot denied = machine("no_permission");
  EXPECT_TRUE(denied.exists("/dev/tenstorrent/0"));
  EXPECT_FALSE(denied.may_use("/dev/tenstorrent/0"));
  EXPECT_EQ(denied.environment("PATH"), "");
  EXPECT_EQ(machine("tpu_hint").environment("TPU_NAME"), "my-tpu");
  EXPECT_FALSE(machine("n150").may_use("/dev/tenstorrent/1"));
  EXPECT_TRUE(machine("n150").may_use("/dev/tenstorrent/0"));
}

TEST(DynamicLibrary, AMissingLibraryIsASentence) {
  const std::string names[] = {"libsurely-not-there.so.9"};
  const DynamicLibrary library = DynamicLibrary::load(names);
  EXPECT_FALSE(library);
  EXPECT_NE(library.error().find("libsurely-not-there.so.9"), std::string::npos) << library.error();
  EXPECT_EQ(library.function<void()>("anything"), nullptr);
}

TEST(DynamicLibrary, TheFirstNameThatLoadsCounts) {
  const std::string names[] = {"libsurely-not-there.so.9", "libc.so.6"};
  const DynamicLibrary library = DynamicLibrary::load(names);
  ASSERT_TRUE(library) << library.error();
  EXPECT_EQ(library.name(), "libc.so.6");
  auto* const absolute = library.function<int(int)>("abs");
  ASSERT_NE(absolute, nullptr);
  EXPECT_EQ(absolute(-3), 3);
  EXPECT_EQ(library.function<int(int)>("no_such_symbol_here"), nullptr);
}

TEST(ChildOutput, GivesWhatWasPrintedOrNothing) {
  using std::chrono::seconds;
  EXPECT_EQ(child_output({"echo", "hello"}, seconds(60)), "hello\n");
  EXPECT_EQ(child_output({"false"}, seconds(60)), std::nullopt);
  EXPECT_EQ(child_output({"surely-no-such-program"}, seconds(60)), std::nullopt);
  EXPECT_EQ(child_output({"yes"}, seconds(60)), std::nullopt);
  EXPECT_EQ(child_output({"sleep", "1000"}, std::chrono::milliseconds(1)), std::nullopt);
}

// What is no path between two that are does not hide them.
TEST(PjrtPlugins, MayBeNamedByARelativePath) {
  char pattern[] = "pjrt-cpu-XXXXXX";
  const int file = mkstemp(pattern);
  ASSERT_GE(file, 0);
  close(file);
  const char* const before = std::getenv("PJRT_NAMES_AND_LIBRARY_PATHS");
  const std::string saved = before ? before : "";
  setenv("PJRT_NAMES_AND_LIBRARY_PATHS", (std::string("a:,,b,:,c:") + pattern).c_str(), 1);
  const Detection found = make_pjrt_detector()->detect(SystemRoot());
  before ? setenv("PJRT_NAMES_AND_LIBRARY_PATHS", saved.c_str(), 1) : unsetenv("PJRT_NAMES_AND_LIBRARY_PATHS");
  const std::string library = std::filesystem::absolute(pattern).string();
  std::filesystem::remove(pattern);
  ASSERT_FALSE(found.runtimes.empty());
  EXPECT_EQ(found.runtimes[0].library, library);
}

// sudo keeps the user's environment: root must not load what the user, or everybody, can write.
TEST(PjrtPlugins, ThatOthersCanWriteAreNotLoaded) {
  const test::TemporaryFolder folder;
  const std::filesystem::path plugin = folder.path() / "jax_plugins" / "xla_cuda" / "xla_cuda_plugin.so";
  std::filesystem::create_directories(plugin.parent_path());
  std::ofstream(plugin) << "no library";
  const char* const before = std::getenv("PYTHONPATH");
  const std::string saved = before ? before : "";
  const auto is_found = [&] {
    setenv("PYTHONPATH", folder.path().c_str(), 1);
    const Detection found = make_pjrt_detector()->detect(SystemRoot());
    before ? setenv("PYTHONPATH", saved.c_str(), 1) : unsetenv("PYTHONPATH");
    return std::any_of(found.runtimes.begin(), found.runtimes.end(),
                       [&](const RuntimeInfo& runtime) { return runtime.library == plugin.string(); });
  };
  EXPECT_TRUE(is_found());
  std::filesystem::permissions(plugin, std::filesystem::perms::others_write, std::filesystem::perm_options::add);
  EXPECT_FALSE(is_found());
  std::filesystem::permissions(plugin, std::filesystem::perms::others_write, std::filesystem::perm_options::remove);
  if (geteuid() != 0) return;
  ASSERT_EQ(chown(plugin.c_str(), 65534, 65534), 0);
  EXPECT_FALSE(is_found()) << "another user's";
}

}  // namespace
}  // namespace tenon::testing
