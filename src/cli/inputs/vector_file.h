// VectorFile: a .npy file of vectors that is written row by row and can be continued after an interruption.
//
// Rows go to FILE.part behind a header for the final number of rows; FILE.part.from says what they are the vectors of. finish()
// renames the part to FILE. A process that ends early, however it ends, leaves whole rows and at most one that is incomplete,
// which the next one drops.
// A lock keeps two processes from writing one part.
// Lifetime: holds the part open. Thread safety: one thread at a time.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "base/system/file_descriptor.h"
#include "tenon/array.h"

namespace tenon::cli {

class VectorFile {
 public:
  // |origin| identifies model, settings and texts: a part with another origin is started again. Throws permission_denied and
  // unavailable for files that cannot be written.
  VectorFile(std::filesystem::path file, std::string origin, std::int64_t rows);

  // How many rows were there when it was opened.
  std::int64_t done() const noexcept { return done_; }
  // f32 [n, width]; the width of the first decides.
  void append(const HostArray& vectors);
  // All rows are there: the file gets its name.
  void finish();

 private:
  void write(const void* data, std::size_t bytes);

  std::filesystem::path file_, part_, from_;
  std::string origin_;
  std::int64_t rows_, done_ = 0, width_ = 0;
  FileDescriptor descriptor_;
};

}  // namespace tenon::cli
