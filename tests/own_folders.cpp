// Linked into every test program: each process of tests has a run directory, a state folder and a configuration folder of its
// own, so that no test sees what another one leaves behind, or what this user has configured. Settings read from the environment
// prefer the CPU, whatever the machine has; managers with their own Config choose accordingly.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "source_folder.h"

std::filesystem::path source_folder() { return TENON_SOURCE_DIR; }

namespace {

class OwnFolders {
 public:
  // Runs after whatever a process writes at its exit. A child that a test has forked has nothing of its own to remove.
  ~OwnFolders() {
    if (path_.empty() || owner_ != getpid()) return;
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  void make() {
    std::string pattern = (std::filesystem::temp_directory_path() / "tenon-tests-XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    path_ = pattern;
    owner_ = getpid();
    setenv("TENON_RUN_DIR", (path_ / "run").c_str(), 1);
    setenv("TENON_STATE_DIR", (path_ / "state").c_str(), 1);
    setenv("XDG_CONFIG_HOME", (path_ / "config").c_str(), 1);
    unsetenv("TENON_CONFIG");
    setenv("COMPUTE_PREFER", "cpu", 1);
  }

 private:
  std::filesystem::path path_;
  pid_t owner_ = 0;
};

OwnFolders own_folders;

// Not made where tests are only listed.
class MakeOwnFolders final : public testing::Environment {
 public:
  void SetUp() override { own_folders.make(); }
};

[[maybe_unused]] const testing::Environment* const kRegistered = testing::AddGlobalTestEnvironment(new MakeOwnFolders);

}  // namespace
