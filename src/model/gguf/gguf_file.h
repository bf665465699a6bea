// GgufFile: the header of a GGUF file, and its tensors on demand.
//
// Reads versions 2 and 3 in little-endian order. Every count, length and offset is checked against the size of the file before
// memory is taken for it, so a hostile file is refused with a reason and costs no more memory than a few times its own size.
// Tensors stay in the file until they are asked for.
//
//   GgufFile file = GgufFile::open("model.gguf");
//   file.text("general.architecture");                       // "llama"
//   std::vector<float> row = dequantized(file, file.tensor("output_norm.weight"));   // block_types.h
//
// Lifetime: a value; copies share the file. Thread safety: all calls may run concurrently.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "array/io/byte_source.h"
#include "model/gguf/block_types.h"

namespace tenon::gguf {

// A list of numbers or of strings.
struct List {
  std::vector<double> numbers;  // 64-bit integers beyond 2^53 lose digits; no file uses them
  std::vector<std::string> texts;
  bool is_text = false;
  std::size_t size() const noexcept { return is_text ? texts.size() : numbers.size(); }
};
using Value = std::variant<bool, std::int64_t, double, std::string, List>;

struct TensorInfo {
  std::string name;
  BlockType type{};
  std::vector<std::int64_t> shape;  // row-major, as everywhere in Tenon: the reverse of the file's order
  std::uint64_t offset = 0;         // in the file
  std::uint64_t bytes = 0;

  std::int64_t elements() const noexcept;
  std::int64_t columns() const noexcept { return shape.back(); }
  std::int64_t rows() const noexcept { return elements() / columns(); }
};

class GgufFile {
 public:
  // Throws not_found, permission_denied, invalid_argument for a file that is damaged, unimplemented for a version or a type of
  // tensor that is not supported.
  static GgufFile open(const std::filesystem::path& file);
  static GgufFile read(std::shared_ptr<const ByteSource> source);

  int version() const noexcept { return version_; }
  const std::map<std::string, Value, std::less<>>& metadata() const noexcept { return metadata_; }
  const std::vector<TensorInfo>& tensors() const noexcept { return tensors_; }

  // Metadata by key; nullopt or null if the file has no such key. Throws invalid_argument if it has another type.
  std::optional<std::string> text(std::string_view key) const;
  std::optional<std::int64_t> integer(std::string_view key) const;
  std::optional<double> number(std::string_view key) const;
  std::optional<bool> boolean(std::string_view key) const;
  const List* list(std::string_view key) const;

  const TensorInfo* find_tensor(std::string_view name) const;
  const TensorInfo& tensor(std::string_view name) const;  // throws invalid_argument

  // The bytes of rows [first, first + count) of a tensor, as the file has them.
  std::vector<std::byte> rows(const TensorInfo& tensor, std::int64_t first, std::int64_t count) const;
  // The same as floats.
  std::vector<float> floats(const TensorInfo& tensor, std::int64_t first, std::int64_t count) const;
  std::vector<float> floats(const TensorInfo& tensor) const { return floats(tensor, 0, tensor.rows()); }

 private:
  std::shared_ptr<const ByteSource> source_;
  int version_ = 0;
  std::map<std::string, Value, std::less<>> metadata_;
  std::vector<TensorInfo> tensors_;
  std::map<std::string, std::size_t, std::less<>> places_;
};

}  // namespace tenon::gguf
