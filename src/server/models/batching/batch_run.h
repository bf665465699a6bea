// Running a batch of a model: the arrays of its items below each other, padded to one length, and the outputs cut apart again.
//
// Whether a model may be batched is found out, not assumed: its inputs and outputs must share a leading batch axis, and an item's
// output must have the same bits alone and in company. A model that computes something over the whole batch (int8 models with
// dynamic quantisation) fails the second and is never batched.
// Thread safety: all calls may run concurrently.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "server/models/batching/batch_queue.h"
#include "tenon/model.h"
#include "tenon/model/encoder.h"

namespace tenon::server {

// What the shapes of a model's inputs and outputs allow.
struct BatchLayout {
  bool has_batch_axis = false;
  std::string reason;  // why not
  // The mask that makes axis 1 of these a length; empty: nothing is padded.
  std::string mask;
  std::set<std::string> padded_inputs, padded_outputs;
};
BatchLayout batch_layout(const ModelInfo& info);

// The same key for requests that can run together, apart from the length.
std::string batch_key(const NamedArrays& inputs, const BatchLayout& layout, bool pads);

// The outputs of each item of |batch|, whose items have arrays. Throws what the model throws.
std::vector<NamedArrays> run_arrays(const Model& model, const BatchLayout& layout, std::span<const BatchItem> items,
                                    std::int64_t length, const RunOptions& options);
// The same for items that are tokens: one output "embedding".
std::vector<NamedArrays> run_tokens(const Encoder& encoder, std::span<const BatchItem> items, std::int64_t length,
                                    const RunOptions& options);

bool have_equal_bits(const NamedArrays& a, const NamedArrays& b);

struct BatchingVerdict {
  bool batches = false;
  bool pads = false;   // arrays of different lengths run together
  std::string reason;  // why not, or what is known; shown to people
};
// Runs the model on small inputs, alone and in batches, and compares the bits. |encoder| may be null.
BatchingVerdict probe_batching(const Model& model, const Encoder* encoder, const BatchLayout& layout, const RunOptions& options);

// The largest sum of values that are alive at one time while |graph| runs, inputs not included: an estimate from above for
// backends that reuse memory.
std::uint64_t peak_bytes(const Graph& graph);

}  // namespace tenon::server
