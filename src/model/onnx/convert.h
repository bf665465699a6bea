// Writes an ONNX model with its weights in 16 bits.
#pragma once

#include <filesystem>
#include <string>

#include "tenon/array/dtype.h"

namespace tenon::onnx {

struct Converted {
  std::string bytes;  // the model
  int tensors = 0;    // that were converted
};

// The model of |file| with every float32 weight of at least 1,024 elements stored as |to|, f16 or bf16, and cast back before it
// is used: half the size, and every op computes in float32 as before. Weights in other files become part of the model. Numbers
// beyond the range of float16 become infinite, so they are refused. Throws what reading a model throws, and invalid_argument.
Converted with_small_weights(const std::filesystem::path& file, DType to);

}  // namespace tenon::onnx
