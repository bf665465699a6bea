// NodeContext: a node of an ONNX graph as its converter sees it: inputs, attributes, the program under construction.
//
// A converter adds what the node means to graph() and returns one result per output. A value that it must know while it builds
// (a shape, an axis) it asks for with host(); if that depends on the inputs of the model, the import stops there, the value is
// computed, and the import starts again with it.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "model/onnx/import/value.h"
#include "model/onnx/proto/model_proto.h"
#include "ops/build.h"

namespace tenon::onnx {

class Importer;
struct Scope;

// One output of a node.
class Result {
 public:
  Result() = default;  // an optional output that was not asked for
  Result(build::Expr x) : value_(computed(x)) {}
  Result(build::Expr x, ElementType type) : value_(computed(x, type)) {}
  Result(HostArray array) : value_(known(std::move(array))) {}
  Result(HostArray array, ElementType type) : value_(known(std::move(array), type)) {}
  Result(ValuePtr value) : value_(std::move(value)) {}
  const ValuePtr& value() const noexcept { return value_; }

 private:
  ValuePtr value_;
};
using Results = std::vector<Result>;

class NodeContext {
 public:
  NodeContext(Importer& importer, const NodeProto& node, const Scope& scope, std::vector<ValuePtr> inputs, std::int64_t version);

  Graph& graph() const;
  const NodeProto& node() const noexcept { return node_; }
  std::string_view op() const noexcept { return node_.op; }
  std::int64_t version() const noexcept { return version_; }  // of the op's domain in this model
  Importer& importer() const noexcept { return importer_; }
  const Scope& scope() const noexcept { return scope_; }

  // --- Inputs; an empty name is an absent one ---
  std::size_t inputs() const noexcept { return inputs_.size(); }
  bool has(std::size_t i) const noexcept { return i < inputs_.size() && inputs_[i] != nullptr; }
  const ValuePtr& value(std::size_t i) const;  // throws invalid_argument if it is absent
  build::Expr in(std::size_t i) const;         // a tensor, in graph()
  build::Expr in(const ValuePtr& value) const;
  // Where a value enters a product: f32 becomes the type of the model's products (ModelOptions::products), if it has one; in()
  // otherwise. The product is then of that type, and like() gives it the declared one without rounding.
  build::Expr operand(std::size_t i) const;
  build::Expr operand(build::Expr x) const;
  const Shape& shape(std::size_t i) const;
  int rank(std::size_t i) const { return shape(i).rank(); }
  ElementType type(std::size_t i) const;
  DType dtype(std::size_t i) const { return held_as(type(i)); }
  bool is_known(std::size_t i) const { return has(i) && inputs_[i]->host.has_value(); }
  HostArray host(std::size_t i) const;
  HostArray host(const ValuePtr& value) const;
  bool is_constant(std::size_t i) const { return has(i) && inputs_[i]->tensor != nullptr; }  // of the file
  // What |make| makes from inputs |i|, those that are there; once, and kept with the weights, if they are constants of the file.
  // |part| numbers what is made from the same ones.
  ValuePtr weight(std::initializer_list<std::size_t> i, int part, const std::function<HostArray()>& make) const;
  // What |make| makes from attributes, the first of which is |attribute|.
  ValuePtr weight(std::string_view attribute, int part, const std::function<HostArray()>& make) const;
  std::vector<std::int64_t> host_integers(std::size_t i) const;
  std::vector<double> host_numbers(std::size_t i) const;
  double host_number(std::size_t i) const;
  bool wants(std::size_t output) const noexcept { return output < node_.outputs.size() && !node_.outputs[output].empty(); }

  // --- Attributes, those that a function's caller gives included ---
  bool given(std::string_view name) const { return find(name) != nullptr; }
  std::int64_t integer(std::string_view name, std::int64_t fallback) const;
  std::int64_t integer(std::string_view name) const;  // required
  double number(std::string_view name, double fallback) const;
  std::string text(std::string_view name, std::string_view fallback) const;
  std::vector<std::int64_t> integers(std::string_view name, std::vector<std::int64_t> fallback = {}) const;
  std::vector<float> numbers(std::string_view name) const;
  std::vector<std::string> texts(std::string_view name) const;
  const AttributeProto* find(std::string_view name) const;
  const GraphProto& subgraph(std::string_view name) const;

  // --- Helpers ---
  // An op of the catalogue.
  build::Expr apply(std::string_view op, std::initializer_list<build::Expr> inputs,
                    std::initializer_list<NamedValue> parameters = {}) const;
  int axis(std::string_view attribute, std::int64_t fallback, int rank) const;
  std::vector<int> axes_of(const std::vector<std::int64_t>& axes, int rank) const;  // normalised, sorted, distinct
  build::Expr constant(HostArray array) const;
  build::Expr constant(std::vector<std::int64_t> values) const;

  // Throws invalid_argument naming the node.
  [[noreturn]] void fail(const std::string& problem) const;
  // Throws unimplemented naming the node.
  [[noreturn]] void refuse(const std::string& reason) const;

 private:
  // What a weight of this node depends on besides inputs: the node and, in a function, the attributes that its caller gives.
  std::vector<const void*> weight_sources() const;

  Importer& importer_;
  const NodeProto& node_;
  const Scope& scope_;
  std::vector<ValuePtr> inputs_;
  std::int64_t version_;
};

using Converter = Results (*)(const NodeContext& node);

// The converter of an op; nullptr if there is none.
Converter find_converter(std::string_view domain, std::string_view op);
// Every op with a converter, "domain.Op" outside ONNX's own domain; sorted.
std::vector<std::string> supported_ops();

// --- For converters ---
using build::Dims;
using build::Expr;

// Between types as ONNX defines it: integers keep their low bits.
Expr convert(Expr x, DType to);
// A product of operands as |dtype|.
Expr like(Expr product, DType dtype);
// A sum, product ... of the same type as before, where reductions widen small integers.
AxisSet axis_set(const std::vector<int>& axes);
std::string node_label(const NodeProto& node);  // "MatMul 'encoder/dense'"

}  // namespace tenon::onnx
