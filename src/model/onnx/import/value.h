// Value: what a name of an ONNX graph stands for while the graph is imported.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "model/onnx/element_type.h"
#include "ops/build.h"
#include "tenon/array.h"
#include "tenon/graph.h"

namespace tenon::onnx {

struct TensorProto;

struct Value;
using ValuePtr = std::shared_ptr<Value>;

struct Value {
  enum class Kind : std::uint8_t { tensor, sequence, optional };
  Kind kind = Kind::tensor;

  // A tensor. It has a value that is known on the host, a node of a graph, or both.
  ElementType type = ElementType::undefined;
  Shape shape;
  std::optional<HostArray> host;
  std::shared_ptr<const std::vector<std::string>> strings;  // the elements of a tensor of strings, always known
  const Graph* graph = nullptr;                             // to which |node| belongs
  NodeId node = -1;
  int weight = -1;                      // its place among the model's weights; -1 for any other value
  const TensorProto* tensor = nullptr;  // of the file, of which it is the value

  // The items of a sequence; one or none of an optional.
  std::vector<ValuePtr> items;

  bool is_string() const noexcept { return strings != nullptr; }
  DType dtype() const { return held_as(type); }
};

inline ValuePtr known(HostArray array, ElementType type = ElementType::undefined) {
  auto value = std::make_shared<Value>();
  value->type = type == ElementType::undefined ? element_type(array.dtype()) : type;
  value->shape = array.shape();
  value->host = std::move(array);
  return value;
}

inline ValuePtr text(const Shape& shape, std::vector<std::string> elements) {
  auto value = std::make_shared<Value>();
  value->type = ElementType::string;
  value->shape = shape;
  value->strings = std::make_shared<std::vector<std::string>>(std::move(elements));
  return value;
}

inline ValuePtr container(Value::Kind kind, std::vector<ValuePtr> items) {
  auto value = std::make_shared<Value>();
  value->kind = kind;
  value->items = std::move(items);
  return value;
}

inline ValuePtr computed(build::Expr x, ElementType type = ElementType::undefined) {
  auto value = std::make_shared<Value>();
  value->type = type == ElementType::undefined ? element_type(x.dtype()) : type;
  value->shape = x.shape();
  value->graph = &x.graph();
  value->node = x.id();
  return value;
}

}  // namespace tenon::onnx
