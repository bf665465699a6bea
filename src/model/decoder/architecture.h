// What a file says about its decoder: sizes, and how positions enter.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/gguf/gguf_file.h"

namespace tenon::decoder {

struct Architecture {
  std::string name;  // "llama"
  std::int64_t layers = 0, width = 0, feed_forward = 0, heads = 0, kv_heads = 0, head_width = 0, vocabulary = 0;
  std::int64_t context = 0;  // the longest sequence
  double norm_eps = 1e-5;
  // Rotary positions: the first |rotated| elements of a head turn in pairs, pair i by position * frequencies[i]. Files pair
  // neighbours or halves; neighbours are brought to halves when weights are loaded.
  std::int64_t rotated = 0;
  bool pairs_neighbours = false;
  std::vector<double> frequencies;

  std::int64_t rows_per_head() const { return heads / kv_heads; }
};

// Throws invalid_argument for numbers that are missing or do not fit, unimplemented naming an architecture or a feature that is
// not supported.
Architecture architecture_of(const gguf::GgufFile& file);

}  // namespace tenon::decoder
