// Copies of memory that nobody reads again soon.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace tenon {

// Copies large blocks with streaming stores: the CPU does not read the destination, and reading each line first would cost a
// third of the bandwidth.
inline void stream_copy(std::byte* to, const std::byte* from, std::size_t bytes) {
#if defined(__SSE2__)
  constexpr std::size_t kLeastBytes = 512 << 10;
  if (bytes >= kLeastBytes && reinterpret_cast<std::uintptr_t>(to) % 16 == 0) {
    std::size_t i = 0;
    for (; i + 64 <= bytes; i += 64)
      for (std::size_t k = 0; k < 64; k += 16)
        _mm_stream_si128(reinterpret_cast<__m128i*>(to + i + k), _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + i + k)));
    _mm_sfence();
    std::memcpy(to + i, from + i, bytes - i);
    return;
  }
#endif
  std::memcpy(to, from, bytes);
}

// Inside a loop that waits for another thread.
inline void pause_cpu() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

}  // namespace tenon
