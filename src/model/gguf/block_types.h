// The element types of GGUF tensors: floats, and blocks of small integers with scales; and two blocks of our own.
//
// Every block type is brought to one form: a code of 8 bits per element and, for each 16 or 32 of them, a scale and a minimum,
// so that element i is scale * (code - zero) + minimum. The layouts are those of ggml's quantisation formats.
// Thread safety: pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace tenon::gguf {

// The numbers that files use.
enum class BlockType : std::uint32_t {
  f32 = 0,
  f16 = 1,
  q4_0 = 2,
  q4_1 = 3,
  q5_0 = 6,
  q5_1 = 7,
  q8_0 = 8,
  q2_k = 10,
  q3_k = 11,
  q4_k = 12,
  q5_k = 13,
  q6_k = 14,
  q8_k = 15,
  iq4_nl = 20,
  iq4_xs = 23,
  bf16 = 30,
  // Of no GGUF file: a scale and a minimum in 32 bits, then 32 codes of 4 bits, laid out as in q4_0, or of 8.
  grouped_4 = 0x1000,
  grouped_8 = 0x1001,
};
std::string_view name(BlockType type) noexcept;  // "Q4_1"

struct BlockLayout {
  std::int64_t elements = 1;  // of one block
  std::size_t bytes = 0;
};
// Of a type that a file names; nullopt for one that is not supported.
std::optional<BlockLayout> layout_of(std::uint32_t type) noexcept;
BlockLayout layout_of(BlockType type) noexcept;

// The form above. Types of floats have none.
struct CodeForm {
  int bits = 8;    // what a code needs: 4 or 8
  int group = 32;  // elements with one scale
  int zero = 0;    // the code that means 0, before the minimum is added
  bool has_minimum = false;
  bool has_half_scales = true;  // scales and minima are exact as 16-bit floats
};
std::optional<CodeForm> code_form(BlockType type) noexcept;

// Unpacks whole blocks. |codes| has one entry per element, |scales| and |minima| one per group; |minima| may be empty if the form
// has none.
void unpack(BlockType type, std::span<const std::byte> blocks, std::span<std::uint8_t> codes, std::span<float> scales,
            std::span<float> minima);

// Any type, as floats. |out| has one entry per element of |bytes|.
void dequantize(BlockType type, std::span<const std::byte> bytes, std::span<float> out);

}  // namespace tenon::gguf
