// How many cores a process may use, on machines made of files.
#include <gtest/gtest.h>

#include "base/threads/thread_pool.h"
#include "temporary_folder.h"

namespace tenon {
namespace {

class UsableCores : public testing::Test {
 protected:
  test::TemporaryFolder root_;
};

TEST_F(UsableCores, AreThoseOfTheAffinityMaskWithoutAQuota) {
  EXPECT_EQ(usable_cores(root_.path(), 6), 6);
  root_.write("proc/self/cgroup", "0::/batch\n");
  root_.write("sys/fs/cgroup/batch/cpu.max", "max 100000\n");
  EXPECT_EQ(usable_cores(root_.path(), 6), 6);
}

TEST_F(UsableCores, AreLoweredByTheGroupsQuotaRoundedUp) {
  root_.write("proc/self/cgroup", "0::/batch\n");
  root_.write("sys/fs/cgroup/batch/cpu.max", "250000 100000\n");
  EXPECT_EQ(usable_cores(root_.path(), 8), 3);
  EXPECT_EQ(usable_cores(root_.path(), 2), 2);
}

TEST_F(UsableCores, FollowTheLowestQuotaOnTheWayUp) {
  root_.write("proc/self/cgroup", "0::/slice/unit/leaf\n");
  root_.write("sys/fs/cgroup/slice/cpu.max", "200000 100000\n");
  root_.write("sys/fs/cgroup/slice/unit/cpu.max", "max 100000\n");
  root_.write("sys/fs/cgroup/slice/unit/leaf/cpu.max", "700000 100000\n");
  EXPECT_EQ(usable_cores(root_.path(), 16), 2);
}

TEST_F(UsableCores, SeeTheQuotaOfAContainerWhoseOwnPathIsHidden) {
  root_.write("proc/self/cgroup", "0::/../../host/path/unseen\n");
  root_.write("sys/fs/cgroup/cpu.max", "150000 100000\n");
  EXPECT_EQ(usable_cores(root_.path(), 16), 2);
}

TEST_F(UsableCores, UnderstandTheFirstVersionOfControlGroups) {
  root_.write("proc/self/cgroup", "12:memory:/box\n4:cpu,cpuacct:/box\n1:name=systemd:/box\n");
  root_.write("sys/fs/cgroup/cpu,cpuacct/box/cpu.cfs_quota_us", "300000\n");
  root_.write("sys/fs/cgroup/cpu,cpuacct/box/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(usable_cores(root_.path(), 16), 3);
  root_.write("sys/fs/cgroup/cpu,cpuacct/box/cpu.cfs_quota_us", "-1\n");
  EXPECT_EQ(usable_cores(root_.path(), 16), 16);
}

TEST_F(UsableCores, AreAtLeastOne) {
  root_.write("proc/self/cgroup", "0::/\n");
  root_.write("sys/fs/cgroup/cpu.max", "1000 100000\n");
  EXPECT_EQ(usable_cores(root_.path(), 4), 1);
  EXPECT_GE(usable_cores(), 1);
}

TEST_F(UsableCores, IgnoreFilesThatMakeNoSense) {
  root_.write("proc/self/cgroup", "nonsense\n0:\n0::/batch\n");
  root_.write("sys/fs/cgroup/batch/cpu.max", "many\n");
  EXPECT_EQ(usable_cores(root_.path(), 5), 5);
}

}  // namespace
}  // namespace tenon
