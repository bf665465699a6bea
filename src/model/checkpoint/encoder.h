// Checkpoints of encoders: config.json and safetensors as an ONNX model.
//
// BERT (MiniLM, E5, BGE ...), RoBERTa, XLM-RoBERTa, CamemBERT, ELECTRA, ALBERT, DistilBERT, MPNet, DeBERTa 2 and 3, ModernBERT,
// Nomic BERT, GTE, and the encoder of T5. Inputs input_ids, attention_mask and, for those that have types, token_type_ids [batch,
// sequence]; output last_hidden_state [batch, sequence, width], or, for a classifier, logits [batch, labels].
// Thread safety: pure functions.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "tenon/array/io.h"

namespace tenon::checkpoint {

// Throws invalid_argument for a missing or misshapen tensor or number, unimplemented naming an architecture or an option that is
// not supported.
std::vector<std::byte> encoder_as_onnx(std::string_view config_json, const ArrayFile& weights);

}  // namespace tenon::checkpoint
