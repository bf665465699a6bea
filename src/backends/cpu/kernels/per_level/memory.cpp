// Copies of runs and of elements at steps, and fills. Compiled once per instruction set (kernels.cmake).
#include "backends/cpu/kernels/kernels.h"
#include "backends/cpu/kernels/level.h"
#include "backends/cpu/kernels/registers.h"

namespace tenon::cpu {
namespace {

template <class Line>
void repeat_in(Line& line, const void* value, std::size_t bytes) {
  switch (bytes) {
    case 1: return repeat_element<std::uint8_t>(value, line);
    case 2: return repeat_element<std::uint16_t>(value, line);
    case 4: return repeat_element<std::uint32_t>(value, line);
    default: return repeat_element<std::uint64_t>(value, line);
  }
}

#if TENON_CPU_LEVEL > 0
TENON_INLINE void copy_run(void* dst, const void* src, std::size_t bytes) {
  constexpr std::size_t kVector = kVectorBytes, kStep = 4 * kVector;
  auto* d = static_cast<char*>(dst);
  const auto* s = static_cast<const char*>(src);
  if (bytes < kVector) return copy_part(d, s, bytes);
  std::size_t i = 0;
  if (bytes >= 2 * kStep) {  // stores that cross no line
    put(d, get(s));
    i = kVector - reinterpret_cast<std::uintptr_t>(d) % kVector;
  }
  for (; i + kStep <= bytes; i += kStep) {
    const Register a = get(s + i), b = get(s + i + kVector), c = get(s + i + 2 * kVector), e = get(s + i + 3 * kVector);
    put(d + i, a);
    put(d + i + kVector, b);
    put(d + i + 2 * kVector, c);
    put(d + i + 3 * kVector, e);
  }
  for (; i + kVector <= bytes; i += kVector) put(d + i, get(s + i));
  if (i < bytes) put(d + bytes - kVector, get(s + bytes - kVector));
}

void copy(void* dst, const void* src, std::size_t bytes) { copy_run(dst, src, bytes); }
void stream_copy(void* dst, const void* src, std::size_t bytes) {
  auto* d = static_cast<char*>(dst);
  const auto* s = static_cast<const char*>(src);
  const std::size_t misaligned = reinterpret_cast<std::uintptr_t>(d) % 64;
  std::size_t head = misaligned == 0 ? 0 : 64 - misaligned;
  if (head > bytes) head = bytes;
  __builtin_memcpy(d, s, head);
  std::size_t i = head;
  for (; i + 64 <= bytes; i += 64) {
    Register line[64 / kVectorBytes];
    __builtin_memcpy(line, s + i, 64);
    for (int k = 0; k < 64 / kVectorBytes; ++k) put_streaming(d + i + k * kVectorBytes, line[k]);
  }
  __builtin_memcpy(d + i, s + i, bytes - i);
}
void stream_fence() { _mm_sfence(); }

TENON_INLINE void fill_with(char* d, Register x, std::size_t size) {
  constexpr std::size_t kVector = kVectorBytes;
  if (size < kVector) return put_part(d, x, size);
  std::size_t i = 0;
  for (; i + 4 * kVector <= size; i += 4 * kVector)
    for (std::size_t k = 0; k < 4; ++k) put(d + i + k * kVector, x);
  for (; i + kVector <= size; i += kVector) put(d + i, x);
  if (i < size) put(d + size - kVector, x);
}
template <class T>
TENON_INLINE void repeat_run(T* dst, const T* value, std::size_t count) {
  Register x;
  repeat_element<T>(value, x);
  fill_with(reinterpret_cast<char*>(dst), x, count * sizeof(T));
}
void fill(void* dst, const void* value, std::size_t bytes, std::size_t count) {
  Register x;
  repeat_in(x, value, bytes);
  fill_with(static_cast<char*>(dst), x, bytes * count);
}
void stream_fill(void* dst, const void* value, std::size_t bytes, std::size_t count) {
  Register x;
  repeat_in(x, value, bytes);
  auto* d = static_cast<char*>(dst);
  std::size_t size = bytes * count, head = -reinterpret_cast<std::uintptr_t>(d) % 64;
  if (head > size) head = size;
  fill_with(d, x, head);
  d += head;
  size -= head;
  for (; size >= 64; size -= 64, d += 64)
    for (int k = 0; k < kRegistersPerLine; ++k) put_streaming(d + k * kVectorBytes, x);
  fill_with(d, x, size);
}

#else  // no vector instructions known

void copy_run(void* dst, const void* src, std::size_t bytes) { __builtin_memcpy(dst, src, bytes); }
void copy(void* dst, const void* src, std::size_t bytes) { copy_run(dst, src, bytes); }
void stream_copy(void* dst, const void* src, std::size_t bytes) { __builtin_memcpy(dst, src, bytes); }
void stream_fence() {}
template <class T>
void repeat_run(T* dst, const T* value, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) dst[i] = *value;
}
void fill(void* dst, const void* value, std::size_t bytes, std::size_t count) {
  char line[64];
  repeat_in(line, value, bytes);
  const std::size_t size = bytes * count;
  auto* d = static_cast<char*>(dst);
  for (std::size_t i = 0; i < size; i += 64) __builtin_memcpy(d + i, line, size - i < 64 ? size - i : 64);
}
void stream_fill(void* dst, const void* value, std::size_t bytes, std::size_t count) { fill(dst, value, bytes, count); }
#endif

#if TENON_CPU_LEVEL == 4
template <int Bytes>
TENON_INLINE Register get_first(const void* p, std::uint64_t mask) {
  if constexpr (Bytes == 2) return _mm512_maskz_loadu_epi16(static_cast<__mmask32>(mask), p);
  if constexpr (Bytes == 4) return _mm512_maskz_loadu_epi32(static_cast<__mmask16>(mask), p);
  if constexpr (Bytes == 8) return _mm512_maskz_loadu_epi64(static_cast<__mmask8>(mask), p);
}
template <int Bytes>
TENON_INLINE Register choose(Register x, Register places, Register y) {
  if constexpr (Bytes == 2) return _mm512_permutex2var_epi16(x, places, y);
  if constexpr (Bytes == 4) return _mm512_permutex2var_epi32(x, places, y);
  if constexpr (Bytes == 8) return _mm512_permutex2var_epi64(x, places, y);
}

// Every Step-th element of Step registers: register after register, those that it has join those that are there.
template <int Step, class T>
struct EachStep {
  static constexpr int kLanes = 64 / sizeof(T);
  alignas(64) T places[Step][kLanes] = {};

  constexpr EachStep() {
    for (int lane = 0; lane < kLanes; ++lane) {
      const int source = lane * Step / kLanes, place = lane * Step % kLanes;
      for (int k = 1; k < Step; ++k)
        places[k][lane] = static_cast<T>(source == k ? kLanes + place : k == 1 && source == 0 ? place : lane);
    }
  }
};

template <int Step, class T>
void strided_rows(const T* src, std::int64_t src_row, T* dst, std::int64_t dst_row, std::int64_t rows, std::int64_t cols) {
  static constexpr EachStep<Step, T> each;
  constexpr int lanes = each.kLanes;
  const auto lowest = [](std::int64_t n) { return n >= lanes ? ~std::uint64_t{0} : n <= 0 ? 0 : (std::uint64_t{1} << n) - 1; };
  Register places[Step];
  for (int k = 1; k < Step; ++k) places[k] = get(reinterpret_cast<const char*>(each.places[k]));
  for (; rows > 0; --rows, src += src_row, dst += dst_row) {
    const std::int64_t elements = (cols - 1) * Step + 1;  // of the source, up to the last one needed
    std::int64_t c = 0;
    for (; (c + lanes) * Step <= elements; c += lanes) {
      const auto* from = reinterpret_cast<const char*>(src + c * Step);
      Register x = get(from);
      for (int k = 1; k < Step; ++k) x = choose<sizeof(T)>(x, places[k], get(from + k * 64));
      put(reinterpret_cast<char*>(dst + c), x);
    }
    for (; c < cols; c += lanes) {
      const T* from = src + c * Step;
      const std::int64_t left = elements - c * Step;
      Register x = get_first<sizeof(T)>(from, lowest(left));
      for (int k = 1; k < Step; ++k)
        x = choose<sizeof(T)>(x, places[k], get_first<sizeof(T)>(from + k * lanes, lowest(left - k * lanes)));
      put_part(reinterpret_cast<char*>(dst + c), x, (cols - c < lanes ? static_cast<std::size_t>(cols - c) : lanes) * sizeof(T));
    }
  }
}
#else
template <int Step, class T>
void strided_rows(const T* src, std::int64_t src_row, T* __restrict dst, std::int64_t dst_row, std::int64_t rows,
                  std::int64_t cols) {
  for (; rows > 0; --rows, src += src_row, dst += dst_row)
    TENON_PLAIN_LOOP for (std::int64_t c = 0; c < cols; ++c) dst[c] = src[c * Step];
}
#endif

template <class T>
void reversed_rows(const T* src, std::int64_t src_row, T* __restrict dst, std::int64_t dst_row, std::int64_t rows,
                   std::int64_t cols) {
  for (; rows > 0; --rows, src += src_row, dst += dst_row)
    TENON_PLAIN_LOOP for (std::int64_t c = 0; c < cols; ++c) dst[c] = src[-c];
}

template <int Bytes>
void strided(const void* src, std::int64_t step, std::int64_t src_row, void* dst, std::int64_t dst_row, std::int64_t rows,
             std::int64_t cols) {
  using T = typename Element<Bytes>::Type;
  const auto* s = static_cast<const T*>(src);
  auto* d = static_cast<T*>(dst);
  if (step == -1) return reversed_rows(s, src_row, d, dst_row, rows, cols);
  if constexpr (Bytes > 1) {
    if (step == 2) return strided_rows<2>(s, src_row, d, dst_row, rows, cols);
    if (step == 3) return strided_rows<3>(s, src_row, d, dst_row, rows, cols);
    if (step == 4) return strided_rows<4>(s, src_row, d, dst_row, rows, cols);
  }
  for (; rows > 0; --rows, s += src_row, d += dst_row) {
    if (step == 1)
      copy_run(d, s, static_cast<std::size_t>(cols) * Bytes);
    else if (step == 0)
      repeat_run<T>(d, s, static_cast<std::size_t>(cols));
    else
      TENON_PLAIN_LOOP for (std::int64_t c = 0; c < cols; ++c) d[c] = s[c * step];
  }
}

}  // namespace

void level::add_memory_kernels(Kernels& table) {
  table.strided[0] = strided<1>;
  table.strided[1] = strided<2>;
  table.strided[2] = strided<4>;
  table.strided[3] = strided<8>;
  table.copy = copy;
  table.stream_copy = stream_copy;
  table.stream_fence = stream_fence;
  table.fill = fill;
  table.stream_fill = stream_fill;
}

}  // namespace tenon::cpu
