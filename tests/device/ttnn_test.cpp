// Finding TTNN and the simulator's chip on machines made of files.
#include <gtest/gtest.h>

#include <fstream>

#include "device/detectors.h"
#include "temporary_folder.h"

namespace tenon {
namespace {

using test::TemporaryFolder;

Detection found_on(const TemporaryFolder& root, std::map<std::string, std::string> environment) {
  return make_ttnn_detector()->detect(SystemRoot({.root = root.path(), .environment = std::move(environment)}));
}

TEST(TtnnDetector, FindsThePythonWhoseEnvironmentHasThePackage) {
  const TemporaryFolder root;
  root.write("home/ada/env/bin/python3.12", "");
  root.write("home/ada/env/lib/python3.12/site-packages/ttnn/__init__.py", "");
  const Detection found = found_on(root, {{"VIRTUAL_ENV", "/home/ada/env"}});
  ASSERT_EQ(found.runtimes.size(), 1u);
  EXPECT_EQ(found.runtimes[0], (RuntimeInfo{"ttnn", "/home/ada/env/bin/python3.12", "Tenstorrent"}));
  EXPECT_TRUE(found.devices.empty());
  EXPECT_TRUE(found.notes.empty()) << "without a card nothing is missing";
}

TEST(TtnnDetector, FindsTheEnvironmentOfACheckout) {
  const TemporaryFolder root;
  root.write("src/tt-metal/python_env/bin/python3", "");
  const Detection found = found_on(root, {{"TT_METAL_HOME", "/src/tt-metal"}});
  ASSERT_EQ(found.runtimes.size(), 1u);
  EXPECT_EQ(found.runtimes[0].library, "/src/tt-metal/python_env/bin/python3");
}

TEST(TtnnDetector, TakesThePythonThatIsNamed) {
  const TemporaryFolder root;
  root.write("opt/python", "");
  root.write("usr/bin/python3.12", "");
  root.write("usr/lib/python3.12/site-packages/ttnn/__init__.py", "");
  EXPECT_EQ(found_on(root, {{"TENON_TTNN_PYTHON", "/opt/python"}}).runtimes.at(0).library, "/opt/python");
  const Detection wrong = found_on(root, {{"TENON_TTNN_PYTHON", "/opt/no-python"}});
  EXPECT_TRUE(wrong.runtimes.empty());
  ASSERT_EQ(wrong.notes.size(), 1u);
  EXPECT_NE(wrong.notes[0].find("/opt/no-python"), std::string::npos);
}

TEST(TtnnDetector, ListsTheChipOfTheSimulatorAsSimulated) {
  const TemporaryFolder root;
  root.write("opt/python", "");
  root.write("sim/libttsim.so", "");
  root.write("sim/soc_descriptor.yaml", "grid:\n  x_size: 17\narch_name: BLACKHOLE\n");
  const Detection found = found_on(root, {{"TT_METAL_SIMULATOR", "/sim/libttsim.so"}, {"TENON_TTNN_PYTHON", "/opt/python"}});
  ASSERT_EQ(found.devices.size(), 1u);
  const DeviceInfo& chip = found.devices[0];
  EXPECT_EQ(chip.id, "ttsim:0");
  EXPECT_EQ(chip.kind, DeviceKind::tenstorrent);
  EXPECT_EQ(chip.architecture, "blackhole");
  EXPECT_EQ(chip.details.at("simulated"), "true");
  EXPECT_TRUE(chip.available) << chip.reason;
  const Detection bare = found_on(root, {{"TT_METAL_SIMULATOR", "/sim/libttsim.so"}});
  EXPECT_FALSE(bare.devices.at(0).available);
  EXPECT_NE(bare.devices[0].remedy.find("pip install ttnn"), std::string::npos);
  EXPECT_TRUE(found_on(root, {{"TT_METAL_SIMULATOR", "/sim/gone.so"}}).devices.empty());
}

class TtnnNeeds : public testing::Test {
 protected:
  TtnnNeeds() {
    root_.write("env/bin/python3.12", "");
    root_.write(packages_ + "ttnn/__init__.py", "");
    root_.write(packages_ + "ttnn/tt_metal/sfpi-version", "# sfpi\nsfpi_version='7.69.0'\n");
    root_.write("sys/class/tenstorrent/tenstorrent!0/tt_fw_bundle_ver", "18.7.0.0\n");
    root_.write("opt/tenstorrent/sfpi/compiler/bin/riscv-tt-elf-g++", "");
    root_.write("sys/kernel/mm/hugepages/hugepages-1048576kB/nr_hugepages", "1\n");
    root_.write("usr/bin/tt-smi", "");
  }
  std::vector<std::string> notes(std::map<std::string, std::string> more = {{"VIRTUAL_ENV", "/env"}}) const {
    more.try_emplace("PATH", "/usr/bin:/bin");
    return found_on(root_, more).notes;
  }
  void expect_one(const std::vector<std::string>& notes, std::initializer_list<const char*> words) const {
    ASSERT_EQ(notes.size(), 1u);
    for (const char* word : words) EXPECT_NE(notes[0].find(word), std::string::npos) << notes[0];
  }

  const TemporaryFolder root_;
  const std::string packages_ = "env/lib/python3.12/site-packages/";
};

TEST_F(TtnnNeeds, NothingIsSaidWhereAllIsThere) { EXPECT_TRUE(notes().empty()); }

TEST_F(TtnnNeeds, ACompilerOfAnotherVersion) {
  root_.write("var/lib/dpkg/status", "Package: libc6\nVersion: 2.36\n\nPackage: sfpi\nStatus: installed\nVersion: 7.67.0\n");
  expect_one(notes(), {"sfpi 7.69.0", "has 7.67.0", "install"});
  root_.write("var/lib/dpkg/status", "Package: sfpi\nVersion: 7.69.0\n");
  EXPECT_TRUE(notes().empty());
}

TEST_F(TtnnNeeds, AnOldTtnn) {
  root_.write(packages_ + "ttnn-0.62.0.dist-info/METADATA", "");
  expect_one(notes(), {"is 0.62.0", "pip install --upgrade ttnn"});
}

TEST_F(TtnnNeeds, OldFirmware) {
  root_.write("sys/class/tenstorrent/tenstorrent!0/tt_fw_bundle_ver", "80.15.0.0\n");
  expect_one(notes(), {"card 0", "80.15.0.0", "tt-flash"});
}

TEST_F(TtnnNeeds, TheToolThatResets) {
  expect_one(notes({{"VIRTUAL_ENV", "/env"}, {"PATH", "/bin"}}), {"tt-smi", "pip install tt-smi"});
}

TEST_F(TtnnNeeds, TheEnvironmentThatIsNamedCounts) {
  EXPECT_TRUE(notes({{"TENON_TTNN_PYTHON", "/env/bin/python3.12"}}).empty());
  root_.write("other/bin/python3", "");
  root_.write("other/lib/python3.11/site-packages/pip/__init__.py", "");
  expect_one(notes({{"TENON_TTNN_PYTHON", "/other/bin/python3"}, {"VIRTUAL_ENV", "/env"}}),
             {"have no ttnn", "CPython 3.10 or 3.12", "pip install ttnn"});
}

TEST(TtnnDetector, SaysWhatTtnnLacks) {
  const TemporaryFolder root;
  root.write("env/bin/python3.12", "");
  root.write("env/lib/python3.12/site-packages/ttnn/__init__.py", "");
  root.write("env/lib/python3.12/site-packages/ttnn/tt_metal/sfpi-version", "# sfpi\nsfpi_version='7.69.0'\n");
  root.write("sys/class/tenstorrent/tenstorrent!0/dev", "");
  const Detection found = found_on(root, {{"VIRTUAL_ENV", "/env"}});
  ASSERT_EQ(found.notes.size(), 3u);
  EXPECT_NE(found.notes[0].find("sfpi 7.69.0"), std::string::npos) << found.notes[0];
  EXPECT_NE(found.notes[1].find("huge page"), std::string::npos) << found.notes[1];
  root.write("opt/tenstorrent/sfpi/compiler/bin/riscv-tt-elf-g++", "");
  root.write("sys/kernel/mm/hugepages/hugepages-1048576kB/nr_hugepages", "1\n");
  root.write("usr/bin/tt-smi", "");
  EXPECT_TRUE(found_on(root, {{"VIRTUAL_ENV", "/env"}, {"PATH", "/usr/bin"}}).notes.empty());
}

}  // namespace
}  // namespace tenon
