// What a model says about its decoder: sizes, how positions enter, and where its family differs from Llama.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "model/gguf/source.h"

namespace tenon::decoder {

enum class Activation : std::uint8_t { silu, gelu, gelu_tanh, relu, relu_squared };

struct Architecture {
  std::string name;  // "llama"
  std::int64_t layers = 0, width = 0, feed_forward = 0, heads = 0, kv_heads = 0, head_width = 0, vocabulary = 0;
  std::int64_t context = 0;  // the longest sequence
  // Normalisation: by the root mean square, or (centred) by mean and variance. Checkpoints of Gemma have the scale minus one;
  // those of OLMo have none.
  double norm_eps = 1e-5;
  bool is_centred = false, norms_add_one = false, has_plain_norms = false;
  // Rotary positions: the first |rotated| elements of a head turn in pairs, pair i by position * frequencies[i]. Files pair
  // neighbours or halves; neighbours are brought to halves when weights are loaded. A second set of frequencies, for windowed
  // layers, follows the first. Without rotary positions there is one frequency, which nothing uses.
  std::int64_t rotated = 0;
  bool pairs_neighbours = false, has_two_sets = false;
  std::vector<double> frequencies;
  double rotation_scale = 1;  // of cosines and sines
  // Sequences of more than |short_context| tokens turn by other frequencies, all of their tokens (longrope). 0: none do.
  std::int64_t short_context = 0;
  std::vector<double> long_frequencies;
  bool has_position_embedding = false;  // learned ones (GPT-2), added to those of tokens
  std::int64_t first_position = 0;      // the row of the first one
  // Attention. Scores are multiplied by the scale and, with a cap c, become c tanh(score / c). A query of a windowed layer sees
  // the last |window| keys, itself included.
  double attention_scale = 1, attention_cap = 0;
  double largest_slope_bits = 0;  // ALiBi: scores fall with the distance, the slopes of heads down to 2^-this; 0: none
  double qkv_limit = 0;           // queries, keys and values are cut at +- this; 0: they are not
  std::int64_t window = 0;
  std::vector<bool> windowed, turned;  // by layer; |turned|: has rotary positions
  bool has_qkv_by_group = false;  // a fused matrix has the queries that share a key, this key and its value, after each other
  // Feed-forward: gated, or one matrix and an activation. Parallel: it reads what the attention reads, not its result, by a
  // normalisation of its own or by that of the attention.
  Activation activation = Activation::silu;
  bool is_gated = true, is_parallel = false;
  // Mixtures of experts: in some or all layers a token takes |used| of so many feed-forwards, each |width| wide, weighted by a
  // softmax, over those it takes or over all; and in some models a shared one besides.
  struct Experts {
    std::int64_t count = 0, used = 0, width = 0, shared_width = 0;
    bool sums_to_one = false;  // the weights of those that are taken
  };
  Experts experts;
  double embedding_scale = 1, residual_scale = 1, logit_scale = 1, logit_cap = 0;

  std::int64_t rows_per_head() const { return heads / kv_heads; }
  std::int64_t angles() const { return static_cast<std::int64_t>(frequencies.size()); }
  // Whether all layers see all keys and turn by the same angles, and positions enter in no other way.
  bool is_uniform() const {
    return window == 0 && !has_two_sets && !has_position_embedding && largest_slope_bits == 0 &&
           std::ranges::find(turned, false) == turned.end();
  }
};

// Throws invalid_argument for numbers that are missing or do not fit, unimplemented naming an architecture or a feature that is
// not supported.
Architecture architecture_of(const gguf::Source& source);

// What ALiBi multiplies the distance of a key by, for each head.
std::vector<float> alibi_slopes(std::int64_t heads, double largest_bits);

// Settings that GGUF has no key for, which readers of other formats set.
inline constexpr std::string_view kActivation = "tenon.activation";            // a text: Hugging Face's name
inline constexpr std::string_view kNormsAddOne = "tenon.norms_add_one";        // a bool, as are the next two
inline constexpr std::string_view kQkvByGroup = "tenon.qkv_by_group";          //
inline constexpr std::string_view kPairsHalves = "tenon.pairs_halves";         //
inline constexpr std::string_view kRopeDivisors = "tenon.rope_divisors";       // a list, one per pair of elements
inline constexpr std::string_view kWindowedLayers = "tenon.windowed_layers";   // a list of 0 and 1, as is the next
inline constexpr std::string_view kTurnedLayers = "tenon.turned_layers";       //
inline constexpr std::string_view kLongDivisors = "tenon.rope_long_divisors";  // a list like that of kRopeDivisors
inline constexpr std::string_view kRotationScale = "tenon.rotation_scale";     // a number
inline constexpr std::string_view kYarnIsExact = "tenon.yarn_is_exact";        // a bool: the ends of the ramp are not rounded
inline constexpr std::string_view kWindowedBase = "tenon.rope_windowed_base";  // a number

}  // namespace tenon::decoder
