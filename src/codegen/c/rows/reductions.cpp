#include "codegen/c/rows/reductions.h"

#include <fmt/format.h>

#include <algorithm>

namespace tenon::emit {
namespace {

// Whether a processor's compiler takes sixteen elements of a row at once, and the row is short enough for sixteen sums.
bool is_vectorised(const RowsText& text) {
  return !text.body.calls_library() && text.target.dialect != Dialect::tensix && text.shape.columns <= 1024 &&
         std::ranges::all_of(text.shape.column_strides, [](std::int64_t stride) { return stride == 0 || stride == 1; });
}

// Vectorised, a row is summed in sixteen parts. Where it is not, f32 is summed in f64; f64 with its rounding errors beside it.
void add_on_cpu(RowsText& text, ReduceKind kind, DType dtype, const std::string& value, const std::string& result,
                PassText& pass) {
  const std::string sum = "s" + result;
  if (is_float(dtype) && (kind == ReduceKind::max || kind == ReduceKind::min))
    return extreme_text(text.body, kind, dtype, sum, result, value, pass.before, pass.inside, pass.after);
  if (kind == ReduceKind::sum && dtype == DType::f64) {
    pass.before += fmt::format("f64 {0} = 0.0, c{0} = 0.0;\n", sum);
    pass.inside += compensated_add_text(sum, "c" + sum, value);
    pass.after += fmt::format("f64 {} = {};\n", result, compensated_total_text(sum, "c" + sum));
    return;
  }
  const bool wide = kind == ReduceKind::sum && dtype == DType::f32 && text.target.has_f64 && !is_vectorised(text);
  const DType as = wide ? DType::f64 : dtype;
  const bool any_order = is_float(dtype) && (kind == ReduceKind::sum || kind == ReduceKind::prod);
  pass.before += fmt::format("{} {} = {};\n", variable_type(as), sum, identity_text(kind, as));
  pass.inside += fmt::format("{{ {}{} = {}; }}\n", any_order ? "ANY_ORDER " : "", sum,
                             combine_text(kind, as, sum, wide ? "(f64)" + value : value));
  pass.after += fmt::format("{0} {1} = ({0}){2};\n", variable_type(dtype), result, sum);
}

// Joins the lanes' partial results, so that every lane of a line has the whole one: in shared memory.
std::string across_group(RowsText& text, ReduceKind kind, DType dtype, const std::string& sum) {
  const int lanes = text.shape.lanes;
  const std::string type = variable_type(dtype), shared = "shared_" + sum;
  text.shared += fmt::format("LOCAL {} {}[{}];\n", type, shared, text.shape.lines * lanes);
  std::string joined = fmt::format("BARRIER;\n{}[line * {} + lane] = {};\nBARRIER;\n", shared, lanes, sum);
  joined += fmt::format("for (i32 distance = {}; distance > 0; distance /= 2) {{\nif (lane < distance) {{\n", lanes / 2);
  joined += fmt::format("const {} other = {}[line * {} + lane + distance]; {} = {};\n", type, shared, lanes, sum,
                        combine_text(kind, dtype, sum, "other"));
  joined +=
      fmt::format("{}[line * {} + lane] = {};\n}}\nBARRIER;\n}}\n{} = {}[line * {}];\n", shared, lanes, sum, sum, shared, lanes);
  return joined;
}

// The same on cards of NVIDIA: 32 lanes at a time without shared memory.
std::string across_warps(RowsText& text, ReduceKind kind, DType dtype, const std::string& sum) {
  std::string joined = across_warp_text(kind, dtype, sum, std::min(text.shape.lanes, 32));
  const int warps = text.shape.lanes / 32;
  if (warps <= 1) return joined;
  const std::string shared = "shared_" + sum;
  text.shared += fmt::format("LOCAL {} {}[{}];\n", variable_type(dtype), shared, text.shape.lines * warps);
  // With a second pass its barriers keep this row's readers and the next row's writers apart.
  if (text.passes.last() < 2) joined += "BARRIER;\n";
  joined += fmt::format("if (lane % 32 == 0) {}[line * {} + lane / 32] = {};\nBARRIER;\n", shared, warps, sum);
  joined += fmt::format("{} = {}[line * {} + lane % {}];\n", sum, shared, warps, warps);
  return joined + across_warp_text(kind, dtype, sum, warps);
}

// A lane adds its elements one after the other: more than a few of f32 in f64, or their rounding errors would add up. Those of
// one vector are few, and added in f32 first.
void add_on_gpu(RowsText& text, ReduceKind kind, DType dtype, const std::string& value, const std::string& result,
                PassText& pass) {
  constexpr int kFew = 16;
  const bool wide = kind == ReduceKind::sum && dtype == DType::f32 && text.target.has_f64 && text.shape.per_lane > kFew;
  const DType as = wide ? DType::f64 : dtype;
  const std::string type = variable_type(dtype), sum = "s" + result;
  pass.before += fmt::format("{} {} = {};\n", variable_type(as), sum, identity_text(kind, as));
  if (wide && text.shape.width > 1) {
    pass.loads += fmt::format("f32 few_{} = 0.0f;\n", sum);
    pass.inside += fmt::format("few_{0} = few_{0} + {1};\n", sum, value);
    pass.stores += fmt::format("{0} = {0} + (f64)few_{0};\n", sum);
  } else {
    pass.inside += fmt::format("{} = {};\n", sum, combine_text(kind, as, sum, wide ? "(f64)" + value : value));
  }
  if (text.shape.lanes > 1)
    pass.after += text.target.dialect == Dialect::cuda ? across_warps(text, kind, as, sum) : across_group(text, kind, as, sum);
  pass.after += fmt::format("{} {} = {};\n", type, result, wide ? "(f32)" + sum : sum);
}

}  // namespace

void add_reduction(RowsText& text, NodeId id, PassText& pass) {
  const Node& node = text.graph[id];
  const auto add = text.target.is_cpu ? add_on_cpu : add_on_gpu;
  add(text, node.as<ReduceAttr>().kind, compute_dtype(node.dtype), text.variable(node.inputs[0]), text.reader.name(id), pass);
}

}  // namespace tenon::emit
