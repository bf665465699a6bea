#include "backend/kernel_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "backend/temporary_plan.h"
#include "graph/emit/geometry.h"
#include "graph/emit/primitives.h"
#include "graph/fusion.h"
#include "graph/ops/elementwise.h"
#include "graph/simplify.h"
#include "tenon/error.h"

namespace tenon {
namespace {

using namespace emit;

std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

// Convolutions of at least so many multiplications become products, by way of a copy of at most so many bytes at a time.
constexpr std::int64_t kProductFrom = std::int64_t{1} << 16, kUnfoldedBytes = std::int64_t{512} << 20;

class Planner final : public GroupPlacement {
 public:
  Planner(const Graph& graph, const KernelTarget& target, const PlanOptions& options)
      : target_(target),
        options_(options),
        graph_(simplify(graph)),
        fused_(fuse(graph_, options.fuse ? FusionLimits{} : FusionLimits{.max_nodes = 1})) {}

  KernelPlan run() {
    for (NodeId id : graph_.inputs()) plan_.input_types.push_back({graph_[id].dtype, graph_[id].shape});
    for (NodeId id : graph_.outputs()) plan_.output_types.push_back({graph_[id].dtype, graph_[id].shape});
    count_readers();
    place_leaves();
    place_outputs();
    if (options_.library_matmul && options_.fuse) find_epilogues();
    for (const Step& step : fused_.steps) {
      if (step.group < 0) {
        if (!postponed_.contains(step.node)) add_primitive(step.node);
      } else if (const auto found = epilogues_.find(step.group); found == epilogues_.end()) {
        add_group(step.group);
      } else if (!add_with_epilogue(found->second)) {
        add_primitive(found->second.product);
        add_group(step.group);
      }
    }
    finish_outputs();
    finish_steps();
    return std::move(plan_);
  }

  // --- GroupPlacement ---
  StoredValue source(NodeId base) const override {
    if (const auto found = sources_.find(base); found != sources_.end()) return found->second;
    return place_constant(base);
  }
  std::vector<StoredValue> targets(NodeId output) const override {
    std::vector<StoredValue> all;
    if (const auto direct = direct_outputs_.find(output); direct != direct_outputs_.end())
      for (int index : direct->second) all.push_back({output_slot(index), graph_[output].dtype});
    const auto own = sources_.find(output);
    if (own != sources_.end() && std::ranges::none_of(all, [&](const StoredValue& v) { return v.slot == own->second.slot; }))
      all.push_back(own->second);
    return all;
  }
  int scratch(std::uint64_t bytes) override { return new_temporary(bytes); }

 private:
  // What is known of a step until the workspace is planned: buffers by slot.
  struct LibraryStep {
    PlanStep step;
    std::vector<int> slots;  // of its locations, in the order in which locations_of() names them
  };
  struct PendingLaunch {
    int kernel = 0;
    std::array<std::uint32_t, 3> groups{};
    std::vector<ArgumentValue> arguments;
  };
  using Pending = std::variant<PendingLaunch, LibraryStep>;

  int output_slot(int index) const { return static_cast<int>(plan_.input_types.size()) + index; }
  NodeId base_of(NodeId id) const { return fused_.views[at(id)].base; }

  // --- Memory ---
  int new_slot(Location location) const {
    slots_.push_back(location);
    return static_cast<int>(slots_.size()) - 1;
  }
  int new_temporary(std::uint64_t bytes) {
    return new_slot({Location::Space::workspace, 0, 0, std::max<std::uint64_t>(bytes, 1)});
  }
  int new_temporary(DType dtype, const Shape& shape) { return new_temporary(storage_bytes(dtype, shape)); }
  int status_slot() {
    if (status_ < 0) status_ = new_slot({Location::Space::status, 0, 0, kStatusBytes});
    plan_.has_status = true;
    return status_;
  }

  void count_readers() {
    const auto read = [&](NodeId operand, int group) {
      if (group >= 0 && member_behind(graph_, fused_, group, operand)) return;
      ++readers_[base_of(operand)];
    };
    for (const Step& step : fused_.steps) {
      if (step.group >= 0) {
        for (NodeId n : fused_.groups[at(step.group)].nodes)
          for (NodeId operand : graph_[n].inputs) read(operand, step.group);
      } else {
        for (NodeId operand : graph_[step.node].inputs) read(operand, -1);
      }
    }
    for (NodeId id : graph_.outputs())
      if (base_of(id) != id && !is_renamed(id)) ++readers_[base_of(id)];
  }

  // The whole of a computed value under another shape: the value itself can be written to the output. Asked before steps are
  // added: a view that was copied since looks like one.
  bool is_renamed(NodeId output) const {
    const ValueView& view = fused_.views[at(output)];
    const Node& base = graph_[view.base];
    return is_dense(view) && view.offset == 0 && view.shape.elements() == base.shape.elements() && base.prim != Prim::input &&
           base.prim != Prim::constant && !is_block(base.dtype) && graph_[output].dtype == base.dtype;
  }

  void place_leaves() {
    for (std::size_t i = 0; i < plan_.input_types.size(); ++i) {
      const TensorType& type = plan_.input_types[i];
      new_slot({Location::Space::input, static_cast<int>(i), 0, storage_bytes(type.dtype, type.shape)});
    }
    for (std::size_t i = 0; i < plan_.output_types.size(); ++i) {
      const TensorType& type = plan_.output_types[i];
      new_slot({Location::Space::output, static_cast<int>(i), 0, storage_bytes(type.dtype, type.shape)});
    }
    for (std::size_t i = 0; i < plan_.input_types.size(); ++i) {
      const NodeId id = graph_.inputs()[i];
      sources_[id] = {static_cast<int>(i), graph_[id].dtype};
      if (is_block(graph_[id].dtype) && readers_.count(id)) decode_input(id);
    }
  }

  void decode_input(NodeId id) {
    const int from = sources_[id].slot, to = new_temporary(DType::f32, graph_[id].shape);
    if (graph_[id].shape.elements() > 0) add(emit_block_decode(target_, graph_[id].dtype, graph_[id].shape, from, to));
    sources_[id] = {to, DType::f32};
  }

  StoredValue place_constant(NodeId id) const {
    if (graph_[id].prim != Prim::constant)
      throw Error(ErrorCode::internal, fmt::format("%{} ({}) was read before it was computed", id, name(graph_[id].prim)));
    HostArray value = graph_[id].as<ConstantAttr>().value;
    if (is_block(value.dtype())) value = value.cast(DType::f32);
    const std::uint64_t offset = (constants_.size() + kLocationAlignment - 1) / kLocationAlignment * kLocationAlignment;
    constants_.resize(offset + std::max<std::size_t>(value.bytes(), 1));
    std::copy_n(value.data(), value.bytes(), constants_.begin() + static_cast<std::ptrdiff_t>(offset));
    return sources_[id] = {new_slot({Location::Space::constants, 0, offset, std::max<std::uint64_t>(value.bytes(), 1)}),
                           value.dtype()};
  }

  // Results go straight into an output of the graph where they can.
  void place_outputs() {
    is_direct_.assign(plan_.output_types.size(), false);
    for (std::size_t i = 0; i < plan_.output_types.size(); ++i) {
      if (!is_renamed(graph_.outputs()[i])) continue;
      direct_outputs_[base_of(graph_.outputs()[i])].push_back(static_cast<int>(i));
      is_direct_[i] = true;
    }
    for (const auto& [id, indices] : direct_outputs_)
      if (compute_dtype(graph_[id].dtype) == graph_[id].dtype) sources_[id] = {output_slot(indices[0]), graph_[id].dtype};
  }

  // Memory, in the compute type, for a computed value that is read inside the program.
  void place_value(NodeId id) {
    if (sources_.count(id) || (direct_outputs_.count(id) && !readers_.count(id))) return;
    const DType dtype = compute_dtype(graph_[id].dtype);
    sources_[id] = {new_temporary(dtype, graph_[id].shape), dtype};
  }

  // --- Steps ---
  void add(Launch launch) {
    PendingLaunch pending;
    const auto known = kernel_index_.find(launch.kernel.entry);
    if (known != kernel_index_.end()) {
      pending.kernel = known->second;
    } else {
      pending.kernel = static_cast<int>(plan_.kernels.size());
      kernel_index_[launch.kernel.entry] = pending.kernel;
      plan_.kernels.push_back(std::move(launch.kernel));
    }
    pending.groups = launch.groups;
    pending.arguments = std::move(launch.arguments);
    pending_.push_back(std::move(pending));
  }

  // The value of |id| as it lies in memory.
  Access stored(NodeId id) const {
    const ValueView& view = fused_.views[at(id)];
    const StoredValue value = source(view.base);
    return access(value.slot, value.stored, view);
  }
  Dense dense(NodeId id) {
    const ValueView& view = fused_.views[at(id)];
    const StoredValue value = source(view.base);
    if (is_dense(view) && view.offset == 0) return {value.slot, value.stored, view.shape};
    return copied(id);
  }
  // Copies the value and makes the copy what later readers of |id| see.
  Dense copied(NodeId id) {
    const Access from = stored(id);
    const Shape shape = graph_[id].shape;
    const int to = new_temporary(from.stored, shape);
    if (shape.elements() > 0) add(emit_copy(target_, shape, from, dense_access(to, from.stored, shape)));
    fused_.views[at(id)] = whole_view(id, shape);
    sources_[id] = {to, from.stored};
    return {to, from.stored, shape};
  }

  void add_group(int index) {
    const Group& group = fused_.groups[at(index)];
    for (NodeId n : group.nodes)
      for (NodeId operand : graph_[n].inputs)
        if (!member_behind(graph_, fused_, index, operand) && !group_can_read(graph_, fused_, group, operand)) copied(operand);
    bool empty = true;
    for (NodeId id : group.outputs) {
      place_value(id);
      empty = empty && graph_[id].shape.elements() == 0;
    }
    if (empty) return;
    for (Launch& launch : emit_group(target_, graph_, fused_, index, *this)) add(std::move(launch));
  }

  // Where a primitive writes: the memory others read, or the graph's output, which it rounds to.
  Dense result_of(NodeId id, bool in_compute_type = false) {
    const Node& node = graph_[id];
    place_value(id);
    if (const auto own = sources_.find(id); own != sources_.end()) return {own->second.slot, own->second.stored, node.shape};
    if (in_compute_type && compute_dtype(node.dtype) != node.dtype) {
      sources_[id] = {new_temporary(compute_dtype(node.dtype), node.shape), compute_dtype(node.dtype)};
      return {sources_[id].slot, sources_[id].stored, node.shape};
    }
    return {output_slot(direct_outputs_.at(id)[0]), node.dtype, node.shape};
  }

  void add_primitive(NodeId id) {
    const Node& node = graph_[id];
    if (node.shape.elements() == 0) {
      place_value(id);
      return;
    }
    Dense out = result_of(id, node.prim == Prim::scatter);
    const Scratch scratch = [&](std::uint64_t bytes) { return new_temporary(bytes); };
    const auto add_all = [&](std::vector<Launch> launches) {
      for (Launch& launch : launches) add(std::move(launch));
    };
    switch (node.prim) {
      case Prim::broadcast:
      case Prim::reshape:
      case Prim::transpose:
      case Prim::slice: {
        const NodeId x = node.inputs[0];
        add(emit_copy(target_, graph_[x].shape, stored(x), dense_access(out.slot, out.stored, graph_[x].shape)));
        break;
      }
      case Prim::cast: add_block_cast(node, out); break;
      case Prim::pad: add_pad(node, out); break;
      case Prim::concat: add_concat(node, out); break;
      case Prim::matmul: add_matmul(node, out); break;
      case Prim::conv: add_conv(node, out); break;
      case Prim::scatter: {
        const Access x = stored(node.inputs[0]);
        const Dense indices = dense(node.inputs[1]), updates = dense(node.inputs[2]);
        add(emit_copy(target_, node.shape, x, dense_access(out.slot, out.stored, node.shape)));
        if (indices.shape.elements() > 0)
          add_all(emit_scatter(target_, indices, updates, node.as<ScatterAttr>(), out, status_slot(), scratch));
        break;
      }
      case Prim::take:
        add(emit_take(target_, dense(node.inputs[0]), dense(node.inputs[1]), node.as<AxisAttr>().axis, out, status_slot()));
        break;
      case Prim::gather:
        add(emit_gather(target_, dense(node.inputs[0]), dense(node.inputs[1]), node.as<AxisAttr>().axis, out, status_slot()));
        break;
      case Prim::iota: add(emit_iota(target_, out)); break;
      case Prim::random: add(emit_random(target_, node.as<RandomAttr>(), compute_dtype(node.dtype), out)); break;
      case Prim::arg_reduce:
        add_all(emit_arg_reduce(target_, dense(node.inputs[0]), node.as<ArgReduceAttr>(), out, scratch));
        break;
      case Prim::window: add(emit_window(target_, dense(node.inputs[0]), node.as<WindowAttr>(), out)); break;
      case Prim::cumulative:
        add_all(emit_cumulative(target_, dense(node.inputs[0]), node.as<CumulativeAttr>(), out, scratch));
        break;
      case Prim::arg_sort: add_all(emit_arg_sort(target_, dense(node.inputs[0]), node.as<ArgSortAttr>(), out, scratch)); break;
      default: throw Error(ErrorCode::internal, fmt::format("kernels have no step for {}", name(node.prim)));
    }
    deliver(id, out);
  }

  void add_block_cast(const Node& node, const Dense& out) {
    Dense x = dense(node.inputs[0]);
    if (x.stored != DType::f32) {
      const int to = new_temporary(DType::f32, node.shape);
      add(emit_copy(target_, node.shape, dense_access(x.slot, x.stored, node.shape), dense_access(to, DType::f32, node.shape)));
      x = {to, DType::f32, node.shape};
    }
    add(emit_block_round(target_, node.dtype, node.shape, x.slot, out.slot));
  }

  void add_pad(const Node& node, const Dense& out) {
    const PadAttr& attr = node.as<PadAttr>();
    const Access whole = dense_access(out.slot, out.stored, node.shape);
    add(emit_fill(target_, node.shape, whole, attr.value));
    Access middle = whole;
    for (int i = 0; i < node.shape.rank(); ++i) middle.offset += attr.low[at(i)] * whole.strides[at(i)];
    const Shape& inside = graph_[node.inputs[0]].shape;
    if (inside.elements() > 0) add(emit_copy(target_, inside, stored(node.inputs[0]), middle));
  }

  void add_concat(const Node& node, const Dense& out) {
    const int axis = node.as<AxisAttr>().axis;
    Access to = dense_access(out.slot, out.stored, node.shape);
    for (NodeId part : node.inputs) {
      const Shape& shape = graph_[part].shape;
      if (shape.elements() > 0) add(emit_copy(target_, shape, stored(part), to));
      to.offset += shape[axis] * to.strides[at(axis)];
    }
  }

  // --- Products ---
  // How |id|, seen as [batch..., rows, columns], lies in memory; nothing where it must be copied first.
  std::optional<MatrixOperand> matrix_layout(NodeId id, bool transposed) const {
    const ValueView& view = fused_.views[at(id)];
    const int rank = view.shape.rank();
    const Axes batch =
        joined({view.shape.begin(), view.shape.end() - 2}, {{view.strides.begin(), view.strides.begin() + rank - 2}});
    if (batch.extents.size() > 1) return std::nullopt;
    MatrixOperand x;
    x.stored = source(view.base).stored;
    x.offset = view.offset;
    x.batch_stride = batch.extents.empty() ? 0 : batch.strides[0][0];
    std::int64_t rows = view.shape[rank - 2], columns = view.shape[rank - 1];
    x.row_stride = view.strides[at(rank - 2)];
    x.column_stride = view.strides[at(rank - 1)];
    if (transposed) {
      std::swap(rows, columns);
      std::swap(x.row_stride, x.column_stride);
    }
    if ((x.column_stride == 1 || columns == 1) && (x.row_stride >= columns || rows == 1)) {
      x.column_stride = 1;
      if (rows == 1) x.row_stride = columns;
      return x;
    }
    if ((x.row_stride == 1 || rows == 1) && (x.column_stride >= rows || columns == 1)) {
      x.row_stride = 1;
      if (columns == 1) x.column_stride = rows;
      return x;
    }
    return std::nullopt;
  }
  MatrixOperand matrix(NodeId id, bool transposed, bool columns_together) {
    if (const auto x = matrix_layout(id, transposed); x && !(columns_together && x->column_stride != 1)) return *x;
    if (!columns_together || !transposed) {
      copied(id);
      return *matrix_layout(id, transposed);
    }
    // The copy is transposed as well.
    const Shape shape = graph_[id].shape;
    const int rank = shape.rank();
    Access from = stored(id);
    std::swap(from.strides[at(rank - 1)], from.strides[at(rank - 2)]);
    const Shape turned = shape.with(rank - 1, shape[rank - 2]).with(rank - 2, shape[rank - 1]);
    const int to = new_temporary(from.stored, turned);
    if (turned.elements() > 0) add(emit_copy(target_, turned, from, dense_access(to, from.stored, turned)));
    MatrixOperand x;
    x.stored = from.stored;
    x.row_stride = shape[rank - 2];
    x.batch_stride = shape[rank - 1] * shape[rank - 2];
    turned_slot_ = to;
    return x;
  }

  struct Operands {
    MatMulStep step;
    int a_slot = -1, b_slot = -1;
  };
  Operands product_of(const Node& node, const Dense& out) {
    const MatMulAttr& attr = node.as<MatMulAttr>();
    const int rank = node.shape.rank();
    MatMulStep step;
    step.m = node.shape[rank - 2];
    step.n = node.shape[rank - 1];
    step.k = graph_[node.inputs[0]].shape[attr.transpose_a ? rank - 2 : rank - 1];
    step.batches = node.shape.elements() / (step.m * step.n);
    step.compute = compute_dtype(node.dtype);
    step.result = {{}, out.stored, 0, step.m * step.n, step.n, 1};
    turned_slot_ = -1;
    step.a = matrix(node.inputs[0], attr.transpose_a, false);
    const int a_slot = source(base_of(node.inputs[0])).slot;
    step.b = matrix(node.inputs[1], attr.transpose_b, target_.is_cpu);
    const int b_slot = turned_slot_ >= 0 ? turned_slot_ : source(base_of(node.inputs[1])).slot;
    return {step, a_slot, b_slot};
  }
  void add_matmul(const Node& node, const Dense& out) {
    const Operands product = product_of(node, out);
    add_product(product.step, product.a_slot, product.b_slot, out.slot);
  }
  void add_product(const MatMulStep& step, int a_slot, int b_slot, int out_slot) {
    if (options_.library_matmul && step.k > 0 && options_.library_matmul(step)) {
      pending_.push_back(LibraryStep{step, {a_slot, b_slot, out_slot}});
      return;
    }
    const auto as_matrix = [](const MatrixOperand& x, int slot) {
      return Matrix{slot, x.stored, x.offset, {x.batch_stride, x.row_stride, x.column_stride}};
    };
    add(emit_matmul(target_, {step.batches, step.m, step.n, step.k}, step.compute, as_matrix(step.a, a_slot),
                    as_matrix(step.b, b_slot), as_matrix(step.result, out_slot)));
  }

  // --- Epilogues ---
  // A group that only adds a bias to a product nobody else reads, or applies an activation, or both: the library does that while
  // it stores the product. The product then waits for the group's turn, when its bias is there.
  struct Epilogue {
    NodeId product = -1, result = -1;
    NodeId bias = -1;  // an operand of the group, or none
    MatMulStep::Activation activation = MatMulStep::Activation::none;
  };
  // The product that |operand| is all of.
  NodeId product_behind(NodeId operand) const {
    const ValueView& view = fused_.views[at(operand)];
    const Node& base = graph_[view.base];
    const auto readers = readers_.find(view.base);
    const bool is_whole = is_dense(view) && view.offset == 0 && view.shape.elements() == base.shape.elements();
    if (base.prim != Prim::matmul || !is_whole || base.shape.elements() == 0 || compute_dtype(base.dtype) != DType::f32 ||
        direct_outputs_.contains(view.base) || readers == readers_.end() || readers->second != 1)
      return -1;
    return view.shape[view.shape.rank() - 1] == base.shape[base.shape.rank() - 1] ? view.base : -1;
  }
  // One number a column.
  bool is_bias(NodeId operand, DType dtype) const {
    const ValueView& view = fused_.views[at(operand)];
    const int last = view.shape.rank() - 1;
    for (int axis = 0; axis < last; ++axis)
      if (view.strides[at(axis)] != 0 && view.shape[axis] != 1) return false;
    return view.shape[last] > 1 && view.strides[at(last)] == 1 && graph_[operand].dtype == dtype && !is_block(dtype);
  }
  std::optional<Epilogue> epilogue_of(const Group& group) const {
    if (group.kind != Group::Kind::elementwise || group.nodes.size() > 2 || group.outputs != std::vector{group.nodes.back()} ||
        group.domain.rank() < 2)
      return std::nullopt;
    Epilogue found;
    found.result = group.nodes.back();
    for (const NodeId id : group.nodes) {
      const Node& node = graph_[id];
      if (node.prim != Prim::elementwise || node.dtype != graph_[found.result].dtype) return std::nullopt;
      const bool is_first = id == group.nodes[0];
      switch (node.as<ElementwiseAttr>().op) {
        case ElementwiseOp::Add:
          for (const std::size_t k : {std::size_t{0}, std::size_t{1}}) {
            if (!is_first || found.product >= 0 || !is_bias(node.inputs[1 - k], node.dtype)) continue;
            found.product = product_behind(node.inputs[k]);
            found.bias = node.inputs[1 - k];
          }
          break;
        case ElementwiseOp::Relu:
          if (is_first) found.product = product_behind(node.inputs[0]);
          found.activation = MatMulStep::Activation::relu;
          break;
        default: return std::nullopt;
      }
      if (found.product < 0 || graph_[found.product].dtype != node.dtype) return std::nullopt;
    }
    return found;
  }
  void find_epilogues() {
    for (const Step& step : fused_.steps) {
      if (step.group < 0) continue;
      const std::optional<Epilogue> found = epilogue_of(fused_.groups[at(step.group)]);
      if (!found) continue;
      epilogues_[step.group] = *found;
      postponed_.insert(found->product);
    }
  }
  // False where the library does not take it.
  bool add_with_epilogue(const Epilogue& epilogue) {
    const Dense out = result_of(epilogue.result);
    Operands product = product_of(graph_[epilogue.product], out);
    std::vector<int> slots{product.a_slot, product.b_slot, out.slot};
    product.step.activation = epilogue.activation;
    if (epilogue.bias >= 0) {
      const ValueView& view = fused_.views[at(epilogue.bias)];
      const StoredValue bias = source(view.base);
      product.step.has_bias = true;
      product.step.bias = {{}, bias.stored, view.offset, 0, 0, 1};
      slots.push_back(bias.slot);
    }
    if (product.step.k == 0 || !options_.library_matmul(product.step)) return false;
    pending_.push_back(LibraryStep{product.step, std::move(slots)});
    deliver(epilogue.result, out);
    return true;
  }

  void add_conv(const Node& node, const Dense& out) {
    const Dense x = dense(node.inputs[0]), weight = dense(node.inputs[1]);
    ConvStep step{{},      {},           {},         x.stored,           weight.stored, out.stored, compute_dtype(node.dtype),
                  x.shape, weight.shape, node.shape, node.as<ConvAttr>()};
    if (options_.library_conv && x.shape.elements() > 0 && weight.shape.elements() > 0 && options_.library_conv(step)) {
      pending_.push_back(LibraryStep{step, {x.slot, weight.slot, out.slot}});
      return;
    }
    if (is_worth_a_product(step))
      add_conv_as_product(step, x, weight, out);
    else
      add(emit_conv(target_, x, weight, node.as<ConvAttr>(), out));
  }

  // Large enough for the copy that makes a product of it, and no groups of a few channels each.
  bool is_worth_a_product(const ConvStep& step) const {
    if (target_.is_cpu || step.result_shape.elements() == 0 || step.weight_shape.elements() == 0) return false;
    const std::int64_t outs = step.weight_shape[0] / step.attr.groups,
                       depth = step.weight_shape.elements() / step.weight_shape[0];
    return step.attr.groups <= 32 && outs >= 8 && depth >= 8 && step.result_shape.elements() * depth >= kProductFrom;
  }

  // result[image] = weight * unfolded(x)[image]: for as many images at a time as the copy has room for.
  void add_conv_as_product(const ConvStep& step, Dense x, Dense weight, const Dense& out) {
    if (x.stored != weight.stored && weight.stored != step.compute) {
      const int to = new_temporary(step.compute, weight.shape);
      add(emit_copy(target_, weight.shape, dense_access(weight.slot, weight.stored, weight.shape),
                    dense_access(to, step.compute, weight.shape)));
      weight = {to, step.compute, weight.shape};
    }
    Spatial size{1, 1, 1};
    std::int64_t pixels = 1;
    bool is_plain = x.stored == weight.stored;  // x is what would be copied
    for (int d = 0; d < x.shape.rank() - 2; ++d) {
      size[at(d)] = weight.shape[d + 2];
      pixels *= step.result_shape[d + 2];
      is_plain = is_plain && size[at(d)] == 1 && step.attr.stride[at(d)] == 1 && step.result_shape[d + 2] == x.shape[d + 2] &&
                 step.attr.pad_low[at(d)] == 0;
    }
    const std::int64_t images = x.shape[0], outs = weight.shape[0], groups = step.attr.groups;
    const std::int64_t depth = weight.shape.elements() / outs, image = depth * groups * pixels;  // elements of one unfolded image
    const auto bytes = static_cast<std::int64_t>(element_bytes(weight.stored));
    const std::int64_t together = is_plain ? images : std::clamp<std::int64_t>(kUnfoldedBytes / (image * bytes), 1, images);
    const int unfolded = is_plain ? x.slot : new_temporary(static_cast<std::uint64_t>(together * image * bytes));
    for (std::int64_t first = 0; first < images; first += together) {
      const std::int64_t count = std::min(together, images - first);
      if (!is_plain) add(emit_unfolded(target_, x, size, step.attr, step.result_shape, first, count, unfolded, weight.stored));
      for (std::int64_t group = 0; group < groups; ++group) {
        MatMulStep product;
        product.batches = count;
        product.m = outs / groups;
        product.n = pixels;
        product.k = depth;
        product.compute = step.compute;
        product.a = {{}, weight.stored, group * product.m * depth, 0, depth, 1};
        product.b = {{}, weight.stored, group * depth * pixels, image, pixels, 1};
        product.result = {{}, out.stored, (first * outs + group * product.m) * pixels, outs * pixels, pixels, 1};
        add_product(product, weight.slot, unfolded, out.slot);
      }
    }
  }

  // --- Outputs ---
  // Further outputs of the graph that are this value.
  void deliver(NodeId id, const Dense& from) {
    const auto direct = direct_outputs_.find(id);
    if (direct == direct_outputs_.end()) return;
    for (int index : direct->second) {
      const int slot = output_slot(index);
      if (slot == from.slot) continue;
      add(emit_copy(target_, from.shape, dense_access(from.slot, from.stored, from.shape),
                    dense_access(slot, graph_[id].dtype, from.shape)));
    }
  }

  // Outputs that are inputs, constants, views of something, or in a block format.
  void finish_outputs() {
    for (std::size_t i = 0; i < plan_.output_types.size(); ++i) {
      const NodeId id = graph_.outputs()[i];
      const auto [dtype, shape] = plan_.output_types[i];
      if (is_direct_[i] || shape.elements() == 0) continue;
      const int to = output_slot(static_cast<int>(i));
      if (!is_block(dtype)) {
        add(emit_copy(target_, shape, stored(id), dense_access(to, dtype, shape)));
      } else if (graph_[id].prim == Prim::input) {
        const auto place = std::find(graph_.inputs().begin(), graph_.inputs().end(), id) - graph_.inputs().begin();
        add(emit_byte_copy(target_, storage_bytes(dtype, shape), static_cast<int>(place), to));
      } else {
        add(emit_block_encode(target_, dtype, shape, dense(id).slot, to));
      }
    }
  }

  // Plans the workspace and replaces slots by locations.
  void finish_steps() {
    TemporaryPlan temporaries(kLocationAlignment);
    std::vector<bool> seen(slots_.size(), false);
    const auto touch = [&](int slot, int step) {
      if (slots_[at(slot)].space != Location::Space::workspace) return;
      if (!seen[at(slot)]) temporaries.add(slot, slots_[at(slot)].bytes, step);
      seen[at(slot)] = true;
      temporaries.touch(slot, step);
    };
    for (std::size_t i = 0; i < pending_.size(); ++i) {
      const int step = static_cast<int>(i);
      if (const auto* launch = std::get_if<PendingLaunch>(&pending_[i])) {
        for (const ArgumentValue& value : launch->arguments)
          if (const auto* slot = std::get_if<Slot>(&value)) touch(slot->index, step);
      } else {
        for (int slot : std::get<LibraryStep>(pending_[i]).slots) touch(slot, step);
      }
    }
    plan_.workspace_bytes = temporaries.place([&](int slot, std::size_t offset) { slots_[at(slot)].offset_bytes = offset; });
    plan_.constants = std::move(constants_);
    for (Pending& pending : pending_) {
      if (auto* launch = std::get_if<PendingLaunch>(&pending))
        plan_.steps.emplace_back(located(*launch));
      else
        plan_.steps.push_back(located(std::get<LibraryStep>(pending)));
    }
  }
  KernelLaunch located(const PendingLaunch& pending) const {
    KernelLaunch launch;
    launch.kernel = pending.kernel;
    launch.groups = pending.groups;
    for (const ArgumentValue& value : pending.arguments)
      launch.arguments.push_back(std::visit(
          [&]<class T>(const T& v) -> KernelArgument {
            if constexpr (std::is_same_v<T, Slot>)
              return slots_[at(v.index)];
            else
              return v;
          },
          value));
    return launch;
  }
  PlanStep located(const LibraryStep& pending) const {
    PlanStep step = pending.step;
    if (auto* product = std::get_if<MatMulStep>(&step)) {
      product->a.where = slots_[at(pending.slots[0])];
      product->b.where = slots_[at(pending.slots[1])];
      product->result.where = slots_[at(pending.slots[2])];
      if (product->has_bias) product->bias.where = slots_[at(pending.slots[3])];
    } else if (auto* conv = std::get_if<ConvStep>(&step)) {
      conv->x = slots_[at(pending.slots[0])];
      conv->weight = slots_[at(pending.slots[1])];
      conv->result = slots_[at(pending.slots[2])];
    }
    return step;
  }

  const KernelTarget& target_;
  const PlanOptions& options_;
  const Graph graph_;
  Plan fused_;
  KernelPlan plan_;
  std::map<std::string, int> kernel_index_;
  std::map<NodeId, int> readers_;                      // how often a base is read inside the program
  mutable std::map<NodeId, StoredValue> sources_;      // where a base's memory is; constants are placed when first read
  std::map<NodeId, std::vector<int>> direct_outputs_;  // computed node -> outputs it is
  std::vector<bool> is_direct_;                        // by output: some step writes it as its result
  mutable std::vector<Location> slots_;                // inputs, outputs, then the rest
  mutable std::vector<std::byte> constants_;
  std::map<int, Epilogue> epilogues_;  // by group
  std::set<NodeId> postponed_;         // products that wait for their epilogue's group
  std::vector<Pending> pending_;
  int status_ = -1, turned_slot_ = -1;
};

}  // namespace

KernelPlan plan_kernels(const Graph& graph, const KernelTarget& target, const PlanOptions& options) {
  check_kernels(graph, target);
  return Planner(graph, target, options).run();
}

void check_kernels(const Graph& graph, const KernelTarget& target) {
  if (target.has_f64) return;
  for (NodeId id = 0; id < graph.size(); ++id) {
    const Node& node = graph[id];
    // A literal of a program is a weak f64 that never reaches the device as one.
    if (node.dtype == DType::f64 && !node.weak)
      throw Error(ErrorCode::unimplemented, "the device does not compute in float64",
                  "cast to float32, or use the CPU: --device cpu");
    if (node.prim == Prim::random && node.as<RandomAttr>().normal)
      throw Error(ErrorCode::unimplemented, "normal random numbers need float64, which the device does not have",
                  "use the CPU: --device cpu");
  }
}

void throw_status(std::span<const std::int64_t> words) {
  if ((words[0] & 1) == 0) return;
  throw Error(ErrorCode::out_of_range, fmt::format("index {} is outside an axis of {} elements", words[1], words[2]));
}

}  // namespace tenon
