// Questions about a machine that is a folder of files.
#include "tenon/system_root.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>

#include "temporary_folder.h"

namespace tenon {
namespace {

class SystemRootTest : public testing::Test {
 protected:
  SystemRoot machine(std::vector<std::string> denied = {}) const {
    return SystemRoot({.root = folder_.path(), .environment = {{"HOME", "/home/ada"}}, .denied = std::move(denied)});
  }
  test::TemporaryFolder folder_;
};

TEST_F(SystemRootTest, PathsAreThoseOfTheMachine) {
  folder_.write("sys/module/x/version", "1.2\n");
  EXPECT_TRUE(machine().exists("/sys/module/x/version"));
  EXPECT_TRUE(machine().is_folder("/sys/module"));
  EXPECT_FALSE(machine().is_folder("/sys/module/x/version"));
  EXPECT_FALSE(machine().exists("/proc"));
  EXPECT_FALSE(machine().exists(""));
  EXPECT_FALSE(machine().is_this_machine());
  EXPECT_TRUE(SystemRoot().is_this_machine());
}

TEST_F(SystemRootTest, ALineIsTheFirstOneWithoutSpaceAround) {
  folder_.write("a", "  Wormhole n300\t\r\nsecond\n");
  EXPECT_EQ(machine().line("/a"), "Wormhole n300");
  folder_.write("zeros", std::string("GPU\0\0", 5));  // the device tree ends its texts so
  EXPECT_EQ(machine().line("/zeros"), "GPU");
}

TEST_F(SystemRootTest, ALineThatIsEmptyOrNotTextIsNotThere) {
  for (const char* text : {"", "\n", "   \nsecond", "\x1b[2J\n", "\xff\xfe\n"}) {
    folder_.write("a", text);
    EXPECT_EQ(machine().line("/a"), std::nullopt) << text;
  }
}

TEST_F(SystemRootTest, NumbersAreDecimalOrHexadecimalAndNothingElse) {
  const auto number = [&](const char* text) {
    folder_.write("n", text);
    return machine().number("/n");
  };
  EXPECT_EQ(number("42\n"), 42);
  EXPECT_EQ(number("-1\n"), -1);
  EXPECT_EQ(number("0x10de\n"), 0x10de);
  for (const char* text : {"", "x", "12 13", "1.5", "0x", "99999999999999999999", "--1"})
    EXPECT_EQ(number(text), std::nullopt) << text;
}

TEST_F(SystemRootTest, ReadingEndsAfterTheLimit) {
  folder_.write("long", std::string(10000, 'x'));
  EXPECT_EQ(machine().read("/long")->size(), 10000u);
  EXPECT_EQ(machine().read("/long", 4097)->size(), 4097u);
  EXPECT_EQ(machine().read("/none"), std::nullopt);
}

// A pipe stands for a device node: opening either may wait for ever.
TEST_F(SystemRootTest, OnlyRegularFilesAreOpened) {
  ASSERT_EQ(mkfifo((folder_ / "pipe").c_str(), 0600), 0);
  EXPECT_TRUE(machine().exists("/pipe"));
  EXPECT_EQ(machine().read("/pipe"), std::nullopt);
  EXPECT_EQ(machine().read("/"), std::nullopt);
}

TEST_F(SystemRootTest, NamesAreListedInNaturalOrder) {
  for (const char* name : {"cpu10", "cpu2", "cpu1", "cache", "cpu02"}) folder_.write(std::string("cpus/") + name, "");
  EXPECT_EQ(machine().list("/cpus"), (std::vector<std::string>{"cache", "cpu1", "cpu02", "cpu2", "cpu10"}));
  EXPECT_TRUE(machine().list("/none").empty());
}

TEST_F(SystemRootTest, LinksAreReadAsTheyStand) {
  std::filesystem::create_symlink("../../bus/pci/drivers/nvidia", folder_ / "driver");
  EXPECT_EQ(machine().link("/driver"), "../../bus/pci/drivers/nvidia");
  EXPECT_EQ(machine().link_name("/driver"), "nvidia");
  folder_.write("file", "");
  EXPECT_EQ(machine().link("/file"), std::nullopt);
  EXPECT_EQ(machine().link_name("/file"), std::nullopt);
}

TEST_F(SystemRootTest, WhatIsDeniedIsThereAndMayNotBeUsed) {
  folder_.write("dev/tenstorrent/0", "");
  EXPECT_TRUE(machine().may_use("/dev/tenstorrent/0"));
  EXPECT_FALSE(machine({"/dev/tenstorrent/0"}).may_use("/dev/tenstorrent/0"));
  EXPECT_TRUE(machine({"/dev/tenstorrent/0"}).exists("/dev/tenstorrent/0"));
  EXPECT_FALSE(machine().may_use("/dev/none"));
}

TEST_F(SystemRootTest, TheEnvironmentIsTheMachinesOwn) {
  setenv("TENON_TEST_OF_SYSTEM_ROOT", "here", 1);
  EXPECT_EQ(machine().environment("HOME"), "/home/ada");
  EXPECT_EQ(machine().environment("TENON_TEST_OF_SYSTEM_ROOT"), "");
  EXPECT_EQ(SystemRoot().environment("TENON_TEST_OF_SYSTEM_ROOT"), "here");
  EXPECT_EQ(SystemRoot().environment("TENON_TEST_OF_NOTHING"), "");
}

}  // namespace
}  // namespace tenon
