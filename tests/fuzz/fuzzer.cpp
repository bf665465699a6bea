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

int run(int argc, char** argv, std::string_view name, const std::vector<std::string>& corpus,
        const std::vector<std::string>& words, const Repair& repair, const Parse& parse, const Bound& bound) {
  const std::uint64_t count = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 20000;
  const std::uint64_t seed = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 1;
  Mutator mutator(corpus, words, seed);
  std::uint64_t accepted = 0, refused = 0;
  double largest = 0;
  const auto begin = std::chrono::steady_clock::now();
  for (std::uint64_t i = 0; i < count; ++i) {
    std::string& text = mutator.next();
    if (mutator.below(4) != 0) repair(text);
    // A copy of the exact size, so that AddressSanitizer sees a read past the end.
    const std::vector<std::byte> input(reinterpret_cast<const std::byte*>(text.data()),
                                       reinterpret_cast<const std::byte*>(text.data()) + text.size());
    const std::uint64_t before = allocated_bytes();
    try {
      parse(input);
      ++accepted;
    } catch (const Error& error) {
      ++refused;
      if (error.what()[0] == '\0') {
        fmt::print(stderr, "{}: case {} of seed {} was refused without a reason\n", name, i, seed);
        return 1;
      }
    } catch (const std::exception& error) {
      fmt::print(stderr, "{}: case {} of seed {} threw {}\n", name, i, seed, error.what());
      return 1;
    }
    const std::uint64_t used = allocated_bytes() - before, allowed = bound(input.size());
    largest = std::max(largest, static_cast<double>(used) / static_cast<double>(allowed));
    if (used > allowed) {
      fmt::print(stderr, "{}: case {} of seed {} allocated {} bytes for {} of input; {} are allowed\n", name, i, seed, used,
                 input.size(), allowed);
      return 1;
    }
  }
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  fmt::print("{}: {} cases of seed {}: {} accepted, {} refused; at most {:.0f} % of the allowed memory; {:.0f} cases/s\n", name,
             count, seed, accepted, refused, 100 * largest, static_cast<double>(count) / seconds);
  // A mutator that only ever breaks things, or never does, tests nothing.
  return count < 1000 || (accepted > 0 && refused > 0) ? 0 : 1;
}

}  // namespace tenon::fuzz
