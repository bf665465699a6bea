#include "reference/reference.h"
#include "base/threads/stop_scope.h"

#include <fmt/format.h>

#include <algorithm>

#include "ops/elementwise/reference.h"
#include "reference/kernels.h"
#include "tenon/error.h"

namespace tenon {
namespace {

using namespace reference;

constexpr NodeId kNever = -1;
constexpr NodeId kAlways = Graph::kMaxNodes + 1;

// For every node, the last node that reads it; kNever if no node that an output needs does.
std::vector<NodeId> last_uses(const Graph& graph) {
  std::vector<NodeId> last(static_cast<std::size_t>(graph.size()), kNever);
  for (NodeId id : graph.outputs()) last[static_cast<std::size_t>(id)] = kAlways;
  for (NodeId id = graph.size() - 1; id >= 0; --id) {
    if (last[static_cast<std::size_t>(id)] == kNever) continue;
    for (NodeId used : graph[id].inputs) {
      NodeId& use = last[static_cast<std::size_t>(used)];
      use = std::max(use, id);
    }
  }
  return last;
}

std::size_t value_bytes(const Node& node) {
  return static_cast<std::size_t>(node.shape.elements()) * element_bytes(storage_dtype(node.dtype));
}

// Values that no output needs are not computed.
std::size_t peak_bytes(const Graph& graph, const std::vector<NodeId>& last) {
  std::size_t live = 0, peak = 0;
  for (NodeId id = 0; id < graph.size(); ++id) {
    if (last[static_cast<std::size_t>(id)] == kNever) continue;
    live += value_bytes(graph[id]);
    peak = std::max(peak, live);
    std::vector<NodeId> used = graph[id].inputs;
    std::sort(used.begin(), used.end());
    used.erase(std::unique(used.begin(), used.end()), used.end());
    for (NodeId x : used)
      if (last[static_cast<std::size_t>(x)] == id) live -= value_bytes(graph[x]);
  }
  return peak;
}

void check_memory(const Graph& graph, const std::vector<NodeId>& last) {
  if (const std::size_t peak = peak_bytes(graph, last); peak > kReferenceMaxBytes)
    throw Error(
        ErrorCode::resource_exhausted,
        fmt::format("the reference would need {} MiB of memory; its limit is {} MiB", peak >> 20, kReferenceMaxBytes >> 20),
        "compare smaller tensors");
}

void check_inputs(const Graph& graph, std::span<const HostArray> inputs) {
  if (inputs.size() != graph.inputs().size())
    throw Error(ErrorCode::invalid_argument,
                fmt::format("the program has {} inputs, but {} were given", graph.inputs().size(), inputs.size()));
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const Node& node = graph[graph.inputs()[i]];
    if (inputs[i].dtype() != node.dtype || !(inputs[i].shape() == node.shape))
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("input {} is {} {}, but the program expects {} {}", node.as<InputAttr>().name,
                              name(inputs[i].dtype()), to_string(inputs[i].shape()), name(node.dtype), to_string(node.shape)));
  }
}

HostArray evaluate_elementwise(const Node& node, std::span<const HostArray> inputs) {
  const ElementwiseAttr& attr = node.as<ElementwiseAttr>();
  HostArray out = HostArray::empty(storage_dtype(node.dtype), node.shape);
  std::array<const void*, 4> pointers{};
  for (std::size_t i = 0; i < inputs.size(); ++i) pointers[i] = inputs[i].data();
  const DType dtype = inputs.back().dtype();
  std::byte* const to = out.mutable_data();
  const std::size_t to_bytes = element_bytes(out.dtype());
  in_chunks(out.elements(), [&](std::int64_t first, std::int64_t count) {
    std::array<const void*, 4> at{};
    for (std::size_t i = 0; i < inputs.size(); ++i)
      at[i] = static_cast<const std::byte*>(pointers[i]) + static_cast<std::size_t>(first) * element_bytes(inputs[i].dtype());
    evaluate_block(attr.op, dtype, at.data(), to + static_cast<std::size_t>(first) * to_bytes, count, attr.params.data());
  });
  return out;
}

// Block formats share exponents along rows, so a cast converts the whole tensor to that format.
HostArray evaluate_cast(const Node& node, const HostArray& x) { return x.cast(node.dtype).cast(storage_dtype(node.dtype)); }

HostArray evaluate(const Node& node, std::span<const HostArray> in, std::span<const HostArray> arguments) {
  switch (node.prim) {
    case Prim::input: return arguments[static_cast<std::size_t>(node.as<InputAttr>().index)].cast(storage_dtype(node.dtype));
    case Prim::constant: return node.as<ConstantAttr>().value.cast(storage_dtype(node.dtype));
    case Prim::elementwise: return evaluate_elementwise(node, in);
    case Prim::cast: return evaluate_cast(node, in[0]);
    case Prim::reshape: return in[0].reshape(node.shape);
    case Prim::broadcast:
    case Prim::transpose:
    case Prim::slice: return evaluate_view(node, in[0]);
    case Prim::pad: return evaluate_pad(node, in[0]);
    case Prim::concat: return evaluate_concat(node, in);
    case Prim::take: return evaluate_take(node, in[0], in[1]);
    case Prim::gather: return evaluate_gather(node, in[0], in[1]);
    case Prim::scatter: return evaluate_scatter(node, in[0], in[1], in[2]);
    case Prim::iota: return evaluate_iota(node);
    case Prim::reduce: return evaluate_reduce(node, in[0]);
    case Prim::arg_reduce: return evaluate_arg_reduce(node, in[0]);
    case Prim::matmul: return evaluate_matmul(node, in[0], in[1]);
    case Prim::conv: return evaluate_conv(node, in[0], in[1]);
    case Prim::window: return evaluate_window(node, in[0]);
    case Prim::arg_sort: return evaluate_arg_sort(node, in[0]);
    case Prim::cumulative: return evaluate_cumulative(node, in[0]);
    case Prim::random: return evaluate_random(node);
    case Prim::region: break;
  }
  throw Error(ErrorCode::internal, "the reference does not support this primitive");
}

}  // namespace

std::vector<HostArray> reference_unrounded(const Graph& graph, std::span<const HostArray> arguments) {
  check_inputs(graph, arguments);
  const std::vector<NodeId> last = last_uses(graph);
  check_memory(graph, last);

  std::vector<HostArray> values(static_cast<std::size_t>(graph.size()));
  for (NodeId id = 0; id < graph.size(); ++id) {
    if (last[static_cast<std::size_t>(id)] == kNever) continue;
    check_stop();
    const Node& node = graph[id];
    std::vector<HostArray> in;
    for (NodeId used : node.inputs) in.push_back(values[static_cast<std::size_t>(used)]);
    values[static_cast<std::size_t>(id)] = evaluate(node, in, arguments);
    for (NodeId used : node.inputs)
      if (last[static_cast<std::size_t>(used)] == id) values[static_cast<std::size_t>(used)] = HostArray();
  }
  std::vector<HostArray> outputs;
  for (NodeId id : graph.outputs()) outputs.push_back(values[static_cast<std::size_t>(id)]);
  return outputs;
}

std::size_t reference_peak_bytes(const Graph& graph) { return peak_bytes(graph, last_uses(graph)); }

std::vector<HostArray> reference_run(const Graph& graph, std::span<const HostArray> inputs) {
  std::vector<HostArray> outputs = reference_unrounded(graph, inputs);
  for (std::size_t i = 0; i < outputs.size(); ++i) outputs[i] = outputs[i].cast(graph[graph.outputs()[i]].dtype);
  return outputs;
}

std::vector<std::vector<double>> reference_doubles(const Graph& graph, std::span<const HostArray> inputs) {
  std::vector<std::vector<double>> values;
  for (const HostArray& output : reference_unrounded(graph, inputs)) values.push_back(output.to_doubles());
  return values;
}

}  // namespace tenon
