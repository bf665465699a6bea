#include "lease/turnstile/run_directory.h"

#include <grp.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <map>
#include <optional>

#include "base/log.h"
#include "lease/turnstile/turnstile_testing.h"
#include "tenon/error.h"

namespace tenon::testing {
namespace {

// The refusal: its code, and that it says what to do.
void expect_refused(const std::function<void()>& call, ErrorCode code, const std::string& reason) {
  try {
    call();
    FAIL() << "not refused: " << reason;
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code) << error.what();
    EXPECT_NE(std::string(error.what()).find(reason), std::string::npos) << error.what();
    EXPECT_FALSE(error.hint().empty());
  }
}

RunDirectory::Environment environment(std::map<std::string, std::string> values) {
  return [values](const char* name) {
    const auto found = values.find(name);
    return found == values.end() ? std::string() : found->second;
  };
}

class RunDirectoryTest : public ::testing::Test {
 protected:
  std::string path(const std::string& name) const { return directory_ / name; }
  test::TemporaryFolder directory_;
};

TEST_F(RunDirectoryTest, TheVariableNamesItAndItIsMadeForItsOwnerAlone) {
  const RunDirectory made = RunDirectory::open(environment({{"TENON_RUN_DIR", path("run")}}));
  EXPECT_EQ(made.path(), path("run"));
  struct stat info{};
  ASSERT_EQ(stat(path("run").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777, 0700u);
}

TEST_F(RunDirectoryTest, LookingMakesNothing) {
  EXPECT_FALSE(RunDirectory::open_existing(environment({{"TENON_RUN_DIR", path("run")}})));
  EXPECT_FALSE(std::filesystem::exists(path("run")));
  RunDirectory::at(path("run"));
  EXPECT_TRUE(RunDirectory::open_existing(environment({{"TENON_RUN_DIR", path("run")}})));
}

TEST_F(RunDirectoryTest, WithoutTheSystemsDirectoryItIsTheUsersOwn) {
  if (geteuid() == 0 || std::filesystem::exists("/run/tenon")) GTEST_SKIP() << "this machine has /run/tenon, or may make it";
  const RunDirectory made = RunDirectory::open(environment({{"XDG_RUNTIME_DIR", directory_.path().string()}}));
  EXPECT_EQ(made.path(), path("tenon"));
  expect_refused([] { RunDirectory::open(environment({})); }, ErrorCode::failed_precondition, "no run directory");
}

// In a mount namespace of its own, where /run is empty. The exit status of the child, or nothing if it cannot have one.
std::optional<int> in_an_empty_run(const std::function<int()>& body) {
  constexpr int kNoNamespace = 77;
  const pid_t child = fork();
  if (child == 0) {
    const bool is_apart = unshare(CLONE_NEWNS) == 0 && mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
                          mount("tmpfs", "/run", "tmpfs", 0, nullptr) == 0;
    _exit(is_apart ? body() : kNoNamespace);
  }
  int status = 0;
  if (child < 0 || waitpid(child, &status, 0) != child || !WIFEXITED(status) || WEXITSTATUS(status) == kNoNamespace)
    return std::nullopt;
  return WEXITSTATUS(status);
}

TEST_F(RunDirectoryTest, RootIsToldOnceThatOthersAreLockedOut) {
  if (geteuid() != 0 || getgrnam("tenon") != nullptr) GTEST_SKIP() << "needs root and no group tenon";
  const std::optional<int> result = in_an_empty_run([] {
    const logging::Capture lines;
    for (int i = 0; i < 2; ++i) RunDirectory::open(environment({}));
    const std::vector<std::string> messages = lines.messages();
    if (messages.size() != 1) return 2;
    return messages[0].find("groupadd --system tenon") != std::string::npos ? 0 : 3;
  });
  if (!result) GTEST_SKIP() << "this machine allows no mount namespace";
  EXPECT_EQ(*result, 0);
}

TEST_F(RunDirectoryTest, ASymbolicLinkIsRefused) {
  std::filesystem::create_directory(path("real"));
  std::filesystem::create_directory_symlink(path("real"), path("link"));
  expect_refused([&] { RunDirectory::at(path("link")); }, ErrorCode::failed_precondition, "symbolic link");
  expect_refused([&] { RunDirectory::at(path("link") + "/"); }, ErrorCode::failed_precondition, "symbolic link");
}

TEST_F(RunDirectoryTest, ADirectoryThatEverybodyMayWriteToIsRefused) {
  ASSERT_EQ(mkdir(path("open").c_str(), 0700), 0);
  ASSERT_EQ(chmod(path("open").c_str(), 01777), 0);
  expect_refused([&] { RunDirectory::at(path("open")); }, ErrorCode::failed_precondition, "world-writable");
}

TEST_F(RunDirectoryTest, AForeignDirectoryIsRefused) {
  ASSERT_EQ(mkdir(path("foreign").c_str(), 0755), 0);
  if (chown(path("foreign").c_str(), 61001, 61001) != 0) GTEST_SKIP() << "only root can give a directory away";
  expect_refused([&] { RunDirectory::at(path("foreign")); }, ErrorCode::failed_precondition, "belongs to user 61001");
}

TEST_F(RunDirectoryTest, WhatIsNoDirectoryIsRefused) {
  RunDirectory::at(path("run")).open_file("file");
  expect_refused([&] { RunDirectory::at(path("run/file")); }, ErrorCode::failed_precondition, "no directory");
  EXPECT_THROW(RunDirectory::at(path("missing/run")), Error);
}

TEST_F(RunDirectoryTest, FilesThatCannotBeTrustedAreRefused) {
  const RunDirectory directory = RunDirectory::at(path("run"));
  std::filesystem::create_symlink("/etc/passwd", path("run/link"));
  expect_refused([&] { directory.open_file("link"); }, ErrorCode::failed_precondition, "symbolic link");
  ASSERT_EQ(mkfifo(path("run/fifo").c_str(), 0600), 0);
  expect_refused([&] { directory.open_file("fifo"); }, ErrorCode::failed_precondition, "no regular file");
  directory.open_file("open");
  ASSERT_EQ(chmod(path("run/open").c_str(), 0666), 0);
  expect_refused([&] { directory.open_file("open"); }, ErrorCode::failed_precondition, "world-writable");
  directory.open_file("twice");
  std::filesystem::create_hard_link(path("run/twice"), path("run/again"));
  expect_refused([&] { directory.open_file("twice"); }, ErrorCode::failed_precondition, "further names");
  directory.open_file("foreign");
  if (chown(path("run/foreign").c_str(), 61001, 61001) == 0)  // root only
    expect_refused([&] { directory.open_file("foreign"); }, ErrorCode::failed_precondition, "belongs to user 61001");
}

TEST_F(RunDirectoryTest, FilesAreTheOwnersAloneOrTheGroups) {
  const auto mode_of = [](const FileDescriptor& fd) {
    struct stat info{};
    fstat(fd.get(), &info);
    return info.st_mode & 07777;
  };
  const mode_t previous = umask(077);  // the group's rights must not depend on it
  EXPECT_EQ(mode_of(RunDirectory::at(path("mine")).open_file("file")), 0600u);
  ASSERT_EQ(mkdir(path("ours").c_str(), 0700), 0);
  ASSERT_EQ(chmod(path("ours").c_str(), 0770), 0);
  EXPECT_EQ(mode_of(RunDirectory::at(path("ours")).open_file("file")), 0660u);
  umask(previous);
  EXPECT_EQ(RunDirectory::at(path("ours")).files("le"), std::vector<std::string>{"file"});
}

}  // namespace
}  // namespace tenon::testing
