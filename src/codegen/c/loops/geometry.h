// Axes of a loop nest: neighbouring ones joined, extents of 1 dropped, and the text that turns a row's number into offsets.
#pragma once

#include <string>
#include <vector>

#include "codegen/c/body.h"

namespace tenon::emit {

struct Axes {
  std::vector<std::int64_t> extents;               // outermost first
  std::vector<std::vector<std::int64_t>> strides;  // by operand, then by axis

  std::int64_t elements() const;
  // Removes the last axis.
  void drop_last();
};

// Joins axes where that holds for every operand.
Axes joined(std::vector<std::int64_t> extents, std::vector<std::vector<std::int64_t>> strides);

// Whether |extents| and |strides| lie within 31 bits for every operand.
bool fits_i32(const Axes& axes, const std::vector<std::int64_t>& offsets);

// Statements that define o0, o1, ... from the variable |row|, which counts |axes| in row-major order. Operands with no offset and
// no strides get 0.
std::string offset_text(Parameters& parameters, const Axes& axes, const std::vector<std::int64_t>& offsets,
                        const std::string& row);

// "o + i", "o", "o + i * stride".
std::string place_text(Parameters& parameters, const std::string& offset, const std::string& i, std::int64_t stride);

constexpr std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }
constexpr std::int64_t power_of_two_from(std::int64_t x) {
  std::int64_t p = 1;
  while (p < x) p *= 2;
  return p;
}

}  // namespace tenon::emit
