// What the fuzzers share: a seeded mutator of byte strings, and the count of what a case allocates.
//
// A case passes when the parser under test returns, or throws tenon::Error, having allocated no more than its stated
// bound. Anything else (another exception, a crash, a sanitizer report, more memory) ends the program with the seed
// and number of the case.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tenon::fuzz {

class Mutator {
 public:
  Mutator(std::vector<std::string> corpus, std::vector<std::string> words, std::uint64_t seed)
      : corpus_(std::move(corpus)),
        words_(std::move(words)),
        random_(seed) {}

  // A corpus entry changed in one to six places, sometimes spliced with another; at times untouched.
  std::string& next() {
    text_ = corpus_[below(corpus_.size())];
    if (below(50) == 0) return text_;
    for (std::size_t changes = 1 + below(6); changes > 0; --changes) change();
    return text_;
  }

  std::size_t below(std::size_t n) { return static_cast<std::size_t>(random_() % n); }

 private:
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
      case 4: text_.insert(at, words_[below(words_.size())]); break;
      case 5: {
        const std::string& word = words_[below(words_.size())];
        text_.replace(at, std::min(rest, word.size()), word);
        break;
      }
      case 6: text_.insert(at, text_.substr(place(), 1 + below(24))); break;
      case 7: text_.resize(at); break;
      default: {
        const std::string& other = corpus_[below(corpus_.size())];
        const std::size_t from = other.empty() ? 0 : below(other.size());
        text_.replace(at, std::string::npos, other, from, std::string::npos);
        break;
      }
    }
    if (text_.size() > 1 << 16) text_.resize(1 << 16);
  }

  std::vector<std::string> corpus_;
  std::vector<std::string> words_;
  std::mt19937_64 random_;
  std::string text_;
};

// Bytes asked for since the program began, by operator new and by the pool of host arrays.
std::uint64_t allocated_bytes();

struct Corpus {
  std::vector<std::string> files;  // what is mutated; small, for speed
  std::vector<std::string> words;  // what is put into it
  std::vector<std::string> dense;  // large inputs that make the parser allocate most per byte; run once, unchanged
};

struct Target {
  // Makes lengths inside a changed input agree with it again, so that the parser gets past its first check. Applied to
  // three cases of four.
  std::function<void(std::string&)> repair;
  std::function<void(std::span<const std::byte>)> parse;
  // The most bytes a parse may allocate, all allocations added up.
  std::function<std::uint64_t(std::size_t input_bytes)> bound;
};

// Reads [count] [seed] from the command line, runs the cases, prints a line. Returns the program's exit status.
int run(int argc, char** argv, std::string_view program, const Corpus& corpus, const Target& target);

}  // namespace tenon::fuzz
