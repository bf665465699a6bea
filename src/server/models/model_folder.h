// The models of a folder: which there are, in which versions, in which files. Reads names and configurations, never a model.
//
//   ROOT/NAME/[config.pbtxt]/VERSION/model.onnx     Triton's layout
//   ROOT/NAME/model.onnx, ROOT/NAME/onnx/model.onnx, ROOT/NAME.onnx     version 1; .gguf likewise
//   ROOT/NAME/model.safetensors with config.json     an encoder or a language model; that may have shards,
//                                                    which ROOT/NAME/model.safetensors.index.json names
//
// tokenizer.json lies beside the model file or in NAME/. Names are made of letters, digits, '.', '_' and '-'. Symbolic links are
// followed: the folder belongs to whoever starts the server.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "server/http/message.h"
#include "server/models/model_config.h"

namespace tenon::server {

struct ModelSource {
  std::string name;
  std::int64_t version = 1;
  std::filesystem::path file;                      // model.onnx, model.gguf
  bool is_generator = false;                       // a language model
  std::optional<std::filesystem::path> tokenizer;  // tokenizer.json
  ModelConfig config;
  // Of a model that a client sent: its bytes instead of |file|, whose it is, and whose memory and threads it takes.
  std::shared_ptr<const Body> body = nullptr;
  std::string owner = {}, quota = {};
  std::string problem = {};  // why it cannot be served; "" if nothing is known against it
};

// By name and version. Throws not_found and permission_denied for the folder itself; what is wrong with one model is its problem.
std::vector<ModelSource> scan_models(const std::filesystem::path& root);

}  // namespace tenon::server
