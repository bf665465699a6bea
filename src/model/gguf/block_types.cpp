#include "model/gguf/block_types.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include "array/convert.h"

namespace tenon::gguf {
namespace {

using Bytes = const std::uint8_t*;

float half_at(Bytes p) {
  std::uint16_t bits = 0;
  std::memcpy(&bits, p, sizeof bits);
  return half_to_float(bits);
}
float float_at(Bytes p) {
  float value = 0;
  std::memcpy(&value, p, sizeof value);
  return value;
}

struct Out {
  std::uint8_t* codes;
  float* scales;
  float* minima;
};

// 32 codes of 4 bits: the low halves of the bytes first, then the high ones.
void nibbles(Bytes from, std::uint8_t* codes) {
  for (int i = 0; i < 16; ++i) {
    codes[i] = from[i] & 15;
    codes[i + 16] = from[i] >> 4;
  }
}

// The fifth bit of 32 codes, one bit each.
void add_fifth_bits(Bytes from, std::uint8_t* codes) {
  for (int i = 0; i < 32; ++i) codes[i] = static_cast<std::uint8_t>(codes[i] | (((from[i / 8] >> (i % 8)) & 1) << 4));
}

void unpack_q4_0(Bytes b, Out o) {
  o.scales[0] = half_at(b);
  nibbles(b + 2, o.codes);
}
void unpack_q4_1(Bytes b, Out o) {
  o.scales[0] = half_at(b);
  o.minima[0] = half_at(b + 2);
  nibbles(b + 4, o.codes);
}
void unpack_q5_0(Bytes b, Out o) {
  o.scales[0] = half_at(b);
  nibbles(b + 6, o.codes);
  add_fifth_bits(b + 2, o.codes);
}
void unpack_q5_1(Bytes b, Out o) {
  o.scales[0] = half_at(b);
  o.minima[0] = half_at(b + 2);
  nibbles(b + 8, o.codes);
  add_fifth_bits(b + 4, o.codes);
}
std::uint8_t biased(std::uint8_t byte) { return static_cast<std::uint8_t>(byte ^ 0x80); }  // int8 + 128
void unpack_q8_0(Bytes b, Out o) {
  o.scales[0] = half_at(b);
  for (int i = 0; i < 32; ++i) o.codes[i] = biased(b[2 + i]);
}

// 16 scales and minima of 4 bits, then 2 bits per element: 32 elements share a shift, 128 share bytes.
void unpack_q2_k(Bytes b, Out o) {
  const float d = half_at(b + 80), least = half_at(b + 82);
  for (int i = 0; i < 16; ++i) {
    o.scales[i] = d * static_cast<float>(b[i] & 15);
    o.minima[i] = -(least * static_cast<float>(b[i] >> 4));
  }
  for (int i = 0; i < 256; ++i) o.codes[i] = (b[16 + i / 128 * 32 + i % 32] >> (i % 128 / 32 * 2)) & 3;
}

// 2 bits per element as above, a third one in a mask, and 16 scales of 6 bits: four low bits, then two high ones.
void unpack_q3_k(Bytes b, Out o) {
  const Bytes high = b, low = b + 32, scales = b + 96;
  const float d = half_at(b + 108);
  for (int i = 0; i < 16; ++i) {
    const int four = i < 8 ? scales[i] & 15 : scales[i - 8] >> 4;
    const int two = (scales[8 + i % 4] >> (i / 4 * 2)) & 3;
    o.scales[i] = d * static_cast<float>((four | two << 4) - 32);
  }
  for (int i = 0; i < 256; ++i) {
    const int two = (low[i / 128 * 32 + i % 32] >> (i % 128 / 32 * 2)) & 3;
    o.codes[i] = static_cast<std::uint8_t>(two | ((high[i % 32] >> (i / 32)) & 1) << 2);
  }
}

// Eight scales and minima of 6 bits in 12 bytes.
void six_bit_scales(Bytes b, float d, float least, Out o) {
  for (int i = 0; i < 8; ++i) {
    const int scale = i < 4 ? b[i] & 63 : (b[i + 4] & 15) | (b[i - 4] >> 6) << 4;
    const int minimum = i < 4 ? b[i + 4] & 63 : (b[i + 4] >> 4) | (b[i] >> 6) << 4;
    o.scales[i] = d * static_cast<float>(scale);
    o.minima[i] = -(least * static_cast<float>(minimum));
  }
}
void unpack_q4_k(Bytes b, Out o) {
  six_bit_scales(b + 4, half_at(b), half_at(b + 2), o);
  for (int i = 0; i < 256; ++i) o.codes[i] = (b[16 + i / 64 * 32 + i % 32] >> (i % 64 / 32 * 4)) & 15;
}
void unpack_q5_k(Bytes b, Out o) {
  six_bit_scales(b + 4, half_at(b), half_at(b + 2), o);
  for (int i = 0; i < 256; ++i) {
    const int four = (b[48 + i / 64 * 32 + i % 32] >> (i % 64 / 32 * 4)) & 15;
    o.codes[i] = static_cast<std::uint8_t>(four | ((b[16 + i % 32] >> (i / 32)) & 1) << 4);
  }
}
void unpack_q6_k(Bytes b, Out o) {
  const float d = half_at(b + 208);
  for (int i = 0; i < 16; ++i) o.scales[i] = d * static_cast<float>(static_cast<std::int8_t>(b[192 + i]));
  for (int i = 0; i < 256; ++i) {
    const int half = i / 128, quarter = i % 128 / 32, place = i % 32;
    const int four = (b[half * 64 + quarter % 2 * 32 + place] >> (quarter / 2 * 4)) & 15;
    const int two = (b[128 + half * 32 + place] >> (quarter * 2)) & 3;
    o.codes[i] = static_cast<std::uint8_t>(four | two << 4);
  }
}
void unpack_q8_k(Bytes b, Out o) {
  std::fill_n(o.scales, 8, float_at(b));
  for (int i = 0; i < 256; ++i) o.codes[i] = biased(b[4 + i]);
}

// Codes stand for sixteen values that are denser around zero.
constexpr std::array<std::int8_t, 16> kUneven{-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};
void to_uneven(std::uint8_t* codes, int n) {
  for (int i = 0; i < n; ++i) codes[i] = static_cast<std::uint8_t>(kUneven[codes[i]] + 128);
}
void unpack_iq4_nl(Bytes b, Out o) {
  unpack_q4_0(b, o);
  to_uneven(o.codes, 32);
}
void unpack_iq4_xs(Bytes b, Out o) {
  const float d = half_at(b);
  const unsigned high = b[2] | static_cast<unsigned>(b[3]) << 8;
  for (int i = 0; i < 8; ++i) {
    const int four = (b[4 + i / 2] >> (i % 2 * 4)) & 15;
    o.scales[i] = d * static_cast<float>((four | static_cast<int>((high >> (2 * i)) & 3) << 4) - 32);
    nibbles(b + 8 + 16 * i, o.codes + 32 * i);
  }
  to_uneven(o.codes, 256);
}

void unpack_grouped_4(Bytes b, Out o) {
  o.scales[0] = float_at(b);
  o.minima[0] = float_at(b + 4);
  nibbles(b + 8, o.codes);
}
void unpack_grouped_8(Bytes b, Out o) {
  o.scales[0] = float_at(b);
  o.minima[0] = float_at(b + 4);
  std::memcpy(o.codes, b + 8, 32);
}

struct Entry {
  BlockType type;
  std::string_view name;
  BlockLayout layout;
  void (*unpack)(Bytes, Out);
  CodeForm form;
};
constexpr Entry kTypes[] = {
    {BlockType::f32, "F32", {1, 4}, nullptr, {}},
    {BlockType::f16, "F16", {1, 2}, nullptr, {}},
    {BlockType::bf16, "BF16", {1, 2}, nullptr, {}},
    {BlockType::q4_0, "Q4_0", {32, 18}, unpack_q4_0, {4, 32, 8, false, true}},
    {BlockType::q4_1, "Q4_1", {32, 20}, unpack_q4_1, {4, 32, 0, true, true}},
    {BlockType::q5_0, "Q5_0", {32, 22}, unpack_q5_0, {8, 32, 16, false, true}},
    {BlockType::q5_1, "Q5_1", {32, 24}, unpack_q5_1, {8, 32, 0, true, true}},
    {BlockType::q8_0, "Q8_0", {32, 34}, unpack_q8_0, {8, 32, 128, false, true}},
    {BlockType::q2_k, "Q2_K", {256, 84}, unpack_q2_k, {4, 16, 0, true, false}},
    {BlockType::q3_k, "Q3_K", {256, 110}, unpack_q3_k, {4, 16, 4, false, false}},
    {BlockType::q4_k, "Q4_K", {256, 144}, unpack_q4_k, {4, 32, 0, true, false}},
    {BlockType::q5_k, "Q5_K", {256, 176}, unpack_q5_k, {8, 32, 0, true, false}},
    {BlockType::q6_k, "Q6_K", {256, 210}, unpack_q6_k, {8, 16, 32, false, false}},
    {BlockType::q8_k, "Q8_K", {256, 292}, unpack_q8_k, {8, 32, 128, false, false}},
    {BlockType::iq4_nl, "IQ4_NL", {32, 18}, unpack_iq4_nl, {8, 32, 128, false, true}},
    {BlockType::iq4_xs, "IQ4_XS", {256, 136}, unpack_iq4_xs, {8, 32, 128, false, false}},
    {BlockType::grouped_4, "4 bits in groups", {32, 24}, unpack_grouped_4, {4, 32, 0, true, false}},
    {BlockType::grouped_8, "8 bits in groups", {32, 40}, unpack_grouped_8, {8, 32, 0, true, false}},
};

const Entry* entry_of(std::uint32_t type) {
  const auto* found = std::find_if(std::begin(kTypes), std::end(kTypes),
                                   [&](const Entry& e) { return static_cast<std::uint32_t>(e.type) == type; });
  return found == std::end(kTypes) ? nullptr : found;
}
const Entry& entry_of(BlockType type) { return *entry_of(static_cast<std::uint32_t>(type)); }

}  // namespace

std::string_view name(BlockType type) noexcept { return entry_of(type).name; }

std::optional<BlockLayout> layout_of(std::uint32_t type) noexcept {
  const Entry* entry = entry_of(type);
  return entry && type < static_cast<std::uint32_t>(BlockType::grouped_4) ? std::optional(entry->layout) : std::nullopt;
}
BlockLayout layout_of(BlockType type) noexcept { return entry_of(type).layout; }

std::optional<CodeForm> code_form(BlockType type) noexcept {
  const Entry& entry = entry_of(type);
  return entry.unpack ? std::optional(entry.form) : std::nullopt;
}

void unpack(BlockType type, std::span<const std::byte> blocks, std::span<std::uint8_t> codes, std::span<float> scales,
            std::span<float> minima) {
  const Entry& entry = entry_of(type);
  const auto groups = static_cast<std::size_t>(entry.layout.elements / entry.form.group);
  const std::size_t n = blocks.size() / entry.layout.bytes;
  const Bytes from = reinterpret_cast<Bytes>(blocks.data());
  for (std::size_t i = 0; i < n; ++i)
    entry.unpack(from + i * entry.layout.bytes,
                 {codes.data() + i * static_cast<std::size_t>(entry.layout.elements), scales.data() + i * groups,
                  entry.form.has_minimum ? minima.data() + i * groups : nullptr});
}

void dequantize(BlockType type, std::span<const std::byte> bytes, std::span<float> out) {
  const Entry& entry = entry_of(type);
  const Bytes from = reinterpret_cast<Bytes>(bytes.data());
  if (!entry.unpack) {
    for (std::size_t i = 0; i < out.size(); ++i) {
      if (type == BlockType::f32) {
        out[i] = float_at(from + 4 * i);
      } else if (type == BlockType::f16) {
        out[i] = half_at(from + 2 * i);
      } else {
        const std::uint8_t wide[4] = {0, 0, from[2 * i], from[2 * i + 1]};
        out[i] = float_at(wide);
      }
    }
    return;
  }
  const auto elements = static_cast<std::size_t>(entry.layout.elements), group = static_cast<std::size_t>(entry.form.group);
  std::array<std::uint8_t, 256> codes{};
  std::array<float, 16> scales{}, minima{};
  for (std::size_t first = 0, at = 0; first < out.size(); first += elements, at += entry.layout.bytes) {
    entry.unpack(from + at, {codes.data(), scales.data(), minima.data()});
    for (std::size_t i = 0; i < elements; ++i)
      out[first + i] = scales[i / group] * static_cast<float>(codes[i] - entry.form.zero) + minima[i / group];
  }
}

}  // namespace tenon::gguf
