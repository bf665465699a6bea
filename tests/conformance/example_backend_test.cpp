// The backend of docs/writing-a-backend.md under the conformance suite: what it computes is right, and it refuses the rest.
#include <gtest/gtest.h>

#include <algorithm>

#include "../../examples/backend/walk.h"
#include "conformance/runner.h"
#include "tenon/error.h"

namespace tenon::conformance {
namespace {

class ExampleBackend : public testing::Test {
 protected:
  Verdict verdict_of(std::string_view op, DType dtype = DType::f32) {
    Runner runner(*device_, {.extent = Extent::quick, .command = "tenon_conformance"});
    return runner.run(find_op(op), dtype);
  }

  std::unique_ptr<Backend> backend_ = make_walk_backend();
  std::unique_ptr<OpenDevice> device_ = backend_->open(backend_->devices()[0]);
};

TEST_F(ExampleBackend, PassesWhatItComputes) {
  for (const char* op :
       {"add", "subtract", "multiply", "negative", "exp", "log", "sqrt", "tanh", "relu", "softmax", "sum", "max", "matmul"}) {
    const Verdict verdict = verdict_of(op);
    EXPECT_EQ(verdict.status, Status::pass) << op << ": " << (verdict.failures.empty() ? verdict.reason : verdict.failures[0]);
    EXPECT_GT(verdict.elements, 0) << op;
  }
}

TEST_F(ExampleBackend, RefusesTheRestByName) {
  EXPECT_EQ(verdict_of("add", DType::i32).status, Status::unsupported);
  const Verdict sort = verdict_of("sort");
  EXPECT_EQ(sort.status, Status::unsupported);
  EXPECT_NE(sort.reason.find("arg_sort"), std::string::npos) << sort.reason;
}

TEST_F(ExampleBackend, ChecksAGraphAsItCompilesIt) {
  for (const OpInfo& op : all_ops()) {
    if (std::ranges::find(op.dtypes, DType::f32) == op.dtypes.end()) continue;
    for (const Case& c : cases_for(op, DType::f32, Extent::quick)) {
      const Program program = program_of(c, 1);
      bool checked = true, compiled = true;
      try {
        backend_->check(device_->info(), program.graph);
      } catch (const Error&) {
        checked = false;
      }
      try {
        device_->compile(program.graph);
      } catch (const Error&) {
        compiled = false;
      }
      EXPECT_EQ(checked, compiled) << op.name << " " << c.label;
    }
  }
}

}  // namespace
}  // namespace tenon::conformance
