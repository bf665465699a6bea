#include <fmt/format.h>

#include "server/models/batching/batch_run.h"
#include "tenon/error.h"
#include "tenon/tensor/functions.h"

namespace tenon::server {
namespace {

constexpr const char* kTexts[] = {
    "A red fox.",
    "The device was opened, used for two seconds and closed again.",
    "Rain",
    "Batches are formed from whatever has come while the model was busy; nobody waits for company while it is idle.",
    "One two three four five six seven eight nine ten.",
};
// An axis of any extent: small ones for sequences, larger ones for images, whose layers halve them several times.
constexpr std::int64_t kExtents[] = {24, 64, 224, 320, 1};
// Of an input of a probe; one of more is not worth its memory.
constexpr std::int64_t kMostElements = 1 << 22;

BatchItem item_of(NamedArrays arrays, std::int64_t length = 0) {
  BatchItem item;
  item.rows = arrays.begin()->second.shape()[0];
  item.length = length;
  item.input = std::move(arrays);
  return item;
}

// Numbers of a probe: floats from a fixed sequence; zeros and ones where the model may use them as indices.
HostArray probe_array(const ModelValue& value, std::int64_t extent, std::uint64_t seed) {
  std::vector<std::int64_t> extents{1};
  for (std::size_t i = 1; i < value.shape.size(); ++i) extents.push_back(value.shape[i].extent.value_or(extent));
  const Shape shape(extents);
  if (shape.elements() > kMostElements)
    throw Error(ErrorCode::resource_exhausted, fmt::format("the input '{}' has {} elements", value.name, shape.elements()));
  HostArray numbers = HostArray::empty(DType::f32, shape);
  std::uint64_t state = seed * 0x9E3779B97F4A7C15u + 1;
  for (float& each : numbers.mutable_view<float>()) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    const float uniform = static_cast<float>(state >> 40) / static_cast<float>(1 << 24);
    each = is_float(*value.dtype) ? uniform : uniform < 0.5f ? 0.0f : 1.0f;
  }
  return numbers.cast(*value.dtype);
}

struct Probe {
  const Model& model;
  const BatchLayout& layout;
  const RunOptions& options;

  std::vector<NamedArrays> together(std::span<const BatchItem> items, std::int64_t length) const {
    return run_arrays(model, layout, items, length, options);
  }
  // Whether each of |items| has the same bits alone, at its own length, as in one batch.
  bool holds(std::span<const BatchItem> items, std::int64_t length) const {
    const std::vector<NamedArrays> all = together(items, length);
    for (std::size_t i = 0; i < items.size(); ++i)
      if (!have_equal_bits(all[i], together(items.subspan(i, 1), 0)[0])) return false;
    return true;
  }
};

std::vector<BatchItem> text_items(const Encoder& encoder, const BatchLayout& layout, std::size_t length) {
  std::vector<BatchItem> items;
  for (const char* text : kTexts) {
    Tokens tokens = encoder.tokens(text);
    if (length != 0) {
      tokens.ids.resize(length, tokens.ids.back());
      tokens.types.resize(length, 0);
    }
    const Shape shape{1, static_cast<std::int64_t>(tokens.ids.size())};
    NamedArrays arrays;
    for (const ModelValue& value : encoder.model().info().inputs) {
      HostArray array = HostArray::zeros(DType::i64, shape);
      for (std::size_t i = 0; i < tokens.ids.size(); ++i)
        array.mutable_view<std::int64_t>()[i] =
            value.name == layout.mask                                                                         ? 1
            : value.name.find("type") != std::string::npos || value.name.find("segment") != std::string::npos ? tokens.types[i]
                                                                                                              : tokens.ids[i];
      if (value.dtype) arrays.emplace(value.name, array.cast(*value.dtype));
    }
    items.push_back(item_of(std::move(arrays), shape[1]));
  }
  return items;
}

bool vectors_hold(const Encoder& encoder, const RunOptions& options) {
  std::vector<BatchItem> items;
  std::int64_t longest = 1;
  for (const char* text : kTexts) {
    BatchItem item;
    item.input = encoder.tokens(text);
    longest = std::max(longest, static_cast<std::int64_t>(std::get<Tokens>(item.input).ids.size()));
    items.push_back(std::move(item));
  }
  longest = length_class(longest);
  const std::vector<NamedArrays> all = run_tokens(encoder, items, longest, options);
  for (std::size_t i = 0; i < items.size(); ++i)
    if (!have_equal_bits(all[i], run_tokens(encoder, std::span(items).subspan(i, 1), longest, options)[0])) return false;
  return true;
}

BatchingVerdict probe_text(const Encoder& encoder, const BatchLayout& layout, const RunOptions& options) {
  const Probe probe{encoder.model(), layout, options};
  const bool batches = probe.holds(text_items(encoder, layout, 16), 0) && vectors_hold(encoder, options);
  if (!batches) return {.reason = "results differ between a request alone and in a batch"};
  if (layout.mask.empty()) return {.batches = true, .reason = "equal lengths only: the model has no mask"};
  const std::vector<BatchItem> items = text_items(encoder, layout, 0);
  std::int64_t longest = 32;
  for (const BatchItem& item : items) longest = std::max(longest, item.length);
  const bool pads = probe.holds(items, length_class(longest));
  return {.batches = true,
          .pads = pads,
          .reason = pads ? "results have the same bits alone, in a batch and padded"
                         : "tensors of equal lengths only: padding changes the last bits; texts are padded to fixed lengths"};
}

BatchingVerdict probe_arrays(const Probe& probe) {
  std::string failure = "no probe ran";
  for (const std::int64_t extent : kExtents) {
    std::vector<BatchItem> items;
    for (std::uint64_t seed = 0; seed < 3; ++seed) {
      NamedArrays arrays;
      for (const ModelValue& value : probe.model.info().inputs)
        if (!value.is_optional) arrays.emplace(value.name, probe_array(value, extent, seed + 1));
      items.push_back(item_of(std::move(arrays)));
    }
    try {
      if (probe.holds(items, 0)) return {.batches = true, .reason = "results have the same bits alone and in a batch"};
      return {.reason = "results differ between a request alone and in a batch"};
    } catch (const Error& error) {
      if (error.code() == ErrorCode::cancelled || error.code() == ErrorCode::deadline_exceeded) throw;
      failure = error.what();
    }
  }
  return {.reason = fmt::format("it could not be tried: {}", failure)};
}

}  // namespace

BatchingVerdict probe_batching(const Model& model, const Encoder* encoder, const BatchLayout& layout, const RunOptions& options) {
  if (!layout.has_batch_axis) return {.reason = layout.reason};
  if (encoder != nullptr) return probe_text(*encoder, layout, options);
  return probe_arrays({model, layout, options});
}

}  // namespace tenon::server
