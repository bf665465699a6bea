// The memory a process may use and what of it is free, on machines made of files.
#include "base/system/memory_limit.h"

#include <gtest/gtest.h>

#include "temporary_folder.h"

namespace tenon {
namespace {

class MemoryLimit : public testing::Test {
 protected:
  MemoryLimit() { root_.write("proc/meminfo", "MemTotal:       1000 kB\nMemFree:         10 kB\nMemAvailable:    600 kB\n"); }
  test::TemporaryFolder root_;
};

TEST_F(MemoryLimit, IsTheMachinesMemoryWithoutAGroup) { EXPECT_EQ(read_memory_limit(root_.path()), 1000u << 10); }

TEST_F(MemoryLimit, IsTheSmallestOfTheGroupAndItsAncestors) {
  root_.write("proc/self/cgroup", "0::/user/job\n");
  root_.write("sys/fs/cgroup/user/job/memory.max", "max\n");
  root_.write("sys/fs/cgroup/user/memory.max", "4096\n");
  EXPECT_EQ(read_memory_limit(root_.path()), 4096u);
}

TEST_F(MemoryLimit, FallsBackToTheMountWhenThePathIsTheOuterWorlds) {
  root_.write("proc/self/cgroup", "0::/machine/elsewhere\n");
  root_.write("sys/fs/cgroup/memory.max", "8192\n");
  EXPECT_EQ(read_memory_limit(root_.path()), 8192u);
}

TEST_F(MemoryLimit, ReadsTheOldHierarchyToo) {
  root_.write("proc/self/cgroup", "5:cpu,memory:/job\n0::/\n");
  root_.write("sys/fs/cgroup/memory/job/memory.limit_in_bytes", "12288\n");
  EXPECT_EQ(read_memory_limit(root_.path()), 12288u);
}

TEST_F(MemoryLimit, IsUnboundedWhenNothingCanBeRead) { EXPECT_EQ(read_memory_limit(root_ / "nowhere"), ~std::size_t{0}); }

TEST_F(MemoryLimit, OfTheMachineWhatIsAvailableIsFree) { EXPECT_EQ(read_memory_available(root_.path()), 600u << 10); }

TEST_F(MemoryLimit, OfAGroupWhatItHasNotUsedIsFree) {
  root_.write("proc/self/cgroup", "0::/job\n");
  root_.write("sys/fs/cgroup/job/memory.max", "100000\n");
  root_.write("sys/fs/cgroup/job/memory.current", "30000\n");
  EXPECT_EQ(read_memory_available(root_.path()), 70000u);
  root_.write("sys/fs/cgroup/job/memory.current", "100001\n");
  EXPECT_EQ(read_memory_available(root_.path()), 0u);
}

TEST_F(MemoryLimit, TheTightestAncestorDecidesWhatIsFree) {
  root_.write("proc/self/cgroup", "0::/user/job\n");
  root_.write("sys/fs/cgroup/user/job/memory.max", "50000\n");
  root_.write("sys/fs/cgroup/user/job/memory.current", "1000\n");
  root_.write("sys/fs/cgroup/user/memory.max", "90000\n");
  root_.write("sys/fs/cgroup/user/memory.current", "80000\n");
  EXPECT_EQ(read_memory_limit(root_.path()), 50000u);
  EXPECT_EQ(read_memory_available(root_.path()), 10000u);
}

TEST_F(MemoryLimit, AGroupWithoutANumberHasNoLimit) {
  root_.write("proc/self/cgroup", "nonsense\n0::/job\n");
  for (const char* text : {"max\n", "", "-1\n", "12x\n"}) {
    root_.write("sys/fs/cgroup/job/memory.max", text);
    EXPECT_EQ(read_memory_limit(root_.path()), 1000u << 10) << text;
  }
}

}  // namespace
}  // namespace tenon
