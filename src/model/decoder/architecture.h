// What a model says about its decoder: sizes, how positions enter, and where its family differs from Llama.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "model/gguf/source.h"

namespace tenon::decoder {

enum class Activation : std::uint8_t { silu, gelu, gelu_tanh, relu };

struct Architecture {
  std::string name;  // "llama"
  std::int64_t layers = 0, width = 0, feed_forward = 0, heads = 0, kv_heads = 0, head_width = 0, vocabulary = 0;
  std::int64_t context = 0;  // the longest sequence
  // Normalisation: by the root mean square, or (centred) by mean and variance. Checkpoints of Gemma have the scale minus one.
  double norm_eps = 1e-5;
  bool is_centred = false, norms_add_one = false;
  // Rotary positions: the first |rotated| elements of a head turn in pairs, pair i by position * frequencies[i]. Files pair
  // neighbours or halves; neighbours are brought to halves when weights are loaded. A second set of frequencies, for windowed
  // layers, follows the first. Without rotary positions there is one frequency, which nothing uses.
  std::int64_t rotated = 0;
  bool pairs_neighbours = false, has_two_sets = false;
  std::vector<double> frequencies;
  double rotation_scale = 1;            // of cosines and sines
  bool has_position_embedding = false;  // learned ones (GPT-2), added to those of tokens
  // Attention. Scores are multiplied by the scale and, with a cap c, become c tanh(score / c). A query of a windowed layer sees
  // the last |window| keys, itself included.
  double attention_scale = 1, attention_cap = 0;
  std::int64_t window = 0;
  std::vector<bool> windowed, turned;  // by layer; |turned|: has rotary positions
  bool has_qkv_by_head = false;        // a fused matrix has query, key and value of one head after the other
  // Feed-forward: gated, or one matrix and an activation. Parallel: it reads what the attention reads, not its result.
  Activation activation = Activation::silu;
  bool is_gated = true, is_parallel = false;
  double embedding_scale = 1, residual_scale = 1, logit_scale = 1, logit_cap = 0;

  std::int64_t rows_per_head() const { return heads / kv_heads; }
  std::int64_t angles() const { return static_cast<std::int64_t>(frequencies.size()); }
  // Whether all layers see all keys and turn by the same angles, and positions enter in no other way.
  bool is_uniform() const {
    return window == 0 && !has_two_sets && !has_position_embedding && std::ranges::find(turned, false) == turned.end();
  }
};

// Throws invalid_argument for numbers that are missing or do not fit, unimplemented naming an architecture or a feature that is
// not supported.
Architecture architecture_of(const gguf::Source& source);

// Settings that GGUF has no key for, which readers of other formats set.
inline constexpr std::string_view kActivation = "tenon.activation";            // a text: Hugging Face's name
inline constexpr std::string_view kNormsAddOne = "tenon.norms_add_one";        // a bool, as are the next two
inline constexpr std::string_view kQkvByHead = "tenon.qkv_by_head";            //
inline constexpr std::string_view kPairsHalves = "tenon.pairs_halves";         //
inline constexpr std::string_view kRopeDivisors = "tenon.rope_divisors";       // a list, one per pair of elements
inline constexpr std::string_view kWindowedLayers = "tenon.windowed_layers";   // a list of 0 and 1, as is the next
inline constexpr std::string_view kTurnedLayers = "tenon.turned_layers";       //
inline constexpr std::string_view kWindowedBase = "tenon.rope_windowed_base";  // a number

}  // namespace tenon::decoder
