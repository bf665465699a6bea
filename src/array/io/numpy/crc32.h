// CRC-32 as zip archives have it (polynomial 0xedb88320).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace tenon {

inline std::uint32_t crc32_of(std::span<const std::byte> bytes) noexcept {
  // Eight tables, so that eight bytes are looked up at once.
  static constexpr auto kTables = [] {
    std::array<std::array<std::uint32_t, 256>, 8> tables{};
    for (std::uint32_t i = 0; i < 256; ++i) {
      std::uint32_t value = i;
      for (int bit = 0; bit < 8; ++bit) value = (value >> 1) ^ ((value & 1) != 0 ? 0xedb88320u : 0u);
      tables[0][i] = value;
    }
    for (std::size_t t = 1; t < 8; ++t)
      for (std::size_t i = 0; i < 256; ++i) tables[t][i] = (tables[t - 1][i] >> 8) ^ tables[0][tables[t - 1][i] & 0xff];
    return tables;
  }();
  std::uint32_t crc = 0xffffffff;
  std::size_t at = 0;
  const auto byte = [&](std::size_t i) { return std::to_integer<std::uint32_t>(bytes[i]); };
  for (; at + 8 <= bytes.size(); at += 8) {
    const std::uint32_t low = crc ^ (byte(at) | byte(at + 1) << 8 | byte(at + 2) << 16 | byte(at + 3) << 24);
    crc = kTables[7][low & 0xff] ^ kTables[6][low >> 8 & 0xff] ^ kTables[5][low >> 16 & 0xff] ^ kTables[4][low >> 24] ^
          kTables[3][byte(at + 4)] ^ kTables[2][byte(at + 5)] ^ kTables[1][byte(at + 6)] ^ kTables[0][byte(at + 7)];
  }
  for (; at < bytes.size(); ++at) crc = (crc >> 8) ^ kTables[0][(crc ^ byte(at)) & 0xff];
  return ~crc;
}

}  // namespace tenon
