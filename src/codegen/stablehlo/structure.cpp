#include <fmt/format.h>

#include <numeric>

#include "codegen/stablehlo/conversion.h"
#include "codegen/stablehlo/nodes.h"

namespace tenon::stablehlo {
namespace {

std::vector<std::int64_t> counted(std::int64_t from, std::int64_t count) {
  std::vector<std::int64_t> numbers(static_cast<std::size_t>(count));
  std::iota(numbers.begin(), numbers.end(), from);
  return numbers;
}

Term emit_broadcast(const Node& node, const Term& x) {
  const int added = node.shape.rank() - x.shape().rank();
  return broadcast(x, node.shape, counted(added, x.shape().rank()));
}

Term emit_transpose(const Node& node, const Term& x) {
  std::vector<std::int64_t> perm;
  for (int i = 0; i < node.shape.rank(); ++i) perm.push_back(node.as<TransposeAttr>().perm[static_cast<std::size_t>(i)]);
  Writer& w = x.writer();
  return w.add(fmt::format("stablehlo.transpose {}, dims = [{}] : ({}) -> {}", w.name(x), list_text(perm), type_text(x),
                           type_text(x.dtype(), node.shape)),
               x.dtype(), node.shape);
}

// Negative steps are positive steps followed by a reversal.
Term emit_slice(const Node& node, const Term& x) {
  const SliceAttr& attr = node.as<SliceAttr>();
  std::vector<std::int64_t> start, step, reversed;
  for (int i = 0; i < node.shape.rank(); ++i) {
    const std::size_t a = static_cast<std::size_t>(i);
    const bool backwards = attr.step[a] < 0;
    if (backwards) reversed.push_back(i);
    start.push_back(backwards ? attr.start[a] + (node.shape[i] - 1) * attr.step[a] : attr.start[a]);
    step.push_back(backwards ? -attr.step[a] : attr.step[a]);
  }
  const Term y = slice(x, start, step, node.shape);
  if (reversed.empty()) return y;
  Writer& w = x.writer();
  return w.add(fmt::format("stablehlo.reverse {}, dims = [{}] : {}", w.name(y), list_text(reversed), type_text(y)), y.dtype(),
               node.shape);
}

// Converts indices to count from the front and records those out of range.
Term resolved(const Term& indices, std::int64_t extent, Checks& checks) {
  const Term from_front = select(indices < 0.0, indices + static_cast<double>(extent), indices);
  const Term outside = (from_front < 0.0) | (from_front >= static_cast<double>(extent));
  checks.push_back(reduce("or", outside, 0, counted(0, indices.shape().rank())));
  return from_front;
}

// For every element of |indices|, the coordinates in a tensor that is indexed along |axis|: [..., rank].
Term coordinates(const Term& indices, int axis) {
  Writer& w = indices.writer();
  const Shape shape = indices.shape();
  std::vector<std::int64_t> dims(shape.begin(), shape.end());
  dims.push_back(1);
  const Shape column{std::span<const std::int64_t>(dims)};
  dims.back() = shape.rank();
  const Shape all{std::span<const std::int64_t>(dims)};
  std::string names, types;
  for (int i = 0; i < shape.rank(); ++i) {
    const Term part = reshape(i == axis ? indices : iota(w, DType::i64, shape, i), column);
    names += (i == 0 ? "" : ", ") + w.name(part);
    types += (i == 0 ? "" : ", ") + type_text(part);
  }
  if (shape.rank() == 1) return reshape(indices, all);
  return w.add(
      fmt::format("stablehlo.concatenate {}, dim = {} : ({}) -> {}", names, shape.rank(), types, type_text(DType::i64, all)),
      DType::i64, all);
}

struct GatherShape {
  std::vector<std::int64_t> offset_dims, collapsed, index_map, slice_sizes;
  std::int64_t vector_dim = 0;
};
Term gather(const Term& x, const Term& indices, const GatherShape& shape, const Shape& to) {
  Writer& w = x.writer();
  return w.add(
      fmt::format("\"stablehlo.gather\"({}, {}) {{dimension_numbers = #stablehlo.gather<offset_dims = [{}], collapsed_slice_dims "
                  "= [{}], start_index_map = [{}], index_vector_dim = {}>, indices_are_sorted = false, slice_sizes = "
                  "array<i64: {}>}} : ({}, {}) -> {}",
                  w.name(x), w.name(indices), list_text(shape.offset_dims), list_text(shape.collapsed),
                  list_text(shape.index_map), shape.vector_dim, list_text(shape.slice_sizes), type_text(x), type_text(indices),
                  type_text(x.dtype(), to)),
      x.dtype(), to);
}

}  // namespace

Term emit_view(const Node& node, const Term& x) {
  switch (node.prim) {
    case Prim::broadcast: return emit_broadcast(node, x);
    case Prim::transpose: return emit_transpose(node, x);
    case Prim::slice: return emit_slice(node, x);
    default: return reshape(x, node.shape);
  }
}

Term emit_pad(const Node& node, const Term& x) {
  const PadAttr& attr = node.as<PadAttr>();
  const std::span low(attr.low.data(), static_cast<std::size_t>(node.shape.rank()));
  return pad(x, x.writer().splat(attr.value, x.dtype(), {}), low, node.shape);
}

Term emit_concat(const Node& node, std::span<const Term> parts) {
  Writer& w = parts[0].writer();
  std::string names, types;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    names += (i == 0 ? "" : ", ") + w.name(parts[i]);
    types += (i == 0 ? "" : ", ") + type_text(parts[i]);
  }
  const DType dtype = parts[0].dtype();
  return w.add(fmt::format("stablehlo.concatenate {}, dim = {} : ({}) -> {}", names, node.as<AxisAttr>().axis, types,
                           type_text(dtype, node.shape)),
               dtype, node.shape);
}

Term emit_take(const Node& node, const Term& x, const Term& indices, Checks& checks) {
  const int axis = node.as<AxisAttr>().axis, rank = x.shape().rank(), index_rank = indices.shape().rank();
  if (node.shape.elements() == 0) return x.writer().splat(0, x.dtype(), node.shape);
  GatherShape shape;
  for (int i = 0; i < rank; ++i) {
    shape.slice_sizes.push_back(i == axis ? 1 : x.shape()[i]);
    if (i != axis) shape.offset_dims.push_back(i < axis ? i : i + index_rank - 1);
  }
  shape.collapsed = shape.index_map = {axis};
  shape.vector_dim = index_rank;
  return gather(x, resolved(indices, x.shape()[axis], checks), shape, node.shape);
}

Term emit_gather(const Node& node, const Term& x, const Term& indices, Checks& checks) {
  if (node.shape.elements() == 0) return x.writer().splat(0, x.dtype(), node.shape);
  const int axis = node.as<AxisAttr>().axis, rank = x.shape().rank();
  GatherShape shape;
  shape.collapsed = shape.index_map = counted(0, rank);
  shape.vector_dim = rank;
  shape.slice_sizes.assign(static_cast<std::size_t>(rank), 1);
  return gather(x, coordinates(resolved(indices, x.shape()[axis], checks), axis), shape, node.shape);
}

namespace {

// |combine| is an operation, or "" if the update replaces the element.
Term scatter(const Term& x, const Term& places, const Term& updates, std::string_view combine) {
  Writer& w = x.writer();
  const std::string scalar = type_text(x.dtype(), {}), all = list_text(counted(0, x.shape().rank()));
  const std::string body = combine.empty() ? "" : fmt::format("      %c = stablehlo.{} %a, %b : {}\n", combine, scalar);
  return w.add(
      fmt::format("\"stablehlo.scatter\"({0}, {1}, {2}) ({{\n"
                  "    ^bb0(%a: {3}, %b: {3}):\n"
                  "{4}      \"stablehlo.return\"({5}) : ({3}) -> ()\n"
                  "    }}) {{indices_are_sorted = false, scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = "
                  "[{6}], scatter_dims_to_operand_dims = [{6}], index_vector_dim = {7}>, unique_indices = false}} : ({8}, {9}, "
                  "{10}) -> {8}",
                  w.name(x), w.name(places), w.name(updates), scalar, body, combine.empty() ? "%b" : "%c", all, x.shape().rank(),
                  type_text(x), type_text(places), type_text(updates)),
      x.dtype(), x.shape());
}

// For targets that apply updates in any order: first find the last update of each element, then apply only that one.
Term scatter_last(const Term& x, const Term& places, const Term& updates) {
  Writer& w = x.writer();
  const std::int64_t count = updates.shape().elements();
  const Term numbers = reshape(iota(w, DType::i64, {count}, 0), updates.shape());
  const Term nobody = w.splat(-1, DType::i64, x.shape());
  const Term last = scatter(nobody, places, numbers, "maximum");
  GatherShape shape{.collapsed = {0}, .index_map = {0}, .slice_sizes = {1}, .vector_dim = x.shape().rank()};
  const Term written = last >= 0.0;
  const Term said = gather(reshape(updates, {count}), select(written, last, 0.0), shape, x.shape());
  return select(written, said, x);
}

}  // namespace

Term emit_scatter(const Node& node, const Term& x, const Term& indices, const Term& updates, Checks& checks) {
  if (indices.shape().elements() == 0) return x;
  const ScatterAttr& attr = node.as<ScatterAttr>();
  const Target& target = x.writer().target();
  const Term places = coordinates(resolved(indices, x.shape()[attr.axis], checks), attr.axis);
  if (!attr.add) return target.scatters_in_order ? scatter(x, places, updates, "") : scatter_last(x, places, updates);
  if (x.dtype() == DType::boolean) return scatter(x, places, updates, "or");
  // In f64 the order of a few additions no longer matters.
  if (x.dtype() == DType::f32 && target.wide && !target.scatters_in_order)
    return convert(scatter(convert(x, DType::f64), places, convert(updates, DType::f64), "add"), DType::f32);
  return scatter(x, places, updates, "add");
}

}  // namespace tenon::stablehlo
