#include "codegen/c/attention/attention.h"

#include <fmt/format.h>

namespace tenon::emit {

bool can_attention(const KernelTarget& target, DType dtype, const Shape& q, const Shape& k, const Shape& v) {
  constexpr std::int64_t kWidest = 256, kMany = std::int64_t{1} << 30;
  if (target.dialect != Dialect::cuda || q.elements() == 0 || k.elements() == 0 || v.elements() == 0) return false;
  if (q[3] > kWidest || v[3] > kWidest || k[2] >= kMany || q[0] * q[1] * q[2] >= kMany) return false;
  return dtype == DType::f32 || ((dtype == DType::f16 || dtype == DType::bf16) && target.has_matrix_units);
}

std::vector<Launch> emit_attention(const KernelTarget& target, const AttentionOperands& x, const AttentionRule& rule,
                                   const Dense& out, const Scratch& scratch) {
  if (can_few_queries_matrix(target, x)) return emit_few_queries_matrix(target, x, rule, out, scratch);
  if (has_few_queries(x.q_shape, x.k_shape, x.v_shape)) return emit_few_queries(target, x, rule, out, scratch);
  if (x.q.stored == DType::f32) return {emit_attention_tiles_f32(target, x, rule, out)};
  if (can_attention_tiles_hopper(target, x, rule, out)) return {emit_attention_tiles_hopper(target, x, rule, out)};
  return {emit_attention_tiles(target, x, rule, out)};
}

bool has_aligned_rows(const Access& x) {
  constexpr std::int64_t kEach = 8;
  if (x.strides[3] != 1 || x.offset % kEach != 0) return false;
  for (std::size_t i = 0; i < 3; ++i)
    if (x.strides[i] % kEach != 0) return false;
  return true;
}

void add_operand(std::map<std::string, std::string>& names, Parameters& parameters, const std::string& name, const Access& a) {
  names[name] = parameters.input(a.stored, a.slot);
  names[name + "_OFFSET"] = parameters.whole_number(a.offset);
  names[name + "_BATCH"] = parameters.whole_number(a.strides[0]);
  names[name + "_HEAD"] = parameters.whole_number(a.strides[1]);
  names[name + "_ROW"] = parameters.whole_number(a.strides[2]);
}

std::string mask_value(Body& body, Parameters& parameters, const AttentionOperands& x) {
  const auto number = [&](std::int64_t value) { return parameters.whole_number(value); };
  // Only what the mask depends on, so that the compiler sees which elements share a value.
  std::string place = fmt::format("{}[{}", parameters.input(x.mask->stored, x.mask->slot), number(x.mask->offset));
  for (std::size_t i = 0; const char* name : {"n", "h", "row", "key"})
    if (const std::int64_t stride = x.mask->strides[i++]; stride != 0)
      place += fmt::format(" + (i64){} * {}", name, number(stride));
  return body.loaded(x.mask->stored, place + "]");
}

std::string masked_score(const AttentionOperands& x, const std::string& score, const std::string& value) {
  if (x.mask_is_bool) return fmt::format("({} != 0 ? {} : -INFINITY_F32)", value, score);
  return fmt::format("({} + {} * 1.44269504f)", score, value);
}

std::string masked_score(Body& body, Parameters& parameters, const AttentionOperands& x, const std::string& score) {
  return x.mask ? masked_score(x, score, mask_value(body, parameters, x)) : score;
}

}  // namespace tenon::emit
