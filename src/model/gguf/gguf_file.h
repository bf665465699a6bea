// GgufFile: the header of a GGUF file, and its tensors on demand.
//
// Reads versions 2 and 3 in little-endian order. Every count, length and offset is checked against the size of the file before
// memory is taken for it, so a hostile file is refused with a reason and costs no more memory than a few times its own size.
//
//   GgufFile file = GgufFile::open("model.gguf");
//   file.text("general.architecture");                       // "llama"
//
// Lifetime: a value; copies share the file. Thread safety: all calls may run concurrently.
#pragma once

#include <filesystem>
#include <memory>

#include "model/gguf/source.h"

namespace tenon::gguf {

class GgufFile : public Source {
 public:
  // Throws not_found, permission_denied, invalid_argument for a file that is damaged, unimplemented for a version or a type of
  // tensor that is not supported.
  static GgufFile open(const std::filesystem::path& file);
  static GgufFile read(std::shared_ptr<const ByteSource> source);

  int version() const noexcept { return version_; }

 private:
  int version_ = 0;
};

}  // namespace tenon::gguf
