// Panels of a bfloat16 operand: two steps of a line side by side, as the dot products of AVX-512 and AMX read them.
//
// Thread safety: pure functions.
#pragma once

#include <cstdint>

namespace tenon::cpu::bf16 {

// Lines of an operand: rows of the left one, columns of the right one. Element (line, step) is from[line * line_stride +
// step * step_stride].
struct Lines {
  const std::uint16_t* from = nullptr;
  std::int64_t line_stride = 0, step_stride = 0;
  std::int64_t count = 0, steps = 0;
};

// to[pair][line][2] for at most Width lines, |pairs| pairs of steps; lines and steps that are missing are zeros. Width is 14
// or 32.
template <int Width>
void pack_pairs(const Lines& lines, std::int64_t pairs, std::uint16_t* to);

// The same in plain C++, which pack_pairs() uses on CPUs without AVX-512.
template <int Width>
void pack_pairs_plainly(const Lines& lines, std::int64_t pairs, std::uint16_t* to);

}  // namespace tenon::cpu::bf16
