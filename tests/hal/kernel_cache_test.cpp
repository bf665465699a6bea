#include "hal/kernel_cache.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "temporary_folder.h"

namespace tenon {
namespace {

namespace fs = std::filesystem;
using Bytes = std::vector<std::byte>;

Bytes bytes(std::size_t size, int value) { return Bytes(size, static_cast<std::byte>(value)); }
KernelKey key(const std::string& source) { return {source, "-O2", "compiler 1", "device"}; }

class KernelCacheTest : public testing::Test {
 protected:
  std::string folder() const { return root_ / "kernels"; }
  std::vector<fs::path> files() const {
    std::vector<fs::path> all;
    for (const auto& entry : fs::directory_iterator(folder())) all.push_back(entry.path());
    return all;
  }

  test::TemporaryFolder root_;
};

TEST_F(KernelCacheTest, WhatWasStoredIsFoundByAnotherCache) {
  KernelCache(folder()).store(key("a"), bytes(1000, 7));
  EXPECT_EQ(KernelCache(folder()).find(key("a")), bytes(1000, 7));
}

TEST_F(KernelCacheTest, EveryPartOfTheKeyCounts) {
  const KernelCache cache(folder());
  cache.store({"source", "options", "compiler", "device"}, bytes(10, 1));
  EXPECT_TRUE(cache.find({"source", "options", "compiler", "device"}));
  EXPECT_FALSE(cache.find({"other", "options", "compiler", "device"}));
  EXPECT_FALSE(cache.find({"source", "other", "compiler", "device"}));
  EXPECT_FALSE(cache.find({"source", "options", "other", "device"}));
  EXPECT_FALSE(cache.find({"source", "options", "compiler", "other"}));
  EXPECT_FALSE(cache.find({"sourceo", "ptions", "compiler", "device"}));
}

TEST_F(KernelCacheTest, AFlippedBitMakesAnEntryAbsentAndDeletesIt) {
  const KernelCache cache(folder());
  cache.store(key("a"), bytes(1000, 7));
  const fs::path file = files().at(0);
  const auto size = fs::file_size(file);
  for (const std::uintmax_t place : {std::uintmax_t{0}, std::uintmax_t{9}, std::uintmax_t{40}, size - 1}) {
    cache.store(key("a"), bytes(1000, 7));
    {
      std::fstream stream(file, std::ios::in | std::ios::out | std::ios::binary);
      stream.seekg(static_cast<std::streamoff>(place));
      const int old = stream.get();
      stream.seekp(static_cast<std::streamoff>(place));
      stream.put(static_cast<char>(old ^ 4));
    }
    EXPECT_FALSE(cache.find(key("a"))) << "byte " << place;
    EXPECT_FALSE(fs::exists(file)) << "byte " << place;
  }
}

TEST_F(KernelCacheTest, ACutEntryIsAbsent) {
  const KernelCache cache(folder());
  for (const std::uintmax_t size : {0, 8, 31, 100, 500}) {
    cache.store(key("a"), bytes(1000, 7));
    fs::resize_file(files().at(0), size);
    EXPECT_FALSE(cache.find(key("a"))) << "cut to " << size;
  }
}

TEST_F(KernelCacheTest, StaysBelowItsLimitAndKeepsWhatWasUsedLast) {
  constexpr std::uint64_t kLimit = 64 * 1024;
  const KernelCache cache(folder(), kLimit);
  for (int i = 0; i < 200; ++i) {
    cache.store(key("kernel " + std::to_string(i)), bytes(2000, i));
    EXPECT_LE(cache.bytes(), kLimit + kLimit / 8);
  }
  EXPECT_TRUE(cache.find(key("kernel 199")));
  EXPECT_FALSE(cache.find(key("kernel 0")));
}

TEST_F(KernelCacheTest, AFolderOthersMayWriteToIsNotUsed) {
  const KernelCache cache(folder());
  cache.store(key("a"), bytes(10, 1));
  chmod(folder().c_str(), 0777);
  EXPECT_FALSE(cache.find(key("a")));
  cache.store(key("b"), bytes(10, 1));
  EXPECT_EQ(files().size(), 1u);
}

// A kernel is code: an entry that others could have written, or that a link brought here, is not loaded.
TEST_F(KernelCacheTest, AnEntryOthersMayWriteToOrALinkIsNotLoaded) {
  const KernelCache cache(folder());
  cache.store(key("a"), bytes(10, 1));
  const fs::path file = files().at(0);
  ASSERT_EQ(chmod(file.c_str(), 0666), 0);
  EXPECT_FALSE(cache.find(key("a")));
  ASSERT_EQ(chmod(file.c_str(), 0600), 0);
  EXPECT_TRUE(cache.find(key("a")));
  fs::rename(file, root_ / "elsewhere");
  fs::create_symlink(root_ / "elsewhere", file);
  EXPECT_FALSE(cache.find(key("a")));
}

TEST_F(KernelCacheTest, AnEntryOfAnotherUserIsNotLoaded) {
  if (geteuid() != 0) GTEST_SKIP() << "only root may give a file to another user";
  const KernelCache cache(folder());
  cache.store(key("a"), bytes(10, 1));
  ASSERT_EQ(chown(files().at(0).c_str(), 65534, 65534), 0);
  EXPECT_FALSE(cache.find(key("a")));
}

TEST_F(KernelCacheTest, WithoutAFolderNothingIsFoundAndNothingThrows) {
  const KernelCache none("");
  none.store(key("a"), bytes(10, 1));
  EXPECT_FALSE(none.find(key("a")));
  const KernelCache impossible("/proc/tenon/kernels");
  impossible.store(key("a"), bytes(10, 1));
  EXPECT_FALSE(impossible.find(key("a")));
}

TEST_F(KernelCacheTest, ProcessesThatStoreAndFindAtOnceNeverSeeHalfAnEntry) {
  std::vector<pid_t> children;
  for (int p = 0; p < 6; ++p) {
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      const KernelCache cache(folder(), 32 * 1024);
      bool good = true;
      for (int i = 0; i < 150; ++i) {
        const int n = (i * 7 + p) % 10;
        cache.store(key(std::to_string(n)), bytes(3000, n));
        const auto found = cache.find(key(std::to_string((n + 3) % 10)));
        good = good && (!found || *found == bytes(3000, (n + 3) % 10));
      }
      _exit(good ? 0 : 1);
    }
    children.push_back(child);
  }
  for (pid_t child : children) {
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  }
}

}  // namespace
}  // namespace tenon
