#include "graph/encode/serialize.h"

#include <gtest/gtest.h>

#include <random>

#include "tenon/error.h"
#include "tenon/expression.h"
#include "tenon/ops.h"

namespace tenon {
namespace {

// A program with every primitive in it.
Graph everything() {
  Graph g;
  const NodeId x = g.input("x", DType::f32, {2, 3, 8, 8}), w = g.input("w", DType::f32, {4, 3, 3, 3});
  const NodeId i = g.input("i", DType::i64, {2, 1, 8, 8}), m = g.input("m", DType::bf16, {5, 6});
  const NodeId conv = g.conv(x, w, {.stride = {2, 1, 1}, .pad_low = {1, 1, 0}, .pad_high = {1, 1, 0}});
  const NodeId pool = g.window(conv, {.max = true, .size = {2, 2, 1}, .stride = {2, 2, 1}});
  const std::int64_t start[] = {1, 0, 7, 0}, extent[] = {1, 3, 4, 8}, step[] = {1, 1, -2, 1};
  const NodeId slice = g.slice(x, start, extent, step);
  const int perm[] = {0, 2, 3, 1};
  const NodeId transposed = g.transpose(slice, perm);
  const std::int64_t low[] = {0, 1, 0, 2}, high[] = {0, 0, 3, 0};
  const NodeId padded = g.pad(transposed, low, high, -1.5);
  const NodeId gathered = g.gather(x, i, 1), taken = g.take(x, i, 3);
  const NodeId scattered = g.scatter(x, i, gathered, 1, true);
  const NodeId parts[] = {x, scattered};
  const NodeId joined = g.concat(parts, 1);
  const NodeId product = g.matmul(m, g.cast(m, DType::f16), {.transpose_b = true});
  const NodeId clamped = apply(g, "clamp", {product}, {{"min", -0.5}, {"max", 2.5}})[0];
  const NodeId noise = g.random({3, 4}, DType::f64, true, 0xfedcba9876543210u);
  const NodeId counted = g.iota({4, 5}, 1);
  const NodeId table = g.constant(HostArray::from<std::int16_t>({3}, {-1, 0, 77}));
  g.set_outputs({pool, padded, taken, g.reduce(ReduceKind::sum, joined, 0b1010), g.arg_reduce(x, 2, true), g.arg_sort(x, 3, true),
                 g.cumulative(counted, 0, true), clamped, noise, g.reshape(table, {3, 1}),
                 g.elementwise(ElementwiseOp{}, std::vector<NodeId>{g.scalar(2, DType::f32), g.literal(0.1)})});
  return g;
}

TEST(Serialize, EveryPrimitiveComesBackAsItWas) {
  const Graph graph = everything();
  const Graph same = deserialize(serialize(graph));
  EXPECT_EQ(same.text(), graph.text());
  ASSERT_EQ(same.inputs().size(), graph.inputs().size());
  EXPECT_EQ(same[same.inputs()[3]].as<InputAttr>().name, "m");
  EXPECT_EQ(same[same.inputs()[3]].as<InputAttr>().index, 3);
}

TEST(Serialize, TheExamplesOfTheCatalogueComeBackAsTheyWere) {
  int checked = 0;
  for (const OpInfo& op : all_ops()) {
    const Graph graph = parse_expression(op.example);
    EXPECT_EQ(deserialize(serialize(graph)).text(), graph.text()) << op.example;
    ++checked;
  }
  EXPECT_GT(checked, 100);
}

TEST(Serialize, EveryCutIsRefused) {
  const std::vector<std::byte> bytes = serialize(everything());
  for (std::size_t size = 0; size < bytes.size(); ++size) EXPECT_THROW(deserialize(std::span(bytes).first(size)), Error) << size;
  std::vector<std::byte> longer = bytes;
  longer.push_back(std::byte{0});
  EXPECT_THROW(deserialize(longer), Error);
}

// Whatever is read is a graph: its text can be made, and read again it is the same.
TEST(Serialize, DamagedBytesAreRefusedOrAreAnotherGraph) {
  const std::vector<std::byte> bytes = serialize(everything());
  std::mt19937 random(7);
  int accepted = 0;
  for (int round = 0; round < 20000; ++round) {
    std::vector<std::byte> damaged = bytes;
    for (int change = static_cast<int>(random() % 3); change >= 0; --change)
      damaged[random() % damaged.size()] = static_cast<std::byte>(random() % (random() % 2 ? 256 : 8));
    try {
      const Graph graph = deserialize(damaged);
      ++accepted;
      ASSERT_EQ(deserialize(serialize(graph)).text(), graph.text());
    } catch (const Error& error) {
      ASSERT_TRUE(error.code() == ErrorCode::invalid_argument || error.code() == ErrorCode::resource_exhausted ||
                  error.code() == ErrorCode::out_of_range)
          << error.what();
    }
  }
  EXPECT_GT(accepted, 0);
}

TEST(Serialize, OtherVersionsAndOtherThingsAreRefused) {
  std::vector<std::byte> bytes = serialize(everything());
  EXPECT_THROW(deserialize({}), Error);
  ByteWriter other;
  other.number(0x544e47);
  other.number(99);
  EXPECT_THROW(deserialize(other.bytes()), Error);
  bytes[0] ^= std::byte{1};
  EXPECT_THROW(deserialize(bytes), Error);
}

// Two texts for one graph would be two programs in a cache.
TEST(Serialize, TruthValuesHaveOneForm) {
  Graph graph;
  graph.set_outputs({graph.constant(HostArray::full(DType::boolean, {}, 1))});
  std::vector<std::byte> bytes = serialize(graph);
  int refused = 0;
  for (std::byte& byte : bytes) {
    const std::byte before = std::exchange(byte, std::byte{10});
    try {
      const Graph read = deserialize(bytes);
      EXPECT_EQ(serialize(read), bytes);
    } catch (const Error&) {
      ++refused;
    }
    byte = before;
  }
  EXPECT_GT(refused, 0);
}

TEST(Bytes, NumbersHaveOneForm) {
  for (const std::uint64_t value : {std::uint64_t{0}, std::uint64_t{127}, std::uint64_t{128}, ~std::uint64_t{0}}) {
    ByteWriter out;
    out.number(value);
    ByteReader in(out.bytes());
    EXPECT_EQ(in.number(), value);
    in.finish();
  }
  for (const std::int64_t value : {std::int64_t{0}, std::int64_t{-1}, INT64_MIN, INT64_MAX}) {
    ByteWriter out;
    out.integer(value);
    ByteReader in(out.bytes());
    EXPECT_EQ(in.integer(), value);
  }
  const std::byte padded[] = {std::byte{0x80}, std::byte{0x00}};
  EXPECT_THROW(ByteReader(padded).number(), Error);
}

}  // namespace
}  // namespace tenon
