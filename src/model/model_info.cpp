#include "model/model_info.h"

#include <fmt/format.h>

#include <numeric>
#include <set>

#include "base/text/printable.h"

namespace tenon {
namespace {

using onnx::TypeProto;

std::string type_text(const TypeProto& type) {
  switch (type.kind) {
    case TypeProto::Kind::sequence: return fmt::format("sequence of {}", type_text(*type.item));
    case TypeProto::Kind::optional: return fmt::format("optional {}", type_text(*type.item));
    default: return std::string(name(type.element));
  }
}

ModelValue value_of(const onnx::ValueInfoProto& info) {
  ModelValue value{.name = std::string(info.name), .type = type_text(info.type), .has_shape = info.type.has_shape};
  const bool is_number = info.type.kind == TypeProto::Kind::tensor && info.type.element != onnx::ElementType::undefined &&
                         info.type.element != onnx::ElementType::string && info.type.element != onnx::ElementType::complex64 &&
                         info.type.element != onnx::ElementType::complex128;
  if (is_number) value.dtype = held_as(info.type.element);
  for (const TypeProto::Dim& dim : info.type.dims) value.shape.push_back({dim.extent, std::string(dim.name)});
  return value;
}

// Elements of a tensor as the file describes them; checked when the tensor is read.
std::int64_t elements(const onnx::TensorProto& tensor) {
  std::int64_t product = 1;
  for (const std::int64_t dim : tensor.dims)
    if (dim < 0 || (dim > 0 && product > kMaxElements / dim))
      return 0;
    else
      product *= dim;
  return product;
}

void count(const std::vector<onnx::NodeProto>& nodes, ModelInfo& info);

void count(const onnx::TensorProto& tensor, ModelInfo& info) {
  const std::int64_t size = elements(tensor);
  info.parameters += size;
  info.weight_bytes += (static_cast<std::size_t>(size) * static_cast<std::size_t>(bits(tensor.type)) + 7) / 8;
}

void count(const onnx::GraphProto& graph, ModelInfo& info) {
  for (const onnx::TensorProto& tensor : graph.initializers) count(tensor, info);
  count(graph.nodes, info);
}

void count(const std::vector<onnx::NodeProto>& nodes, ModelInfo& info) {
  for (const onnx::NodeProto& node : nodes) {
    ++info.nodes;
    ++info.ops[(node.domain.empty() ? "" : printable(node.domain) + ".") + printable(node.op)];
    for (const onnx::AttributeProto& attribute : node.attributes) {
      if (attribute.tensor && node.op == "Constant") count(*attribute.tensor, info);
      if (attribute.graph) count(*attribute.graph, info);
    }
  }
}

}  // namespace

std::string to_string(const ModelValue& value) {
  std::string shape;
  for (const ModelValue::Extent& each : value.shape) {
    if (!shape.empty()) shape += ", ";
    shape += each.extent ? std::to_string(*each.extent) : each.name.empty() ? "?" : printable(each.name);
  }
  return fmt::format("{}: {}{}{}", printable(value.name), value.type, value.has_shape ? fmt::format(" [{}]", shape) : "",
                     value.is_optional ? " (optional)" : "");
}

ModelInfo info_of(const onnx::LoadedModel& model) {
  const onnx::ModelProto& proto = model.proto;
  ModelInfo info{.format = "ONNX"};
  info.producer = printable(proto.producer);
  if (!proto.producer_version.empty()) info.producer += " " + printable(proto.producer_version);
  const auto opset = proto.opsets.find("");
  info.opset = opset == proto.opsets.end() ? 0 : opset->second;
  for (const onnx::ValueInfoProto& each : proto.graph.inputs) {
    info.inputs.push_back(value_of(each));
    for (const onnx::TensorProto& tensor : proto.graph.initializers)
      if (tensor.name == each.name) info.inputs.back().is_optional = true;
  }
  for (const onnx::ValueInfoProto& each : proto.graph.outputs) info.outputs.push_back(value_of(each));
  count(proto.graph, info);
  for (const onnx::FunctionProto& function : proto.functions) count(function.nodes, info);
  for (const auto& [key, value] : proto.metadata) info.metadata.emplace(key, value);
  return info;
}

std::vector<ModelNode> nodes_of(const onnx::LoadedModel& model, std::size_t first, std::size_t count) {
  const onnx::GraphProto& graph = model.proto.graph;
  std::set<std::string_view> weights;
  for (const onnx::TensorProto& tensor : graph.initializers) weights.insert(tensor.name);
  std::vector<ModelNode> nodes;
  for (std::size_t i = first; i < graph.nodes.size() && nodes.size() < count; ++i) {
    const onnx::NodeProto& proto = graph.nodes[i];
    ModelNode& node = nodes.emplace_back();
    node.name = printable(proto.name);
    node.op = (proto.domain.empty() ? "" : printable(proto.domain) + ".") + printable(proto.op);
    for (const std::string_view name : proto.inputs)
      if (!name.empty()) (weights.contains(name) ? node.weights : node.inputs).push_back(printable(name));
    for (const std::string_view name : proto.outputs)
      if (!name.empty()) node.outputs.push_back(printable(name));
  }
  return nodes;
}

}  // namespace tenon
