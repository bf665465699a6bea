// Mutator: changed copies of what a target begins with. A seed gives the same ones on every machine.
#pragma once

#include <algorithm>
#include <random>
#include <string>

#include "fuzz/fuzzer.h"

namespace tenon::fuzz {

class Mutator {
 public:
  Mutator(const Target& target, std::uint64_t seed) : target_(target), random_(seed) {}

  // Made by the target, or one of its seeds changed in one to six places, sometimes spliced with another; at times untouched.
  const std::string& next() {
    if (target_.make && below(2) == 0) return text_ = target_.make(random_);
    text_ = any_seed();
    if (below(50) == 0) return text_;
    for (std::size_t changes = 1 + below(6); changes > 0; --changes) change();
    if (target_.repair && below(4) != 0) target_.repair(text_);
    return text_;
  }

 private:
  std::size_t below(std::size_t n) { return static_cast<std::size_t>(random_() % n); }
  const std::string& any_seed() { return target_.seeds[below(target_.seeds.size())]; }
  const std::string& any_word() { return target_.words[below(target_.words.size())]; }
  char any_byte() { return static_cast<char>(random_() & 0xff); }

  // Mostly near the front: that is where headers are.
  std::size_t place() {
    if (text_.empty()) return 0;
    const std::size_t range = below(3) == 0 ? text_.size() : std::min<std::size_t>(text_.size(), 160);
    return below(range);
  }

  void change() {
    const std::size_t at = place();
    const std::size_t rest = text_.size() - at;
    switch (below(9)) {
      case 0:
        if (rest > 0) text_[at] = any_byte();
        break;
      case 1:
        if (rest > 0) text_[at] = static_cast<char>(text_[at] ^ (1 << below(8)));
        break;
      case 2: text_.insert(at, 1, any_byte()); break;
      case 3: text_.erase(at, std::min<std::size_t>(rest, 1 + below(8))); break;
      case 4: text_.insert(at, any_word()); break;
      case 5: {
        const std::string& word = any_word();
        text_.replace(at, std::min(rest, word.size()), word);
        break;
      }
      case 6: text_.insert(at, text_.substr(place(), 1 + below(24))); break;
      case 7: text_.resize(at); break;
      default: {
        const std::string& other = any_seed();
        const std::size_t from = other.empty() ? 0 : below(other.size());
        text_.replace(at, std::string::npos, other, from, std::string::npos);
        break;
      }
    }
    if (text_.size() > 1 << 16) text_.resize(1 << 16);
  }

  const Target& target_;
  std::mt19937_64 random_;
  std::string text_;
};

}  // namespace tenon::fuzz
