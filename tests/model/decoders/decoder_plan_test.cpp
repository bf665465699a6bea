#include <gtest/gtest.h>

#include "hal/kernel_plan.h"
#include "model/decoder/programs.h"

namespace tenon::decoder {
namespace {

std::shared_ptr<Storage> weight(DType dtype, const Shape& shape) { return Storage::from_host(HostArray::zeros(dtype, shape)); }

Matrix matrix(std::int64_t rows, std::int64_t columns) {
  Matrix out;
  out.rows = out.stored_rows = rows;
  out.columns = columns;
  out.parts = {weight(DType::f16, Shape{rows, columns})};
  return out;
}

struct Model {
  Architecture architecture;
  Weights weights;
};
Model model_of(std::int64_t layers) {
  Model out;
  Architecture& a = out.architecture;
  a.layers = layers;
  a.width = 512;
  a.feed_forward = 768;
  a.heads = 8;
  a.kv_heads = 2;
  a.head_width = a.rotated = 64;
  a.vocabulary = 640;
  a.frequencies.assign(32, 1.0);
  a.windowed.assign(static_cast<std::size_t>(layers), false);
  a.turned.assign(static_cast<std::size_t>(layers), true);
  a.attention_scale = 0.125;
  for (std::int64_t i = 0; i < layers; ++i) {
    Layer layer;
    layer.attention_norm.scale = layer.feed_forward_norm.scale = weight(DType::f32, Shape{a.width});
    layer.qkv = {matrix((a.heads + 2 * a.kv_heads) * a.head_width, a.width)};
    layer.output = matrix(a.width, a.heads * a.head_width);
    layer.feed_forward = FeedForward{{matrix(2 * a.feed_forward, a.width)}, matrix(a.width, a.feed_forward)};
    out.weights.layers.push_back(std::move(layer));
  }
  out.weights.norm.scale = weight(DType::f32, Shape{a.width});
  out.weights.head = out.weights.embedding = matrix(a.vocabulary, a.width);
  return out;
}

constexpr KernelTarget kCard{.dialect = Dialect::cuda,
                             .has_matrix_units = true,
                             .has_warpgroup_products = true,
                             .compute_units = 132,
                             .max_group_size = 1024,
                             .local_bytes = 48 * 1024};

std::int64_t kernels_of(const StepProgram& program) { return std::ssize(plan_kernels(program.graph, kCard).steps); }

// Each kernel takes as long as it takes to start, and the products have to wait for it.
TEST(DecoderPlan, ALayerOfAStepIsFiveKernelsOnACard) {
  const Model one = model_of(1), three = model_of(3);
  for (const std::int64_t rows : {1, 2, 4}) {
    const auto step = [&](const Model& model) { return kernels_of(decode_apart(model.architecture, model.weights, rows, 256)); };
    EXPECT_EQ(step(three) - step(one), 2 * 5) << rows << " rows";
  }
}

TEST(DecoderPlan, TokensOfOneProgramShareWhatTheyCan) {
  const Model model = model_of(3);
  const auto tokens = [&](std::int64_t n) { return kernels_of(advance(model.architecture, model.weights, 1, 256, n)); };
  // The row of the table, its first norm, the logits, the choice, and where its number goes.
  EXPECT_LE(tokens(8) - tokens(7), 3 * 5 + 1 + 4);
}

}  // namespace
}  // namespace tenon::decoder
