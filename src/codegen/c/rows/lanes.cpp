#include "codegen/c/rows/lanes.h"

#include <fmt/format.h>

#include <cmath>

#include "ops/elementwise/elementwise.h"

namespace tenon::emit {
namespace {

std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

bool is_vector_operand(const RowsText& text, std::size_t k, DType dtype) {
  return lanes_dtype(text.reader.externals()[k].from.stored) == dtype &&
         (text.shape.column_strides[k] == 0 || text.shape.column_strides[k] == 1);
}

// Of what type all values of the pass can be vectors; nothing where some cannot.
std::optional<DType> dtype_of(const RowsText& text, int pass, std::size_t results) {
  if (text.shape.columns < 16) return std::nullopt;
  std::optional<DType> dtype;
  std::size_t stores = 0;
  for (NodeId goal : text.passes.goals_of(pass)) {
    const std::optional<DType> own = lanes_dtype(text.graph[goal].dtype);
    if (!own || (dtype && own != dtype)) return std::nullopt;
    dtype = own;
    if (text.graph[goal].prim != Prim::reduce) stores += text.placement.targets(goal).size();
  }
  if (!dtype || stores != results) return std::nullopt;
  for (NodeId value : text.passes.needed_in(pass))
    if (value >= 0 ? lanes_dtype(text.graph[value].dtype) != dtype : !is_vector_operand(text, at(~value), *dtype))
      return std::nullopt;
  return dtype;
}

// Results beyond what caches hold are written past them.
bool streams(const RowsText& text, DType dtype) {
  constexpr std::int64_t kBeyondCaches = 24 << 20;
  return 2 * text.shape.rows * text.shape.columns * static_cast<std::int64_t>(element_bytes(dtype)) > kBeyondCaches;
}

std::string load(RowsText& text, std::size_t k, bool is_part) {
  const DType stored = text.reader.externals()[k].from.stored;
  const std::string macro = text.body.lanes_macro(is_part ? "LOAD_PART" : "LOAD", stored);
  const std::string value = text.shape.column_strides[k] == 0
                                ? text.body.loaded(stored, fmt::format("{}[o{}]", text.pointers[k], k))
                                : fmt::format("{}({} + o{} + i{})", macro, text.pointers[k], k, is_part ? ", part" : "");
  return fmt::format("{} x{} = {};\n", text.body.lanes_type(), k, value);
}

// All elements of a row of f32 divided by one value: by its reciprocal where that is a normal number, half an ULP less exact.
bool is_divided_by_row(const RowsText& text, NodeId id) {
  const Node& node = text.graph[id];
  if (node.prim != Prim::elementwise || node.as<ElementwiseAttr>().op != ElementwiseOp::Div) return false;
  const auto divisor = text.reader.member(node.inputs[1]);
  return divisor && text.reader.is_row(*divisor);
}
std::string division(RowsText& text, NodeId id, std::string& before) {
  const Node& node = text.graph[id];
  const std::string x = text.variable(node.inputs[0]), y = text.variable(node.inputs[1]), name = text.reader.name(id);
  before +=
      fmt::format("const i32 p{0} = fabs({1}) > 0x1p-100f && fabs({1}) < 0x1p100f;\nconst f32 r{0} = 1.0f / {1};\n", name, y);
  return fmt::format("F32V {0} = p{0} ? (F32V)({1} * r{0}) : (F32V)({1} / {2});\n", name, x, y);
}

// Statements for the values of the pass, from element i on.
std::string vector_values(RowsText& text, int pass, DType dtype, bool is_part, std::string& before) {
  const std::string type = text.body.lanes_type();
  std::string vectors;
  for (NodeId value : text.passes.needed_in(pass)) {
    const std::string name = value < 0 ? fmt::format("x{}", ~value) : text.reader.name(value);
    if (text.passes.is_kept_before(pass, value)) {
      vectors += fmt::format("{0} {1} = *({0}*)({2} + i);\n", type, name, text.kept_name(value));
      continue;
    }
    if (value < 0)
      vectors += load(text, at(~value), is_part);
    else if (dtype == DType::f32 && is_divided_by_row(text, value))
      vectors += division(text, value, before);
    else
      vectors += text.statement(value);
    if (text.passes.is_kept_from(pass, value))
      vectors += fmt::format("*({}*)({} + i) = {};\n", type, text.kept_name(value), name);
  }
  return vectors;
}

// One step of the pass from element i on, of LANES elements or |is_part| of them, and what stands around the loop over steps.
struct Steps {
  std::string before, step, after;
};
Steps steps_of(RowsText& text, int pass, DType dtype, std::span<const LanesResult> results, bool is_part) {
  Steps steps;
  const bool past_caches = streams(text, dtype);
  steps.step = vector_values(text, pass, dtype, is_part, steps.before);
  // While this row is computed in the caches, the next one comes from memory.
  if (pass == 1 && past_caches && !is_part)
    for (std::size_t k = 0; k < text.pointers.size(); ++k)
      if (text.shape.is_together(k) && is_vector_operand(text, k, dtype))
        for (std::size_t ahead = 0; ahead < 16; ahead += 64 / element_bytes(dtype))
          steps.step += fmt::format("PREFETCH_V({} + o{} + {} + i + {});\n", text.pointers[k], k, text.columns, ahead);
  for (NodeId goal : text.passes.goals_of(pass))
    if (text.graph[goal].prim == Prim::reduce)
      lanes_reduction_text(text.body, text.graph[goal].as<ReduceAttr>().kind, dtype, "s" + text.reader.name(goal),
                           text.variable(text.graph[goal].inputs[0]), is_part, steps.before, steps.step, steps.after);
  const char* const verb = is_part ? "STORE_PART" : past_caches ? "STREAM" : "STORE";
  for (const LanesResult& result : results)
    steps.step += fmt::format("{}({} + row * {} + i, ({})({}){});\n", text.body.lanes_macro(verb, result.stored), result.pointer,
                              text.columns, text.body.lanes_type(), text.reader.name(result.output), is_part ? ", part" : "");
  return steps;
}

}  // namespace

std::string lanes_loop(RowsText& text, int pass, std::span<const LanesResult> results, const std::string& inside) {
  const std::string& index = text.index_type();
  const std::string& n = text.columns;
  const std::string otherwise = fmt::format("VECTORIZE for ({} i = 0; i < {}; ++i) {{\n{}}}\n", index, n, inside);
  const std::optional<DType> dtype = dtype_of(text, pass, results.size());
  if (!dtype) return otherwise;
  text.body.begin_lanes(*dtype);
  const Steps whole = steps_of(text, pass, *dtype, results, false), part = steps_of(text, pass, *dtype, results, true);
  if (!text.body.end_lanes()) return otherwise;
  // Sums of so many elements are rounded as often as sums of the rows that compilers vectorise.
  constexpr int kStretch = 1024;
  std::string loop = fmt::format("#ifdef LANES\n{{\n{0} i = 0;\nwhile (i + LANES <= {1}) {{\n", index, n);
  loop +=
      fmt::format("const {0} stop = i + {1} < {2} - LANES ? i + {1} : {2} - LANES + 1;\n{3}", index, kStretch, n, whole.before);
  loop += fmt::format("for (; i < stop; i += LANES) {{\n{}}}\n{}}}\n", whole.step, whole.after);
  loop += fmt::format("if (i < {0}) {{\nconst i32 part = (i32)({0} - i);\n{1}{2}{3}}}\n", n, part.before, part.step, part.after);
  return loop + fmt::format("}}\n#else\n{}#endif\n", otherwise);
}

}  // namespace tenon::emit
