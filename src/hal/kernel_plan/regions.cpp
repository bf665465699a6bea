#include "hal/kernel_plan/regions.h"

#include <fmt/format.h>

#include "codegen/c/attention/attention.h"
#include "tenon/error.h"

namespace tenon {
namespace {

using namespace emit;

// As it is stored, if the kernels can read it so, and no worse than a copy.
Access rows_of(const KernelTarget& target, const Graph& graph, NodeId id, PlanValues& values, PlanSteps& steps) {
  const Node& node = graph[id];
  const Access stored = values.stored(id);
  const Access dense = dense_access(0, node.dtype, node.shape);
  if (stored.stored == node.dtype && stored.strides[3] == 1 && (has_aligned_rows(stored) || !has_aligned_rows(dense)))
    return stored;
  const Access copy = dense_access(steps.temporary(node.dtype, node.shape), node.dtype, node.shape);
  steps.add(emit_copy(target, node.shape, stored, copy));
  return copy;
}

AttentionOperands::Rest renewed_rest(const AttentionGroups& groups, std::int64_t from, PlanValues& values) {
  const RenewedKeys& keys = groups.keys;
  const Shape& all = groups.to.shape;  // [n, heads, keys, width]
  const Access old = values.stored(keys.old);
  const std::int64_t head = all[2] * all[3];
  const auto part = [&](std::int64_t first) {
    return Access{old.slot, old.stored, old.offset + first * head, {all[1] * head, head, all[3], 1}};
  };
  AttentionOperands::Rest rest{from, part(keys.k_head), part(keys.v_head), std::nullopt};
  const Access is_new = values.stored(keys.is_new);
  const auto condition = [is_new](Body& body, const std::string& batch, const std::string& key) {
    Parameters& p = body.parameters();
    const std::string place =
        fmt::format("{}[{} + {} * {} + {} * {}]", p.input(is_new.stored, is_new.slot), p.whole_number(is_new.offset), batch,
                    p.whole_number(is_new.strides[0]), key, p.whole_number(is_new.strides[2]));
    return fmt::format("{} != 0", body.loaded(is_new.stored, place));
  };
  rest.renewal = {groups.to, keys.k_head, keys.v_head, condition, renewed_text(*groups.renewed)};
  return rest;
}

}  // namespace

SortRange range_of(const TopKAttr& attr) {
  return {.axis = attr.axis, .descending = attr.descending, .first = attr.first, .count = attr.count};
}

// Keys and values that were put together for nothing else, both in the same way.
bool has_two_parts(const KernelTarget& target, const Graph& graph, const Node& node, const PlanValues& values) {
  if (node.prim != Prim::region || !std::holds_alternative<AttentionAttr>(node.as<RegionAttr>())) return false;
  if (target.dialect != Dialect::cuda || node.inputs[1] == node.inputs[2]) return false;
  const Node &k = graph[node.inputs[1]], &v = graph[node.inputs[2]];
  for (const NodeId id : {node.inputs[1], node.inputs[2]}) {
    const Node& whole = graph[id];
    if (whole.prim != Prim::concat || whole.inputs.size() != 2 || whole.as<AxisAttr>().axis != 2) return false;
    if (!values.is_read_once(id)) return false;
  }
  const std::int64_t from = graph[k.inputs[0]].shape[2];
  return from > 0 && from < k.shape[2] && from == graph[v.inputs[0]].shape[2] &&
         takes_two_parts(graph[node.inputs[0]].shape, k.shape, v.shape);
}

bool takes_region(const KernelTarget& target, const Graph& graph, const Region& region) {
  const auto shape = [&](std::size_t input) -> const Shape& { return graph[region.inputs[input]].shape; };
  if (const auto* part = std::get_if<TopKAttr>(&region.attr)) return can_radix_sort(target, shape(0), range_of(*part));
  if (std::holds_alternative<AttentionAttr>(region.attr))
    return can_attention(target, graph[region.output].dtype, shape(0), shape(1), shape(2));
  if (const auto* conv = std::get_if<ConvTransposeAttr>(&region.attr))
    return PlanProducts::can_conv_transpose(target, graph[region.output].dtype, shape(1), *conv);
  if (std::holds_alternative<AdaptivePoolAttr>(region.attr))
    return can_adaptive_pool(target, shape(0), graph[region.output].shape, graph[region.output].dtype);
  if (const auto* quantized = std::get_if<QuantizedMatMulAttr>(&region.attr))
    return can_quantized_matmul(target, graph[region.output].shape, *quantized);
  return false;
}

void add_region(const KernelTarget& target, const Graph& graph, const Node& node, const Dense& out, PlanValues& values,
                PlanSteps& steps, PlanProducts& products, const AttentionGroups& groups) {
  const Scratch scratch = [&](std::uint64_t bytes) { return steps.temporary(bytes); };
  const RegionAttr& attr = node.as<RegionAttr>();
  if (const auto* conv = std::get_if<ConvTransposeAttr>(&attr)) return products.add_conv_transpose(node, *conv, out);
  if (const auto* pool = std::get_if<AdaptivePoolAttr>(&attr))
    return steps.add(emit_adaptive_pool(target, values.dense(node.inputs[0]), *pool, out));
  if (const auto* quantized = std::get_if<QuantizedMatMulAttr>(&attr)) {
    QuantizedOperands operands{values.dense(node.inputs[0]), values.dense(node.inputs[1]), values.dense(node.inputs[2]), {}};
    if (node.inputs.size() > 3) operands.minima = values.dense(node.inputs[3]);
    return steps.add(emit_quantized_matmul(target, operands, *quantized, out, scratch));
  }
  const AttentionAttr& attention = std::get<AttentionAttr>(attr);
  const auto rows = [&](std::size_t input) { return rows_of(target, graph, node.inputs[input], values, steps); };
  const auto shape = [&](std::size_t input) -> const Shape& { return graph[node.inputs[input]].shape; };
  AttentionOperands x{shape(0), shape(1), shape(2), {}, {}, {}, std::nullopt, std::nullopt, false, {}, false};
  if (groups.queries)
    x.query = query_text(*groups.queries);
  else
    x.q = rows(0);
  if (has_two_parts(target, graph, node, values)) {
    const auto part = [&](std::size_t input, std::size_t number) {
      return rows_of(target, graph, graph[node.inputs[input]].inputs[number], values, steps);
    };
    x.k = part(1, 0);
    x.v = part(2, 0);
    const std::int64_t from = graph[graph[node.inputs[1]].inputs[0]].shape[2];
    if (groups.renewed)
      x.rest = renewed_rest(groups, from, values);
    else
      x.rest = {from, part(1, 1), part(2, 1), std::nullopt};
    x.is_given = steps.is_input(x.k.slot) && steps.is_input(x.v.slot);
  } else {
    x.k = rows(1);
    x.v = rows(2);
  }
  if (node.inputs.size() > 3) {
    x.mask = values.stored(node.inputs[3]);
    x.mask_is_bool = graph[node.inputs[3]].dtype == DType::boolean;
  }
  steps.add(emit_attention(target, x, {attention.scale, attention.causal}, out, scratch));
}

}  // namespace tenon
