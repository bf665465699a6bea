// libFuzzer's view of a target. A failure ends the process, so that libFuzzer keeps the input.
#include <fmt/format.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "fuzz/fuzzer.h"

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t max_size);

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace tenon::fuzz;
  const Outcome outcome = try_input(std::as_bytes(std::span(data, size)));
  if (outcome.failure.empty()) return 0;
  fmt::print(stderr, "{}: the input {}\n", target().name, outcome.failure);
  std::abort();
}

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t max_size, unsigned seed) {
  size = LLVMFuzzerMutate(data, size, max_size);
  const tenon::fuzz::Target& target = tenon::fuzz::target();
  if (!target.repair || seed % 4 == 0) return size;
  std::string text(reinterpret_cast<const char*>(data), size);
  target.repair(text);
  if (text.size() > max_size) return size;
  std::memcpy(data, text.data(), text.size());
  return text.size();
}
