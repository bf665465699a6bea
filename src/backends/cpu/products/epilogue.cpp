#include "backends/cpu/products/epilogue.h"

#include <algorithm>
#include <cstring>

namespace tenon::cpu {
namespace {

constexpr std::int64_t kSegment = 512;  // elements of one operand that is a number

void apply_step(const EpilogueStep& step, const float* operand, bool is_number, const float* from, float* to, std::int64_t n) {
  const auto op = static_cast<std::size_t>(step.op);
  const ElementwiseKernel kernel = kernels().elementwise[op][static_cast<int>(DType::f32)];
  if (!operand) {
    const void* const in[] = {from};
    return kernel(in, to, n, step.params.data());
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
    apply_step(step, operand, step.operand == Operand::scalar || step.operand == Operand::per_channel, from, to, n);
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
