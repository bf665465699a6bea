// What the fuzzers share. A fuzzer is one file, fuzz_<what>.cpp, that defines target(): a parser and where to begin. Two programs
// are made of it:
//
//   fuzz_<what> [count] [seed] [file or folder ...]   plain: replays the files, then cases that the seed alone decides (./test)
//   guided_<what>                                     libFuzzer's, guided by coverage, with the preset fuzz (tests/fuzz/run)
//
// A case passes when the parser returns, or throws tenon::Error with a reason, having allocated no more than the target allows.
// Anything else (another exception, an internal error, a crash, a sanitizer report, more memory) is a failure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <random>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace tenon::fuzz {

using Bytes = std::span<const std::byte>;

struct Target {
  std::string_view name;
  std::vector<std::string> seeds;  // what is changed; small, for speed
  std::vector<std::string> words;  // what is put into it
  std::vector<std::string> dense;  // large inputs that make the parser allocate most per byte; run once, unchanged
  // A case out of nothing, for parsers that changed bytes hardly get into. Optional.
  std::function<std::string(std::mt19937_64&)> make = nullptr;
  // Makes lengths inside a changed input agree with it again, so that the parser gets past its first check. Applied to three
  // cases of four. Optional.
  std::function<void(std::string&)> repair = nullptr;
  std::function<void(Bytes)> parse;
  // The most bytes a parse may allocate, all allocations added up.
  std::function<std::uint64_t(std::size_t input_bytes)> bound;
};

// Defined by each fuzzer.
const Target& target();

// For parse(): what must hold of everything the parser accepts.
class Violation : public std::logic_error {
  using std::logic_error::logic_error;
};
inline void require(bool holds, const char* what) {
  if (!holds) throw Violation(what);
}

inline std::string_view text_of(Bytes bytes) { return {reinterpret_cast<const char*>(bytes.data()), bytes.size()}; }

// Bytes asked for since the program began, by operator new and by the pool of host arrays.
std::uint64_t allocated_bytes();

struct Outcome {
  bool is_accepted = false;
  std::string failure;            // "" for a case that passes
  double share_of_allowance = 0;  // of memory
};
// Runs the target on a copy of the exact size, so that AddressSanitizer sees a read past the end.
Outcome try_input(Bytes input);

// Printable, for messages.
std::string printable(std::string_view text);

}  // namespace tenon::fuzz
