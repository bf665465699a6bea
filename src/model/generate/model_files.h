// ModelFiles: what the files of a language model say, whatever their format: a GGUF file, or a folder of Hugging Face.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "model/gguf/source.h"
#include "tenon/model.h"

namespace tenon {

struct ModelFiles {
  gguf::Source source;
  ModelInfo info;
  // The text of a tokenizer.json. |finds_control_tokens|: text such as "<|im_end|>" becomes its token.
  std::function<std::string(bool finds_control_tokens)> tokenizer_json;
  std::set<std::int32_t> ends;                        // tokens that end a text
  std::vector<std::string> control_texts;             // of control tokens
  std::optional<std::string> chat_template;           // in Jinja
  std::map<std::string, std::string> special_tokens;  // what a template may name: "bos_token"
};

// By names and, in a folder, config.json; nothing else is read.
bool is_language_model(const std::filesystem::path& path);

// A GGUF file, a folder, or model.safetensors in one. Throws not_found, permission_denied, invalid_argument for files that are
// damaged, unimplemented naming what is not supported.
ModelFiles open_model_files(const std::filesystem::path& path);

}  // namespace tenon
