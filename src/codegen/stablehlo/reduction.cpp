#include <fmt/format.h>

#include <limits>

#include "codegen/stablehlo/conversion.h"
#include "codegen/stablehlo/nodes.h"

namespace tenon::stablehlo {
namespace {

// Longer sums are split into sums of this many terms, so that the error grows with the number of steps, not of terms.
constexpr std::int64_t kChunk = 64;

// |x| summed over its last axis, in chunks.
Term sum_rows(Term x) {
  Writer& w = x.writer();
  const std::int64_t axis[] = {1};
  while (x.shape()[1] > kChunk) {
    const std::int64_t rows = x.shape()[0], terms = x.shape()[1], chunks = (terms + kChunk - 1) / kChunk;
    const std::int64_t start[] = {0, 0};
    if (terms != chunks * kChunk) x = pad(x, w.splat(0, x.dtype(), {}), start, {rows, chunks * kChunk});
    x = reshape(reduce("add", reshape(x, {rows * chunks, kChunk}), 0, axis), {rows, chunks});
    // Without it a compiler would merge the two sums.
    x = barrier(x);
  }
  return reduce("add", x, 0, axis);
}

// Moves the kept axes to the front and merges the reduced axes after them.
Term reduced_last(const Term& x, AxisSet axes) {
  std::vector<std::int64_t> perm, behind, dims;
  std::int64_t kept = 1, terms = 1;
  for (int i = 0; i < x.shape().rank(); ++i) {
    const bool is_reduced = axes & (1u << i);
    (is_reduced ? behind : perm).push_back(i);
    (is_reduced ? terms : kept) *= x.shape()[i];
  }
  perm.insert(perm.end(), behind.begin(), behind.end());
  for (const std::int64_t axis : perm) dims.push_back(x.shape()[static_cast<int>(axis)]);
  const Shape to{std::span<const std::int64_t>(dims)};
  Writer& w = x.writer();
  const Term moved = w.add(fmt::format("stablehlo.transpose {}, dims = [{}] : ({}) -> {}", w.name(x), list_text(perm),
                                       type_text(x), type_text(x.dtype(), to)),
                           x.dtype(), to);
  return reshape(moved, {kept, terms});
}

double start_of(ReduceKind kind, DType dtype) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  switch (kind) {
    case ReduceKind::prod:
    case ReduceKind::all: return 1;
    case ReduceKind::max: return dtype == DType::boolean ? 0 : -kInfinity;
    case ReduceKind::min: return dtype == DType::boolean ? 1 : kInfinity;
    default: return 0;
  }
}

std::string_view op_of(ReduceKind kind) {
  switch (kind) {
    case ReduceKind::sum: return "add";
    case ReduceKind::prod: return "multiply";
    case ReduceKind::max: return "maximum";
    case ReduceKind::min: return "minimum";
    case ReduceKind::any: return "or";
    case ReduceKind::all: return "and";
  }
  return "add";
}

std::int64_t reduced_terms(const Shape& shape, AxisSet axes) {
  std::int64_t terms = 1;
  for (int i = 0; i < shape.rank(); ++i)
    if (axes & (1u << i)) terms *= shape[i];
  return terms;
}

}  // namespace

Term emit_reduce(const Node& node, const Term& x) {
  const ReduceAttr& attr = node.as<ReduceAttr>();
  const bool accumulates = attr.kind == ReduceKind::sum || attr.kind == ReduceKind::prod;
  const DType dtype = x.dtype();
  const bool in_f64 = accumulates && dtype == DType::f32 && x.writer().target().wide;
  const Term y = in_f64 ? convert(x, DType::f64) : x;
  // Doubles have spare bits for sums of floats, but not for sums of doubles.
  if (attr.kind == ReduceKind::sum && is_float(dtype) && !in_f64 && reduced_terms(x.shape(), attr.axes) > kChunk)
    return reshape(sum_rows(reduced_last(y, attr.axes)), node.shape);
  std::vector<std::int64_t> axes;
  for (int i = 0; i < x.shape().rank(); ++i)
    if (attr.axes & (1u << i)) axes.push_back(i);
  return reshape(convert(reduce(op_of(attr.kind), y, start_of(attr.kind, dtype), axes), dtype), node.shape);
}

// Reduces pairs of a key and its index: the better key wins; among equal keys the first one.
Term emit_arg_reduce(const Node& node, const Term& x) {
  const ArgReduceAttr& attr = node.as<ArgReduceAttr>();
  Writer& w = x.writer();
  const Term key = ordered_key(x, attr.largest), index = iota(w, DType::i64, x.shape(), attr.axis);
  const DType dtype = key.dtype();
  const Term worst =
      w.splat(attr.largest ? -std::numeric_limits<double>::infinity() : std::numeric_limits<double>::infinity(), dtype, {});
  const Term nowhere = w.splat_bits(std::numeric_limits<std::int64_t>::max(), DType::i64, {});
  std::vector<std::int64_t> dims;
  for (int i = 0; i < x.shape().rank(); ++i)
    if (i != attr.axis) dims.push_back(x.shape()[i]);
  const Shape to{std::span<const std::int64_t>(dims)};
  const std::string keys = type_text(dtype, {}), order = is_signed_integer(dtype) ? "SIGNED" : "UNSIGNED";
  const std::pair<DType, Shape> results[] = {{dtype, to}, {DType::i64, to}};
  const std::string text = fmt::format(
      "\"stablehlo.reduce\"({0}, {1}, {2}, {3}) ({{\n"
      "    ^bb0(%a: {4}, %i: tensor<i64>, %b: {4}, %j: tensor<i64>):\n"
      "      %wins = stablehlo.compare {5}, %a, %b, {6} : ({4}, {4}) -> tensor<i1>\n"
      "      %same = stablehlo.compare EQ, %a, %b, {6} : ({4}, {4}) -> tensor<i1>\n"
      "      %first = stablehlo.compare LT, %i, %j, SIGNED : (tensor<i64>, tensor<i64>) -> tensor<i1>\n"
      "      %tie = stablehlo.and %same, %first : tensor<i1>\n"
      "      %left = stablehlo.or %wins, %tie : tensor<i1>\n"
      "      %key = stablehlo.select %left, %a, %b : tensor<i1>, {4}\n"
      "      %index = stablehlo.select %left, %i, %j : tensor<i1>, tensor<i64>\n"
      "      \"stablehlo.return\"(%key, %index) : ({4}, tensor<i64>) -> ()\n"
      "    }}) {{dimensions = array<i64: {7}>}} : ({8}, {9}, {4}, tensor<i64>) -> ({10}, {11})",
      w.name(key), w.name(index), w.name(worst), w.name(nowhere), keys, attr.largest ? "GT" : "LT", order, attr.axis,
      type_text(key), type_text(index), type_text(dtype, to), type_text(DType::i64, to));
  return reshape(w.add(text, results)[1], node.shape);
}

Term emit_arg_sort(const Node& node, const Term& x) {
  const ArgSortAttr& attr = node.as<ArgSortAttr>();
  Writer& w = x.writer();
  // NaN comes last in both orders.
  const Term key = ordered_key(x, !attr.descending), index = iota(w, DType::i64, x.shape(), attr.axis);
  const std::pair<DType, Shape> results[] = {{key.dtype(), node.shape}, {DType::i64, node.shape}};
  const std::string keys = type_text(key.dtype(), {}), order = is_signed_integer(key.dtype()) ? "SIGNED" : "UNSIGNED";
  const std::string text = fmt::format(
      "\"stablehlo.sort\"({0}, {1}) ({{\n"
      "    ^bb0(%a: {2}, %b: {2}, %i: tensor<i64>, %j: tensor<i64>):\n"
      "      %c = stablehlo.compare {3}, %a, %b, {4} : ({2}, {2}) -> tensor<i1>\n"
      "      \"stablehlo.return\"(%c) : (tensor<i1>) -> ()\n"
      "    }}) {{dimension = {5} : i64, is_stable = true}} : ({6}, {7}) -> ({6}, {7})",
      w.name(key), w.name(index), keys, attr.descending ? "GT" : "LT", order, attr.axis, type_text(key), type_text(index));
  return w.add(text, results)[1];
}

// Every element adds the one 1, then 2, then 4 ... positions before it: log2(n) steps.
Term emit_cumulative(const Node& node, const Term& x) {
  const CumulativeAttr& attr = node.as<CumulativeAttr>();
  Writer& w = x.writer();
  const DType dtype = x.dtype();
  Term y = dtype == DType::f32 && w.target().wide ? convert(x, DType::f64) : x;
  const std::int64_t extent = node.shape.elements() == 0 ? 0 : node.shape[attr.axis];
  const std::vector<std::int64_t> start(static_cast<std::size_t>(node.shape.rank()), 0);
  const std::vector<std::int64_t> step(static_cast<std::size_t>(node.shape.rank()), 1);
  const Term neutral = w.splat(attr.product ? 1 : 0, y.dtype(), {});
  for (std::int64_t distance = 1; distance < extent; distance *= 2) {
    std::vector<std::int64_t> low = start;
    low[static_cast<std::size_t>(attr.axis)] = distance;
    const Term earlier = pad(slice(y, start, step, node.shape.with(attr.axis, extent - distance)), neutral, low, node.shape);
    y = attr.product ? y * earlier : y + earlier;
  }
  return convert(y, dtype);
}

}  // namespace tenon::stablehlo
