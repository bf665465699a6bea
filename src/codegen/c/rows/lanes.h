// Rows on processors, many elements at once: the loop of a pass over vectors of LANES elements (target.cpp).
#pragma once

#include <span>
#include <string>

#include "codegen/c/rows/text.h"

namespace tenon::emit {

// An output of the pass that vectors can be stored to, and the pointer it is stored through.
struct LanesResult {
  NodeId output = -1;
  DType stored = DType::f32;
  std::string pointer;
};

// The loop over the row: LANES elements at a time where the compiler has such vectors and every value of the pass can be one, and
// |inside| for everybody else. |results| are the outputs that lanes_dtype() has a type for.
std::string lanes_loop(RowsText& text, int pass, std::span<const LanesResult> results, const std::string& inside);

}  // namespace tenon::emit
