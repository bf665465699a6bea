// DecoderFolder: a language model as Hugging Face's folders have it: config.json, model.safetensors or its shards, and the
// tensors under the names of GGUF.
//
//   DecoderFolder folder = DecoderFolder::open("SmolLM2-135M");
//   decoder::architecture_of(folder);
//
// Shards are the files that model.safetensors.index.json names: they lie in the folder itself and are not links. Every size is
// checked against that of its file before memory is taken for it. Lifetime: a value; copies share the files. Thread safety: all
// calls may run concurrently.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "model/checkpoint/packed_weights.h"
#include "model/gguf/source.h"

namespace tenon::checkpoint {

class DecoderFolder : public gguf::Source {
 public:
  // Throws not_found, permission_denied, invalid_argument for files that are damaged or do not fit each other, unimplemented
  // naming a type or a feature that is not supported; that is found before the weights are opened.
  static DecoderFolder open(const std::filesystem::path& folder);

  const std::string& type() const noexcept { return type_; }  // "qwen2"

 private:
  void add_file(const std::filesystem::path& path);
  void add_packed();

  std::string type_;
  std::optional<PackedWeights> packed_;  // until all files are read
  bool ties_embedding_ = false;
};

// Whether the folder has a language model of a supported type, by its names and config.json.
bool is_decoder_folder(const std::filesystem::path& folder);

// The text of a file of the folder. Throws not_found, permission_denied, resource_exhausted for one longer than |most| bytes.
std::string folder_text(const std::filesystem::path& file, std::uint64_t most);

}  // namespace tenon::checkpoint
