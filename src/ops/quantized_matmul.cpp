#include "ops/quantized_matmul.h"

#include <array>
#include <vector>

#include "ops/build.h"

namespace tenon {
namespace {

using namespace build;

// Codes as numbers, [n, groups, columns of a group].
Expr codes_by_row(Expr codes, const QuantizedMatMulAttr& attr) {
  const Shape shape = codes.shape(), rows{shape[0] * 16, shape[1], attr.group};
  const Expr bytes = cast(codes, DType::f32);
  if (attr.bits == 8) return reshape(transpose(bytes, {0, 3, 1, 2, 4}), rows);
  const Expr high = floor(bytes / 16.0), low = bytes - high * 16.0;
  const std::array parts{unsqueeze(low, 2), unsqueeze(high, 2)};
  return reshape(transpose(concat(parts, 2), {0, 4, 1, 2, 3, 5}), rows);
}

Expr scales_by_row(Expr scales) {
  const Shape shape = scales.shape();
  return reshape(transpose(cast(scales, DType::f32), {0, 2, 1}), Shape{shape[0] * 16, shape[1], 1});
}

// What is left of x in 8 bits.
Expr rounded_to_steps(Expr x) {
  const Shape shape = x.shape();
  const Expr blocks = reshape(x, Shape{shape[0], shape[1] / 32, 32}), largest = max_keep(abs(blocks), one_axis(2));
  const Expr step = cast(cast(largest / 127.0, DType::f16), DType::f32);
  const Expr factor = where(largest == 0.0, 0.0, number(x.graph(), 127.0) / largest);
  return reshape(rint(blocks * factor) * step, shape);
}

// All rows as floats, [n, columns].
Expr floats_by_row(Graph& graph, std::span<const NodeId> matrix, const QuantizedMatMulAttr& attr) {
  const Expr codes = codes_by_row(Expr(graph, matrix[0]), attr);
  Expr rows = (codes - static_cast<double>(attr.zero)) * scales_by_row(Expr(graph, matrix[1]));
  if (matrix.size() > 2) rows = rows + scales_by_row(Expr(graph, matrix[2]));
  const Shape shape = rows.shape();
  return reshape(rows, Shape{shape[0], shape[1] * shape[2]});
}

}  // namespace

NodeId quantized_matmul(Graph& graph, NodeId x, std::span<const NodeId> matrix, const QuantizedMatMulAttr& attr) {
  Region region{{x}, -1, attr};
  region.inputs.insert(region.inputs.end(), matrix.begin(), matrix.end());
  const Expr rows = floats_by_row(graph, matrix, attr);
  const Expr y = matmul(rounded_to_steps(Expr(graph, x)), rows, {.transpose_b = true});
  region.output = y.id();
  graph.mark(std::move(region));
  return y.id();
}

// Sixteen rows are stored together, of which one is wanted: the others are multiplied away rather than read around.
NodeId quantized_rows(Graph& graph, NodeId ids, std::span<const NodeId> matrix, const QuantizedMatMulAttr& attr) {
  const Expr numbers(graph, ids), panels = floor_div(numbers, 16);
  std::vector<NodeId> taken;
  for (const NodeId part : matrix) taken.push_back(take(Expr(graph, part), panels, 0).id());
  const std::int64_t m = numbers.extent(0);
  const Expr rows = floats_by_row(graph, taken, attr);
  const Expr lanes = iota(graph, Shape{m, 16, 1}, 1), lane = reshape(numbers - panels * 16.0, Shape{m, 1, 1});
  const Expr sixteen = reshape(rows, Shape{m, 16, rows.extent(1)});
  return reshape(sum_keep(where(lanes == lane, sixteen, 0.0), one_axis(1)), Shape{m, rows.extent(1)}).id();
}

}  // namespace tenon
