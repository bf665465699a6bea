#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "graph/emit/group.h"
#include "graph/ops/elementwise.h"

namespace tenon::emit {
namespace {

std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

// Reductions need the whole row: a value that depends on p of them, one after another, has level p and exists after p passes over
// the row. Pass p computes what the reductions of level p + 1 read, and stores outputs of level p.
class RowsEmitter {
 public:
  RowsEmitter(const KernelTarget& target, GroupReader& reader, GroupPlacement& placement)
      : target_(target),
        reader_(reader),
        graph_(reader.graph()),
        group_(reader.group()),
        placement_(placement),
        axes_(outer_axes()),
        parameters_(target.is_cpu || !fits_i32(whole_axes(), all_offsets_)),
        body_(target, parameters_) {
    rows_ = axes_.elements();
    find_levels();
    choose_shape();
    find_kept();
  }

  Launch run() {
    for (const External& e : reader_.externals()) pointers_.push_back(parameters_.input(e.from.stored, e.from.slot));
    std::string statements;
    n_ = parameters_.index(columns_);
    const std::string rows = parameters_.index(rows_);
    declare_kept(statements);
    if (target_.is_cpu) {
      const std::int64_t pieces = std::clamp<std::int64_t>(rows_ * columns_ / 8192, 1, target_.compute_units * 8);
      const std::int64_t chunk = ceil_div(rows_, pieces);
      statements += fmt::format("{0} first = (i64)group_id(0) * {1}, last = first + {1} < {2} ? first + {1} : {2};\n", ix(),
                                parameters_.index(chunk), rows);
      statements += fmt::format("for ({} row = first; row < last; ++row) {{\n", ix());
      statements += row_text();
      statements += "}\n#ifdef LANES\nSTREAM_END;\n#endif\n";
      return make_launch(body_, {1, 1, 1}, {static_cast<std::uint32_t>(ceil_div(rows_, chunk)), 1, 1}, statements);
    }
    statements += "const i32 lane = local_id(0), line = local_id(1);\n";
    const std::string inside = row_text();
    statements += shared_;
    statements += fmt::format("for ({0} base = ({0})group_id(0) * {1}; base < {2}; base += ({0})group_count(0) * {1}) {{\n", ix(),
                              lines_, rows);
    statements +=
        fmt::format("{0} row = base + line < {1} ? base + line : {1} - 1;\nconst i32 active = base + line < {1};\n", ix(), rows);
    statements += inside;
    statements += "}\n";
    const std::int64_t groups = std::min<std::int64_t>(ceil_div(rows_, lines_), 1 << 30);
    return make_launch(body_, {lanes_, lines_, 1}, {static_cast<std::uint32_t>(groups), 1, 1}, statements, least_groups());
  }

 private:
  const std::string& ix() const { return parameters_.index_type(); }

  // --- Geometry ---
  Axes outer_axes() {
    const GroupAxes axes = group_axes(group_);
    std::vector<std::int64_t> extents;
    for (int axis : axes.outer) extents.push_back(group_.domain[axis]);
    for (int axis : axes.reduced) columns_ *= group_.domain[axis];
    std::vector<std::vector<std::int64_t>> strides;
    for (const External& e : reader_.externals()) {
      std::vector<std::int64_t> outer;
      for (int axis : axes.outer) outer.push_back(e.view.strides[at(axis)]);
      strides.push_back(outer);
      offsets_.push_back(e.view.offset);
      std::vector<std::int64_t> inner_extents, inner;
      for (int axis : axes.reduced) {
        inner_extents.push_back(group_.domain[axis]);
        inner.push_back(e.is_row ? 0 : e.view.strides[at(axis)]);
      }
      const Axes columns = joined(inner_extents, {inner});
      column_strides_.push_back(columns.extents.empty() ? 0 : columns.strides[0].back());
    }
    return joined(extents, strides);
  }
  // For the width of indices alone: the memory of the operands and of dense results.
  Axes whole_axes() {
    Axes whole = axes_;
    whole.extents.push_back(columns_);
    for (std::size_t k = 0; k < whole.strides.size(); ++k) whole.strides[k].push_back(column_strides_[k]);
    all_offsets_ = offsets_;
    return whole;
  }

  void choose_shape() {
    if (target_.is_cpu) return;
    const int threads = std::min(256, target_.max_group_size);
    // Rows that are only reduced are read fastest by as many lanes as there are, one element each: there is nothing to keep.
    const bool stores_rows = std::ranges::any_of(group_.outputs, [&](NodeId id) { return is_domain(id); });
    if (stores_rows) width_ = vector_width();
    if (target_.dialect == Dialect::cuda && width_ > 1 && columns_ >= kLongRow) return choose_long_rows();
    // Four elements a lane, more where a row is long: up to 16, kept in registers.
    std::int64_t lanes = power_of_two_from(ceil_div(columns_, std::max(4, width_)));
    lanes = std::min<std::int64_t>(lanes, columns_ > 4096 ? std::min(1024, target_.max_group_size) : threads);
    lanes_ = static_cast<int>(std::max<std::int64_t>(lanes, 1));
    lines_ = std::max(1, threads / lanes_);
    per_lane_ = std::max(width_, static_cast<int>(power_of_two_from(ceil_div(columns_, lanes_))));
  }

  // Long rows stay in registers: a multiprocessor computes kUnitLanes lanes at a time, each with 16 elements of a row; or 32
  // where they are all that a lane keeps and a row would otherwise take a whole multiprocessor.
  static constexpr std::int64_t kLongRow = 512, kVeryLongRow = 8192;
  static constexpr int kUnitLanes = 1024;
  void choose_long_rows() {
    bool is_wide = false;
    for (NodeId id : group_.nodes) is_wide = is_wide || element_bytes(compute_dtype(graph_[id].dtype)) == 8;
    for (const External& e : reader_.externals()) is_wide = is_wide || element_bytes(compute_dtype(e.from.stored)) == 8;
    const int most = is_wide || columns_ <= kVeryLongRow || reader_.externals().size() > 1 ? 16 : 32;
    lanes_ = static_cast<int>(std::clamp<std::int64_t>(power_of_two_from(ceil_div(columns_, most)), 32, target_.max_group_size));
    lines_ = std::max(1, 128 / lanes_);
    per_lane_ = static_cast<int>(ceil_div(columns_, std::int64_t{lanes_} * width_)) * width_;
  }

  // Elements of a row that a lane takes at once, by loads and stores of up to 16 bytes.
  int vector_width() const {
    if (columns_ < 32) return 1;
    std::size_t largest = 1;
    for (std::size_t k = 0; k < reader_.externals().size(); ++k) {
      const External& e = reader_.externals()[k];
      if (e.is_row || column_strides_[k] == 0) continue;
      if (column_strides_[k] != 1) return 1;
      largest = std::max(largest, element_bytes(e.from.stored));
    }
    for (NodeId id : group_.outputs)
      if (is_domain(id))
        for (const StoredValue& to : placement_.targets(id)) largest = std::max(largest, element_bytes(to.stored));
    const int width = static_cast<int>(std::clamp<std::size_t>(16 / largest, 1, 8));
    if (columns_ % width != 0) return 1;
    for (std::size_t k = 0; k < reader_.externals().size(); ++k) {
      if (!is_together(k)) continue;
      if (offsets_[k] % width != 0) return 1;
      for (std::int64_t stride : axes_.strides[k])
        if (stride % width != 0) return 1;
    }
    return width;
  }
  bool is_together(std::size_t k) const { return !reader_.externals()[k].is_row && column_strides_[k] == 1; }

  // How many groups a multiprocessor should have room for, which bounds the registers of a lane. 0: no wish.
  int least_groups() const {
    if (target_.dialect != Dialect::cuda || width_ == 1 || columns_ < kLongRow) return 0;
    // Values kept at the same time: one a lane fits beside everything else.
    int most = 0;
    for (int pass = 0; pass < passes_; ++pass) {
      int live = 0;
      for (const auto& [id, first] : kept_) {
        bool is_read = false;
        for (int later = pass + 1; later <= passes_; ++later) is_read = is_read || needed_in(later).contains(id);
        live += first <= pass && is_read;
      }
      most = std::max(most, live);
    }
    return most <= 1 ? std::max(1, kUnitLanes / (lanes_ * lines_)) : 0;
  }
  // --- Levels and what is kept between passes ---
  int level_of(NodeId operand) const {
    const auto m = reader_.member(operand);
    return m ? levels_.at(*m) : 0;
  }
  void find_levels() {
    for (NodeId id : group_.nodes) {
      int level = 0;
      for (NodeId operand : graph_[id].inputs) level = std::max(level, level_of(operand));
      if (graph_[id].prim == Prim::reduce) ++level;
      levels_[id] = level;
      passes_ = std::max(passes_, level);
    }
  }
  bool is_domain(NodeId id) const { return !reader_.is_row(id); }

  std::vector<NodeId> goals_of(int pass) const {
    std::vector<NodeId> goals;
    for (NodeId id : group_.nodes)
      if (graph_[id].prim == Prim::reduce && levels_.at(id) == pass + 1) goals.push_back(id);
    for (NodeId id : group_.outputs)
      if (is_domain(id) && levels_.at(id) == pass) goals.push_back(id);
    return goals;
  }
  // Domain members (and operands from memory, as ~index) that |pass| computes, given what earlier passes kept.
  std::set<NodeId> needed_in(int pass) const {
    std::set<NodeId> needed;
    std::vector<NodeId> stack;
    const auto visit = [&](NodeId operand) {
      if (const auto m = reader_.member(operand)) {
        if (is_domain(*m)) stack.push_back(*m);
      } else if (!reader_.is_number(operand) && !reader_.externals()[at(reader_.external_index(operand))].is_row) {
        stack.push_back(~static_cast<NodeId>(reader_.external_index(operand)));
      }
    };
    for (NodeId goal : goals_of(pass)) {
      if (graph_[goal].prim == Prim::reduce)
        visit(graph_[goal].inputs[0]);
      else
        stack.push_back(goal);
    }
    while (!stack.empty()) {
      const NodeId id = stack.back();
      stack.pop_back();
      if (!needed.insert(id).second || id < 0) continue;
      if (const auto found = kept_.find(id); found != kept_.end() && found->second < pass) continue;
      for (NodeId operand : graph_[id].inputs) visit(operand);
    }
    return needed;
  }

  // Worth keeping on a processor, where reading the inputs again costs little: what takes long to compute.
  bool is_expensive(NodeId id) const {
    const Node& node = graph_[id];
    if (node.prim != Prim::elementwise) return false;
    switch (node.as<ElementwiseAttr>().op) {
      case ElementwiseOp::Add:
      case ElementwiseOp::Sub:
      case ElementwiseOp::Mul:
      case ElementwiseOp::Square:
      case ElementwiseOp::Maximum:
      case ElementwiseOp::Minimum:
      case ElementwiseOp::Where:
      case ElementwiseOp::Relu:
      case ElementwiseOp::Neg:
      case ElementwiseOp::Abs: break;
      default: return true;
    }
    for (NodeId operand : node.inputs)
      if (const auto m = reader_.member(operand); m && is_domain(*m) && is_expensive(*m)) return true;
    return false;
  }

  void find_kept() {
    if (!target_.is_cpu && per_lane_ > 32) return;
    std::map<NodeId, int> first;  // computed in which pass for the first time
    int registers = 0;
    for (int pass = 0; pass <= passes_; ++pass) {
      const std::set<NodeId> needed = needed_in(pass);
      // What an earlier pass computed and this one reads directly is kept; what lies behind it is not needed again.
      const auto keep = [&](NodeId id) {
        if (!first.count(id) || first[id] == pass || kept_.count(id)) return;
        if (target_.is_cpu && (id < 0 || !is_expensive(id))) return;
        if (!target_.is_cpu && (registers += per_lane_) > 64) return;
        kept_[id] = first[id];
      };
      for (auto id = needed.rbegin(); id != needed.rend(); ++id) {
        // From users to operands: an operand of something kept is only kept if something else reads it.
        const bool goal = std::ranges::any_of(
            goals_of(pass), [&](NodeId g) { return g == *id || (graph_[g].prim == Prim::reduce && reads(g, *id)); });
        bool read = goal;
        for (NodeId user : needed)
          if (user >= 0 && !(kept_.count(user) && kept_[user] < pass) && reads(user, *id)) read = true;
        if (read) keep(*id);
      }
      for (NodeId id : needed) first.try_emplace(id, pass);
    }
  }
  bool reads(NodeId user, NodeId id) const {
    for (NodeId operand : graph_[user].inputs) {
      if (const auto m = reader_.member(operand)) {
        if (*m == id) return true;
      } else if (id < 0 && reader_.external_index(operand) == ~id) {
        return true;
      }
    }
    return false;
  }
  std::string kept_name(NodeId id) const { return id < 0 ? fmt::format("kx{}", ~id) : "k" + reader_.name(id); }
  void declare_kept(std::string& text) {
    const std::int64_t size = target_.is_cpu ? power_of_two_from(columns_) : per_lane_;
    for (const auto& [id, pass] : kept_) {
      const DType dtype = id < 0 ? reader_.externals()[at(~id)].from.stored : graph_[id].dtype;
      text += fmt::format("{} {}[{}]{};\n", variable_type(dtype), kept_name(id), size,
                          target_.is_cpu ? " __attribute__((aligned(64)))" : "");
    }
  }

  // --- Text ---
  std::string row_text() {
    std::string text = offset_text(parameters_, axes_, offsets_, "row");
    for (std::size_t k = 0; k < reader_.externals().size(); ++k) {
      const External& e = reader_.externals()[k];
      if (e.is_row)
        text += fmt::format("{} x{} = {};\n", variable_type(e.from.stored), k,
                            body_.loaded(e.from.stored, fmt::format("{}[o{}]", pointers_[k], k)));
    }
    text += row_nodes(0);
    for (int pass = 0; pass <= passes_; ++pass) {
      if (!goals_of(pass).empty()) text += pass_text(pass);
      if (pass < passes_) text += row_nodes(pass + 1);
    }
    for (NodeId id : group_.outputs) {
      if (is_domain(id)) continue;
      for (const StoredValue& to : placement_.targets(id)) {
        const std::string store =
            fmt::format("{}[row] = {};\n", parameters_.output(to.stored, to.slot), body_.to_store(to.stored, reader_.name(id)));
        text += target_.is_cpu ? store : fmt::format("if (lane == 0 && active) {}", store);
      }
    }
    return text;
  }

  // Row values that exist after |level| passes, reductions aside.
  std::string row_nodes(int level) {
    std::string text;
    for (NodeId id : group_.nodes)
      if (reader_.is_row(id) && graph_[id].prim != Prim::reduce && levels_[id] == level)
        text += reader_.statement(body_, id, [&](NodeId operand) { return variable(operand); });
    return text;
  }

  std::string variable(NodeId operand) {
    if (const auto m = reader_.member(operand)) return reader_.name(*m);
    if (reader_.is_number(operand)) return reader_.number(body_, operand);
    return fmt::format("x{}", reader_.external_index(operand));
  }

  bool is_row_value(NodeId operand) const {
    if (const auto m = reader_.member(operand)) return reader_.is_row(*m);
    return !reader_.is_number(operand) && reader_.externals()[at(reader_.external_index(operand))].is_row;
  }
  // On cards the division by a value of the row is a product with its reciprocal, found once |before|, and a correction.
  std::string domain_statement(NodeId id, std::string& before) {
    const Node& node = graph_[id];
    const bool is_quotient =
        target_.dialect == Dialect::cuda && node.prim == Prim::elementwise &&
        node.as<ElementwiseAttr>().op == ElementwiseOp::Div && is_row_value(node.inputs[1]) &&
        std::ranges::all_of(node.inputs, [&](NodeId o) { return compute_dtype(graph_[o].dtype) == DType::f32; });
    if (!is_quotient) return reader_.statement(body_, id, [&](NodeId operand) { return variable(operand); });
    const std::string x = variable(node.inputs[0]), y = variable(node.inputs[1]);
    if (reciprocals_.insert(y).second) before += fmt::format("const f32 reciprocal_{0} = row_reciprocal({0});\n", y);
    return fmt::format("f32 {} = {};\n", reader_.name(id),
                       body_.call("quotient_by_row", fmt::format("{0}, {1}, reciprocal_{1}", x, y)));
  }

  std::string pass_text(int pass) {
    const std::set<NodeId> needed = needed_in(pass);
    const std::string slot = target_.is_cpu ? "i" : "k";
    std::string before, loads, inside, stores, after;
    std::vector<std::pair<NodeId, std::string>> results;
    const auto define = [&](NodeId id, DType dtype, const std::string& name, const std::string& definition) {
      const auto found = kept_.find(id);
      if (found != kept_.end() && found->second < pass) {
        inside += fmt::format("{} {} = {}[{}];\n", variable_type(dtype), name, kept_name(id), slot);
        return;
      }
      inside += definition;
      if (found != kept_.end() && found->second == pass) inside += fmt::format("{}[{}] = {};\n", kept_name(id), slot, name);
    };
    for (NodeId id : needed) {
      if (id >= 0) break;
      const std::size_t k = at(~id);
      const External& e = reader_.externals()[k];
      std::string element = fmt::format("p{}[l]", k);
      if (width_ > 1 && is_together(k)) {
        if (!is_kept_before(id, pass)) loads += load_text(k);
      } else {
        element = fmt::format("{}[{}]", pointers_[k], place_text(parameters_, fmt::format("o{}", k), "i", column_strides_[k]));
      }
      define(id, e.from.stored, fmt::format("x{}", k),
             fmt::format("{} x{} = {};\n", variable_type(e.from.stored), k, body_.loaded(e.from.stored, element)));
    }
    for (NodeId id : needed)
      if (id >= 0) define(id, graph_[id].dtype, reader_.name(id), is_kept_before(id, pass) ? "" : domain_statement(id, before));
    for (NodeId goal : goals_of(pass)) {
      if (graph_[goal].prim == Prim::reduce) {
        reduction_text(goal, before, inside, after);
      } else {
        for (const StoredValue& to : placement_.targets(goal)) {
          const std::string pointer = parameters_.output(to.stored, to.slot),
                            value = body_.to_store(to.stored, reader_.name(goal));
          if (to.stored == DType::f32) results.emplace_back(goal, pointer);
          if (width_ > 1) {
            const std::string type = stored_type(to.stored);
            loads += fmt::format("VARRAY({}, {}, q{});\n", type, width_, pointer);
            inside += fmt::format("q{}[l] = {};\n", pointer, value);
            stores += fmt::format("if (active) {{ VSTORE({0}, {1}, q{2}, {2} + row * {3} + c); }}\n", type, width_, pointer, n_);
          } else {
            const std::string store = fmt::format("{}[row * {} + i] = {};\n", pointer, n_, value);
            inside += target_.is_cpu ? store : "if (active) " + store;
          }
        }
      }
    }
    if (width_ > 1) {
      before += each_vector();
      before += loads;
      before += fmt::format("UNROLL for (i32 l = 0; l < {0}; ++l) {{\nconst {1} i = c + l;\nconst i32 k = g * {0} + l;\n", width_,
                            ix());
      return before + inside + "}\n" + stores + "}\n}\n" + after;
    }
    const std::string loop =
        target_.is_cpu
            ? lanes_or(pass, needed, results, inside)
            : fmt::format("UNROLL for (i32 k = 0; k < {}; ++k) {{\nconst {} i = lane + k * {};\nif (i < {}) {{\n{}}}\n}}\n",
                          per_lane_, ix(), lanes_, n_, inside);
    return before + loop + after;
  }
  // --- Many elements at once, on processors (target.cpp) ---
  // The loop over a row: before what is left of it, where possible, LANES elements at a time. |results|: f32 values to store.
  std::string lanes_or(int pass, const std::set<NodeId>& needed, const std::vector<std::pair<NodeId, std::string>>& results,
                       const std::string& inside) {
    const std::string otherwise = fmt::format("VECTORIZE for ({} i = 0; i < {}; ++i) {{\n{}}}\n", ix(), n_, inside);
    std::size_t stores = 0;
    bool possible = columns_ >= 16;
    for (NodeId id : needed) possible = possible && (id >= 0 ? graph_[id].dtype == DType::f32 : is_lanes_operand(at(~id)));
    for (NodeId goal : goals_of(pass)) {
      possible = possible && graph_[goal].dtype == DType::f32;
      if (graph_[goal].prim != Prim::reduce) stores += placement_.targets(goal).size();
    }
    if (!possible || stores != results.size()) return otherwise;
    body_.begin_lanes();
    std::string before, vectors, after;
    for (NodeId id : needed) {
      const std::string name = id < 0 ? fmt::format("x{}", ~id) : reader_.name(id);
      if (is_kept_before(id, pass)) {
        vectors += fmt::format("F32V {} = *(F32V*)({} + i);\n", name, kept_name(id));
        continue;
      }
      vectors += id < 0                  ? lanes_load(at(~id))
                 : is_divided_by_row(id) ? lanes_division(id, before)
                                         : reader_.statement(body_, id, [&](NodeId operand) { return variable(operand); });
      if (const auto found = kept_.find(id); found != kept_.end() && found->second == pass)
        vectors += fmt::format("*(F32V*)({} + i) = {};\n", kept_name(id), name);
    }
    // While this row is computed in the caches, the next one comes from memory.
    if (pass == 1 && streams())
      for (std::size_t k = 0; k < pointers_.size(); ++k)
        if (is_together(k) && is_lanes_operand(k))
          vectors += fmt::format("PREFETCH_V({} + o{} + {} + i);\n", pointers_[k], k, n_);
    for (NodeId goal : goals_of(pass))
      if (graph_[goal].prim == Prim::reduce) lanes_reduction(goal, before, vectors, after);
    for (const auto& [goal, pointer] : results)
      vectors += fmt::format("{}({} + row * {} + i, (F32V)({}));\n", streams() ? "STREAM_V" : "STORE_V", pointer, n_,
                             reader_.name(goal));
    if (!body_.end_lanes()) return otherwise;
    // Sums of so many elements are rounded as often as sums of the rows that compilers vectorise.
    constexpr int kStretch = 1024;
    std::string text = fmt::format("#ifdef LANES\n{{\n{0} i = 0;\nwhile (i + LANES <= {1}) {{\n", ix(), n_);
    text += fmt::format("const {0} stop = i + {1} < {2} - LANES ? i + {1} : {2} - LANES + 1;\n{3}", ix(), kStretch, n_, before);
    text += fmt::format("for (; i < stop; i += LANES) {{\n{}}}\n{}}}\n", vectors, after);
    text += fmt::format("for (; i < {}; ++i) {{\n{}}}\n}}\n#else\n{}#endif\n", n_, inside, otherwise);
    return text;
  }
  bool is_lanes_operand(std::size_t k) const {
    return reader_.externals()[k].from.stored == DType::f32 && (column_strides_[k] == 0 || column_strides_[k] == 1);
  }
  std::string lanes_load(std::size_t k) const {
    return fmt::format(
        fmt::runtime(column_strides_[k] == 0 ? "F32V x{0} = {1}[o{0}];\n" : "F32V x{0} = LOAD_V({1} + o{0} + i);\n"), k,
        pointers_[k]);
  }
  // All elements of a row divided by one value: by its reciprocal where that is a normal number, half an ULP less exact.
  bool is_divided_by_row(NodeId id) const {
    const Node& node = graph_[id];
    if (node.prim != Prim::elementwise || node.as<ElementwiseAttr>().op != ElementwiseOp::Div) return false;
    const auto divisor = reader_.member(node.inputs[1]);
    return divisor && !is_domain(*divisor);
  }
  std::string lanes_division(NodeId id, std::string& before) {
    const std::string x = variable(graph_[id].inputs[0]), y = variable(graph_[id].inputs[1]), name = reader_.name(id);
    before +=
        fmt::format("const i32 p{0} = fabs({1}) > 0x1p-100f && fabs({1}) < 0x1p100f;\nconst f32 r{0} = 1.0f / {1};\n", name, y);
    return fmt::format("F32V {0} = p{0} ? (F32V)({1} * r{0}) : (F32V)({1} / {2});\n", name, x, y);
  }
  // Results beyond what caches hold are written past them.
  bool streams() const {
    constexpr std::int64_t kBeyondCaches = 24 << 20;
    return 2 * rows_ * columns_ * static_cast<std::int64_t>(sizeof(float)) > kBeyondCaches;
  }
  // Into a vector of partial results, which joins the row's result after each stretch.
  void lanes_reduction(NodeId id, std::string& before, std::string& vectors, std::string& after) {
    const ReduceKind kind = graph_[id].as<ReduceAttr>().kind;
    const std::string sum = "s" + reader_.name(id), value = variable(graph_[id].inputs[0]);
    before += fmt::format("F32V w{} = {};\n", sum, identity_text(kind, DType::f32));
    if (kind == ReduceKind::max || kind == ReduceKind::min) {
      const char* name = kind == ReduceKind::max ? "max" : "min";
      std::string unused, inside;
      extreme_text(body_, kind, DType::f32, sum, "", "whole", unused, inside, unused);
      before += fmt::format("I32V u{} = 0;\n", sum);  // where there was a NaN
      vectors += fmt::format("{{ const F32V y = {1}; u{0} |= y != y; w{0} = w{0} {2} y ? w{0} : y; }}\n", sum, value,
                             kind == ReduceKind::max ? ">" : "<");
      after += fmt::format("{{ const f32 whole = any_v(u{0}) ? {1} : {2}_of_v(w{0});\n{3}}}\n", sum, literal(DType::f32, NAN),
                           name, inside);
    } else if (kind == ReduceKind::sum || kind == ReduceKind::prod) {
      const char* sign = kind == ReduceKind::sum ? "+" : "*";
      vectors += fmt::format("w{0} = w{0} {1} {2};\n", sum, sign, value);
      after += fmt::format("{0} = {0} {1} {2}_of_v(w{0});\n", sum, sign, kind == ReduceKind::sum ? "sum" : "product");
    } else {
      body_.fail_lanes();
    }
    body_.need("folds_v");
  }

  // The beginning of a loop over a lane's vectors: number g, from column c on. A row that fills all lanes needs no question.
  std::string each_vector() const {
    const std::string question = columns_ == std::int64_t{lanes_} * per_lane_ ? "" : fmt::format("if (c < {}) ", n_);
    return fmt::format("UNROLL for (i32 g = 0; g < {}; ++g) {{\nconst {} c = (lane + g * {}) * {};\n{}{{\n", per_lane_ / width_,
                       ix(), lanes_, width_, question);
  }
  // A lane's next elements of an operand, into p<k>.
  std::string load_text(std::size_t k) const {
    const std::string type = stored_type(reader_.externals()[k].from.stored);
    return fmt::format("VARRAY({0}, {1}, p{2});\nVLOAD({0}, {1}, p{2}, {3} + o{2} + c);\n", type, width_, k, pointers_[k]);
  }
  bool is_kept_before(NodeId id, int pass) const {
    const auto found = kept_.find(id);
    return found != kept_.end() && found->second < pass;
  }

  // Whether a processor's compiler takes sixteen elements of a row at once, and the row is short enough for sixteen sums.
  bool is_vectorised() const {
    return !body_.calls_library() && columns_ <= 1024 &&
           std::ranges::all_of(column_strides_, [](std::int64_t stride) { return stride == 0 || stride == 1; });
  }

  void reduction_text(NodeId id, std::string& before, std::string& inside, std::string& after) {
    const ReduceKind kind = graph_[id].as<ReduceAttr>().kind;
    const DType dtype = compute_dtype(graph_[id].dtype);
    const std::string type = variable_type(dtype), sum = "s" + reader_.name(id), result = reader_.name(id);
    const std::string value = variable(graph_[id].inputs[0]);
    if (target_.is_cpu && is_float(dtype) && (kind == ReduceKind::max || kind == ReduceKind::min)) {
      extreme_text(body_, kind, dtype, sum, result, value, before, inside, after);
      return;
    }
    if (target_.is_cpu) {
      // Vectorised, a row is summed in sixteen parts. Where it is not, f32 is summed in f64; f64 with its rounding errors beside
      // it.
      if (kind == ReduceKind::sum && dtype == DType::f64) {
        before += fmt::format("f64 {0} = 0.0, c{0} = 0.0;\n", sum);
        inside += compensated_add_text(sum, "c" + sum, value);
        after += fmt::format("f64 {} = {};\n", result, compensated_total_text(sum, "c" + sum));
        return;
      }
      const bool wide = kind == ReduceKind::sum && dtype == DType::f32 && target_.has_f64 && !is_vectorised();
      const DType as = wide ? DType::f64 : dtype;
      const bool any_order = is_float(dtype) && (kind == ReduceKind::sum || kind == ReduceKind::prod);
      before += fmt::format("{} {} = {};\n", variable_type(as), sum, identity_text(kind, as));
      inside += fmt::format("{{ {}{} = {}; }}\n", any_order ? "ANY_ORDER " : "", sum,
                            combine_text(kind, as, sum, wide ? "(f64)" + value : value));
      after += fmt::format("{} {} = ({}){};\n", type, result, type, sum);
      return;
    }
    before += fmt::format("{} {} = {};\n", type, sum, identity_text(kind, dtype));
    inside += fmt::format("{} = {};\n", sum, combine_text(kind, dtype, sum, value));
    after += across_lanes(kind, dtype, sum) + fmt::format("{} {} = {};\n", type, result, sum);
  }

  // Joins the lanes' partial results, so that every lane of a line has the whole one.
  std::string across_lanes(ReduceKind kind, DType dtype, const std::string& sum) {
    if (lanes_ == 1) return {};
    const std::string type = variable_type(dtype), shared = "shared_" + sum;
    const auto join = [&](const std::string& other) {
      return fmt::format("{} = {};\n", sum, combine_text(kind, dtype, sum, other));
    };
    if (target_.dialect == Dialect::cuda) {
      std::string text = across_warp_text(kind, dtype, sum, std::min(lanes_, 32));
      const int warps = lanes_ / 32;
      if (warps <= 1) return text;
      shared_ += fmt::format("LOCAL {} {}[{}];\n", type, shared, lines_ * warps);
      // With a second pass its barriers keep this row's readers and the next row's writers apart.
      if (passes_ < 2) text += "BARRIER;\n";
      text += fmt::format("if (lane % 32 == 0) {}[line * {} + lane / 32] = {};\nBARRIER;\n", shared, warps, sum);
      text += fmt::format("{} = {}[line * {} + lane % {}];\n", sum, shared, warps, warps);
      return text + across_warp_text(kind, dtype, sum, warps);
    }
    shared_ += fmt::format("LOCAL {} {}[{}];\n", type, shared, lines_ * lanes_);
    std::string text = fmt::format("BARRIER;\n{}[line * {} + lane] = {};\nBARRIER;\n", shared, lanes_, sum);
    text += fmt::format("for (i32 distance = {}; distance > 0; distance /= 2) {{\nif (lane < distance) {{\n", lanes_ / 2);
    text += fmt::format("const {} other = {}[line * {} + lane + distance]; {}", type, shared, lanes_, join("other"));
    text += fmt::format("{}[line * {} + lane] = {};\n}}\nBARRIER;\n}}\n{} = {}[line * {}];\n", shared, lanes_, sum, sum, shared,
                        lanes_);
    return text;
  }

  const KernelTarget& target_;
  GroupReader& reader_;
  const Graph& graph_;
  const Group& group_;
  GroupPlacement& placement_;
  std::int64_t columns_ = 1, rows_ = 1;
  std::vector<std::int64_t> offsets_, all_offsets_, column_strides_;
  Axes axes_;
  Parameters parameters_;
  Body body_;
  std::map<NodeId, int> levels_;
  int passes_ = 0;
  int lanes_ = 1, lines_ = 1, per_lane_ = 1, width_ = 1;
  std::set<std::string> reciprocals_;  // row values whose reciprocal was written
  std::map<NodeId, int> kept_;         // value -> the pass that computes it
  std::vector<std::string> pointers_;
  std::string n_, shared_;
};

}  // namespace

std::vector<Launch> emit_rows(const KernelTarget& target, GroupReader& reader, GroupPlacement& placement) {
  return {RowsEmitter(target, reader, placement).run()};
}

}  // namespace tenon::emit
