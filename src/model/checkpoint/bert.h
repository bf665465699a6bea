// Checkpoints of BERT (MiniLM, E5, BGE ...) and its relatives RoBERTa, XLM-RoBERTa, CamemBERT, DistilBERT and MPNet: config.json
// and safetensors as an ONNX model.
//
// Inputs input_ids, attention_mask and, for BERT, token_type_ids [batch, sequence]; output last_hidden_state [batch, sequence,
// width].
// Thread safety: pure functions.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "tenon/array/io.h"

namespace tenon::checkpoint {

// Throws invalid_argument for a missing or misshapen tensor or number, unimplemented naming an architecture or an option that is
// not supported.
std::vector<std::byte> bert_as_onnx(std::string_view config_json, const ArrayFile& weights);

}  // namespace tenon::checkpoint
