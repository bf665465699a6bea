#include "fuzz/fuzzer.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <new>

#include "array/host_memory.h"
#include "tenon/error.h"

namespace {

std::uint64_t new_bytes = 0;  // the fuzzers have one thread

void* counted(std::size_t bytes) {
  new_bytes += bytes;
  if (void* block = std::malloc(bytes == 0 ? 1 : bytes)) return block;
  throw std::bad_alloc();
}

}  // namespace

void* operator new(std::size_t bytes) { return counted(bytes); }
void* operator new[](std::size_t bytes) { return counted(bytes); }
void operator delete(void* block) noexcept { std::free(block); }
void operator delete[](void* block) noexcept { std::free(block); }
void operator delete(void* block, std::size_t) noexcept { std::free(block); }
void operator delete[](void* block, std::size_t) noexcept { std::free(block); }

namespace tenon::fuzz {

std::uint64_t allocated_bytes() { return new_bytes + host_memory::statistics().allocated_bytes; }

namespace {

enum class Outcome { accepted, refused, failed };

struct Case {
  std::string_view program;
  std::string_view kind;
  std::uint64_t index;
  std::uint64_t seed;
  std::string label() const { return fmt::format("{}: {} {} of seed {}", program, kind, index, seed); }
};

// The share of the allowed memory that was used goes to |share|.
Outcome check(const Case& which, const std::string& text, const Target& target, double& share) {
  // A copy of the exact size, so that AddressSanitizer sees a read past the end.
  const auto* begin = reinterpret_cast<const std::byte*>(text.data());
  const std::vector<std::byte> input(begin, begin + text.size());
  const std::uint64_t before = allocated_bytes();
  Outcome outcome = Outcome::accepted;
  try {
    target.parse(input);
  } catch (const Error& error) {
    outcome = Outcome::refused;
    if (error.what()[0] == '\0') {
      fmt::print(stderr, "{} was refused without a reason\n", which.label());
      return Outcome::failed;
    }
  } catch (const std::exception& error) {
    fmt::print(stderr, "{} threw {}\n", which.label(), error.what());
    return Outcome::failed;
  }
  const std::uint64_t used = allocated_bytes() - before, allowed = target.bound(input.size());
  share = static_cast<double>(used) / static_cast<double>(allowed);
  if (used <= allowed) return outcome;
  fmt::print(stderr, "{} allocated {} bytes for {} of input; {} are allowed\n", which.label(), used, input.size(), allowed);
  return Outcome::failed;
}

}  // namespace

int run(int argc, char** argv, std::string_view program, const Corpus& corpus, const Target& target) {
  const std::uint64_t count = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 20000;
  const std::uint64_t seed = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 1;
  Mutator mutator(corpus.files, corpus.words, seed);
  std::uint64_t accepted = 0;
  double share = 0, largest = 0;
  for (std::size_t i = 0; i < corpus.dense.size(); ++i) {
    if (check({program, "dense input", i, seed}, corpus.dense[i], target, share) == Outcome::failed) return 1;
    largest = std::max(largest, share);
  }
  const auto begin = std::chrono::steady_clock::now();
  for (std::uint64_t i = 0; i < count; ++i) {
    std::string& text = mutator.next();
    if (mutator.below(4) != 0) target.repair(text);
    const Outcome outcome = check({program, "case", i, seed}, text, target, share);
    if (outcome == Outcome::failed) return 1;
    if (outcome == Outcome::accepted) ++accepted;
    largest = std::max(largest, share);
  }
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  fmt::print("{}: {} cases of seed {}: {} accepted, {} refused; at most {:.0f} % of the allowed memory; {:.0f} cases/s\n",
             program, count, seed, accepted, count - accepted, 100 * largest, static_cast<double>(count) / seconds);
  // A mutator that only ever breaks things, or never does, tests nothing.
  return count < 1000 || (accepted > 0 && accepted < count) ? 0 : 1;
}

}  // namespace tenon::fuzz
