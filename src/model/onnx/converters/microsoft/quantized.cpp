#include <fmt/format.h>

#include <cstring>

#include "model/onnx/converters/microsoft/fused.h"
#include "model/onnx/import/importer.h"
#include "model/onnx/model_watch.h"

namespace tenon::onnx {
namespace {

using namespace build;

Expr one(Expr x) { return x.shape().elements() == 1 ? reshape(x, {}) : x; }

ValuePtr optional_value(const NodeContext& node, std::size_t i) { return node.has(i) ? node.value(i) : nullptr; }

// Three inputs in a row are a value, its scale and its zero point.
Expr dequantized(const NodeContext& node, std::size_t i) {
  Expr x = cast(node.in(i), DType::f32);
  if (node.has(i + 2)) x = x - one(cast(node.in(i + 2), DType::f32));
  return x * one(node.in(i + 1));
}

// |y| by the scale that is input |i| and the zero point that follows it, in the type of the zero point or of the first input.
Results quantized(const NodeContext& node, Expr y, std::size_t i, std::size_t like_input = 0) {
  const DType to = node.has(i + 1) ? node.dtype(i + 1) : node.dtype(like_input);
  y = rint(y / one(node.in(i)));
  if (node.has(i + 1)) y = y + one(cast(node.in(i + 1), DType::f32));
  return {cast(y, to)};  // saturates
}

Results qlinear_binary(const NodeContext& node) {
  const Expr a = dequantized(node, 0), b = dequantized(node, 3);
  return quantized(node, node.op() == "QLinearAdd" ? a + b : a * b, 6);
}

Results qlinear_unary(const NodeContext& node) {
  const Expr x = dequantized(node, 0);
  if (node.op() == "QLinearSigmoid") return quantized(node, sigmoid(x), 3);
  if (node.op() == "QLinearLeakyRelu") return quantized(node, where(x < same(x, 0), x * node.number("alpha", 0.01), x), 3);
  const int axis = node.axis("axis", -1, x.rank());
  if (node.integer("opset", 13) < 13 && axis != x.rank() - 1) node.refuse("a softmax of several axes");
  return quantized(node, node.apply("softmax", {x}, {{"axis", std::int64_t{axis}}}), 3);
}

Results qlinear_pool(const NodeContext& node) {
  if (node.integer("channels_last", 0) != 0) node.refuse("channels as the last axis");
  const Expr x = dequantized(node, 0);
  if (node.op() == "QLinearAveragePool") return quantized(node, first(node, as_op(node, "AveragePool", {computed(x)})), 3);
  if (x.rank() < 3) node.fail("expected [n, channels, spatial...]");
  return quantized(node, mean_keep(x, static_cast<AxisSet>(all_axes(x.rank()) & ~3u)), 3);
}

Results qlinear_concat(const NodeContext& node) {
  std::vector<Expr> parts;
  for (std::size_t i = 2; i + 1 < node.inputs(); i += 3) parts.push_back(dequantized(node, i));
  if (parts.empty()) node.fail("nothing to join");
  return quantized(node, concat(parts, node.axis("axis", 0, parts[0].rank())), 0, 2);
}

Results qlinear_where(const NodeContext& node) {
  const Expr condition = node.in(0), x = dequantized(node, 1), y = dequantized(node, 4);
  return quantized(node, where(condition, x, y), 7, 1);
}

// Products of integers as floats; the zero points are inputs |zero_a| and |zero_b|.
Expr integer_product(const NodeContext& node, const ValuePtr& a, const ValuePtr& b, const ValuePtr& zero_a,
                     const ValuePtr& zero_b) {
  return cast(first(node, as_op(node, "MatMulInteger", {a, b, zero_a, zero_b})), DType::f32);
}

Results matmul_integer_to_float(const NodeContext& node) {
  Expr y = integer_product(node, node.value(0), node.value(1), optional_value(node, 4), optional_value(node, 5)) *
           (one(node.in(2)) * one(node.in(3)));
  if (node.has(6)) y = y + node.in(6);
  return {y};
}

Results dynamic_quantize_matmul(const NodeContext& node) {
  Expr y = dynamic_product(node, node.in(0), node.value(1), node.value(2), optional_value(node, 3));
  if (node.has(4)) y = y + node.in(4);
  return {y};
}

Results quantized_gemm(const NodeContext& node) {
  const auto operand = [&](std::size_t i, std::string_view transposed) {
    if (node.rank(i) != 2) node.fail("expected matrices");
    return node.integer(transposed, 0) == 0 ? node.value(i) : computed(swap_axes(node.in(i), 0, 1));
  };
  Expr sum = first(node, as_op(node, "MatMulInteger",
                               {operand(0, "transA"), operand(3, "transB"), optional_value(node, 2), optional_value(node, 5)}));
  if (node.has(6)) sum = sum + node.in(6);
  const Expr y = cast(sum, DType::f32) * (one(node.in(1)) * one(node.in(4)) * node.number("alpha", 1));
  if (!node.has(8)) return {y};
  return quantized(node, y, 7);
}

// --- Weights of a few bits in blocks ---

struct Blocks {
  std::int64_t rows, columns, block, bits;
  std::int64_t per_row() const { return (columns + block - 1) / block; }
  std::int64_t bytes_per_block() const { return (block * bits + 7) / 8; }
  std::int64_t zero_bytes_per_row() const { return (per_row() * bits + 7) / 8; }
};

// [rows, columns] of f32 from codes that fill bytes from their low bits on, a scale for each block, and a zero point, which is
// the middle of the range unless it is given: packed like the codes, or as floats.
HostArray unpacked(const Blocks& b, const HostArray& codes, const HostArray& scales, const HostArray* zeros) {
  ModelWatch::tell_uses(storage_bytes(DType::f32, Shape{b.rows, b.columns}));
  HostArray out = HostArray::zeros(DType::f32, Shape{b.rows, b.columns});
  const std::span<float> values = out.mutable_view<float>();
  const std::span<const std::uint8_t> bytes = codes.view<std::uint8_t>();
  const std::vector<double> scale = scales.to_doubles();
  const bool packed_zeros = zeros && zeros->dtype() == DType::u8;
  const std::vector<double> zero = zeros ? zeros->to_doubles() : std::vector<double>();
  const std::int64_t mask = (std::int64_t{1} << b.bits) - 1, per_byte = 8 / b.bits;
  for (std::int64_t row = 0; row < b.rows; ++row) {
    for (std::int64_t block = 0; block < b.per_row(); ++block) {
      const auto at = static_cast<std::size_t>(row * b.per_row() + block);
      double point = static_cast<double>(std::int64_t{1} << (b.bits - 1));
      if (packed_zeros) {
        const auto byte =
            static_cast<std::int64_t>(zero[static_cast<std::size_t>(row * b.zero_bytes_per_row() + block / per_byte)]);
        point = static_cast<double>(byte >> (block % per_byte * b.bits) & mask);
      } else if (zeros) {
        point = zero[at];
      }
      const std::uint8_t* code = bytes.data() + static_cast<std::int64_t>(at) * b.bytes_per_block();
      const auto factor = static_cast<float>(scale[at]), shift = static_cast<float>(point);
      const std::int64_t count = std::min(b.block, b.columns - block * b.block);
      for (std::int64_t i = 0; i < count; ++i)
        values[static_cast<std::size_t>(row * b.columns + block * b.block + i)] =
            (static_cast<float>(code[i / per_byte] >> (i % per_byte * b.bits) & mask) - shift) * factor;
    }
  }
  return out;
}

Results matmul_nbits(const NodeContext& node) {
  const Blocks b{node.integer("N"), node.integer("K"), node.integer("block_size"), node.integer("bits", 4)};
  if (b.rows < 1 || b.columns < 1 || b.columns > 1 << 30 || b.block < 1 || b.block > 1 << 20)
    node.fail("N, K or block_size is out of range");
  if (b.bits != 2 && b.bits != 4 && b.bits != 8) node.refuse(fmt::format("weights of {} bits", b.bits));
  if (node.has(4)) node.refuse("an order of groups");
  if (node.dtype(1) != DType::u8 || node.shape(1).elements() / b.rows != b.per_row() * b.bytes_per_block() ||
      node.shape(1).elements() % b.rows != 0 || node.shape(2).elements() != b.rows * b.per_row())
    node.fail(fmt::format("weights {} and scales {} do not fit [{}, {}] in blocks of {}", to_string(node.shape(1)),
                          to_string(node.shape(2)), b.rows, b.columns, b.block));
  if (node.has(3) && node.shape(3).elements() != b.rows * (node.dtype(3) == DType::u8 ? b.zero_bytes_per_row() : b.per_row()))
    node.fail(fmt::format("zero points {} do not fit the weights", to_string(node.shape(3))));
  const ValuePtr weight = node.weight({1, 2, 3}, 0, [&] {
    const HostArray codes = node.host(1), scales = node.host(2);
    if (!node.has(3)) return unpacked(b, codes, scales, nullptr);
    const HostArray zeros = node.host(3);
    return unpacked(b, codes, scales, &zeros);
  });
  const DType dtype = node.dtype(0);
  Expr y = matmul(node.operand(cast(node.in(0), DType::f32)), node.importer().operand(weight), {.transpose_b = true});
  y = like(y, DType::f32);
  if (node.has(5)) y = y + cast(node.in(5), DType::f32);
  return {cast(y, dtype)};
}

// Rows of a table that is stored in blocks along its last axis.
Results gather_block_quantized(const NodeContext& node) {
  const int rank = node.rank(0);
  const std::int64_t block = node.integer("block_size", 128), bits = node.integer("bits", 4);
  if (rank != 2 || node.axis("gather_axis", 0, rank) != 0 || node.axis("quantize_axis", 1, rank) != 1)
    node.refuse("anything but rows of a matrix in blocks along its last axis");
  if (bits != 4 && bits != 8) node.refuse(fmt::format("codes of {} bits", bits));
  if (node.rank(2) != 2 || (node.has(3) && node.rank(3) != 2)) node.fail("expected scales and zero points of two axes");
  const Expr rows = wrapped_indices(node.in(1), node.shape(0)[0]);
  const bool packed = node.type(0) == ElementType::u8 && bits == 4;
  // Two codes of 4 bits in a byte, the lower first; the last axis of the result is |columns| long.
  const auto codes = [&](std::size_t i, std::int64_t columns) {
    const Expr x = cast(take(node.in(i), rows, 0), DType::i32);
    if (!packed) return cast(x, DType::f32);
    const Expr sixteen = same(x, 16), high = floor_div(x, 16.0);
    const Expr halves[] = {unsqueeze(x - high * sixteen, x.rank()), unsqueeze(high, x.rank())};
    const Expr both = concat(halves, x.rank());
    return cast(narrow(reshape(both, x.shape().with(x.rank() - 1, 2 * x.extent(x.rank() - 1))), x.rank() - 1, 0, columns),
                DType::f32);
  };
  const std::int64_t columns = node.shape(0)[1] * (packed ? 2 : 1);
  const Expr scale = take(node.in(2), rows, 0);
  const std::int64_t blocks = scale.extent(scale.rank() - 1);
  if (block < 1 || columns % block != 0 || columns / block != blocks)
    node.refuse(fmt::format("{} columns in {} blocks of {}", columns, blocks, block));
  Dims shape = dims(scale.shape());
  const Shape apart = [&] {
    Dims s = shape;
    s.push_back(block);
    return Shape(s);
  }();
  Expr x = reshape(codes(0, columns), apart);
  if (node.has(3))
    x = x - unsqueeze(codes(3, blocks), scale.rank());
  else if (node.type(0) == ElementType::u8)
    x = x - static_cast<double>(std::int64_t{1} << (bits - 1));
  shape.back() = columns;
  return {cast(reshape(x * cast(unsqueeze(scale, scale.rank()), DType::f32), Shape(shape)), node.dtype(2))};
}

}  // namespace

Expr dynamic_product(const NodeContext& node, Expr a, const ValuePtr& b, const ValuePtr& scale, const ValuePtr& zero) {
  const Results rounded = as_op(node, "DynamicQuantizeLinear", {computed(a)});
  return integer_product(node, rounded[0].value(), b, rounded[2].value(), zero) *
         (node.in(rounded[1].value()) * one(node.in(scale)));
}

void add_microsoft_quantized(ConverterTable& table) {
  const auto add = [&](std::string_view op, Converter converter) { table.add("com.microsoft." + std::string(op), converter); };
  for (const std::string_view op : {"QLinearAdd", "QLinearMul"}) add(op, qlinear_binary);
  for (const std::string_view op : {"QLinearSigmoid", "QLinearLeakyRelu", "QLinearSoftmax"}) add(op, qlinear_unary);
  for (const std::string_view op : {"QLinearAveragePool", "QLinearGlobalAveragePool"}) add(op, qlinear_pool);
  add("QLinearConcat", qlinear_concat);
  add("QLinearWhere", qlinear_where);
  add("MatMulIntegerToFloat", matmul_integer_to_float);
  add("DynamicQuantizeMatMul", dynamic_quantize_matmul);
  add("QGemm", quantized_gemm);
  add("MatMulNBits", matmul_nbits);
  add("GatherBlockQuantized", gather_block_quantized);
  // The same ops as ONNX has, which once had fewer types.
  for (const std::string_view op : {"QuantizeLinear", "DequantizeLinear"}) add(op, table.find(op));
}

}  // namespace tenon::onnx
