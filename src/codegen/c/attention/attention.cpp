#include "codegen/c/attention/attention.h"

#include <fmt/format.h>

namespace tenon::emit {

bool can_attention(const KernelTarget& target, DType dtype, const Shape& q, const Shape& k, const Shape& v) {
  constexpr std::int64_t kWidest = 256, kMany = std::int64_t{1} << 30;
  if (target.dialect != Dialect::cuda || q.elements() == 0 || k.elements() == 0 || v.elements() == 0) return false;
  if (q[3] > kWidest || v[3] > kWidest || k[2] >= kMany || q[0] * q[1] * q[2] >= kMany) return false;
  if (dtype == DType::f32) return has_few_queries(q, k, v);
  return (dtype == DType::f16 || dtype == DType::bf16) && target.has_matrix_units;
}

std::vector<Launch> emit_attention(const KernelTarget& target, const AttentionOperands& x, const AttentionRule& rule,
                                   const Dense& out, const Scratch& scratch) {
  if (has_few_queries(x.q_shape, x.k_shape, x.v_shape)) return emit_few_queries(target, x, rule, out, scratch);
  return {emit_attention_tiles(target, x, rule, out)};
}

bool has_aligned_rows(const Access& x) {
  constexpr std::int64_t kEach = 8;
  if (x.strides[3] != 1 || x.offset % kEach != 0) return false;
  for (std::size_t i = 0; i < 3; ++i)
    if (x.strides[i] % kEach != 0) return false;
  return true;
}

std::string masked_score(Body& body, const AttentionOperands& x, const std::string& mask, const std::string& score,
                         const std::string& place) {
  if (!x.mask) return score;
  const std::string value = body.loaded(x.mask->stored, fmt::format("{}[{}]", mask, place));
  if (x.mask_is_bool) return fmt::format("({} != 0 ? {} : -INFINITY_F32)", value, score);
  return fmt::format("({} + {} * 1.44269504f)", score, value);
}

}  // namespace tenon::emit
