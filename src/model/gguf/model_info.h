// What a GGUF file says about its model, for people and programs.
#pragma once

#include "model/gguf/gguf_file.h"
#include "tenon/model.h"

namespace tenon::gguf {

ModelInfo model_info(const GgufFile& file);

}  // namespace tenon::gguf
