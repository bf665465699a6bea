// Whole ops (Graph::mark) in the programs of each device.
#include "mesh/plan/stages.h"

#include <gtest/gtest.h>

#include "graph/optimize/region.h"
#include "tenon/expression.h"

namespace tenon::mesh {
namespace {

struct Case {
  const char* expression;
  std::vector<NamedType> inputs;
  std::map<std::string, Sharding, std::less<>> shardings;
};

// The whole ops in the programs of the second device.
std::vector<std::string> whole_ops(const Case& each) {
  const Graph graph = parse_expression(each.expression, each.inputs);
  const Mesh mesh({{"m", 2}}, {"a", "b"});
  MeshOptions options;
  options.inputs = each.shardings;
  std::vector<std::string> names;
  for (const Stage& stage : stages_of(graph, mesh, partition(graph, mesh, options)))
    if (!stage.graphs.empty())
      for (const Region& region : stage.graphs[1].regions()) names.emplace_back(name(region.attr));
  return names;
}

using Names = std::vector<std::string>;
const std::vector<NamedType> kHeads{
    {"q", DType::f32, {2, 4, 8, 16}}, {"k", DType::f32, {2, 4, 8, 16}}, {"v", DType::f32, {2, 4, 8, 16}}};
constexpr const char* kAttention = "attention(q, k, v)";
constexpr const char* kCausal = "attention(q, k, v, causal=true)";

Sharding over(const char* text) { return Sharding::parse(text); }

TEST(WholeOps, StayWholeWhereOneDeviceHasAllTheyNeed) {
  EXPECT_EQ(whole_ops({kAttention, kHeads, {{"q", over("m")}, {"k", over("m")}, {"v", over("m")}}}), Names{"attention"});
  EXPECT_EQ(whole_ops({kCausal, kHeads, {{"q", over("-,m")}, {"k", over("-,m")}, {"v", over("-,m")}}}), Names{"attention"});
  EXPECT_EQ(whole_ops({kAttention, kHeads, {{"q", over("-,-,m")}}}), Names{"attention"});
  const std::vector<NamedType> matrix{{"x", DType::f32, {8, 12}}};
  EXPECT_EQ(whole_ops({"softmax(x)", matrix, {{"x", over("m")}}}), Names{"softmax"});
  EXPECT_EQ(whole_ops({"layer_norm(x * 2)", matrix, {{"x", over("m")}}}), Names{"norm"});
  EXPECT_EQ(whole_ops({"values, indices = top_k(x, 3); values, indices", matrix, {{"x", over("m")}}}), Names{"top_k"});
  EXPECT_EQ(whole_ops({"cdist(x, x)", matrix, {}}), Names{"cdist"});
}

// After the sum over devices the softmax is one op again.
TEST(WholeOps, StayWholeAfterAnExchange) {
  const std::vector<NamedType> product{{"x", DType::f32, {8, 12}}, {"w", DType::f32, {12, 6}}};
  EXPECT_EQ(whole_ops({"softmax(x @ w)", product, {{"x", over("-,m")}, {"w", over("m,-")}}}), Names{"softmax"});
}

TEST(WholeOps, ComeApartWhereTheirPartsLieOnSeveralDevices) {
  const std::vector<NamedType> matrix{{"x", DType::f32, {8, 12}}};
  EXPECT_EQ(whole_ops({"softmax(x)", matrix, {{"x", over("-,m")}}}), Names{});
  EXPECT_EQ(whole_ops({"layer_norm(x)", matrix, {{"x", over("-,m")}}}), Names{});
  // Keys are split: the maximum and the sum go over devices.
  EXPECT_EQ(whole_ops({kAttention, kHeads, {{"k", over("-,-,m")}, {"v", over("-,-,m")}}}), Names{});
  // The second device's first row is not row 0.
  EXPECT_EQ(whole_ops({kCausal, kHeads, {{"q", over("-,-,m")}}}), Names{});
}

}  // namespace
}  // namespace tenon::mesh
