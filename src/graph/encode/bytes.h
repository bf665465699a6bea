// ByteWriter and ByteReader: sequences of numbers, strings and raw bytes for messages between processes.
//
// Integers are encoded with 7 bits per byte, so small ones are short. A reader trusts nothing: it never reads past the end, and
// throws invalid_argument for invalid input.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tenon/error.h"

namespace tenon {

class ByteWriter {
 public:
  void byte(std::uint8_t value) { bytes_.push_back(std::byte{value}); }
  void flag(bool value) { byte(value ? 1 : 0); }
  void number(std::uint64_t value) {
    for (; value >= 0x80; value >>= 7) byte(static_cast<std::uint8_t>(value | 0x80));
    byte(static_cast<std::uint8_t>(value));
  }
  void integer(std::int64_t value) {  // small magnitudes are short, whatever the sign
    number((static_cast<std::uint64_t>(value) << 1) ^ static_cast<std::uint64_t>(value >> 63));
  }
  void real(double value) {
    const auto bits = std::bit_cast<std::uint64_t>(value);
    raw(std::as_bytes(std::span(&bits, 1)));
  }
  void text(std::string_view value) {
    number(value.size());
    raw(std::as_bytes(std::span(value)));
  }
  void raw(std::span<const std::byte> value) { bytes_.insert(bytes_.end(), value.begin(), value.end()); }

  std::span<const std::byte> bytes() const noexcept { return bytes_; }
  std::vector<std::byte> take() { return std::move(bytes_); }

 private:
  std::vector<std::byte> bytes_;
};

class ByteReader {
 public:
  explicit ByteReader(std::span<const std::byte> bytes) : rest_(bytes) {}

  std::size_t left() const noexcept { return rest_.size(); }
  std::uint8_t byte() { return static_cast<std::uint8_t>(raw(1)[0]); }
  bool flag() {
    const std::uint8_t value = byte();
    if (value > 1) fail("a flag is neither 0 nor 1");
    return value == 1;
  }
  std::uint64_t number() {
    std::uint64_t value = 0;
    for (int shift = 0;; shift += 7) {
      const std::uint64_t part = byte();
      if (shift == 63 && part > 1) fail("a number has more than 64 bits");
      value |= (part & 0x7f) << shift;
      if (part < 0x80) {
        if (part == 0 && shift > 0) fail("a number is not in its shortest form");
        return value;
      }
    }
  }
  std::int64_t integer() {
    const std::uint64_t value = number();
    return static_cast<std::int64_t>((value >> 1) ^ (std::uint64_t{0} - (value & 1)));
  }
  double real() {
    std::uint64_t bits = 0;
    std::memcpy(&bits, raw(sizeof bits).data(), sizeof bits);
    return std::bit_cast<double>(bits);
  }
  // A number below |limit|.
  std::uint64_t below(std::uint64_t limit, const char* what) {
    const std::uint64_t value = number();
    if (value >= limit) fail(what);
    return value;
  }
  std::string text() {
    const std::span<const std::byte> bytes = raw(number());
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }
  std::span<const std::byte> raw(std::uint64_t count) {
    if (count > rest_.size()) fail("unexpected end");
    const std::span<const std::byte> taken = rest_.first(static_cast<std::size_t>(count));
    rest_ = rest_.subspan(static_cast<std::size_t>(count));
    return taken;
  }
  void finish() const {
    if (!rest_.empty()) fail("trailing bytes");
  }
  [[noreturn]] static void fail(const char* what) {
    throw Error(ErrorCode::invalid_argument, std::string("the message is damaged: ") + what);
  }

 private:
  std::span<const std::byte> rest_;
};

}  // namespace tenon
