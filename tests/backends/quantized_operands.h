// Operands of products with small integers, in all their forms, for the backends that have a step for them.
#pragma once

#include <ostream>
#include <random>
#include <vector>

#include "ops/quantized_matmul.h"
#include "tenon/array.h"

namespace tenon {

struct QuantizedCase {
  int bits;
  std::int64_t group;
  bool has_minima, has_half_scales;
  std::int64_t m;
};
inline std::ostream& operator<<(std::ostream& out, const QuantizedCase& c) {
  return out << c.bits << " bits, groups of " << c.group << (c.has_minima ? ", minima" : "")
             << (c.has_half_scales ? ", half scales" : "") << ", " << c.m << " rows";
}

inline constexpr std::int64_t kQuantizedColumns = 96, kQuantizedRows = 48;

struct QuantizedOperands {
  HostArray x, codes, scales, minima;
  QuantizedMatMulAttr attr;
};

inline QuantizedOperands quantized_operands(const QuantizedCase& c) {
  std::mt19937 random(static_cast<unsigned>(c.bits * 100 + c.group + c.m));
  std::normal_distribution<float> normal;
  const auto floats = [&](const Shape& shape, float scale) {
    HostArray out = HostArray::empty(DType::f32, shape);
    for (float& value : out.mutable_view<float>()) value = normal(random) * scale;
    return out;
  };
  QuantizedOperands o;
  o.attr = {c.bits, c.group, c.bits == 8 ? 128 : c.has_minima ? 0 : 8};
  o.x = floats(Shape{c.m, kQuantizedColumns}, 3);
  // A block of zeros has no step, and a row of very different sizes tests the steps.
  for (int i = 0; i < 32; ++i) o.x.mutable_view<float>()[static_cast<std::size_t>(i)] = 0;
  o.x.mutable_view<float>()[40] = 1000;
  o.codes = HostArray::empty(DType::u8, Shape{kQuantizedRows / 16, kQuantizedColumns / c.group, c.group * c.bits / 32, 16, 4});
  for (std::uint8_t& code : o.codes.mutable_view<std::uint8_t>()) code = static_cast<std::uint8_t>(random());
  const DType dtype = c.has_half_scales ? DType::f16 : DType::f32;
  const Shape scales{kQuantizedRows / 16, kQuantizedColumns / c.group, 16};
  o.scales = floats(scales, 0.02f).cast(dtype);
  if (c.has_minima) o.minima = floats(scales, 0.1f).cast(dtype);
  return o;
}

inline Graph quantized_graph(const QuantizedOperands& o) {
  Graph graph;
  const NodeId x = graph.input("x", DType::f32, o.x.shape());
  std::vector<NodeId> matrix{graph.input("codes", DType::u8, o.codes.shape()),
                             graph.input("scales", o.scales.dtype(), o.scales.shape())};
  if (o.minima.elements() > 0) matrix.push_back(graph.input("minima", o.minima.dtype(), o.minima.shape()));
  graph.set_outputs({tenon::quantized_matmul(graph, x, matrix, o.attr)});
  return graph;
}

inline std::vector<QuantizedCase> quantized_cases(std::initializer_list<std::int64_t> rows) {
  std::vector<QuantizedCase> out;
  for (const int bits : {4, 8})
    for (const std::int64_t group : {16, 32})
      for (const bool minima : {false, true})
        for (const bool half : {false, true})
          for (const std::int64_t m : rows) out.push_back({bits, group, minima, half, m});
  return out;
}

}  // namespace tenon
