// Source: the settings and tensors of a model, under the names that GGUF files use.
//
// GgufFile fills one from a GGUF file, checkpoint::DecoderFolder from safetensors and config.json; whoever needs a setting or a
// tensor does not see which. Tensors stay in their files until they are asked for.
//
//   source.text("general.architecture");                       // "llama"
//   std::vector<float> scale = source.floats(source.tensor("output_norm.weight"));
//
// Lifetime: a value; copies share the files. Thread safety: all const calls may run concurrently.
#pragma once

#include <cstddef>
#include <cstdint>
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
  std::vector<std::int64_t> shape;  // row-major, as everywhere in Tenon: the reverse of GGUF's order
  std::uint64_t offset = 0;         // in the file
  std::uint64_t bytes = 0;
  std::size_t file = 0;        // of the source's files
  bool is_transposed = false;  // the file has columns where |shape| has rows; floats only

  std::int64_t elements() const noexcept;
  std::int64_t columns() const noexcept { return shape.back(); }
  std::int64_t rows() const noexcept { return elements() / columns(); }
};

class Source {
 public:
  const std::map<std::string, Value, std::less<>>& metadata() const noexcept { return metadata_; }
  const std::vector<TensorInfo>& tensors() const noexcept { return tensors_; }

  // Settings by key; nullopt or null if there is no such key. Throws invalid_argument if it has another type.
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

 protected:
  // False if there is one of this name, or this key.
  bool add(TensorInfo tensor);
  bool set(std::string key, Value value) { return metadata_.emplace(std::move(key), std::move(value)).second; }

  std::vector<std::shared_ptr<const ByteSource>> files_;
  std::map<std::string, Value, std::less<>> metadata_;
  std::vector<TensorInfo> tensors_;

 private:
  std::map<std::string, std::size_t, std::less<>> places_;
};

}  // namespace tenon::gguf
