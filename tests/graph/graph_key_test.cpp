#include "graph/encode/graph_key.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "graph/encode/serialize.h"
#include "graph/fnv_collision.h"
#include "graph/optimize/simplify.h"
#include "tenon/expression.h"
#include "tenon/ops.h"

namespace tenon {
namespace {

Graph of_constant(HostArray value) {
  Graph graph;
  graph.set_outputs({graph.constant(std::move(value))});
  return graph;
}

TEST(GraphKey, IsEqualForGraphsBuiltTheSameWay) {
  for (const OpInfo& op : all_ops()) {
    const Graph first = parse_expression(op.example), second = parse_expression(op.example);
    EXPECT_EQ(first.key(), second.key()) << op.example;
    EXPECT_EQ(first.fingerprint(), second.fingerprint()) << op.example;
    EXPECT_EQ(first.key(), deserialize(serialize(first)).key()) << op.example;
    EXPECT_NE(first.key(), first.fingerprint());
  }
}

TEST(GraphKey, DistinguishesWhatTheTextDistinguishes) {
  std::map<GraphKey, std::string> keys, fingerprints;
  std::map<std::string, GraphKey> texts;
  for (const OpInfo& op : all_ops()) {
    const Graph graph = parse_expression(op.example);
    texts.emplace(graph.text(), graph.key());
    keys.emplace(graph.key(), graph.text());
    fingerprints.emplace(graph.fingerprint(), graph.text());
  }
  EXPECT_GT(texts.size(), 200u);
  EXPECT_EQ(keys.size(), texts.size());
  EXPECT_EQ(fingerprints.size(), texts.size());
}

TEST(GraphKey, DependsOnEveryAttribute) {
  using Build = std::function<NodeId(Graph&, NodeId x, NodeId i)>;
  const std::int64_t none[] = {0, 0, 0, 0}, one[] = {0, 1, 0, 0}, low[] = {0, 0, 1, 0}, all[] = {2, 4, 8, 8},
                     three[] = {2, 3, 8, 8}, ones[] = {1, 1, 1, 1};
  const int swap[] = {0, 1, 3, 2}, turn[] = {1, 0, 2, 3};
  // Two or more of each primitive that differ in one attribute alone.
  const std::vector<Build> builds = {
      [](Graph& g, NodeId, NodeId) { return g.scalar(1, DType::f32); },
      [](Graph& g, NodeId, NodeId) { return g.scalar(-0.0, DType::f32); },
      [](Graph& g, NodeId, NodeId) { return g.scalar(0.0, DType::f32); },
      [](Graph& g, NodeId, NodeId) { return g.scalar(1, DType::f64); },
      [](Graph& g, NodeId, NodeId) { return g.literal(1.0); },
      [](Graph& g, NodeId, NodeId) { return g.literal(std::int64_t{1}); },
      [](Graph& g, NodeId x, NodeId) { return apply(g, "leaky_relu", {x}, {{"negative_slope", 0.1}})[0]; },
      [](Graph& g, NodeId x, NodeId) { return apply(g, "leaky_relu", {x}, {{"negative_slope", 0.2}})[0]; },
      [](Graph& g, NodeId x, NodeId) { return g.cast(x, DType::f16); },
      [](Graph& g, NodeId x, NodeId) { return g.cast(x, DType::bf16); },
      [](Graph& g, NodeId x, NodeId) { return g.reshape(x, {8, 64}); },
      [](Graph& g, NodeId x, NodeId) { return g.reshape(x, {64, 8}); },
      [&](Graph& g, NodeId x, NodeId) { return g.transpose(x, swap); },
      [&](Graph& g, NodeId x, NodeId) { return g.transpose(x, turn); },
      [&](Graph& g, NodeId x, NodeId) { return g.slice(x, none, three, ones); },
      [&](Graph& g, NodeId x, NodeId) { return g.slice(x, one, three, ones); },
      [&](Graph& g, NodeId x, NodeId) { return g.pad(x, one, low, 0); },
      [&](Graph& g, NodeId x, NodeId) { return g.pad(x, low, one, 0); },
      [&](Graph& g, NodeId x, NodeId) { return g.pad(x, one, low, 1); },
      [](Graph& g, NodeId x, NodeId) { return g.concat(std::vector{x, x}, 2); },
      [](Graph& g, NodeId x, NodeId) { return g.concat(std::vector{x, x}, 3); },
      [](Graph& g, NodeId x, NodeId i) { return g.gather(x, i, 2); },
      [](Graph& g, NodeId x, NodeId i) { return g.gather(x, i, 3); },
      [](Graph& g, NodeId x, NodeId i) { return g.scatter(x, i, x, 3, false); },
      [](Graph& g, NodeId x, NodeId i) { return g.scatter(x, i, x, 3, true); },
      [](Graph& g, NodeId, NodeId) { return g.iota({4, 4}, 0); },
      [](Graph& g, NodeId, NodeId) { return g.iota({4, 4}, 1); },
      [](Graph& g, NodeId x, NodeId) { return g.reduce(ReduceKind::max, x, 4); },
      [](Graph& g, NodeId x, NodeId) { return g.reduce(ReduceKind::min, x, 4); },
      [](Graph& g, NodeId x, NodeId) { return g.arg_reduce(x, 3, true); },
      [](Graph& g, NodeId x, NodeId) { return g.arg_reduce(x, 3, false); },
      [](Graph& g, NodeId x, NodeId) { return g.matmul(x, x); },
      [](Graph& g, NodeId x, NodeId) { return g.matmul(x, x, {.transpose_a = true}); },
      [](Graph& g, NodeId x, NodeId) { return g.matmul(x, x, {.transpose_b = true}); },
      [](Graph& g, NodeId x, NodeId) { return g.window(x, {.max = true, .size = {2, 2, 1}}); },
      [](Graph& g, NodeId x, NodeId) { return g.window(x, {.max = false, .size = {2, 2, 1}}); },
      [](Graph& g, NodeId x, NodeId) { return g.window(x, {.max = true, .size = {2, 2, 1}, .stride = {2, 2, 1}}); },
      [](Graph& g, NodeId x, NodeId) { return g.arg_sort(x, 3, true); },
      [](Graph& g, NodeId x, NodeId) { return g.arg_sort(x, 3, false); },
      [](Graph& g, NodeId x, NodeId) { return g.cumulative(x, 3, true); },
      [](Graph& g, NodeId x, NodeId) { return g.cumulative(x, 3, false); },
      [](Graph& g, NodeId, NodeId) { return g.random({4}, DType::f32, false, 1); },
      [](Graph& g, NodeId, NodeId) { return g.random({4}, DType::f32, false, 2); },
      [](Graph& g, NodeId, NodeId) { return g.random({4}, DType::f32, true, 1); },
  };
  std::map<GraphKey, std::string> known;
  for (const Build& build : builds) {
    Graph graph;
    const NodeId x = graph.input("x", DType::f32, Shape(all)), i = graph.input("i", DType::i64, Shape(all));
    graph.set_outputs({build(graph, x, i)});
    const auto [at, is_new] = known.emplace(graph.key(), graph.text());
    EXPECT_TRUE(is_new) << at->second << graph.text();
  }
}

TEST(GraphKey, DependsOnOutputsAndTheirOrder) {
  Graph graph;
  const NodeId a = graph.input("a", DType::f32, {2}), b = graph.input("b", DType::f32, {2});
  std::vector<GraphKey> keys;
  for (const std::vector<NodeId>& outputs : {std::vector<NodeId>{}, {a}, {b}, {a, b}, {b, a}, {a, a}}) {
    graph.set_outputs(outputs);
    for (const GraphKey& other : keys) EXPECT_NE(graph.key(), other);
    keys.push_back(graph.key());
  }
}

TEST(GraphKey, NamesOfInputsDoNotCount) {
  const auto named = [](const char* name) {
    Graph graph;
    graph.set_outputs({graph.input(name, DType::f32, {2})});
    return graph.key();
  };
  EXPECT_EQ(named("a"), named("b"));
}

TEST(GraphKey, EveryByteOfALargeConstantCounts) {
  std::vector<std::uint8_t> bytes(5000, 7);
  const auto key = [&] { return of_constant(HostArray::from<std::uint8_t>({5000}, std::span<const std::uint8_t>(bytes))).key(); };
  const GraphKey whole = key();
  for (std::size_t at = 0; at < bytes.size(); at += 499) {
    bytes[at] ^= 1;
    EXPECT_NE(key(), whole) << at;
    bytes[at] ^= 1;
  }
  EXPECT_EQ(key(), whole);
}

TEST(GraphKey, ConstantsMadeToCollideInFnvDiffer) {
  const HostArray first = test::colliding_array(false), second = test::colliding_array(true);
  ASSERT_EQ(test::fnv1a(first), test::fnv1a(second));
  EXPECT_NE(of_constant(first).key(), of_constant(second).key());
  EXPECT_NE(of_constant(first).text(), of_constant(second).text());
}

TEST(GraphKey, ConstantsMadeToCollideInFnvAreNotMergedBySimplifying) {
  Graph graph;
  graph.set_outputs({graph.constant(test::colliding_array(false)), graph.constant(test::colliding_array(true)),
                     graph.constant(test::colliding_array(false))});
  const Graph simple = simplify(graph);
  EXPECT_NE(simple.outputs()[0], simple.outputs()[1]);
  EXPECT_EQ(simple.outputs()[0], simple.outputs()[2]);
}

TEST(GraphKey, AGraphThatWasMovedFromAndBuiltAgainIsNotTakenForALongerOne) {
  Graph first;
  first.input("a", DType::f32, {2});
  Graph both = std::move(first);
  first.set_outputs({first.input("b", DType::f32, {3})});
  both.set_outputs({both.input("b", DType::f32, {3})});
  EXPECT_NE(first.key(), both.key());
}

// The key is drawn when it is first needed: a child that runs this program has another.
TEST(GraphKey, MeansNothingToOtherProcessesTheFingerprintDoes) {
  const auto ask = [](const char* mode) {
    int channel[2];
    EXPECT_EQ(pipe(channel), 0);
    const pid_t child = fork();
    if (child == 0) {
      dup2(channel[1], STDOUT_FILENO);
      setenv("TENON_TEST_PRINT_KEY", mode, 1);
      execl("/proc/self/exe", "test_graph", "--gtest_filter=GraphKey.PrintsIt", nullptr);
      _exit(127);
    }
    close(channel[1]);
    std::string text;
    char part[4096];
    for (ssize_t got = 0; (got = read(channel[0], part, sizeof part)) > 0;) text.append(part, static_cast<std::size_t>(got));
    close(channel[0]);
    int status = 0;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
    const std::size_t at = text.find("key=");
    return at == std::string::npos ? text : text.substr(at, text.find('\n', at) - at);
  };
  EXPECT_NE(ask("key"), ask("key"));
  EXPECT_EQ(ask("fingerprint"), ask("fingerprint"));
}

TEST(GraphKey, PrintsIt) {
  const char* const mode = getenv("TENON_TEST_PRINT_KEY");
  if (mode == nullptr) return;
  const Graph graph = parse_expression("gelu([1, 2, 3] * 2)");
  const GraphKey key = std::string(mode) == "key" ? graph.key() : graph.fingerprint();
  printf("key=%016llx%016llx\n", static_cast<unsigned long long>(key.high), static_cast<unsigned long long>(key.low));
}

}  // namespace
}  // namespace tenon
