#include "backends/cpu/loop/absorb.h"

#include <optional>
#include <vector>

#include "graph/view.h"

namespace tenon::cpu {
namespace {

// Shorter rows are faster several to a tile than one by one.
constexpr std::int64_t kShort = 128;

class Finder {
 public:
  Finder(const Graph& graph, const Plan& plan, const GroupView& view, const LoopGeometry& geometry)
      : graph_(graph),
        plan_(plan),
        view_(view),
        geometry_(geometry) {}

  Absorbed run() {
    for (NodeId id : view_.group().nodes) {
      if (graph_[id].prim == Prim::reduce && !is_reduced_with_others(id) && !find_distance(id) && !find_magnitude(id))
        find_product_sum(id);
      if (graph_[id].prim != Prim::elementwise) continue;
      const NodeId first = graph_[id].inputs[0];
      if (view_.is_op(id, ElementwiseOp::Add))
        find_multiply_add(id);
      else if (follows_multiply_add(id, first)) {
        found_.into[first] = id;
        found_.multiply_add_of[id] = first;
      } else if (view_.is_op(first, ElementwiseOp::Sub) && view_.is_used_once(first)) {
        if (const auto sum = exp_sum(id, first)) absorb_exp_sum(id, first, *sum);
      }
    }
    find_squares_with_largest();
    for (NodeId id : view_.group().nodes) find_range(id);
    for (NodeId id : view_.group().nodes) find_quantization(id);
    if (geometry_.cols < kShort) return found_;
    for (NodeId id : view_.group().nodes) find_deviation(id);
    for (NodeId id : view_.group().nodes) find_normalized(id);
    for (NodeId id : view_.group().nodes) find_reduced_op(id);
    return found_;
  }

 private:
  DType type(NodeId id) const { return compute_dtype(graph_[id].dtype); }
  ElementwiseOp op(NodeId id) const { return graph_[id].as<ElementwiseAttr>().op; }
  // One value per row that is not known when compiling: to divide by it, a kernel may multiply with its reciprocal.
  bool is_row_operand(NodeId operand) const {
    return view_.row_member(operand) || (view_.repeats_along(operand, geometry_.column_axis) && !view_.is_constant(operand));
  }
  bool is_absorbed(NodeId id) const { return found_.into.count(id) != 0; }

  // a * b + c: one rounding, one pass.
  void find_multiply_add(NodeId id) {
    for (NodeId operand : graph_[id].inputs)
      if (view_.is_used_once(operand) && view_.is_op(operand, ElementwiseOp::Mul) && is_float(graph_[operand].dtype)) {
        found_.into[operand] = id;
        found_.product_of[id] = operand;
        return;
      }
  }

  bool follows_multiply_add(NodeId id, NodeId first) const {
    return kernels().after_multiply_add[static_cast<int>(op(id))] && type(id) == DType::f32 && view_.is_used_once(first) &&
           view_.is_row(first) == view_.is_row(id) && (found_.product_of.count(first) || view_.is_op(first, ElementwiseOp::Mac));
  }

  // Short rows are reduced many at a time, from memory.
  bool is_reduced_with_others(NodeId id) const {
    return geometry_.has_short_rows && type(id) == DType::f32 &&
           kernels().short_rows[static_cast<int>(graph_[id].as<ReduceAttr>().kind)];
  }

  // sum(|x - y|), max(|x - y|), sum((x - y)^2) over the columns: neither differences nor their sizes need memory.
  bool find_distance(NodeId id) {
    const NodeId measure = graph_[id].inputs[0];
    if (geometry_.keeps_columns || !view_.is_used_once(measure) || graph_[measure].prim != Prim::elementwise) return false;
    const NodeId difference = graph_[measure].inputs[0];
    if (!view_.is_used_once(difference) || !view_.is_op(difference, ElementwiseOp::Sub)) return false;
    if (!view_.is_whole(difference) || !view_.is_whole(measure) || type(difference) != type(id) || type(measure) != type(id))
      return false;
    if (!difference_kernel(graph_[id].as<ReduceAttr>().kind, op(measure), type(id))) return false;
    for (NodeId operand : graph_[difference].inputs)
      if (view_.row_member(operand)) return false;
    found_.into[measure] = id;
    found_.into[difference] = id;
    found_.distances[id] = difference;
    return true;
  }

  // max(|x|) over the columns.
  bool find_magnitude(NodeId id) {
    const NodeId size = graph_[id].inputs[0];
    if (geometry_.keeps_columns || graph_[id].as<ReduceAttr>().kind != ReduceKind::max || !view_.is_used_once(size)) return false;
    if (!view_.is_op(size, ElementwiseOp::Abs) || !view_.is_whole(size) || type(size) != type(id)) return false;
    if (!kernels().largest_magnitude[static_cast<int>(type(id))] || view_.row_member(graph_[size].inputs[0])) return false;
    found_.into[size] = id;
    found_.magnitudes[id] = size;
    return true;
  }

  // sum(x * y), sum(x^2) over the columns: the products need no memory.
  void find_product_sum(NodeId id) {
    const Node& node = graph_[id];
    const NodeId product = node.inputs[0];
    if (node.as<ReduceAttr>().kind != ReduceKind::sum || geometry_.keeps_columns || !view_.is_used_once(product)) return;
    if (!view_.is_op(product, ElementwiseOp::Mul) && !view_.is_op(product, ElementwiseOp::Square)) return;
    if (!view_.is_whole(product) || type(product) != type(id) || !kernels().product_sum[static_cast<int>(type(id))]) return;
    found_.into[product] = id;
    found_.product_sums[id] = product;
    // Squares of x / row: nor do the quotients.
    const NodeId quotient = graph_[product].inputs[0];
    if (!view_.is_op(product, ElementwiseOp::Square) || !view_.is_op(quotient, ElementwiseOp::Div) || type(id) != DType::f32)
      return;
    if (!view_.is_used_once(quotient) || !view_.is_whole(quotient) || !view_.row_member(graph_[quotient].inputs[1])) return;
    if (view_.row_member(graph_[quotient].inputs[0])) return;
    found_.into[quotient] = id;
    found_.quotients[id] = quotient;
  }

  // max(|x|) and sum((x / row)^2) of the same x, as in a norm.
  void find_squares_with_largest() {
    if (view_.group().kind != Group::Kind::rows) return;
    for (const auto& [sum, quotient] : found_.quotients)
      for (const auto& [largest, size] : found_.magnitudes)
        if (graph_[size].inputs[0] == graph_[quotient].inputs[0]) found_.squares_with[largest] = sum;
  }

  // The reduction in sum(exp(x - row)), the heart of softmax and logsumexp.
  std::optional<NodeId> exp_sum(NodeId id, NodeId difference) const {
    if (!view_.is_op(id, ElementwiseOp::Exp) || view_.group().kind != Group::Kind::rows) return std::nullopt;
    if (geometry_.has_short_rows) return std::nullopt;
    if (view_.is_row(id) || type(id) != DType::f32 || !view_.row_member(graph_[difference].inputs[1])) return std::nullopt;
    for (NodeId reader : view_.group().nodes) {
      const Node& node = graph_[reader];
      if (node.prim == Prim::reduce && node.inputs[0] == id && node.as<ReduceAttr>().kind == ReduceKind::sum) return reader;
    }
    return std::nullopt;
  }
  void absorb_exp_sum(NodeId id, NodeId difference, NodeId sum) {
    found_.into[difference] = id;
    found_.into[sum] = id;
    found_.exp_sums[id] = {difference, sum};
  }

  // x - row, where every reader has a kernel that subtracts by itself: no pass for the differences, and no memory.
  void find_deviation(NodeId id) {
    if (!view_.is_op(id, ElementwiseOp::Sub) || !view_.is_whole(id) || is_absorbed(id) || view_.is_output(id)) return;
    if (found_.deviation_of.count(id) || !is_row_operand(graph_[id].inputs[1]) || is_row_operand(graph_[id].inputs[0])) return;
    if (!kernels().sum_of_squared_deviations[static_cast<int>(type(id))]) return;
    int readers = 0;
    for (NodeId reader : view_.group().nodes)
      for (NodeId operand : graph_[reader].inputs)
        if (view_.member(operand) == id) {
          if (operand != id || !takes_deviation(reader, id)) return;
          ++readers;
        }
    if (readers == 0) return;
    for (NodeId reader : view_.group().nodes)
      if (!graph_[reader].inputs.empty() && graph_[reader].inputs[0] == id) give_deviation(reader, id);
  }

  // As its first operand, or twice in a square.
  bool takes_deviation(NodeId reader, NodeId difference) const {
    if (graph_[reader].prim != Prim::elementwise || graph_[reader].inputs[0] != difference) return false;
    if (type(reader) != type(difference)) return false;
    if (exp_sum(reader, difference)) return !is_absorbed(reader);
    if (const auto sum = found_.into.find(reader); sum != found_.into.end()) {
      const std::vector<NodeId>& factors = graph_[reader].inputs;
      return found_.product_sums.count(sum->second) && (factors.size() == 1 || factors[1] == difference);
    }
    if (graph_[reader].inputs.size() != 2 || !is_row_operand(graph_[reader].inputs[1]) || found_.product_of.count(reader))
      return false;
    return kernels().deviation_with[static_cast<int>(op(reader))][static_cast<int>(type(reader))] != nullptr;
  }

  void give_deviation(NodeId reader, NodeId difference) {
    found_.into[difference] = reader;
    if (const auto sum = exp_sum(reader, difference))
      absorb_exp_sum(reader, difference, *sum);
    else if (const auto sum_of = found_.into.find(reader); sum_of != found_.into.end())
      found_.deviation_of[sum_of->second] = difference;
    else
      found_.deviation_of[reader] = difference;
  }

  // where(columns <= row, x, y) with a constant x or y, cast(columns == row): no pass for the comparison, and nothing to compute.
  void find_range(NodeId id) {
    const Node& node = graph_[id];
    const bool chooses = view_.is_op(id, ElementwiseOp::Where);
    if (view_.group().kind != Group::Kind::elementwise || (!chooses && node.prim != Prim::cast) || is_absorbed(id)) return;
    const NodeId comparison = node.inputs[0];
    if (!view_.is_used_once(comparison) || graph_[comparison].prim != Prim::elementwise || !view_.is_whole(id)) return;
    if (graph_[comparison].inputs.size() != 2) return;
    if (!view_.is_whole(comparison) || (chooses && !is_uniform_constant(node.inputs[1]) && !is_uniform_constant(node.inputs[2])))
      return;
    for (const bool swaps : {false, true}) {
      const NodeId numbers = graph_[comparison].inputs[swaps ? 1 : 0], row = graph_[comparison].inputs[swaps ? 0 : 1];
      const std::optional<ElementwiseOp> side = side_of(op(comparison), swaps);
      if (!side || graph_[row].dtype != DType::i32 || !view_.repeats_along(row, geometry_.column_axis)) continue;
      const std::optional<std::int64_t> first = first_counted(numbers);
      if (!first) continue;
      found_.into[comparison] = id;
      found_.ranges.insert_or_assign(id, ColumnRange{comparison, *side, *first, row});
      return;
    }
  }
  // The comparison of the columns' numbers with the row's; nullopt if it is no range.
  static std::optional<ElementwiseOp> side_of(ElementwiseOp op, bool swaps) {
    switch (op) {
      case ElementwiseOp::Eq: return op;
      case ElementwiseOp::Lt: return swaps ? ElementwiseOp::Gt : op;
      case ElementwiseOp::Le: return swaps ? ElementwiseOp::Ge : op;
      case ElementwiseOp::Gt: return swaps ? ElementwiseOp::Lt : op;
      case ElementwiseOp::Ge: return swaps ? ElementwiseOp::Le : op;
      default: return std::nullopt;
    }
  }
  bool is_uniform_constant(NodeId id) const {
    if (view_.member(id) || !view_.is_constant(id) || is_block(graph_[id].dtype)) return false;
    const ValueView& view = plan_.views[static_cast<std::size_t>(id)];
    for (int axis = 0; axis < view.shape.rank(); ++axis)
      if (view.shape[axis] != 1 && view.strides[static_cast<std::size_t>(axis)] != 0) return false;
    return true;
  }
  // The number of the first column, if the numbers count columns and all rows have the same.
  std::optional<std::int64_t> first_counted(NodeId id) const {
    if (view_.member(id) || !view_.is_constant(id) || graph_[id].dtype != DType::i32) return std::nullopt;
    const ValueView& view = plan_.views[static_cast<std::size_t>(id)];
    const Node& base = graph_[view.base];
    const HostArray& array = base.as<ConstantAttr>().value;
    if (base.dtype != DType::i32 || array.dtype() != DType::i32) return std::nullopt;
    for (int axis = 0; axis < view.shape.rank(); ++axis) {
      const std::int64_t stride = view.strides[static_cast<std::size_t>(axis)];
      if (view.shape[axis] != 1 && stride != (axis == geometry_.column_axis ? 1 : 0)) return std::nullopt;
    }
    if (view.shape[geometry_.column_axis] != geometry_.cols) return std::nullopt;
    const auto* const numbers = reinterpret_cast<const std::int32_t*>(array.data()) + view.offset;
    for (std::int64_t i = 1; i < geometry_.cols; ++i)
      if (numbers[i] != numbers[0] + i) return std::nullopt;
    return numbers[0];
  }

  // A member's operand that is |op| of another member and a number, which nobody else needs: the first, and the number.
  std::optional<double> number_in(ElementwiseOp op, NodeId& id) const {
    if (!view_.is_op(id, op) || !view_.is_used_once(id) || !view_.is_whole(id)) return std::nullopt;
    const std::optional<double> number = number_of(graph_, graph_[id].inputs[1]);
    if (number) id = graph_[id].inputs[0];
    return number;
  }

  // cast(min(max(round(cast(x, f64) / scale) + zero, low), high), i8): one pass, and hardly a division.
  void find_quantization(NodeId id) {
    const Node& node = graph_[id];
    if (node.prim != Prim::cast || (node.dtype != DType::i8 && node.dtype != DType::u8) || !view_.is_whole(id)) return;
    NodeId at = node.inputs[0];
    std::vector<NodeId> chain;
    const auto number = [&](ElementwiseOp op) {
      const NodeId before = at;
      const std::optional<double> found = number_in(op, at);
      if (found) chain.push_back(before);
      return found;
    };
    const std::optional<double> high = number(ElementwiseOp::Minimum), low = number(ElementwiseOp::Maximum);
    const std::optional<double> zero = number(ElementwiseOp::Add);
    if (!high || !low || !view_.is_op(at, ElementwiseOp::Round) || !view_.is_used_once(at)) return;
    chain.push_back(at);
    at = graph_[at].inputs[0];
    const std::optional<double> scale = number(ElementwiseOp::Div);
    const auto is_small = [](double limit) { return limit >= -256 && limit <= 256; };
    if (!scale || !(*scale > 0) || !is_small(*low) || !is_small(*high) || !is_small(zero.value_or(0))) return;
    if (graph_[at].prim != Prim::cast || graph_[at].dtype != DType::f64 || !view_.is_used_once(at)) return;
    if (type(graph_[at].inputs[0]) != DType::f32 || view_.row_member(graph_[at].inputs[0])) return;
    chain.push_back(at);
    for (const NodeId part : chain) found_.into[part] = id;
    found_.quantizations[id] = {graph_[at].inputs[0], {*scale, zero.value_or(0), *low, *high}};
  }

  // (x - row) / row * row + row: one pass.
  void find_normalized(NodeId id) {
    const auto product = found_.product_of.find(id);
    if (product == found_.product_of.end() || !kernels().normalize || type(id) != DType::f32 || !view_.is_whole(id)) return;
    if (is_absorbed(id) || !is_one_per_row(other_operand(id, product->second))) return;
    for (const NodeId quotient : graph_[product->second].inputs) {
      if (!found_.deviation_of.count(quotient) || op(quotient) != ElementwiseOp::Div || !view_.is_used_once(quotient)) continue;
      if (!is_one_per_row(other_operand(product->second, quotient))) continue;
      found_.into[quotient] = id;
      found_.normalized[id] = quotient;
      return;
    }
  }
  bool is_one_per_row(NodeId operand) const {
    return view_.row_member(operand) || view_.repeats_along(operand, geometry_.column_axis);
  }
  NodeId other_operand(NodeId id, NodeId operand) const {
    const std::vector<NodeId>& both = graph_[id].inputs;
    return both[0] == operand ? both[1] : both[0];
  }

  // sum(a + b), max(a * b): reduced while they are computed.
  void find_reduced_op(NodeId id) {
    const Node& node = graph_[id];
    if (node.prim != Prim::reduce || geometry_.keeps_columns || is_absorbed(id) || found_.product_sums.count(id) ||
        found_.distances.count(id))
      return;
    const NodeId source = node.inputs[0];
    if (!view_.member(source) || graph_[source].prim != Prim::elementwise || !view_.is_whole(source) || is_absorbed(source))
      return;
    if (found_.product_of.count(source) || found_.deviation_of.count(source) || found_.reduced_by.count(source)) return;
    if (type(source) != type(id) || !store_and_reduce_kernel(node.as<ReduceAttr>().kind, op(source), type(id))) return;
    for (NodeId operand : graph_[source].inputs)
      if (view_.row_member(operand)) return;
    found_.into[id] = source;
    found_.reduced_by[source] = id;
  }

  const Graph& graph_;
  const Plan& plan_;
  const GroupView& view_;
  const LoopGeometry& geometry_;
  Absorbed found_;
};

}  // namespace

ProductSumKernel difference_kernel(ReduceKind kind, ElementwiseOp measure, DType type) {
  const DifferenceReduce& kernel = kernels().difference_reduce[static_cast<int>(type)];
  if (kind == ReduceKind::sum && measure == ElementwiseOp::Abs) return kernel.sum_of_distances;
  if (kind == ReduceKind::max && measure == ElementwiseOp::Abs) return kernel.largest_distance;
  if (kind == ReduceKind::sum && measure == ElementwiseOp::Square) return kernel.sum_of_squares;
  return nullptr;
}

StoreAndReduceKernel store_and_reduce_kernel(ReduceKind kind, ElementwiseOp op, DType type) {
  if (kind == ReduceKind::sum) return kernels().store_and_sum[static_cast<int>(op)][static_cast<int>(type)];
  if (kind == ReduceKind::max) return kernels().store_and_max[static_cast<int>(op)][static_cast<int>(type)];
  return nullptr;
}

Absorbed find_absorbed(const Graph& graph, const Plan& plan, const GroupView& view, const LoopGeometry& geometry) {
  return Finder(graph, plan, view, geometry).run();
}

}  // namespace tenon::cpu
