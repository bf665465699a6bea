// What the tests of tensors run in: the process's manager as it is by default, whatever this user has configured, without a
// ledger and with a run directory of its own.
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <string>

#include "tenon/manager.h"

namespace tenon {
namespace {

class OwnProcess final : public testing::Environment {
 public:
  void SetUp() override {
    std::string pattern = (std::filesystem::temp_directory_path() / "tenon-test-XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    directory_ = pattern;
    setenv("TENON_RUN_DIR", directory_.c_str(), 1);
    Config config;
    config.ledger = false;
    set_process_config(config);
  }
  void TearDown() override {
    std::error_code ignored;
    std::filesystem::remove_all(directory_, ignored);
  }

 private:
  std::filesystem::path directory_;
};

[[maybe_unused]] const testing::Environment* const kRegistered = testing::AddGlobalTestEnvironment(new OwnProcess);

}  // namespace
}  // namespace tenon
