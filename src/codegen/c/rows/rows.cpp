#include <fmt/format.h>

#include <algorithm>

#include "codegen/c/loops/group.h"
#include "codegen/c/rows/reductions.h"
#include "codegen/c/rows/text.h"
#include "ops/elementwise/elementwise.h"

namespace tenon::emit {
namespace {

std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

// Writes the kernel of a rows group: a loop over rows, and in it the passes over a row.
class RowsEmitter {
 public:
  RowsEmitter(const KernelTarget& target, GroupReader& reader, const GroupPlacement& placement)
      : text_(target, reader, placement) {}

  Launch run() {
    const std::string rows = text_.parameters.index(shape_.rows);
    const std::string kept = kept_arrays();
    return text_.target.is_cpu ? on_cpu(rows, kept) : on_gpu(rows, kept);
  }

 private:
  const std::string& ix() const { return text_.index_type(); }
  bool is_cpu() const { return text_.target.is_cpu; }

  // --- The loop over rows ---
  // A work-item takes a stretch of rows.
  Launch on_cpu(const std::string& rows, const std::string& kept) {
    const std::int64_t pieces =
        std::clamp<std::int64_t>(shape_.rows * shape_.columns / text_.target.least_work, 1, text_.target.compute_units * 8);
    const std::int64_t chunk = ceil_div(shape_.rows, pieces);
    std::string statements = kept;
    statements += fmt::format("{0} first = (i64)group_id(0) * {1}, last = first + {1} < {2} ? first + {1} : {2};\n", ix(),
                              text_.parameters.index(chunk), rows);
    statements += fmt::format("for ({} row = first; row < last; ++row) {{\n", ix());
    statements += row_text();
    statements += "}\n";
    return make_launch(text_.body, {1, 1, 1}, {static_cast<std::uint32_t>(ceil_div(shape_.rows, chunk)), 1, 1}, statements);
  }

  Launch on_gpu(const std::string& rows, const std::string& kept) {
    const std::string inside = row_text();
    std::string statements = kept + "const i32 lane = local_id(0), line = local_id(1);\n" + text_.shared;
    statements += fmt::format("for ({0} base = ({0})group_id(0) * {1}; base < {2}; base += ({0})group_count(0) * {1}) {{\n", ix(),
                              shape_.lines, rows);
    statements +=
        fmt::format("{0} row = base + line < {1} ? base + line : {1} - 1;\nconst i32 active = base + line < {1};\n", ix(), rows);
    statements += inside;
    statements += "}\n";
    const std::int64_t groups = std::min<std::int64_t>(ceil_div(shape_.rows, shape_.lines), 1 << 30);
    return make_launch(text_.body, {shape_.lanes, shape_.lines, 1}, {static_cast<std::uint32_t>(groups), 1, 1}, statements,
                       least_groups());
  }

  // How many groups a multiprocessor should have room for, which bounds the registers of a lane. 0: no preference.
  int least_groups() const {
    constexpr int kUnitLanes = 1024;  // that a multiprocessor computes at a time
    // One value kept at a time fits beside everything else.
    if (!shape_.is_long || passes_.most_kept() > 1) return 0;
    return std::max(1, kUnitLanes / (shape_.lanes * shape_.lines));
  }

  std::string kept_arrays() const {
    std::string arrays;
    const std::int64_t size = is_cpu() ? power_of_two_from(shape_.columns) : shape_.per_lane;
    for (const auto& [value, pass] : passes_.kept()) {
      const DType dtype = value < 0 ? text_.reader.externals()[at(~value)].from.stored : text_.graph[value].dtype;
      arrays += fmt::format("{} {}[{}]{};\n", variable_type(dtype), text_.kept_name(value), size,
                            is_cpu() ? " __attribute__((aligned(128)))" : "");
    }
    return arrays;
  }

  // --- A row ---
  std::string row_text() {
    std::string row = offset_text(text_.parameters, shape_.axes, shape_.offsets, "row");
    for (std::size_t k = 0; k < text_.reader.externals().size(); ++k) {
      const External& e = text_.reader.externals()[k];
      if (e.is_row) row += load_text(k, fmt::format("{}[o{}]", text_.pointers[k], k));
    }
    row += row_values(0);
    for (int pass = 0; pass <= passes_.last(); ++pass) {
      if (!passes_.goals_of(pass).empty()) row += pass_text(pass);
      if (pass < passes_.last()) row += row_values(pass + 1);
    }
    for (NodeId id : text_.reader.group().outputs) {
      if (!text_.reader.is_row(id)) continue;
      for (const StoredValue& to : text_.placement.targets(id)) {
        const std::string store = fmt::format("{}[row] = {};\n", text_.parameters.output(to.stored, to.slot),
                                              text_.body.to_store(to.stored, text_.reader.name(id)));
        row += is_cpu() ? store : fmt::format("if (lane == 0 && active) {}", store);
      }
    }
    return row;
  }

  // Values of the whole row that exist after |level| passes, reductions aside.
  std::string row_values(int level) {
    std::string values;
    for (NodeId id : text_.reader.group().nodes)
      if (text_.reader.is_row(id) && text_.graph[id].prim != Prim::reduce && passes_.level(id) == level)
        values += text_.statement(id);
    return values;
  }

  std::string load_text(std::size_t k, const std::string& element) {
    const DType stored = text_.reader.externals()[k].from.stored;
    return fmt::format("{} x{} = {};\n", variable_type(stored), k, text_.body.loaded(stored, element));
  }

  // --- A pass over a row ---
  std::string pass_text(int number) {
    PassText pass;
    for (NodeId value : passes_.needed_in(number)) {
      if (value < 0)
        add_operand(number, at(~value), pass);
      else
        add_value(number, value, text_.graph[value].dtype, text_.reader.name(value),
                  passes_.is_kept_before(number, value) ? "" : element_statement(value, pass), pass);
    }
    for (NodeId goal : passes_.goals_of(number)) {
      if (text_.graph[goal].prim == Prim::reduce)
        add_reduction(text_, goal, pass);
      else
        for (const StoredValue& to : text_.placement.targets(goal))
          add_store(goal, to.stored, text_.parameters.output(to.stored, to.slot), pass);
    }
    return pass.before + loop_text(pass) + pass.after;
  }

  // Defines the variable |name|: as an earlier pass kept it, or by |definition|.
  void add_value(int number, NodeId value, DType dtype, const std::string& name, const std::string& definition, PassText& pass) {
    const std::string element = fmt::format("{}[{}]", text_.kept_name(value), is_cpu() ? "i" : "k");
    if (passes_.is_kept_before(number, value)) {
      pass.inside += fmt::format("{} {} = {};\n", variable_type(dtype), name, element);
      return;
    }
    pass.inside += definition;
    if (passes_.is_kept_from(number, value)) pass.inside += fmt::format("{} = {};\n", element, name);
  }

  void add_operand(int number, std::size_t k, PassText& pass) {
    const NodeId value = ~static_cast<NodeId>(k);
    const DType stored = text_.reader.externals()[k].from.stored;
    std::string element = fmt::format("p{}[l]", k);
    if (shape_.width > 1 && shape_.is_together(k)) {
      if (!passes_.is_kept_before(number, value))
        pass.loads += fmt::format("VARRAY({0}, {1}, p{2});\nVLOAD({0}, {1}, p{2}, {3} + o{2} + c);\n", stored_type(stored),
                                  shape_.width, k, text_.pointers[k]);
    } else {
      element = fmt::format("{}[{}]", text_.pointers[k],
                            place_text(text_.parameters, fmt::format("o{}", k), "i", shape_.column_strides[k]));
    }
    add_value(number, value, stored, fmt::format("x{}", k), load_text(k, element), pass);
  }

  bool is_row_operand(NodeId operand) const {
    if (const auto member = text_.reader.member(operand)) return text_.reader.is_row(*member);
    return !text_.reader.is_number(operand) && text_.reader.externals()[at(text_.reader.external_index(operand))].is_row;
  }
  // On cards the division by a value of the row is a product with its reciprocal, found once before, and a correction.
  std::string element_statement(NodeId id, PassText& pass) {
    const Node& node = text_.graph[id];
    const bool is_quotient =
        text_.target.dialect == Dialect::cuda && node.prim == Prim::elementwise &&
        node.as<ElementwiseAttr>().op == ElementwiseOp::Div && is_row_operand(node.inputs[1]) &&
        std::ranges::all_of(node.inputs, [&](NodeId o) { return compute_dtype(text_.graph[o].dtype) == DType::f32; });
    if (!is_quotient) return text_.statement(id);
    const std::string x = text_.variable(node.inputs[0]), y = text_.variable(node.inputs[1]);
    if (reciprocals_.insert(y).second) pass.before += fmt::format("const f32 reciprocal_{0} = row_reciprocal({0});\n", y);
    return fmt::format("f32 {} = {};\n", text_.reader.name(id),
                       text_.body.call("quotient_by_row", fmt::format("{0}, {1}, reciprocal_{1}", x, y)));
  }

  void add_store(NodeId output, DType stored, const std::string& pointer, PassText& pass) {
    const std::string value = text_.body.to_store(stored, text_.reader.name(output));
    if (shape_.width > 1) {
      const std::string type = stored_type(stored);
      pass.loads += fmt::format("VARRAY({}, {}, q{});\n", type, shape_.width, pointer);
      pass.inside += fmt::format("q{}[l] = {};\n", pointer, value);
      pass.stores += fmt::format("if (active) {{ VSTORE({0}, {1}, q{2}, {2} + row * {3} + c); }}\n", type, shape_.width, pointer,
                                 text_.columns);
    } else {
      const std::string store = fmt::format("{}[row * {} + i] = {};\n", pointer, text_.columns, value);
      pass.inside += is_cpu() ? store : "if (active) " + store;
    }
  }

  // What is kept has to be in registers, which have no numbers at run time.
  const char* unrolled() const { return shape_.per_lane > RowsPasses::kMostKept ? "UNROLL_BY(4)" : "UNROLL"; }

  std::string loop_text(const PassText& pass) {
    if (is_cpu()) return fmt::format("VECTORIZE for ({} i = 0; i < {}; ++i) {{\n{}}}\n", ix(), text_.columns, pass.inside);
    if (shape_.width == 1)
      return fmt::format("{} for (i32 k = 0; k < {}; ++k) {{\nconst {} i = lane + k * {};\nif (i < {}) {{\n{}}}\n}}\n",
                         unrolled(), shape_.per_lane, ix(), shape_.lanes, text_.columns, pass.inside);
    // A lane's vectors: number g, from column c on. A row that fills all lanes needs no question.
    const bool fills = shape_.columns == std::int64_t{shape_.lanes} * shape_.per_lane;
    std::string loop = fmt::format("{} for (i32 g = 0; g < {}; ++g) {{\nconst {} c = (lane + g * {}) * {};\n{}{{\n", unrolled(),
                                   shape_.per_lane / shape_.width, ix(), shape_.lanes, shape_.width,
                                   fills ? "" : fmt::format("if (c < {}) ", text_.columns));
    loop += pass.loads;
    loop += fmt::format("UNROLL for (i32 l = 0; l < {0}; ++l) {{\nconst {1} i = c + l;\nconst i32 k = g * {0} + l;\n",
                        shape_.width, ix());
    return loop + pass.inside + "}\n" + pass.stores + "}\n}\n";
  }

  RowsText text_;
  const RowsShape& shape_ = text_.shape;
  const RowsPasses& passes_ = text_.passes;
  std::set<std::string> reciprocals_;  // row values whose reciprocal was written
};

}  // namespace

std::vector<Launch> emit_rows(const KernelTarget& target, GroupReader& reader, GroupPlacement& placement) {
  return {RowsEmitter(target, reader, placement).run()};
}

}  // namespace tenon::emit
