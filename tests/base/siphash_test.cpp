#include "base/siphash.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace tenon {
namespace {

std::string hex(const SipHash::Digest& digest) {
  std::string text;
  for (const std::uint64_t half : {digest.low, digest.high})
    for (int i = 0; i < 8; ++i) text += fmt::format("{:02x}", (half >> (8 * i)) & 0xff);
  return text;
}

// Key 00 to 0f, messages 00, 01, 02 ...: the vectors that the authors publish with their implementation.
constexpr SipHash::Key kKey{0x0706050403020100, 0x0f0e0d0c0b0a0908};

std::vector<std::byte> counting(std::size_t length) {
  std::vector<std::byte> message(length);
  for (std::size_t i = 0; i < length; ++i) message[i] = static_cast<std::byte>(i);
  return message;
}

TEST(SipHash, GivesThePublishedDigests) {
  EXPECT_EQ(hex(SipHash::of(kKey, counting(0))), "a3817f04ba25a8e66df67214c7550293");
  EXPECT_EQ(hex(SipHash::of(kKey, counting(1))), "da87c1d86b99af44347659119b22fc45");
  EXPECT_EQ(hex(SipHash::of(kKey, counting(7))), "a1f1ebbed8dbc153c0b84aa61ff08239");
  EXPECT_EQ(hex(SipHash::of(kKey, counting(8))), "3b62a9ba6258f5610f83e264f31497b4");
  EXPECT_EQ(hex(SipHash::of(kKey, counting(15))), "5493e99933b0a8117e08ec0f97cfc3d9");
  EXPECT_EQ(hex(SipHash::of(kKey, counting(63))), "5150d1772f50834a503e069a973fbd7c");
}

TEST(SipHash, CanBeInterruptedAndContinued) {
  SipHash first(kKey);
  first.add(0x0706050403020100);
  SipHash second(first.state());
  second.add(0x0f0e0d0c0b0a0908);
  EXPECT_EQ(second.digest(), SipHash::of(kKey, counting(16)));
  EXPECT_EQ(first.digest(), SipHash::of(kKey, counting(8)));
}

TEST(SipHash, TheKeyOfAProcessStaysAndIsNotTheFixedOne) {
  const SipHash::Key &key = SipHash::process_key(), &again = SipHash::process_key();
  EXPECT_EQ(&key, &again);
  EXPECT_NE(SipHash::of(key, "x"), SipHash::of({}, "x"));
}

}  // namespace
}  // namespace tenon
