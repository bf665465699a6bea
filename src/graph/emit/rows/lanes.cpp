#include "graph/emit/rows/lanes.h"

#include <fmt/format.h>

#include <cmath>

#include "graph/ops/elementwise.h"

namespace tenon::emit {
namespace {

std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

bool is_vector_operand(const RowsText& text, std::size_t k) {
  return is_stored_for_lanes(text.reader.externals()[k].from.stored) &&
         (text.shape.column_strides[k] == 0 || text.shape.column_strides[k] == 1);
}

bool is_possible(const RowsText& text, int pass, std::size_t results) {
  if (text.shape.columns < 16) return false;
  for (NodeId value : text.passes.needed_in(pass))
    if (value >= 0 ? !is_stored_for_lanes(text.graph[value].dtype) : !is_vector_operand(text, at(~value))) return false;
  std::size_t stores = 0;
  for (NodeId goal : text.passes.goals_of(pass)) {
    if (!is_stored_for_lanes(text.graph[goal].dtype)) return false;
    if (text.graph[goal].prim != Prim::reduce) stores += text.placement.targets(goal).size();
  }
  return stores == results;
}

// Results beyond what caches hold are written past them.
bool streams(const RowsText& text) {
  constexpr std::int64_t kBeyondCaches = 24 << 20;
  return 2 * text.shape.rows * text.shape.columns * static_cast<std::int64_t>(sizeof(float)) > kBeyondCaches;
}

std::string load(RowsText& text, std::size_t k) {
  const DType stored = text.reader.externals()[k].from.stored;
  const std::string value = text.shape.column_strides[k] == 0
                                ? text.body.loaded(stored, fmt::format("{}[o{}]", text.pointers[k], k))
                                : fmt::format("{}({} + o{} + i)", text.body.lanes_macro("LOAD", stored), text.pointers[k], k);
  return fmt::format("F32V x{} = {};\n", k, value);
}

// All elements of a row divided by one value: by its reciprocal where that is a normal number, half an ULP less exact.
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

// Into a vector of partial results, which joins the row's result after each stretch.
void add_vector_reduction(RowsText& text, NodeId id, std::string& before, std::string& vectors, std::string& after) {
  const ReduceKind kind = text.graph[id].as<ReduceAttr>().kind;
  const std::string sum = "s" + text.reader.name(id), value = text.variable(text.graph[id].inputs[0]);
  before += fmt::format("F32V w{} = {};\n", sum, identity_text(kind, DType::f32));
  if (kind == ReduceKind::max || kind == ReduceKind::min) {
    const char* name = kind == ReduceKind::max ? "max" : "min";
    std::string unused, inside;
    extreme_text(text.body, kind, DType::f32, sum, "", "whole", unused, inside, unused);
    before += fmt::format("I32V u{} = 0;\n", sum);  // where there was a NaN
    vectors += fmt::format("{{ const F32V y = {1}; u{0} |= y != y; w{0} = w{0} {2} y ? w{0} : y; }}\n", sum, value,
                           kind == ReduceKind::max ? ">" : "<");
    after += fmt::format("{{ const f32 whole = any_v(u{0}) ? {1} : {2}_of_v(w{0});\n{3}}}\n", sum, literal(DType::f32, NAN), name,
                         inside);
  } else if (kind == ReduceKind::sum || kind == ReduceKind::prod) {
    const char* sign = kind == ReduceKind::sum ? "+" : "*";
    vectors += fmt::format("w{0} = w{0} {1} {2};\n", sum, sign, value);
    after += fmt::format("{0} = {0} {1} {2}_of_v(w{0});\n", sum, sign, kind == ReduceKind::sum ? "sum" : "product");
  } else {
    text.body.fail_lanes();
  }
  text.body.need("folds_v");
}

// Statements for the values of the pass, from element i on.
std::string vector_values(RowsText& text, int pass, std::string& before) {
  std::string vectors;
  for (NodeId value : text.passes.needed_in(pass)) {
    const std::string name = value < 0 ? fmt::format("x{}", ~value) : text.reader.name(value);
    if (text.passes.is_kept_before(pass, value)) {
      vectors += fmt::format("F32V {} = *(F32V*)({} + i);\n", name, text.kept_name(value));
      continue;
    }
    if (value < 0)
      vectors += load(text, at(~value));
    else if (is_divided_by_row(text, value))
      vectors += division(text, value, before);
    else
      vectors += text.statement(value);
    if (text.passes.is_kept_from(pass, value)) vectors += fmt::format("*(F32V*)({} + i) = {};\n", text.kept_name(value), name);
  }
  return vectors;
}

}  // namespace

std::string lanes_loop(RowsText& text, int pass, std::span<const LanesResult> results, const std::string& inside) {
  const std::string& index = text.index_type();
  const std::string& n = text.columns;
  const std::string otherwise = fmt::format("VECTORIZE for ({} i = 0; i < {}; ++i) {{\n{}}}\n", index, n, inside);
  if (!is_possible(text, pass, results.size())) return otherwise;
  text.body.begin_lanes();
  std::string before, after;
  std::string vectors = vector_values(text, pass, before);
  // While this row is computed in the caches, the next one comes from memory.
  if (pass == 1 && streams(text))
    for (std::size_t k = 0; k < text.pointers.size(); ++k)
      if (text.shape.is_together(k) && is_vector_operand(text, k))
        vectors += fmt::format("PREFETCH_V({} + o{} + {} + i);\n", text.pointers[k], k, n);
  for (NodeId goal : text.passes.goals_of(pass))
    if (text.graph[goal].prim == Prim::reduce) add_vector_reduction(text, goal, before, vectors, after);
  for (const LanesResult& result : results)
    vectors += fmt::format("{}({} + row * {} + i, (F32V)({}));\n",
                           text.body.lanes_macro(streams(text) ? "STREAM" : "STORE", result.stored), result.pointer, n,
                           text.reader.name(result.output));
  if (!text.body.end_lanes()) return otherwise;
  // Sums of so many elements are rounded as often as sums of the rows that compilers vectorise.
  constexpr int kStretch = 1024;
  std::string loop = fmt::format("#ifdef LANES\n{{\n{0} i = 0;\nwhile (i + LANES <= {1}) {{\n", index, n);
  loop += fmt::format("const {0} stop = i + {1} < {2} - LANES ? i + {1} : {2} - LANES + 1;\n{3}", index, kStretch, n, before);
  loop += fmt::format("for (; i < stop; i += LANES) {{\n{}}}\n{}}}\n", vectors, after);
  loop += fmt::format("for (; i < {}; ++i) {{\n{}}}\n}}\n#else\n{}#endif\n", n, inside, otherwise);
  return loop;
}

}  // namespace tenon::emit
