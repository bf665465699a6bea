#include "server/compute/program/estimates.h"

#include <algorithm>

#include "present/tensor/tensor.h"
#include "reference/reference.h"
#include "server/compute/program/compute_request.h"

namespace tenon::server {
namespace {

constexpr std::uint64_t kAnswerBytes = 8 << 10;  // of all that is there once
constexpr std::uint64_t kResultBytes = 3 << 10;  // names, shape, sample, statistics, comparison
constexpr std::uint64_t kInputBytes = 1 << 10;
constexpr std::uint64_t kLongestNumber = 25;  // "-2.2250738585072014e-308,"

// The longest text of a value and its comma, and the bytes of the copy that it is written from.
struct ValueText {
  std::uint64_t longest = 0, copy = 0;
};
ValueText value_text(DType dtype) {
  switch (dtype) {
    case DType::boolean: return {6, 9};
    case DType::u8:
    case DType::i8: return {5, 0};
    case DType::u16:
    case DType::i16: return {7, 0};
    case DType::u32:
    case DType::i32: return {12, 0};
    case DType::f32: return {17, 0};
    case DType::u64:
    case DType::i64:
    case DType::f64: return {kLongestNumber, 0};
    default: return {17, 4};
  }
}

// The brackets and commas of nested lists.
std::uint64_t list_bytes(const Shape& shape) {
  if (shape.elements() == 0) return 4096;  // write_values() shows an empty tensor of many rows as []
  std::uint64_t lists = 1, all = 0;
  for (const std::int64_t extent : shape) {
    all += lists;
    lists *= static_cast<std::uint64_t>(extent);
  }
  return all * 3;
}

std::uint64_t json_bytes(const ComputeRequest& program) {
  std::uint64_t bytes = kAnswerBytes + 2 * program.expression.size();
  if (program.details) bytes += program.inputs.size() * kInputBytes;
  bool is_first = true;
  for (const NodeId id : program.graph.outputs()) {
    const Node& node = program.graph[id];
    const auto elements = static_cast<std::uint64_t>(node.shape.elements());
    bytes += kResultBytes;
    if (program.details) {
      bytes += std::min<std::uint64_t>(elements, present::kGridSide * present::kGridSide) * kLongestNumber;
      if (is_block(node.dtype)) bytes += elements * sizeof(float);
    }
    // The first result is in the answer twice.
    if (program.output == OutputForm::full) bytes += text_bytes(node.dtype, node.shape) * (is_first ? 2 : 1);
    is_first = false;
  }
  return bytes;
}

}  // namespace

std::uint64_t graph_bytes(const Graph& graph) {
  std::uint64_t bytes = static_cast<std::uint64_t>(graph.size()) * kNodeBytes;
  for (NodeId id = 0; id < graph.size(); ++id)
    if (graph[id].prim == Prim::constant) bytes += graph[id].as<ConstantAttr>().value.bytes();
  return bytes;
}

std::uint64_t text_bytes(DType dtype, const Shape& shape) {
  const ValueText value = value_text(dtype);
  return list_bytes(shape) + static_cast<std::uint64_t>(shape.elements()) * (value.longest + value.copy);
}

std::uint64_t csv_bytes(DType dtype, const Shape& shape) {
  return 2 * text_bytes(dtype, shape) + static_cast<std::uint64_t>(shape.elements()) * sizeof(std::int64_t);
}

std::uint64_t answer_bytes(const ComputeRequest& program) {
  if (program.output == OutputForm::sample || program.output == OutputForm::full) return json_bytes(program);
  std::uint64_t bytes = kAnswerBytes;
  for (const NodeId id : program.graph.outputs()) {
    const Node& node = program.graph[id];
    bytes +=
        256 + (program.output == OutputForm::csv ? csv_bytes(node.dtype, node.shape) : storage_bytes(node.dtype, node.shape));
  }
  return bytes;
}

std::uint64_t reference_bytes(const Graph& graph) {
  // compare() has the result, the reference and the rounded reference as doubles, the last two also as arrays.
  constexpr std::uint64_t kComparedBytes = 6 * sizeof(double);
  std::uint64_t bytes = reference_peak_bytes(graph);
  for (const NodeId id : graph.outputs()) bytes += static_cast<std::uint64_t>(graph[id].shape.elements()) * kComparedBytes;
  return bytes;
}

std::uint64_t result_bytes(std::span<const HostArray> results) {
  std::uint64_t bytes = 0;
  for (const HostArray& array : results) bytes += array.bytes();
  return bytes;
}

}  // namespace tenon::server
