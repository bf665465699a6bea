#include "model/checkpoint/packed_weights.h"

#include <fmt/format.h>

#include <cstring>

#include "array/convert.h"
#include "base/text/printable.h"
#include "base/threads/thread_pool.h"
#include "tenon/array.h"
#include "tenon/error.h"

namespace tenon::checkpoint {
namespace {

constexpr std::int64_t kBlock = 32;  // elements of a block

std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

template <class T>
std::vector<T> values_of(const PackedWeights::Part& part) {
  std::vector<T> out(part.bytes / sizeof(T));
  part.file->read(part.offset, std::as_writable_bytes(std::span(out)));
  return out;
}

std::vector<float> scales_of(const PackedWeights::Part& part) {
  const gguf::BlockType type = part.dtype == DType::f32   ? gguf::BlockType::f32
                               : part.dtype == DType::f16 ? gguf::BlockType::f16
                                                          : gguf::BlockType::bf16;
  std::vector<float> out(part.bytes / (part.dtype == DType::f32 ? 4 : 2));
  gguf::dequantize(type, values_of<std::byte>(part), out);
  return out;
}

class PackedSource final : public ByteSource {
 public:
  PackedSource(const Packing& packing, PackedWeights::Parts parts, std::int64_t rows, std::int64_t columns,
               std::vector<std::int32_t> groups, gguf::BlockType type, std::string label)
      : packing_(packing),
        parts_(std::move(parts)),
        rows_(rows),
        columns_(columns),
        groups_(std::move(groups)),
        type_(type),
        label_(std::move(label)) {
    const gguf::BlockLayout layout = gguf::layout_of(type);
    row_bytes_ = at(columns / layout.elements) * layout.bytes;
  }
  std::uint64_t size() const noexcept override { return row_bytes_ * static_cast<std::uint64_t>(rows_); }
  const std::string& label() const noexcept override { return label_; }

  void read(std::uint64_t offset, std::span<std::byte> out) const override {
    const std::vector<std::byte> all = converted();
    std::memcpy(out.data(), all.data() + offset, out.size());
  }

 private:
  std::vector<std::byte> converted() const {
    const auto words = values_of<std::uint32_t>(parts_.find("qweight")->second),
               zeros = values_of<std::uint32_t>(parts_.find("qzeros")->second);
    const std::vector<float> scales = scales_of(parts_.find("scales")->second);
    const std::int64_t each = 32 / packing_.bits, most = (std::int64_t{1} << packing_.bits) - 1, words_of_row = rows_ / each;
    const auto part_of = [&](std::uint32_t word, std::int64_t place) {
      return static_cast<std::uint32_t>(word >> (place * packing_.bits)) & static_cast<std::uint32_t>(most);
    };
    // AWQ has the even ones of eight first, then the odd ones.
    const auto place_of = [&](std::int64_t row) { return packing_.is_awq ? row % 2 * 4 + row % each / 2 : row % each; };
    const auto code = [&](std::int64_t row, std::int64_t column) {
      return packing_.is_awq ? part_of(words[at(column * words_of_row + row / each)], place_of(row))
                             : part_of(words[at(column / each * rows_ + row)], column % each);
    };
    const auto zero = [&](std::int64_t row, std::int64_t group) {
      const auto stored = part_of(zeros[at(group * words_of_row + row / each)], place_of(row));
      return static_cast<float>(stored + (!packing_.is_awq && packing_.adds_one ? 1 : 0));
    };
    std::vector<std::byte> out(at(rows_) * row_bytes_);
    // Rows of words are read one after the other.
    process_pool().for_each(columns_ / kBlock, [&](std::int64_t block, int) {
      const std::int64_t first = block * kBlock;
      for (std::int64_t row = 0; row < rows_; ++row) {
        std::byte* const to = out.data() + at(row) * row_bytes_;
        if (type_ == gguf::BlockType::f16) {
          for (std::int64_t i = first; i < first + kBlock; ++i) {
            const std::int64_t group = groups_[at(i)];
            const float value = scales[at(group * rows_ + row)] * (static_cast<float>(code(row, i)) - zero(row, group));
            const std::uint16_t half = float_to_half(value);
            std::memcpy(to + 2 * i, &half, sizeof half);
          }
          continue;
        }
        const std::int64_t group = groups_[at(first)];
        const float scale = scales[at(group * rows_ + row)], minimum = -scale * zero(row, group);
        std::byte* const b = to + at(block) * gguf::layout_of(type_).bytes;
        std::memcpy(b, &scale, sizeof scale);
        std::memcpy(b + 4, &minimum, sizeof minimum);
        const std::int64_t half = packing_.bits == 4 ? kBlock / 2 : kBlock;
        for (std::int64_t i = 0; i < half; ++i)
          b[8 + i] = static_cast<std::byte>(packing_.bits == 4 ? code(row, first + i) | code(row, first + half + i) << 4
                                                               : code(row, first + i));
      }
    });
    return out;
  }

  const Packing packing_;
  const PackedWeights::Parts parts_;
  const std::int64_t rows_, columns_;
  const std::vector<std::int32_t> groups_;  // of each column
  const gguf::BlockType type_;
  const std::string label_;
  std::size_t row_bytes_ = 0;
};

[[noreturn]] void fail(const std::string& name, std::string_view what) {
  throw Error(ErrorCode::invalid_argument, fmt::format("the quantised matrix '{}' {}", printable(name), what));
}

// The group of each input.
std::vector<std::int32_t> groups_of(const std::string& name, const PackedWeights::Parts& parts, std::int64_t columns,
                                    std::int64_t groups) {
  if (const auto given = parts.find("g_idx"); given != parts.end()) {
    if (given->second.dtype != DType::i32 || given->second.shape != std::vector{columns})
      fail(name, "has groups that do not fit");
    std::vector<std::int32_t> out = values_of<std::int32_t>(given->second);
    for (const std::int32_t each : out)
      if (each < 0 || each >= groups) fail(name, "has groups that do not fit");
    return out;
  }
  if (columns % groups != 0) fail(name, "has groups that do not fit");
  std::vector<std::int32_t> out(at(columns));
  for (std::int64_t i = 0; i < columns; ++i) out[at(i)] = static_cast<std::int32_t>(i / (columns / groups));
  return out;
}

PackedWeights::Matrix matrix_of(const Packing& packing, const std::string& name, const PackedWeights::Parts& parts) {
  const auto part = [&](const char* kind) -> const PackedWeights::Part& {
    const auto found = parts.find(kind);
    if (found == parts.end()) fail(name, fmt::format("has no '{}'", kind));
    const bool is_floats = kind == std::string_view("scales");
    const DType dtype = found->second.dtype;
    if (found->second.shape.size() != 2 ||
        (is_floats ? dtype != DType::f16 && dtype != DType::bf16 && dtype != DType::f32 : dtype != DType::i32))
      fail(name, fmt::format("has a '{}' of another type or shape", kind));
    return found->second;
  };
  const std::vector<std::int64_t>&words = part("qweight").shape, &scales = part("scales").shape;
  const std::int64_t each = 32 / packing.bits, columns = packing.is_awq ? words[0] : words[0] * each,
                     rows = packing.is_awq ? words[1] * each : words[1], groups = scales[0];
  if (groups < 1 || rows < 1 || rows % each != 0 || scales[1] != rows || part("qzeros").shape != std::vector{groups, rows / each})
    fail(name, "has parts that do not fit each other");
  std::vector<std::int32_t> of_column = groups_of(name, parts, columns, groups);
  if (columns % kBlock != 0)
    throw Error(ErrorCode::unimplemented,
                fmt::format("the quantised matrix '{}' has {} inputs, no multiple of {}", printable(name), columns, kBlock),
                "use the model in 16-bit floats");
  bool is_in_blocks = true;
  for (std::int64_t i = 0; i < columns; ++i)
    is_in_blocks = is_in_blocks && of_column[at(i)] == of_column[at(i / kBlock * kBlock)];
  PackedWeights::Matrix out{name, gguf::BlockType::f16, rows, columns, nullptr};
  if (is_in_blocks) out.type = packing.bits == 4 ? gguf::BlockType::grouped_4 : gguf::BlockType::grouped_8;
  out.source = std::make_shared<PackedSource>(packing, parts, rows, columns, std::move(of_column), out.type, name);
  return out;
}

}  // namespace

bool PackedWeights::add(std::shared_ptr<const ByteSource> file, std::uint64_t data_begin, const SafetensorsEntry& entry) {
  for (const std::string_view kind : {"qweight", "qzeros", "scales", "g_idx"}) {
    std::string_view name = entry.name;
    if (!name.ends_with(kind)) continue;
    name.remove_suffix(kind.size());
    if (!name.ends_with('.')) continue;
    Part part{std::move(file), data_begin + entry.begin, entry.end - entry.begin, {}, entry.dtype};
    part.shape.assign(entry.shape.dims().begin(), entry.shape.dims().end());
    const std::string whole = std::string(name) + "weight";
    if (!parts_[whole].emplace(kind, std::move(part)).second) fail(whole, fmt::format("has '{}' twice", kind));
    return true;
  }
  return false;
}

std::vector<PackedWeights::Matrix> PackedWeights::matrices() const {
  std::vector<Matrix> out;
  for (const auto& [name, parts] : parts_) out.push_back(matrix_of(packing_, name, parts));
  return out;
}

}  // namespace tenon::checkpoint
