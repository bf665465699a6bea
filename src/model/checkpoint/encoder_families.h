// The kinds of encoders, each by the code that writes it. For encoder.cpp, which knows which is which.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "model/checkpoint/encoder_writer.h"

namespace tenon::checkpoint {

// |type|: model_type of config.json. Throw as encoder_as_onnx().
using WriteEncoder = std::vector<std::byte>(const EncoderConfig& config, const ArrayFile& weights, const std::string& type);
WriteEncoder write_bert, write_rotary, write_deberta, write_t5;

}  // namespace tenon::checkpoint
