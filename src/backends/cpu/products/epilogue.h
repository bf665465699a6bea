// Epilogue: the elementwise ops that follow a product or a convolution and are
// computed while its results are still in a cache.
//
// The result is seen as rows x cols: the rows of a product, or the channels of
// all images of a convolution with their places as columns. f32 only. Thread
// safety: a value; functions touch only their arguments.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "backends/cpu/kernels/kernels.h"

namespace tenon::cpu {

struct EpilogueStep {
  enum class Operand : std::uint8_t {
    none,
    scalar,       // |value|
    per_channel,  // one element per row, the same for all images
    per_col,      // one element per column
    full,         // one per element, dense
  };
  ElementwiseOp op{};
  std::array<double, 4> params{};
  Operand operand = Operand::none;
  bool operand_is_first = false;  // of the op's two
  float value = 0;
  int index = -1;  // among the operands of the epilogue that are tensors
};

struct Epilogue {
  std::vector<EpilogueStep> steps;
  // Another step reads the result: subnormal numbers of ops that decay to nothing are zero there.
  bool is_read = true;

  bool empty() const { return steps.empty(); }
};

// An epilogue and the addresses of its operands.
struct Finish {
  const Epilogue* epilogue = nullptr;
  const float* const* operands = nullptr;
  std::int64_t channels = 1;   // row r is of channel r % channels
  std::int64_t cols = 0;       // of the whole result
  std::size_t first_step = 0;  // earlier ones are done already

  bool is_empty() const { return !epilogue || first_step >= epilogue->steps.size(); }

  // to[0..n) = the epilogue of from[0..n), which is the product at (row, col
  // ...). May be in place.
  void apply(const float* from, float* to, std::int64_t row, std::int64_t col, std::int64_t n) const;
};

// What is done to a finished element of row r before it is stored: times
// scale[r], plus shift[r], and not below 0.
struct TileEnd {
  const float* scale = nullptr;
  const float* shift = nullptr;
  bool relu = false;

  bool empty() const { return !scale && !shift && !relu; }
};

// Takes the scale, the shift and the relu that an epilogue begins with: |finish| goes on after them. Channels from |first| on.
TileEnd end_of_tile(Finish& finish, std::int64_t first_channel);

}  // namespace tenon::cpu
