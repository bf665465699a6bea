#include "backends/cpu/products/epilogue.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "backends/cpu/primitives/clones.h"

namespace tenon::cpu {
namespace {

constexpr std::int64_t kSegment = 512;  // elements of one operand that is a number

// Subnormal numbers become zeros. The product that reads them next would take a hundred times as long for each of them, and next
// to the other terms they are nothing.
TENON_CLONES void flush_subnormals(float* values, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) values[i] = std::abs(values[i]) < std::numeric_limits<float>::min() ? 0.0f : values[i];
}

// As the op, with a product in place of the division: a unit in the last place less exact, and several times as fast. Blocks are
// copied, because |to| may be |from|, which the compiler would have to suspect of overlapping otherwise.
TENON_CLONES void hardswish(const float* from, float* to, std::int64_t n) {
  constexpr std::int64_t kBlock = 32;
  for (std::int64_t i = 0; i < n; i += kBlock) {
    const std::int64_t count = std::min(kBlock, n - i);
    float block[kBlock] = {};
    std::memcpy(block, from + i, static_cast<std::size_t>(count) * sizeof(float));
    for (float& value : block) {
      const float x = value < -3.0f ? -3.0f : value;
      const float y = x + 3.0f;
      value = x * ((y > 6.0f ? 6.0f : y) * (1.0f / 6.0f));
    }
    std::memcpy(to + i, block, static_cast<std::size_t>(count) * sizeof(float));
  }
}

// Ops whose results decay to nothing.
bool may_vanish(ElementwiseOp op) {
  return op == ElementwiseOp::Silu || op == ElementwiseOp::Sigmoid || op == ElementwiseOp::Gelu ||
         op == ElementwiseOp::GeluTanh || op == ElementwiseOp::QuickGelu || op == ElementwiseOp::Mish ||
         op == ElementwiseOp::Exp || op == ElementwiseOp::Softplus;
}

void apply_step(const EpilogueStep& step, const float* operand, bool is_number, bool is_read, const float* from, float* to,
                std::int64_t n) {
  const auto op = static_cast<std::size_t>(step.op);
  const ElementwiseKernel kernel = kernels().elementwise[op][static_cast<int>(DType::f32)];
  if (!operand) {
    if (step.op == ElementwiseOp::Hardswish) return hardswish(from, to, n);
    const void* const in[] = {from};
    kernel(in, to, n, step.params.data());
    if (is_read && may_vanish(step.op)) flush_subnormals(to, n);
    return;
  }
  if (!is_number) {
    const void* const in[] = {step.operand_is_first ? operand : from, step.operand_is_first ? from : operand};
    return kernel(in, to, n, step.params.data());
  }
  if (const ElementwiseKernel with_one = kernels().with_one[op]; with_one && !step.operand_is_first) {
    const void* const in[] = {from, operand};
    return with_one(in, to, n, step.params.data());
  }
  alignas(64) float same[kSegment];
  std::fill_n(same, std::min(n, kSegment), *operand);
  for (std::int64_t i = 0; i < n; i += kSegment) {
    const void* const in[] = {step.operand_is_first ? same : from + i, step.operand_is_first ? from + i : same};
    kernel(in, to + i, std::min(kSegment, n - i), step.params.data());
  }
}

}  // namespace

void Finish::apply(const float* from, float* to, std::int64_t row, std::int64_t col, std::int64_t n) const {
  if (is_empty()) {
    if (from != to) std::memcpy(to, from, static_cast<std::size_t>(n) * sizeof(float));
    return;
  }
  using Operand = EpilogueStep::Operand;
  for (std::size_t i = first_step; i < epilogue->steps.size(); ++i) {
    const EpilogueStep& step = epilogue->steps[i];
    const float* operand = nullptr;
    switch (step.operand) {
      case Operand::none: break;
      case Operand::scalar: operand = &step.value; break;
      case Operand::per_channel: operand = operands[step.index] + row % channels; break;
      case Operand::per_col: operand = operands[step.index] + col; break;
      case Operand::full: operand = operands[step.index] + row * cols + col; break;
    }
    apply_step(step, operand, step.operand == Operand::scalar || step.operand == Operand::per_channel, epilogue->is_read, from,
               to, n);
    from = to;
  }
}

// Takes the scale, the shift and the relu that an epilogue begins with, for the
// micro-kernel.
TileEnd end_of_tile(Finish& finish, std::int64_t first_channel) {
  TileEnd end;
  if (!finish.epilogue) return end;
  const std::vector<EpilogueStep>& steps = finish.epilogue->steps;
  finish.first_step = 0;
  const auto per_channel = [&](ElementwiseOp op) -> const float* {
    if (finish.first_step >= steps.size()) return nullptr;
    const EpilogueStep& step = steps[finish.first_step];
    if (step.op != op || step.operand != EpilogueStep::Operand::per_channel) return nullptr;
    ++finish.first_step;
    return finish.operands[step.index] + first_channel;
  };
  end.scale = per_channel(ElementwiseOp::Mul);
  end.shift = per_channel(ElementwiseOp::Add);
  if (finish.first_step < steps.size() && steps[finish.first_step].op == ElementwiseOp::Relu) {
    end.relu = true;
    ++finish.first_step;
  }
  return end;
}

}  // namespace tenon::cpu
