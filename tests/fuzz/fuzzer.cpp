#include "fuzz/fuzzer.h"

#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <new>

#ifdef TENON_FUZZ_WITH_ASAN
#include <sanitizer/allocator_interface.h>
#endif

#include "array/host_memory.h"
#include "tenon/error.h"

namespace {

std::uint64_t new_bytes = 0;  // the fuzzers have one thread

}  // namespace

#ifdef TENON_FUZZ_WITH_ASAN
namespace {

// Operators of our own beside those of the sanitizer would mix memory of the two.
void count(const volatile void*, std::size_t bytes) { new_bytes += bytes; }
void ignore(const volatile void*) {}
[[maybe_unused]] const int kInstalled = __sanitizer_install_malloc_and_free_hooks(count, ignore);

}  // namespace
#else
namespace {

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
#endif

namespace tenon::fuzz {

std::uint64_t allocated_bytes() { return new_bytes + host_memory::statistics().allocated_bytes; }

std::string printable(std::string_view text) {
  std::string out = "\"";
  for (const char c : text.substr(0, 4000)) {
    if (c == '"' || c == '\\')
      (out += '\\') += c;
    else if (c >= ' ' && c <= '~')
      out += c;
    else
      out += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
  }
  return out + (text.size() > 4000 ? "\"..." : "\"");
}

Outcome try_input(Bytes given) {
  const std::vector<std::byte> input(given.begin(), given.end());
  const Target& tested = target();  // made by the first case, which does not pay for it
  Outcome outcome;
  const std::uint64_t before = allocated_bytes();
  try {
    tested.parse(input);
    outcome.is_accepted = true;
  } catch (const Error& error) {
    if (error.what()[0] == '\0') outcome.failure = "was refused without a reason";
    if (error.code() == ErrorCode::internal || error.code() == ErrorCode::unknown)
      outcome.failure = fmt::format("is an internal error: {}", error.what());
  } catch (const std::exception& error) {
    outcome.failure = fmt::format("threw: {}", error.what());
  }
  const std::uint64_t used = allocated_bytes() - before, allowed = tested.bound(input.size());
  outcome.share_of_allowance = static_cast<double>(used) / static_cast<double>(allowed);
  if (used > allowed && outcome.failure.empty())
    outcome.failure = fmt::format("allocated {} bytes for {} of input; {} are allowed", used, input.size(), allowed);
  return outcome;
}

}  // namespace tenon::fuzz
