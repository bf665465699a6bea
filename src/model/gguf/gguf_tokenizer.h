// The tokenizer that a GGUF file carries, as the text of a tokenizer.json.
#pragma once

#include <string>

#include "model/gguf/source.h"

namespace tenon::gguf {

// |finds_control_tokens|: text such as "<|im_end|>" becomes its token. Off for text of somebody who must not end a turn.
// Throws invalid_argument for lists that are missing or damaged, unimplemented naming a kind of tokenizer that is not supported.
std::string tokenizer_json(const Source& file, bool finds_control_tokens = true);

}  // namespace tenon::gguf
