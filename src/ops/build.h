// Expr: a node of a graph under construction, with operators, so that the code of a composed op reads like its formula.
//
// Lifetime: refers to its Graph. Elementwise functions broadcast and promote like Graph::elementwise; plain numbers are literals
// and take the type of the other operand. Functions that are defined only for floats convert integers to f32 first.
//
//   Expr x = floating(input(call, 0));
//   Expr e = exp(x - max_keep(x, axes));
//   return {(e / sum_keep(e, axes)).id()};
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <vector>

#include "tenon/graph.h"
#include "tenon/ops.h"

namespace tenon::build {

using Dims = std::vector<std::int64_t>;

class Expr {
 public:
  Expr(Graph& graph, NodeId id) : graph_(&graph), id_(id) {}

  Graph& graph() const { return *graph_; }
  NodeId id() const { return id_; }
  // By value, because adding nodes moves the nodes of the graph.
  Shape shape() const { return (*graph_)[id_].shape; }
  DType dtype() const { return (*graph_)[id_].dtype; }
  int rank() const { return shape().rank(); }
  std::int64_t extent(int axis) const { return (*graph_)[id_].shape[axis]; }

 private:
  Graph* graph_;
  NodeId id_;
};

// --- Leaves ---
Expr input(const OpCall& call, std::size_t i);  // strong
Expr number(Graph& graph, double value);
Expr iota(Graph& graph, const Shape& shape, int axis);
// first, first + 1, ... along the one axis that is long; a constant if there are few.
Expr counted(Graph& graph, const Shape& shape, int axis, std::int64_t first, DType type);
// A short type for places below |extent| and their distances.
inline DType counting_dtype(std::int64_t extent) { return extent < std::int64_t{1} << 30 ? DType::i32 : DType::i64; }
Expr integers(Graph& graph, const Shape& shape, std::span<const std::int64_t> values);

// --- Types ---
Expr cast(Expr x, DType to);
Expr floating(Expr x);  // converts integers and bool to f32; floats are unchanged

// --- Elementwise ---
Expr operator+(Expr x, Expr y);
Expr operator-(Expr x, Expr y);
Expr operator*(Expr x, Expr y);
Expr operator/(Expr x, Expr y);
Expr operator+(Expr x, double y);
Expr operator-(Expr x, double y);
Expr operator-(double x, Expr y);
Expr operator*(Expr x, double y);
Expr operator/(Expr x, double y);
Expr operator-(Expr x);
Expr operator<(Expr x, Expr y);
Expr operator<=(Expr x, Expr y);
Expr operator>(Expr x, Expr y);
Expr operator>=(Expr x, Expr y);
Expr operator==(Expr x, Expr y);
Expr operator!=(Expr x, Expr y);
Expr operator==(Expr x, double y);
Expr operator!=(Expr x, double y);
Expr operator<=(Expr x, double y);
Expr operator&&(Expr x, Expr y);
Expr operator!(Expr x);
Expr abs(Expr x);
Expr exp(Expr x);
Expr log(Expr x);
Expr log1p(Expr x);
Expr sqrt(Expr x);
Expr square(Expr x);
Expr sin(Expr x);
Expr cos(Expr x);
Expr floor(Expr x);
Expr rint(Expr x);  // half to even
Expr sigmoid(Expr x);
Expr silu(Expr x);
Expr gelu(Expr x);
Expr is_nan(Expr x);
Expr is_inf(Expr x);
Expr floor_div(Expr x, double y);  // of integers: rounded down
Expr pow(Expr x, double y);
Expr pow(Expr x, Expr y);
Expr xlogy(Expr x, Expr y);
Expr maximum(Expr x, Expr y);
Expr minimum(Expr x, Expr y);
Expr maximum(Expr x, double y);
Expr minimum(Expr x, double y);
Expr where(Expr condition, Expr x, Expr y);
Expr where(Expr condition, Expr x, double y);  // y takes x's type, even if that is bool
Expr where(Expr condition, double x, Expr y);

// --- Reductions; the axes are kept with extent 1 ---
Expr sum_keep(Expr x, AxisSet axes);
Expr prod_keep(Expr x, AxisSet axes);
Expr max_keep(Expr x, AxisSet axes);
Expr min_keep(Expr x, AxisSet axes);
Expr any_keep(Expr x, AxisSet axes);
Expr all_keep(Expr x, AxisSet axes);
Expr mean_keep(Expr x, AxisSet axes);  // integers: the exact sum, then converted to f32
// (sum |x|^p)^(1/p), scaled by the largest element so that no power overflows; p may be 0 (count) or infinite.
Expr norm_keep(Expr x, AxisSet axes, double p);
std::int64_t extent_of(const Shape& shape, AxisSet axes);  // the number of elements of one reduction
AxisSet all_axes(int rank);
AxisSet one_axis(int axis);

// --- Shapes ---
Expr reshape(Expr x, const Shape& to);
Expr broadcast(Expr x, const Shape& to);
Expr transpose(Expr x, const std::vector<int>& perm);
Expr swap_axes(Expr x, int a, int b);
Expr squeeze(Expr x, AxisSet axes);  // removes axes of extent 1
Expr unsqueeze(Expr x, int axis);    // a new axis of extent 1 before |axis| of the result
// |count| elements of one axis, from |start|, every |step|.
Expr narrow(Expr x, int axis, std::int64_t start, std::int64_t count, std::int64_t step = 1);
Expr reverse(Expr x, int axis);
Expr pad_axis(Expr x, int axis, std::int64_t low, std::int64_t high, double value = 0);
Expr concat(std::span<const Expr> parts, int axis);
Expr take(Expr x, Expr indices, int axis);
Expr gather(Expr x, Expr indices, int axis);
Expr diagonal(Expr x, std::int64_t offset);  // of the last two axes, as a new last axis
// Reshapes a vector to [1, ..., n, ..., 1], so that it broadcasts along |axis| of a tensor of that rank.
Expr along(Expr vector, int axis, int rank);
Dims dims(const Shape& shape);

// --- Products ---
Expr matmul(Expr a, Expr b, MatMulAttr attr = {});

}  // namespace tenon::build
