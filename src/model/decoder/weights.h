// The weights of a decoder as values for programs: small integers as the file has them, or floats.
//
// Lifetime: a value; copies share the tensors, which move between host and device like every Storage.
// Thread safety: const calls may run concurrently.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "lease/storage.h"
#include "model/decoder/architecture.h"
#include "model/gguf/source.h"
#include "tenon/graph.h"

namespace tenon::decoder {

// How matrices are kept.
enum class WeightForm : std::uint8_t {
  as_stored,  // small integers and their scales, where the backend multiplies them as they are
  half,       // 16-bit floats
  single,     // 32-bit floats
};

// A matrix [rows, columns] that x is multiplied with, transposed.
struct Matrix {
  std::int64_t rows = 0;         // of results; stored ones may be more
  std::int64_t stored_rows = 0;  // a multiple of 16 for small integers
  std::int64_t columns = 0;
  std::optional<QuantizedMatMulAttr> codes;     // none: floats
  std::vector<std::shared_ptr<Storage>> parts;  // codes, scales and minima, or one matrix of floats
  std::shared_ptr<Storage> bias;                // f32 [rows]; may be null
};

// A normalisation: f32 [width of what it normalises].
struct Norm {
  std::shared_ptr<Storage> scale, bias;  // null where the model has none
};

// Products of one input are one matrix where the file has them in one format: its results stand one after the other.
struct FeedForward {
  std::vector<Matrix> gate_up;  // without a gate: one
  Matrix down;
};

// A matrix |gate_up| has the rows of one expert after the other, |down| their columns: what some experts need is cut out of each
// along one axis. |router| and |shared_gate| are floats.
struct Experts {
  Matrix router;
  FeedForward all;
  std::optional<Matrix> shared_gate;  // by whose sigmoid the shared expert is multiplied
};

struct Layer {
  // Before the attention and the feed-forward, and of their results; models have some of them.
  Norm attention_norm, feed_forward_norm, after_attention, after_feed_forward;
  Norm q_norm, k_norm;      // of each head, or of all together: by their width
  std::vector<Matrix> qkv;  // as in FeedForward
  Matrix output;
  std::optional<Experts> experts;
  std::optional<FeedForward> feed_forward;  // beside experts: the shared one
};

struct Weights {
  std::vector<Layer> layers;
  Norm norm, embedding_norm;
  std::shared_ptr<Storage> slopes;  // ALiBi: f32 [heads]
  Matrix head;
  Matrix embedding;  // the table of tokens, if it was asked for; may share its parts with |head|
  std::uint64_t bytes = 0;
};

// Reads all weights; |with_embedding|: the table of tokens, too. Throws invalid_argument for tensors that are missing or have the
// wrong shape.
Weights load_weights(const gguf::Source& source, const Architecture& architecture, WeightForm form, bool with_embedding);

}  // namespace tenon::decoder
