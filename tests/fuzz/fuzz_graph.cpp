// Graphs as bytes: what deserialize() accepts is well-formed, so everything that takes a graph must cope with it.
#include <algorithm>

#include "fuzz/fuzzer.h"
#include "graph/encode/serialize.h"
#include "graph/optimize/fusion.h"
#include "graph/optimize/simplify.h"
#include "graph/work.h"
#include "tenon/expression.h"

namespace tenon {
namespace {

constexpr const char* kPrograms[] = {
    "a * b + 1",
    "softmax(a)",
    "a @ m",
    "a.T[1:, ::-1]",
    "concat(a, a, axis=0)",
    "pad(b, [1, 2])",
    "b[i]",
    "sort(b)",
    "cumsum(b)",
    "conv2d(c, ones([3, 2, 2, 2]))",
    "max_pool2d(c, 2)",
    "argmax(a)",
    "randn([4])",
    "cast(a, bfloat16), cast(b, int8)",
    "scatter(b, i, [1.0, 2.0], axis=0)",
    "arange(7)",
    "[1.5, 2.5]",
};

std::string bytes_of(const char* program) {
  const std::vector<NamedType> inputs = {{"a", DType::f32, {2, 3}},
                                         {"b", DType::f32, {3}},
                                         {"c", DType::f32, {1, 2, 4, 4}},
                                         {"m", DType::f32, {3, 3}},
                                         {"i", DType::i64, {2}}};
  return std::string(fuzz::text_of(serialize(parse_expression(program, inputs))));
}

void parse(fuzz::Bytes bytes) {
  const Graph graph = deserialize(bytes);
  const std::vector<std::byte> again = serialize(graph);
  fuzz::require(std::ranges::equal(again, bytes), "an accepted graph is written as other bytes than it was read from");
  fuzz::require(deserialize(again).text() == graph.text(), "the same bytes are another graph");
  (void)cost(graph);
  const Graph simple = simplify(graph);
  fuzz::require(simple.outputs().size() == graph.outputs().size(), "simplifying changed the outputs");
  (void)fuse(simple);
}

fuzz::Target make_target() {
  fuzz::Target target{.name = "graph"};
  for (const char* program : kPrograms) target.seeds.push_back(bytes_of(program));
  target.words = {std::string(1, '\0'),
                  "\x01",
                  "\x02",
                  "\x03",
                  "\x04",
                  "\x08",
                  "\x7f",
                  "\xff\x01",
                  "\x80\x80\x04",
                  "\xff\xff\xff\xff\x0f",
                  "\xff\xff\xff\xff\xff\xff\xff\x7f",
                  "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"};
  target.parse = parse;
  // A node takes half a kilobyte and can be written in four bytes; it is held six times here.
  target.bound = [](std::size_t bytes) { return 4096 * bytes + (1 << 17); };
  return target;
}

}  // namespace

const fuzz::Target& fuzz::target() {
  static const Target target = make_target();
  return target;
}

}  // namespace tenon
