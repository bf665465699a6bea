// config.json of a language model, as the settings that GGUF has for it.
//
// Thread safety: pure functions.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "model/checkpoint/packed_weights.h"
#include "model/gguf/source.h"

namespace tenon::checkpoint {

struct DecoderConfig {
  std::string type;  // "qwen2"
  std::map<std::string, gguf::Value> settings;
  std::optional<Packing> packing;      // of quantised weights
  std::optional<bool> ties_embedding;  // whether the matrix of logits is that of embeddings; nullopt: if there is no other
};

// Whether config.json describes a language model of a type that is supported.
bool is_decoder_config(std::string_view config_json);

// Throws invalid_argument for numbers that are missing, unimplemented naming a type or a feature that is not supported.
DecoderConfig decoder_config(std::string_view config_json);

// The name in GGUF of a tensor of a checkpoint; "" for one that is not a weight. Throws unimplemented for one that is not known:
// the model computes something that a decoder here does not.
std::string gguf_name(std::string_view type, std::string_view name);

// Whether a checkpoint of this type has the matrix transposed: rows are inputs.
bool is_stored_transposed(std::string_view type, std::string_view gguf_name);

}  // namespace tenon::checkpoint
