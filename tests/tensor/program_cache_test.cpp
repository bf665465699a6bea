#include "tensor/program_cache.h"

#include <gtest/gtest.h>

#include "tenon/ops.h"
#include "tenon/tensor/functions.h"

namespace tenon {
namespace {

GraphKey structure(const Tensor& tensor, bool numbers_are_inputs = true) {
  const Nodes targets{node_of(tensor)};
  TensorPlan planned = plan(targets);
  planned.numbers_are_inputs = numbers_are_inputs;
  const std::optional<GraphKey> key = structure_of(planned);
  EXPECT_TRUE(key.has_value());
  return key.value_or(GraphKey{});
}

class Structure : public testing::Test {
 protected:
  const Tensor a_ = tensor({1.0, 2.0}), b_ = tensor({3.0, 4.0}), row_ = tensor({{1.0, 2.0}}), whole_ = tensor({1, 2});
};

TEST_F(Structure, IsThatOfTheExpressionNotOfItsValues) {
  EXPECT_EQ(structure(a_ + b_), structure(b_ + a_));
  EXPECT_EQ(structure(gelu(a_ * b_) + a_), structure(gelu(b_ * a_) + b_));
  EXPECT_NE(structure(gelu(a_ * b_) + a_), structure(gelu(a_ * b_) + b_));
  EXPECT_NE(structure(a_ + b_), structure(a_ - b_));
  EXPECT_NE(structure(a_ + b_), structure(a_ + a_));
  EXPECT_NE(structure(a_ + b_), structure(a_ + row_));
  EXPECT_NE(structure(a_ + b_), structure(whole_ + b_));
  EXPECT_NE(structure(sum(row_, 0)), structure(sum(row_, 1)));
}

TEST_F(Structure, ANewNumberIsNotANewProgram) {
  EXPECT_EQ(structure(a_ * 2 + b_), structure(a_ * 3 + b_));
  EXPECT_NE(structure(a_ * 2 + b_, false), structure(a_ * 3 + b_, false));
  EXPECT_EQ(structure(a_ * 0.5), structure(a_ * 2));
  EXPECT_EQ(structure(whole_ * 7), structure(whole_ * 8));
  EXPECT_NE(structure(whole_ * 7), structure(whole_ * 7.5));  // f32
  EXPECT_NE(structure(a_ * 2), structure(2 * a_));
  // A literal keeps f32 precision beside 16-bit numbers, which an input of 16 bits would not.
  EXPECT_NE(structure(a_.cast(DType::bf16) * 2.001), structure(a_.cast(DType::bf16) * 3.001));
  EXPECT_NE(structure(pow(a_, 2)), structure(pow(a_, 3)));
}

TEST_F(Structure, OfAnExpressionWithoutOneIsNotCompared) {
  const Nodes indexed{node_of(a_[0] + 1)};
  EXPECT_FALSE(structure_of(plan(indexed)).has_value());
}

// What plain_node() says about every op that it knows.
TEST(PlainNode, IsWhatTheOpAddsWithoutParameters) {
  int checked = 0;
  for (const OpInfo& op : all_ops()) {
    const std::optional<ElementwiseOp> node = plain_node(op);
    if (!node) continue;
    for (const DType dtype : {DType::f32, DType::i32, DType::boolean}) {
      if (std::ranges::find(op.dtypes, dtype) == op.dtypes.end()) continue;
      Graph built, plain;
      std::vector<NodeId> built_inputs, plain_inputs;
      for (int i = 0; i < op.max_inputs; ++i) {
        built_inputs.push_back(built.input("x", dtype, {3}));
        plain_inputs.push_back(plain.input("x", dtype, {3}));
      }
      built.set_outputs(apply(built, op, built_inputs));
      plain.set_outputs({plain.elementwise(*node, plain_inputs)});
      EXPECT_EQ(built.text(), plain.text()) << op.name;
      ++checked;
    }
  }
  EXPECT_GT(checked, 100);
}

}  // namespace
}  // namespace tenon
