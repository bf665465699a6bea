// Steps of a decoder as kernels of a card: every kernel that a token takes, with what it absorbs of its neighbours.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "emulated/cases.h"
#include "emulated/kernel_library.h"
#include "model/decoder/programs.h"

namespace tenon::emulated {
namespace {

using namespace decoder;

struct Sizes {
  std::int64_t width = 256, feed_forward = 384, heads = 4, kv_heads = 2, head_width = 64, rotated = 64, layers = 2;
  DType weights = DType::f16;
};

struct Model {
  Architecture architecture;
  Weights weights;
};

Model model_of(const Sizes& sizes, Numbers& numbers) {
  Model out;
  Architecture& a = out.architecture;
  a.layers = sizes.layers;
  a.width = sizes.width;
  a.feed_forward = sizes.feed_forward;
  a.heads = sizes.heads;
  a.kv_heads = sizes.kv_heads;
  a.head_width = sizes.head_width;
  a.rotated = sizes.rotated;
  a.vocabulary = 300;
  a.frequencies.assign(static_cast<std::size_t>(sizes.rotated / 2), 1.0);
  a.windowed.assign(static_cast<std::size_t>(a.layers), false);
  a.turned.assign(static_cast<std::size_t>(a.layers), true);
  a.attention_scale = 1 / std::sqrt(static_cast<double>(a.head_width));
  const auto matrix = [&](std::int64_t rows, std::int64_t columns) {
    Matrix m;
    m.rows = m.stored_rows = rows;
    m.columns = columns;
    m.parts = {
        Storage::from_host(numbers.normal(sizes.weights, Shape{rows, columns}, 1 / std::sqrt(static_cast<double>(columns))))};
    return m;
  };
  const auto scales = [&] { return Storage::from_host(numbers.normal(DType::f32, Shape{a.width}, 0.2, 1)); };
  for (std::int64_t i = 0; i < a.layers; ++i) {
    Layer layer;
    layer.attention_norm.scale = scales();
    layer.feed_forward_norm.scale = scales();
    layer.qkv = {matrix((a.heads + 2 * a.kv_heads) * a.head_width, a.width)};
    layer.output = matrix(a.width, a.heads * a.head_width);
    layer.feed_forward = FeedForward{{matrix(2 * a.feed_forward, a.width)}, matrix(a.width, a.feed_forward)};
    out.weights.layers.push_back(std::move(layer));
  }
  out.weights.norm.scale = scales();
  out.weights.head = out.weights.embedding = matrix(a.vocabulary, a.width);
  return out;
}

// What a run brings, in the order of the inputs: the tokens, cos, sin, how many closed tokens count, the place of the token in
// the open part, and both parts.
std::vector<HostArray> inputs_of(const StepProgram& program, std::int64_t closed, std::int64_t place, Numbers& numbers) {
  std::vector<HostArray> inputs;
  for (const auto& feed : program.feeds) inputs.push_back(feed ? feed->to_host() : HostArray());
  for (std::size_t i = 0; i < program.open.size(); ++i) {
    const Node& node = program.graph[program.graph.inputs()[program.open[i]]];
    HostArray& input = inputs[program.open[i]];
    if (node.dtype != DType::i64) {
      input = numbers.normal(DType::f32, node.shape, i < 3 ? 0.7 : 1);
      continue;
    }
    input = numbers.below(DType::i64, node.shape, i == 0 ? 300 : i == 3 ? closed + 1 : 1);
    if (i == 4)
      for (std::int64_t row = 0; std::int64_t& x : input.mutable_view<std::int64_t>())
        x = std::max<std::int64_t>(place - 3 * row++, 0);
  }
  return inputs;
}

// As on a card of compute capability 9.0: steps of few rows do not use matrix units.
KernelTarget hopper(int units) {
  KernelTarget target = card(units);
  target.has_matrix_units = target.has_warpgroup_products = true;
  return target;
}

constexpr double kLimit = 4e-3;  // of 16-bit activations

TEST(EmulatedDecoder, AStepOfEachRowIsThatOfTheReference) {
  TENON_SKIP_WITHOUT_COMPILER();
  Numbers numbers(7);
  const Model model = model_of({}, numbers);
  Cases cases;
  for (const auto& [rows, closed, place] : {std::array{1, 256, 0}, {1, 100, 31}, {2, 256, 17}, {4, 1000, 31}})
    for (const int units : {4, 40}) {
      StepProgram program = decode_apart(model.architecture, model.weights, rows, closed);
      std::vector<HostArray> inputs = inputs_of(program, closed, place, numbers);
      cases.add(fmt::format("{} rows, {} closed, {} units", rows, closed, units), std::move(program.graph), std::move(inputs),
                hopper(units), kLimit);
    }
  cases.check();
}

TEST(EmulatedDecoder, EightTokensOfOneProgramAreThoseOfTheReference) {
  TENON_SKIP_WITHOUT_COMPILER();
  Numbers numbers(11);
  const Model model = model_of({}, numbers);
  Cases cases;
  for (const auto& [rows, closed, place, tokens] : {std::array{1, 256, 24, 8}, {2, 320, 5, 3}, {4, 40, 9, 2}}) {
    StepProgram program = advance(model.architecture, model.weights, rows, closed, tokens);
    std::vector<HostArray> inputs = inputs_of(program, closed, place, numbers);
    cases.add(fmt::format("{} rows, {} closed, {} tokens", rows, closed, tokens), std::move(program.graph), std::move(inputs),
              hopper(8), kLimit);
  }
  cases.check();
}

TEST(EmulatedDecoder, HeadsOfEveryKindAreThoseOfTheReference) {
  TENON_SKIP_WITHOUT_COMPILER();
  Numbers numbers(13);
  Cases cases;
  const Sizes all[] = {{.heads = 4, .kv_heads = 4},
                       {.heads = 8, .kv_heads = 1, .head_width = 32, .rotated = 32},
                       {.heads = 2, .kv_heads = 1, .head_width = 128, .rotated = 128},
                       {.heads = 4, .kv_heads = 2, .rotated = 32},
                       {.heads = 6, .kv_heads = 2, .weights = DType::f32},
                       {.heads = 16, .kv_heads = 2, .head_width = 32, .rotated = 32, .weights = DType::bf16}};
  for (const Sizes& sizes : all) {
    const Model model = model_of(sizes, numbers);
    StepProgram program = advance(model.architecture, model.weights, 1, 200, 2);
    std::vector<HostArray> inputs = inputs_of(program, 200, 29, numbers);
    cases.add(fmt::format("{} of {} heads of {}, {} rotated, {}", sizes.kv_heads, sizes.heads, sizes.head_width, sizes.rotated,
                          name(sizes.weights)),
              std::move(program.graph), std::move(inputs), hopper(8), sizes.weights == DType::bf16 ? 3e-2 : kLimit);
  }
  cases.check();
}

}  // namespace
}  // namespace tenon::emulated
