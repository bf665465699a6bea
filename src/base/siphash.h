// SipHash-2-4 with 128 bits of output (Aumasson and Bernstein, "SipHash: a fast short-input PRF", 2012): a keyed hash. Without
// the key nobody can construct two messages with one digest, so it may identify what clients send.
//
// A message is made of 64-bit words, absorbed one at a time; its digest is that of the words' little-endian bytes. The state is a
// value that can be kept and continued from. Thread safety: as for an integer.
//
//   SipHash hash(SipHash::process_key());
//   hash.add(word);
//   SipHash::Digest digest = hash.digest();
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

namespace tenon {

static_assert(std::endian::native == std::endian::little, "words are read as they lie in memory");

class SipHash {
 public:
  struct Key {
    std::uint64_t low = 0, high = 0;
  };
  struct Digest {
    std::uint64_t low = 0, high = 0;
    friend bool operator==(const Digest&, const Digest&) = default;
  };
  using State = std::array<std::uint64_t, 5>;  // v0 to v3, and how many words were absorbed

  // Random, drawn once in each process.
  static const Key& process_key();
  static Digest of(const Key& key, std::span<const std::byte> message);
  static Digest of(const Key& key, std::string_view text) { return of(key, std::as_bytes(std::span(text.data(), text.size()))); }

  explicit SipHash(const Key& key)
      : state_{key.low ^ 0x736f6d6570736575, key.high ^ 0x646f72616e646f6d ^ 0xee, key.low ^ 0x6c7967656e657261,
               key.high ^ 0x7465646279746573, 0} {}
  explicit SipHash(const State& state) : state_(state) {}
  const State& state() const noexcept { return state_; }

  void add(std::uint64_t word) noexcept {
    absorb(word);
    ++state_[4];
  }
  // The last word is filled up with zeros: say how many bytes there are, unless that is known.
  void add(std::span<const std::byte> bytes) noexcept {
    std::size_t i = 0;
    for (; i + 8 <= bytes.size(); i += 8) add(word_of(bytes.subspan(i, 8)));
    if (i < bytes.size()) add(word_of(bytes.subspan(i)));
  }
  // Of the words so far, followed by the fewer than eight bytes of |tail|.
  Digest digest(std::span<const std::byte> tail = {}) const noexcept;

 private:
  static std::uint64_t word_of(std::span<const std::byte> bytes) noexcept {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes.data(), bytes.size());
    return word;
  }
  void round() noexcept {
    auto& [v0, v1, v2, v3, words] = state_;
    v0 += v1, v2 += v3;
    v1 = std::rotl(v1, 13) ^ v0, v3 = std::rotl(v3, 16) ^ v2;
    v0 = std::rotl(v0, 32);
    v2 += v1, v0 += v3;
    v1 = std::rotl(v1, 17) ^ v2, v3 = std::rotl(v3, 21) ^ v0;
    v2 = std::rotl(v2, 32);
  }
  void absorb(std::uint64_t word) noexcept {
    state_[3] ^= word;
    round();
    round();
    state_[0] ^= word;
  }

  State state_;
};

}  // namespace tenon
