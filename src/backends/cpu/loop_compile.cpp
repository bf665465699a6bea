#include <algorithm>
#include <cstring>
#include <limits>
#include <map>
#include <set>

#include "backends/cpu/loop.h"
#include "backends/cpu/primitives.h"
#include "tenon/error.h"

namespace tenon::cpu {
namespace {

constexpr std::size_t kAlign = 64;
// A transposed operand larger than this is worth a tiled copy; a smaller one is gathered element by element.
constexpr std::int64_t kGatherLimit = 4096;
// What one part of a large reduction covers. Fixed, so that results do not depend on the number of threads.
constexpr std::int64_t kPartElements = 32768;

std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }
std::size_t align_up(std::size_t bytes) { return (bytes + kAlign - 1) / kAlign * kAlign; }

// Axes [first, last) of |shape| are addressed by one stride.
bool collapses(const Shape& shape, const Strides& strides, int first, int last) {
  if (shape.elements() == 0) return true;
  std::int64_t expected = -1;
  bool started = false;
  for (int axis = last - 1; axis >= first; --axis) {
    if (shape[axis] == 1) continue;
    if (started && strides[at(axis)] != expected) return false;
    started = true;
    expected = strides[at(axis)] * shape[axis];
  }
  return true;
}

struct ReducedRange {
  int first = 0, last = 0;  // the reduced axes, extents of 1 between them included
};
ReducedRange reduced_range(const Group& group) {
  const int rank = group.domain.rank();
  ReducedRange range{rank, 0};
  for (int axis = 0; axis < rank; ++axis)
    if ((group.reduced & (1u << axis)) && group.domain[axis] != 1) {
      range.first = std::min(range.first, axis);
      range.last = axis + 1;
    }
  if (range.first >= range.last) return {rank, rank};
  return range;
}

std::int64_t extent(const Shape& shape, int first, int last) {
  std::int64_t count = 1;
  for (int axis = first; axis < last; ++axis) count *= shape[axis];
  return count;
}

double cost_of(ElementwiseOp op) {
  const ElementwiseTraits& t = traits(op);
  if (t.wide) return 16;
  return (t.kinds & kIntegers) ? 1 : 5;
}

}  // namespace

bool loop_can_read(const Graph& graph, const Plan& plan, const Group& group, NodeId operand) {
  const ValueView& view = plan.views[at(operand)];
  if (!(graph[operand].shape == group.domain)) return true;
  int last = group.domain.rank() - 1;
  while (last >= 0 && group.domain[last] == 1) --last;
  if (last >= 0 && view.strides[at(last)] != 0 && view.strides[at(last)] != 1 && view.shape.elements() > kGatherLimit)
    return false;
  if (group.kind == Group::Kind::elementwise) return true;
  const ReducedRange range = reduced_range(group);
  if (group.kind == Group::Kind::reduction && extent(group.domain, range.last, group.domain.rank()) != 1) return true;
  return collapses(group.domain, view.strides, range.first, range.last);
}

class LoopCompiler {
 public:
  LoopCompiler(Loop& loop, const Graph& graph, const Plan& plan, int group, const Placement& placement, int threads)
      : loop_(loop),
        graph_(graph),
        plan_(plan),
        group_index_(group),
        group_(plan.groups[at(group)]),
        placement_(placement),
        threads_(threads) {}

  void run() {
    loop_.kind_ = group_.kind;
    find_externals();
    shape_loop();
    find_absorbed();
    assign_phases();
    emit();
    allocate();
    lay_out_scratch();
  }

 private:
  using Code = Loop::Code;
  using Home = Loop::Home;

  // --- Geometry ---

  struct Run {
    std::int64_t extent = 1;
    int axis = 0;  // innermost axis of the run: its stride is the run's
  };

  bool is_member(NodeId operand) const { return member_behind(graph_, plan_, group_index_, operand).has_value(); }

  void find_externals() {
    for (NodeId id : group_.nodes)
      for (NodeId operand : graph_[id].inputs)
        if (!is_member(operand)) external_nodes_.insert(operand);
  }

  // Joins axes [first, last) into as few runs as all external views allow.
  std::vector<Run> runs(int first, int last) const {
    std::vector<Run> found;
    for (int axis = last - 1; axis >= first; --axis) {
      const std::int64_t size = group_.domain[axis];
      if (size == 1) continue;
      const bool empty = group_.domain.elements() == 0;  // addressed by nobody: any stride will do
      const bool joins =
          !found.empty() && (empty || std::all_of(external_nodes_.begin(), external_nodes_.end(), [&](NodeId node) {
                               const Strides strides = domain_strides(node);
                               return strides[at(axis)] == strides[at(found.back().axis)] * found.back().extent;
                             }));
      if (joins)
        found.back().extent *= size;
      else
        found.push_back({size, axis});
    }
    std::reverse(found.begin(), found.end());
    return found;
  }

  // Strides of an operand over the domain's axes; a row operand has stride 0 along the reduced ones.
  Strides domain_strides(NodeId operand) const {
    Strides strides = plan_.views[at(operand)].strides;
    for (int axis = 0; axis < group_.domain.rank(); ++axis)
      if (graph_[operand].shape[axis] == 1) strides[at(axis)] = 0;
    return strides;
  }

  void shape_loop() {
    const int rank = group_.domain.rank();
    std::vector<Run> outer, columns;
    if (group_.kind == Group::Kind::elementwise) {
      outer = runs(0, rank);
      if (!outer.empty()) {
        columns.push_back(outer.back());
        outer.pop_back();
      }
    } else {
      const ReducedRange range = reduced_range(group_);
      const std::vector<Run> before = runs(0, range.first), reduced = runs(range.first, range.last),
                             after = runs(range.last, rank);
      outer = before;
      loop_.reduce_outer_ = extent(group_.domain, 0, range.first);
      loop_.reduce_extent_ = extent(group_.domain, range.first, range.last);
      if (group_.kind == Group::Kind::rows || after.empty()) {
        if (reduced.size() > 1) throw Error(ErrorCode::internal, "a row of a loop is not addressable by one stride");
        columns = reduced;
      } else {
        loop_.reduce_columns_ = true;
        outer.insert(outer.end(), reduced.begin(), reduced.end());
        outer.insert(outer.end(), after.begin(), after.end() - 1);
        columns.push_back(after.back());
        loop_.reduce_between_ = extent(group_.domain, range.last, rank) / std::max<std::int64_t>(columns[0].extent, 1);
      }
    }
    for (const Run& run : outer) {
      loop_.outer_.push_back(run.extent);
      loop_.rows_ *= run.extent;
    }
    outer_runs_ = outer;
    if (!columns.empty()) {
      loop_.cols_ = columns[0].extent;
      column_axis_ = columns[0].axis;
    }
    if (group_.domain.elements() == 0 && group_.kind == Group::Kind::elementwise) loop_.rows_ = 0;

    loop_.block_ = group_.nodes.size() <= 4 ? 2048 : 1024;
    const bool whole_rows = loop_.rows_ > 1 && loop_.cols_ * 2 <= loop_.block_ && loop_.reduce_between_ == 1 &&
                            !(group_.kind == Group::Kind::reduction && !loop_.reduce_columns_);
    if (whole_rows) loop_.tile_rows_ = std::min(loop_.rows_, loop_.block_ / std::max<std::int64_t>(loop_.cols_, 1));
    if (group_.kind == Group::Kind::reduction) split_reduction();
    loop_.stream_ = beyond_cache(footprint());
  }

  void split_reduction() {
    const std::int64_t per_step = loop_.reduce_columns_ ? std::max<std::int64_t>(1, loop_.reduce_between_ * loop_.cols_) : 1;
    const std::int64_t units =
        loop_.reduce_columns_ ? loop_.reduce_outer_ * loop_.reduce_between_ * ((loop_.cols_ + loop_.block_ - 1) / loop_.block_)
                              : 1;
    loop_.part_extent_ = std::max<std::int64_t>(loop_.reduce_extent_, 1);
    // With enough independent columns there is no need to split, and no partial results to store.
    if (!loop_.reduce_columns_ || units < 16)
      loop_.part_extent_ =
          std::clamp<std::int64_t>(kPartElements / per_step, 64, loop_.part_extent_ < 64 ? 64 : loop_.part_extent_);
    loop_.parts_ = std::max<std::int64_t>(1, (loop_.reduce_extent_ + loop_.part_extent_ - 1) / loop_.part_extent_);
  }

  std::size_t footprint() const {
    std::size_t bytes = 0;
    for (NodeId node : external_nodes_) {
      const ValueView& view = plan_.views[at(node)];
      std::int64_t elements = 1;
      for (int axis = 0; axis < view.shape.rank(); ++axis)
        if (view.strides[at(axis)] != 0) elements *= view.shape[axis];
      bytes += at(elements) * std::max<std::size_t>(1, element_bytes(placement_.source(view.base).stored));
    }
    for (NodeId node : group_.outputs)
      for (const Place& place : placement_.targets(node))
        bytes += at(graph_[node].shape.elements()) * element_bytes(place.stored);
    return bytes;
  }

  bool is_row(NodeId node) const {
    if (group_.kind != Group::Kind::rows) return false;
    return graph_[node].prim == Prim::reduce || !(graph_[node].shape == group_.domain);
  }

  // --- Multiply-add ---

  // a * b + c becomes one instruction where the product is used nowhere else.
  void find_absorbed() {
    std::map<NodeId, int> uses;
    for (NodeId id : group_.nodes)
      for (NodeId operand : graph_[id].inputs)
        if (const auto m = member_behind(graph_, plan_, group_index_, operand)) ++uses[*m];
    for (NodeId id : group_.outputs) uses[id] += 2;
    for (NodeId id : group_.nodes) {
      const Node& node = graph_[id];
      if (node.prim != Prim::elementwise || node.as<ElementwiseAttr>().op != ElementwiseOp::Add) continue;
      for (NodeId operand : node.inputs) {
        const Node& product = graph_[operand];
        if (plan_.group_of[at(operand)] == group_index_ && product.prim == Prim::elementwise && uses[operand] == 1 &&
            product.as<ElementwiseAttr>().op == ElementwiseOp::Mul && is_float(product.dtype)) {
          absorbed_[operand] = id;
          break;
        }
      }
    }
  }

  // --- Phases ---

  void assign_phases() {
    int last = 0;
    for (NodeId id : group_.nodes) {
      int phase = 0;
      for (NodeId operand : graph_[id].inputs)
        if (const auto m = member_behind(graph_, plan_, group_index_, operand)) phase = std::max(phase, phase_[*m]);
      if (graph_[id].prim == Prim::reduce && group_.kind == Group::Kind::rows) ++phase;
      phase_[id] = phase;
      last = std::max(last, phase);
    }
    loop_.phases_.resize(at(last + 1));
  }

  // --- Instructions ---

  int new_register(DType dtype, Home home) {
    loop_.registers_.push_back({home, dtype, 0, -1});
    return static_cast<int>(loop_.registers_.size()) - 1;
  }

  std::vector<Loop::Instruction>& head() { return loop_.phases_[at(current_phase_)].head; }
  std::vector<Loop::Instruction>& body() { return loop_.phases_[at(current_phase_)].body; }

  void emit() {
    for (current_phase_ = 0; current_phase_ < static_cast<int>(loop_.phases_.size()); ++current_phase_) {
      for (NodeId id : group_.nodes)
        if (graph_[id].prim == Prim::reduce && phase_[id] == current_phase_ && group_.kind == Group::Kind::rows) emit_stores(id);
      for (NodeId id : group_.nodes) {
        const Node& node = graph_[id];
        if (absorbed_.count(id)) continue;
        if (node.prim == Prim::reduce) {
          const int feeding = phase_[id] - (group_.kind == Group::Kind::rows ? 1 : 0);
          if (feeding == current_phase_) emit_reduce(id);
        } else if (phase_[id] == current_phase_) {
          if (node.prim == Prim::cast)
            emit_cast(id);
          else
            emit_elementwise(id);
          emit_stores(id);
        }
      }
    }
  }

  void emit_elementwise(NodeId id) {
    const Node& node = graph_[id];
    const ElementwiseAttr& attr = node.as<ElementwiseAttr>();
    ElementwiseOp op = attr.op;
    const bool row = is_row(id);
    std::vector<NodeId> operands(node.inputs.begin(), node.inputs.end());
    for (const auto& [product, sum] : absorbed_)
      if (sum == id) {
        const NodeId addend = operands[0] == product ? operands[1] : operands[0];
        operands = {graph_[product].inputs[0], graph_[product].inputs[1], addend};
        op = ElementwiseOp::Mac;
        break;
      }
    Loop::Instruction instruction;
    instruction.code = row ? Code::row_values : Code::elementwise;
    instruction.params = attr.params;
    for (std::size_t i = 0; i < operands.size(); ++i) instruction.in[i] = operand(operands[i], row);
    const DType type = compute_dtype(graph_[operands.back()].dtype);
    instruction.kernel = kernels().elementwise[static_cast<int>(op)][static_cast<int>(type)];
    if (!instruction.kernel)
      throw Error(ErrorCode::internal, std::string(name(op)) + " has no CPU kernel for " + std::string(name(type)));
    instruction.out = define(id, row);
    loop_.cost_ += cost_of(op);
    (row ? head() : body()).push_back(instruction);
  }

  void emit_cast(NodeId id) {
    const Node& node = graph_[id];
    const bool row = is_row(id);
    const int source = operand(node.inputs[0], row);
    const DType from = loop_.registers_[at(source)].dtype;
    const DType to = node.dtype;
    if (to != DType::f16 && to != DType::bf16 && from == to) {
      register_of_[id] = source;
      return;
    }
    int current = source;
    if (to == DType::f16 || to == DType::bf16)
      current = convert(current, to, row, new_register(to, row ? Home::row_value : Home::block));
    convert(current, compute_dtype(to), row, define(id, row));
    loop_.cost_ += 1;
  }

  int convert(int source, DType to, bool row, int out) {
    Loop::Instruction instruction;
    instruction.code = row ? Code::convert_rows : Code::convert;
    instruction.in[0] = source;
    instruction.out = out;
    instruction.convert = kernels().convert[static_cast<int>(loop_.registers_[at(source)].dtype)][static_cast<int>(to)];
    (row ? head() : body()).push_back(instruction);
    return out;
  }

  void emit_reduce(NodeId id) {
    const Node& node = graph_[id];
    const DType dtype = compute_dtype(node.dtype);
    const ReduceKind kind = node.as<ReduceAttr>().kind;
    Loop::Reduction reduction;
    reduction.kind = kind;
    reduction.dtype = dtype;
    reduction.input = operand(node.inputs[0], false);
    reduction.phase = current_phase_;
    reduction.partial = kernels().partial_reduce[static_cast<int>(kind)][static_cast<int>(dtype)];
    reduction.columns = kernels().column_reduce[static_cast<int>(kind)][static_cast<int>(dtype)];
    if (group_.kind == Group::Kind::rows)
      register_of_[id] = reduction.result = new_register(dtype, Home::row_value);
    else if (std::find(group_.outputs.begin(), group_.outputs.end(), id) != group_.outputs.end())
      reduction.targets = placement_.targets(id);
    Loop::Instruction instruction;
    instruction.code = Code::reduce;
    instruction.in[0] = reduction.input;
    instruction.out = reduction.result;
    instruction.reduction = static_cast<int>(loop_.reductions_.size());
    loop_.reductions_.push_back(std::move(reduction));
    loop_.cost_ += 1;
    body().push_back(instruction);
  }

  bool is_output(NodeId id) const { return std::find(group_.outputs.begin(), group_.outputs.end(), id) != group_.outputs.end(); }

  // The register a member's value goes to: an output's memory itself where the value can be computed right there.
  int define(NodeId id, bool row) {
    const DType dtype = compute_dtype(graph_[id].dtype);
    const int reg = new_register(dtype, row ? Home::row_value : Home::block);
    register_of_[id] = reg;
    if (!row && is_output(id) && !loop_.stream_) {
      const std::vector<Place> targets = placement_.targets(id);
      for (std::size_t i = 0; i < targets.size(); ++i)
        if (targets[i].stored == dtype) {
          loop_.registers_[at(reg)].home = Home::output;
          loop_.registers_[at(reg)].external = dense_external(targets[i]);
          written_directly_[id] = static_cast<int>(i);
          break;
        }
    }
    return reg;
  }

  void emit_stores(NodeId id) {
    if (!is_output(id)) return;
    const bool row = is_row(id);
    const std::vector<Place> targets = placement_.targets(id);
    for (std::size_t i = 0; i < targets.size(); ++i) {
      const auto direct = written_directly_.find(id);
      if (direct != written_directly_.end() && direct->second == static_cast<int>(i)) continue;
      int source = register_of_[id];
      Loop::Instruction instruction;
      instruction.external = row ? row_external(targets[i]) : dense_external(targets[i]);
      const DType stored = targets[i].stored;
      if (loop_.registers_[at(source)].dtype != stored) {
        // Straight into the target where it is addressed like the tile; through a block first when streaming past the caches.
        if (!row && !loop_.stream_) {
          const int out = new_register(stored, Home::output);
          loop_.registers_[at(out)].external = instruction.external;
          convert(source, stored, false, out);
          continue;
        }
        source = convert(source, stored, row, new_register(stored, row ? Home::row_value : Home::block));
      }
      instruction.code = row ? Code::store_rows : Code::store;
      instruction.in[0] = source;
      (row ? head() : body()).push_back(instruction);
    }
  }

  int dense_external(const Place& place) {
    Loop::External external;
    external.place = place;
    external.dense = true;
    external.col_stride = 1;
    loop_.externals_.push_back(external);
    return static_cast<int>(loop_.externals_.size()) - 1;
  }

  int row_external(const Place& place) {
    Loop::External external;
    external.place = place;
    std::int64_t stride = 1;
    for (std::size_t i = outer_runs_.size(); i-- > 0;) {
      external.row_strides[i] = stride;
      stride *= outer_runs_[i].extent;
    }
    external.dense = false;
    loop_.externals_.push_back(external);
    return static_cast<int>(loop_.externals_.size()) - 1;
  }

  // --- Operands ---

  int operand(NodeId node, bool row) {
    if (const auto m = member_behind(graph_, plan_, group_index_, node)) {
      const int reg = register_of_.at(*m);
      if (row || !is_row(*m) || graph_[*m].shape == group_.domain) return reg;
      return expand(*m, reg);
    }
    const auto key = std::make_pair(node, row);
    if (const auto known = loaded_.find(key); known != loaded_.end()) return known->second;
    return loaded_[key] = row ? load_row_operand(node) : load_operand(node);
  }

  int expand(NodeId m, int reg) {
    if (const auto known = expanded_.find(m); known != expanded_.end()) return known->second;
    const int out = new_register(loop_.registers_[at(reg)].dtype, Home::block);
    Loop::Instruction instruction;
    instruction.code = Code::expand;
    instruction.in[0] = reg;
    instruction.out = out;
    head().push_back(instruction);
    return expanded_[m] = out;
  }

  Loop::External external_of(NodeId node) const {
    const ValueView& view = plan_.views[at(node)];
    const Strides strides = domain_strides(node);
    Loop::External external;
    external.place = placement_.source(view.base);
    external.offset = view.offset;
    external.col_stride = loop_.cols_ > 1 ? strides[at(column_axis_)] : 1;
    std::int64_t dense = loop_.cols_;
    external.dense = external.col_stride == 1;
    for (std::size_t i = outer_runs_.size(); i-- > 0;) {
      external.row_strides[i] = strides[at(outer_runs_[i].axis)];
      external.dense = external.dense && external.row_strides[i] == dense;
      dense *= outer_runs_[i].extent;
    }
    return external;
  }

  bool is_uniform(NodeId node) const {
    const Strides strides = domain_strides(node);
    return std::all_of(strides.begin(), strides.begin() + group_.domain.rank(), [](std::int64_t s) { return s == 0; });
  }

  // A block of equal values, known now.
  std::optional<int> constant_operand(NodeId node) {
    const ValueView& view = plan_.views[at(node)];
    const Node& base = graph_[view.base];
    if (base.prim != Prim::constant || !is_uniform(node)) return std::nullopt;
    // A literal beside a bf16 tensor is stored in f32: the array's own dtype counts.
    const HostArray& array = base.as<ConstantAttr>().value;
    if (is_block(array.dtype())) return std::nullopt;
    const DType dtype = compute_dtype(base.dtype);
    const std::size_t size = element_bytes(dtype);
    alignas(8) std::byte value[8];
    kernels().convert[static_cast<int>(array.dtype())][static_cast<int>(dtype)](
        array.data() + at(view.offset) * element_bytes(array.dtype()), value, 1);
    const int reg = new_register(dtype, Home::constant);
    loop_.registers_[at(reg)].offset = align_up(loop_.constants_.size());
    loop_.constants_.resize(loop_.registers_[at(reg)].offset + at(block_elements()) * size);
    for (std::int64_t i = 0; i < block_elements(); ++i)
      std::memcpy(loop_.constants_.data() + loop_.registers_[at(reg)].offset + at(i) * size, value, size);
    return reg;
  }

  // The most elements a tile has.
  std::int64_t block_elements() const {
    if (loop_.tile_rows_ > 1) return std::max(loop_.tile_rows_ * loop_.cols_, loop_.tile_rows_);
    return std::max<std::int64_t>(1, std::min(loop_.block_, loop_.cols_));
  }

  int load_operand(NodeId node) {
    if (const auto constant = constant_operand(node)) return *constant;
    const DType wanted = compute_dtype(graph_[node].dtype);
    const Loop::External external = external_of(node);
    loop_.externals_.push_back(external);
    const int index = static_cast<int>(loop_.externals_.size()) - 1;
    const bool segments = loop_.tile_rows_ == 1;
    const bool pointed_at = external.dense || (segments && external.col_stride == 1);
    if (pointed_at) {
      const int reg = new_register(external.place.stored, Home::input);
      loop_.registers_[at(reg)].external = index;
      if (external.place.stored == wanted) return reg;
      return convert(reg, wanted, false, new_register(wanted, Home::block));
    }
    const bool uniform = is_uniform(node);
    std::vector<Loop::Instruction>& where = uniform ? loop_.init_ : (segments && external.col_stride == 0) ? head() : body();
    Loop::Instruction load;
    load.code = Code::load;
    load.external = index;
    load.out = new_register(external.place.stored, Home::block);
    where.push_back(load);
    if (external.place.stored == wanted) return load.out;
    Loop::Instruction conversion;
    conversion.code = Code::convert;
    conversion.in[0] = load.out;
    conversion.out = new_register(wanted, Home::block);
    conversion.convert = kernels().convert[static_cast<int>(external.place.stored)][static_cast<int>(wanted)];
    where.push_back(conversion);
    return conversion.out;
  }

  int load_row_operand(NodeId node) {
    if (const auto constant = constant_operand(node)) return *constant;
    const DType wanted = compute_dtype(graph_[node].dtype);
    loop_.externals_.push_back(external_of(node));
    Loop::Instruction load;
    load.code = Code::load_rows;
    load.external = static_cast<int>(loop_.externals_.size()) - 1;
    load.out = new_register(loop_.externals_.back().place.stored, Home::row_value);
    head().push_back(load);
    if (loop_.registers_[at(load.out)].dtype == wanted) return load.out;
    return convert(load.out, wanted, true, new_register(wanted, Home::row_value));
  }

  // --- Register allocation ---

  struct Life {
    int first = -1, last = -1;
    int first_phase = -1, last_phase = -1;  // -1: init
    bool first_in_body = false, last_in_body = false;
  };

  void allocate() {
    std::vector<Life> lives(loop_.registers_.size());
    std::vector<const Loop::Instruction*> order;
    std::vector<int> phase_end(loop_.phases_.size(), 0);
    const auto visit = [&](const Loop::Instruction& instruction, int phase, bool in_body) {
      const int position = static_cast<int>(order.size());
      order.push_back(&instruction);
      const auto touch = [&](int reg) {
        if (reg < 0) return;
        Life& life = lives[at(reg)];
        if (life.first < 0) {
          life.first = position;
          life.first_phase = phase;
          life.first_in_body = in_body;
        }
        life.last = position;
        life.last_phase = phase;
        life.last_in_body = in_body;
      };
      for (int reg : instruction.in) touch(reg);
      touch(instruction.out);
    };
    for (const Loop::Instruction& i : loop_.init_) visit(i, -1, false);
    for (std::size_t p = 0; p < loop_.phases_.size(); ++p) {
      for (const Loop::Instruction& i : loop_.phases_[p].head) visit(i, static_cast<int>(p), false);
      for (const Loop::Instruction& i : loop_.phases_[p].body) visit(i, static_cast<int>(p), true);
      phase_end[p] = static_cast<int>(order.size());
    }
    const int end = static_cast<int>(order.size());

    for (std::size_t r = 0; r < lives.size(); ++r) {
      Loop::Register& reg = loop_.registers_[r];
      Life& life = lives[r];
      if (reg.home != Home::block || life.first < 0) continue;
      slot_bytes_ = std::max(slot_bytes_, at(block_elements()) * element_bytes(reg.dtype));
      if (life.first_phase < 0) {
        life.last = end;
      } else if (loop_.tile_rows_ == 1 && life.first_in_body && life.last_phase > life.first_phase) {
        reg.home = Home::row;
      } else if (!life.first_in_body && life.last_in_body) {
        // Written once per row, read by every tile of it.
        life.last = phase_end[at(life.last_phase)];
      }
    }

    std::vector<int> free_slots;
    std::vector<std::pair<int, int>> busy;  // last position, slot
    int slots = 0;
    std::vector<int> slot_of(lives.size(), -1);
    const auto release = [&](int position, bool ending_here_too) {
      std::erase_if(busy, [&](const auto& entry) {
        const bool ends_before = entry.first < position;
        const bool ends_here = entry.first == position && ending_here_too;
        if (!ends_before && !ends_here) return false;
        free_slots.push_back(entry.second);
        return true;
      });
    };
    for (int position = 0; position < end; ++position) {
      const Loop::Instruction& instruction = *order[at(position)];
      const int out = instruction.out;
      const bool needs_slot = out >= 0 && loop_.registers_[at(out)].home == Home::block && lives[at(out)].first == position;
      if (!needs_slot) continue;
      // Working in place is only sound between elements of one size.
      bool same_size = true;
      for (int in : instruction.in)
        if (in >= 0 && element_bytes(loop_.registers_[at(in)].dtype) != element_bytes(loop_.registers_[at(out)].dtype))
          same_size = false;
      const bool in_place = same_size && (instruction.code == Code::elementwise || instruction.code == Code::convert);
      release(position, in_place);
      if (free_slots.empty()) free_slots.push_back(slots++);
      slot_of[at(out)] = free_slots.back();
      free_slots.pop_back();
      busy.push_back({lives[at(out)].last, slot_of[at(out)]});
    }
    slots_ = slots;
    slot_of_ = std::move(slot_of);
  }

  void lay_out_scratch() {
    std::size_t offset = align_up(loop_.registers_.size() * sizeof(void*));
    offset = align_up(offset + loop_.reductions_.size() * sizeof(Accumulator));
    const std::size_t slots_at = offset;
    const std::size_t slot = align_up(slot_bytes_);
    offset += at(slots_) * slot;
    for (std::size_t r = 0; r < loop_.registers_.size(); ++r) {
      Loop::Register& reg = loop_.registers_[r];
      const std::size_t size = element_bytes(reg.dtype);
      switch (reg.home) {
        case Home::block: reg.offset = slots_at + (slot_of_[r] < 0 ? 0 : at(slot_of_[r])) * slot; break;
        case Home::row:
          reg.offset = offset;
          offset += align_up(at(loop_.cols_) * size);
          loop_.moving_.push_back(static_cast<int>(r));
          break;
        case Home::row_value:
          reg.offset = offset;
          offset += align_up(at(loop_.tile_rows_) * size);
          break;
        case Home::input:
        case Home::output: loop_.moving_.push_back(static_cast<int>(r)); break;
        case Home::constant: break;
      }
    }
    loop_.column_accumulators_ = offset;
    if (loop_.reduce_columns_) offset += loop_.reductions_.size() * at(block_elements()) * sizeof(Accumulator);
    loop_.worker_bytes_ = align_up(offset);
    loop_.partials_offset_ = loop_.worker_bytes_ * at(threads_);
    std::size_t partials = 0;
    if (loop_.parts_ > 1) {
      const std::int64_t kept = loop_.reduce_outer_ * (loop_.reduce_columns_ ? loop_.reduce_between_ * loop_.cols_ : 1);
      partials = at(kept * loop_.parts_) * loop_.reductions_.size() * sizeof(Accumulator);
    }
    loop_.scratch_bytes_ = loop_.partials_offset_ + align_up(partials);
  }

  Loop& loop_;
  const Graph& graph_;
  const Plan& plan_;
  const int group_index_;
  const Group& group_;
  const Placement& placement_;
  const int threads_;

  std::set<NodeId> external_nodes_;
  std::vector<Run> outer_runs_;
  int column_axis_ = 0;
  std::map<NodeId, NodeId> absorbed_;  // product -> the sum it is part of
  std::map<NodeId, int> phase_;
  int current_phase_ = 0;
  std::map<NodeId, int> register_of_;
  std::map<NodeId, int> written_directly_;  // output -> index of the target its register is
  std::map<std::pair<NodeId, bool>, int> loaded_;
  std::map<NodeId, int> expanded_;
  std::size_t slot_bytes_ = 0;
  int slots_ = 0;
  std::vector<int> slot_of_;
};

Loop::Loop(const Graph& graph, const Plan& plan, int group, const Placement& placement, int threads) {
  LoopCompiler(*this, graph, plan, group, placement, threads).run();
}

}  // namespace tenon::cpu
