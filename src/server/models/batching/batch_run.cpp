#include "server/models/batching/batch_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "base/text/printable.h"
#include "graph/view.h"
#include "tenon/error.h"

namespace tenon::server {
namespace {

bool is_any(const ModelValue& value, std::size_t axis) {
  return value.has_shape && value.shape.size() > axis && !value.shape[axis].extent;
}

// Axis 1 of |value| is the length that the mask has.
bool is_padded(const ModelValue& value, const ModelValue& mask) {
  return is_any(value, 1) && (value.shape[1].name == mask.shape[1].name || value.shape[1].name.empty());
}

std::string missing_batch_axis(const ModelValue& value, std::string& batch_name) {
  if (!value.dtype) return fmt::format("'{}' is not a tensor", printable(value.name));
  if (!value.has_shape) return fmt::format("the rank of '{}' is not known", printable(value.name));
  if (value.shape.empty()) return fmt::format("'{}' is a scalar", printable(value.name));
  if (value.shape[0].extent)
    return fmt::format("the first axis of '{}' is always {}", printable(value.name), *value.shape[0].extent);
  const std::string& name = value.shape[0].name;
  if (batch_name.empty()) batch_name = name;
  if (!name.empty() && name != batch_name)
    return fmt::format("the first axes have different names, '{}' and '{}'", printable(batch_name), printable(name));
  for (std::size_t i = 1; i < value.shape.size(); ++i)
    if (!name.empty() && !value.shape[i].extent && value.shape[i].name == name)
      return fmt::format("'{}' has the batch in two axes", printable(value.name));
  return {};
}

const NamedArrays& arrays_of(const BatchItem& item) { return std::get<NamedArrays>(item.input); }

// Rows of [length, ...] into rows of [padded, ...], the rest zero.
void copy_rows(const HostArray& from, std::byte* to, std::int64_t padded) {
  const auto rows = static_cast<std::size_t>(from.shape()[0]);
  if (rows == 0 || from.bytes() == 0) return;
  const std::size_t row = from.bytes() / rows;
  const std::size_t stride =
      padded == 0 ? row : row / static_cast<std::size_t>(from.shape()[1]) * static_cast<std::size_t>(padded);
  for (std::size_t i = 0; i < rows; ++i) {
    std::memcpy(to + i * stride, from.data() + i * row, row);
    std::memset(to + i * stride + row, 0, stride - row);
  }
}

HostArray stacked(std::span<const BatchItem> items, const std::string& name, std::int64_t padded) {
  const HostArray& first = arrays_of(items.front()).at(name);
  if (items.size() == 1 && (padded == 0 || first.shape()[1] == padded)) return first;
  std::vector<std::int64_t> extents(first.shape().begin(), first.shape().end());
  extents[0] = 0;
  for (const BatchItem& item : items) extents[0] += item.rows;
  if (padded != 0) extents[1] = padded;
  HostArray out = HostArray::empty(first.dtype(), Shape(extents));
  std::byte* at = out.mutable_data();
  for (const BatchItem& item : items) {
    if (const Shape& shape = arrays_of(item).at(name).shape(); padded != 0 && shape[1] > padded)
      throw Error(ErrorCode::internal,
                  fmt::format("'{}' has the length {}, and its batch {}", printable(name), shape[1], padded));
    copy_rows(arrays_of(item).at(name), at, padded);
    at += static_cast<std::size_t>(item.rows) * (out.bytes() / static_cast<std::size_t>(std::max<std::int64_t>(extents[0], 1)));
  }
  return out;
}

// Rows [begin, begin + rows) of |all|, of each the first |length| of axis 1 if |length| is not 0.
HostArray cut(const HostArray& all, std::int64_t begin, std::int64_t rows, std::int64_t length) {
  std::vector<std::int64_t> extents(all.shape().begin(), all.shape().end());
  const std::size_t stride = all.shape()[0] == 0 ? 0 : all.bytes() / static_cast<std::size_t>(all.shape()[0]);
  const std::size_t row = length == 0 || all.shape()[1] == 0
                              ? stride
                              : stride / static_cast<std::size_t>(all.shape()[1]) * static_cast<std::size_t>(length);
  extents[0] = rows;
  if (length != 0) extents[1] = length;
  HostArray out = HostArray::empty(all.dtype(), Shape(extents));
  for (std::int64_t i = 0; i < rows; ++i)
    std::memcpy(out.mutable_data() + static_cast<std::size_t>(i) * row, all.data() + static_cast<std::size_t>(begin + i) * stride,
                row);
  return out;
}

}  // namespace

BatchLayout batch_layout(const ModelInfo& info) {
  BatchLayout layout;
  std::string batch_name;
  for (const std::vector<ModelValue>* values : {&info.inputs, &info.outputs})
    for (const ModelValue& value : *values)
      if (layout.reason.empty() && !value.is_optional) layout.reason = missing_batch_axis(value, batch_name);
  if (layout.reason.empty() && (info.inputs.empty() || info.outputs.empty()))
    layout.reason = "the model has no inputs or no outputs";
  layout.has_batch_axis = layout.reason.empty();
  if (!layout.has_batch_axis) return layout;
  const auto mask = std::find_if(info.inputs.begin(), info.inputs.end(), [](const ModelValue& value) {
    return (value.name == "attention_mask" || value.name == "mask") && value.shape.size() == 2 && is_any(value, 1);
  });
  if (mask == info.inputs.end()) return layout;
  layout.mask = mask->name;
  for (const ModelValue& value : info.inputs)
    if (is_padded(value, *mask)) layout.padded_inputs.insert(value.name);
  for (const ModelValue& value : info.outputs)
    if (is_padded(value, *mask)) layout.padded_outputs.insert(value.name);
  return layout;
}

std::string batch_key(const NamedArrays& inputs, const BatchLayout& layout, bool pads) {
  std::string key;
  for (const auto& [name, array] : inputs) {
    key += fmt::format("{}:{}={}", name.size(), name, tenon::name(array.dtype()));
    for (int axis = 1; axis < array.shape().rank(); ++axis) {
      const bool is_length = pads && axis == 1 && layout.padded_inputs.contains(name);
      key += is_length ? std::string(",L") : fmt::format(",{}", array.shape()[axis]);
    }
  }
  return key;
}

std::vector<NamedArrays> run_arrays(const Model& model, const BatchLayout& layout, std::span<const BatchItem> items,
                                    std::int64_t length, const RunOptions& options) {
  Model::Tensors inputs;
  for (const auto& [name, array] : arrays_of(items.front()))
    inputs.emplace(name, Tensor(stacked(items, name, layout.padded_inputs.contains(name) ? length : 0)));
  const Model::Tensors outputs = model(inputs, options);
  std::vector<NamedArrays> results(items.size());
  for (const auto& [name, tensor] : outputs) {
    const HostArray all = tensor.to_host();
    if (items.size() == 1 && length == 0) {
      results[0].emplace(name, all);
      continue;
    }
    std::int64_t total = 0;
    for (const BatchItem& item : items) total += item.rows;
    if (all.shape().rank() == 0 || all.shape()[0] != total)
      throw Error(ErrorCode::internal,
                  fmt::format("output '{}' has the shape {} for a batch of {}", printable(name), to_string(all.shape()), total));
    const bool is_cut = length != 0 && layout.padded_outputs.contains(name) && all.shape().rank() > 1 && all.shape()[1] == length;
    std::int64_t begin = 0;
    for (std::size_t i = 0; i < items.size(); ++i) {
      results[i].emplace(name, cut(all, begin, items[i].rows, is_cut ? items[i].length : 0));
      begin += items[i].rows;
    }
  }
  return results;
}

std::vector<NamedArrays> run_tokens(const Encoder& encoder, std::span<const BatchItem> items, std::int64_t length,
                                    const RunOptions& options) {
  std::vector<Tokens> texts;
  for (const BatchItem& item : items) texts.push_back(std::get<Tokens>(item.input));
  const HostArray vectors = encoder.encode_tokens(texts, length, options);
  std::vector<NamedArrays> results(items.size());
  for (std::size_t i = 0; i < items.size(); ++i)
    results[i].emplace("embedding", cut(vectors, static_cast<std::int64_t>(i), 1, 0).reshape({vectors.shape()[1]}));
  return results;
}

bool have_equal_bits(const NamedArrays& a, const NamedArrays& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const auto& x, const auto& y) {
    return x.first == y.first && x.second.dtype() == y.second.dtype() && x.second.shape() == y.second.shape() &&
           std::memcmp(x.second.data(), y.second.data(), x.second.bytes()) == 0;
  });
}

std::uint64_t peak_bytes(const Graph& graph) {
  const auto count = static_cast<std::size_t>(graph.size());
  // What a fused loop computes and only such loops read takes no memory; views take none of their own but keep what they show.
  std::vector<bool> is_stored(count, false);
  std::vector<NodeId> last_use(count, 0);
  const auto at = [](NodeId id) { return static_cast<std::size_t>(id); };
  for (NodeId id = 0; id < graph.size(); ++id) {
    const Node& node = graph[id];
    const bool is_loop = is_view(node.prim) || node.prim == Prim::elementwise;
    for (const NodeId input : node.inputs) {
      last_use[at(input)] = id;
      if (!is_loop) is_stored[at(input)] = true;
    }
    if (!is_loop && node.prim != Prim::constant && node.prim != Prim::input) is_stored[at(id)] = true;
  }
  for (const NodeId output : graph.outputs()) {
    is_stored[at(output)] = true;
    last_use[at(output)] = graph.size();
  }
  // In reverse, so that a chain of fused nodes extends the life of what it reads.
  for (NodeId id = graph.size(); id-- > 0;)
    if (is_view(graph[id].prim) || graph[id].prim == Prim::elementwise)
      for (const NodeId input : graph[id].inputs) last_use[at(input)] = std::max(last_use[at(input)], last_use[at(id)]);
  std::vector<std::vector<NodeId>> ends(count + 1);
  std::uint64_t live = 0, peak = 0;
  for (NodeId id = 0; id < graph.size(); ++id) {
    const auto bytes = [&](NodeId of) { return storage_bytes(graph[of].dtype, graph[of].shape); };
    if (is_stored[at(id)] && graph[id].prim != Prim::input && graph[id].prim != Prim::constant) {
      live += bytes(id);
      ends[at(std::max(last_use[at(id)], id))].push_back(id);
    }
    peak = std::max(peak, live);
    for (const NodeId ended : ends[at(id)]) live -= bytes(ended);
  }
  return peak;
}

}  // namespace tenon::server
