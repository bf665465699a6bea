#include "base/siphash.h"

#include <sys/random.h>

#include <random>

namespace tenon {

const SipHash::Key& SipHash::process_key() {
  static const Key key = [] {
    Key drawn;
    if (getrandom(&drawn, sizeof drawn, 0) == sizeof drawn) return drawn;
    std::random_device device;
    const auto word = [&] { return (std::uint64_t{device()} << 32) | device(); };
    return Key{word(), word()};
  }();
  return key;
}

SipHash::Digest SipHash::of(const Key& key, std::span<const std::byte> message) {
  const std::size_t whole = message.size() / 8 * 8;
  SipHash hash(key);
  hash.add(message.first(whole));
  return hash.digest(message.subspan(whole));
}

SipHash::Digest SipHash::digest(std::span<const std::byte> tail) const noexcept {
  SipHash last = *this;
  const std::uint64_t bytes = state_[4] * 8 + tail.size();
  last.absorb((bytes << 56) | (tail.empty() ? 0 : word_of(tail)));
  auto& [v0, v1, v2, v3, words] = last.state_;
  v2 ^= 0xee;
  for (int i = 0; i < 4; ++i) last.round();
  Digest digest{v0 ^ v1 ^ v2 ^ v3, 0};
  v1 ^= 0xdd;
  for (int i = 0; i < 4; ++i) last.round();
  digest.high = v0 ^ v1 ^ v2 ^ v3;
  return digest;
}

}  // namespace tenon
