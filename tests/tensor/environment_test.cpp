// What the tests of tensors run in: the process's manager as it is by default, without a ledger.
#include <gtest/gtest.h>

#include "tenon/manager.h"

namespace tenon {
namespace {

class OwnProcess final : public testing::Environment {
 public:
  void SetUp() override {
    Config config;
    config.ledger = false;
    set_process_config(config);
  }
};

[[maybe_unused]] const testing::Environment* const kRegistered = testing::AddGlobalTestEnvironment(new OwnProcess);

}  // namespace
}  // namespace tenon
