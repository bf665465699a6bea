// Lines of a matrix side by side, step by step: the form in which the kernel of a product reads an operand.
#pragma once

#if defined(__x86_64__)
#include <emmintrin.h>

#include <cstdint>

namespace tenon::cpu {

// Four steps of four lines: one square, transposed in registers.
inline void pack_square(const float* from, std::int64_t line, float* to, std::int64_t width) {
  __m128 r0 = _mm_loadu_ps(from), r1 = _mm_loadu_ps(from + line), r2 = _mm_loadu_ps(from + 2 * line),
         r3 = _mm_loadu_ps(from + 3 * line);
  _MM_TRANSPOSE4_PS(r0, r1, r2, r3);
  _mm_storeu_ps(to, r0);
  _mm_storeu_ps(to + width, r1);
  _mm_storeu_ps(to + 2 * width, r2);
  _mm_storeu_ps(to + 3 * width, r3);
}
inline void pack_square(const double* from, std::int64_t line, double* to, std::int64_t width) {
  for (int half = 0; half < 2; ++half)
    for (int step = 0; step < 4; step += 2) {
      const double* at = from + 2 * half * line + step;
      const __m128d r0 = _mm_loadu_pd(at), r1 = _mm_loadu_pd(at + line);
      _mm_storeu_pd(to + step * width + 2 * half, _mm_unpacklo_pd(r0, r1));
      _mm_storeu_pd(to + (step + 1) * width + 2 * half, _mm_unpackhi_pd(r0, r1));
    }
}

// One panel of |Width| lines, |lines| of them there, the others zero: to[step * Width + line].
template <int Width, class T>
void pack_panel(const T* from, std::int64_t line_stride, std::int64_t step_stride, std::int64_t lines, std::int64_t depth,
                T* to) {
  std::int64_t line = 0;
  if (step_stride == 1)
    for (; line + 4 <= lines; line += 4) {
      std::int64_t p = 0;
      for (; p + 4 <= depth; p += 4) pack_square(from + line * line_stride + p, line_stride, to + p * Width + line, Width);
      for (; p < depth; ++p)
        for (std::int64_t l = line; l < line + 4; ++l) to[p * Width + l] = from[l * line_stride + p];
    }
  for (; line < lines; ++line)
    for (std::int64_t p = 0; p < depth; ++p) to[p * Width + line] = from[line * line_stride + p * step_stride];
  for (; line < Width; ++line)
    for (std::int64_t p = 0; p < depth; ++p) to[p * Width + line] = T{};
}

}  // namespace tenon::cpu
#endif
