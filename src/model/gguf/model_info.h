// What the files of a language model say about it, for people and programs.
#pragma once

#include <string>

#include "model/gguf/source.h"
#include "tenon/model.h"

namespace tenon::gguf {

ModelInfo model_info(const Source& source, std::string format);

}  // namespace tenon::gguf
