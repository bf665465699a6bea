// LoopProgram: the program of a Loop (loop.h) as plain data: geometry, registers, instructions.
//
// The domain is treated as |rows| x |cols| and processed in tiles of at most |block| elements: a segment of one row if rows are
// long, several whole rows if they are short. A tile's values are *registers*: blocks of memory that stay in the L1 cache, or
// pointers directly into inputs and outputs. Each instruction processes a whole tile with one kernel call.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "backends/cpu/kernels/kernels.h"
#include "graph/optimize/fusion.h"

namespace tenon::cpu {

// The place of a value: |location| is an index into the table of pointers of a run.
struct Place {
  int location = -1;
  DType stored = DType::f32;
};

// How a value outside the group is addressed by row and column.
struct External {
  Place place;
  std::int64_t offset = 0;      // elements
  bool dense = false;           // element (r, c) is at r * cols + c
  std::int64_t col_stride = 0;  // elements
  Strides row_strides{};        // elements, one per outer dim
};

struct Register {
  enum class Home : std::uint8_t {
    block,      // a block of scratch memory, reused
    row,        // scratch memory for a whole row, addressed by column
    row_value,  // one element per row of the tile
    constant,   // filled when the loop was built
    input,      // points into an input
    output,     // points into an output
  };
  Home home = Home::block;
  DType dtype = DType::f32;
  std::size_t offset = 0;  // in scratch or constants
  int external = -1;       // input, output
};

struct Instruction {
  enum class Code : std::uint8_t {
    elementwise,   // all elements of the tile
    row_values,    // elementwise on one element per row
    convert,       // all elements, between dtypes
    convert_rows,  // one element per row, between dtypes
    load,          // from an external, as it is stored, element by element or run by run
    load_rows,     // one element per row of an external
    expand,        // one element per row -> all elements
    with_rows,     // elementwise on all elements and one per row, or two
    divide_rows,   // all elements by one per row
    reduce,        // all elements, or products of two -> one per row, or into an accumulator
    // Two at once, the reduction as reduce gives it:
    store_and_reduce,     // elementwise on all elements of two, and its reduction
    exp_sum,              // exp(elements - one per row), stored if |out|, and its sum
    squared_deviations,   // the sum of (elements - one per row)^2, or of (elements / one per row)^2: that from the sum of the
                          // elements' squares, in[2], where their largest magnitude, in[3], is not extreme
    largest_and_squares,  // the largest magnitude, and the sum of squares, which is the next reduction
    deviation_with,       // elementwise on (elements - one per row) and another one per row
    // Elements, or one per row (in[2]), where a number that counts columns compares with one per row, a constant elsewhere; or
    // conversely.
    select_range,
    normalize,   // (elements - one per row) / a second * a third + a fourth
    store,       // to an external, with streaming stores if the loop uses them
    store_rows,  // one element per row to an external
  };
  Code code{};
  int out = -1;
  std::array<int, 5> in{-1, -1, -1, -1, -1};
  int external = -1;
  int reduction = -1;
  ElementwiseKernel kernel = nullptr;
  ConvertKernel convert = nullptr;
  StoreAndReduceKernel store_and_reduce = nullptr;
  SquaredDeviationsKernel squares = nullptr;
  NormalizeKernel normalize = nullptr;
  std::array<int, 2> ahead{-1, -1};  // externals whose next row the kernel prefetches
  std::array<double, 4> params{};
  // select_range: the columns whose number compares so with the row's, and what is written there and elsewhere if not in[0].
  struct Range {
    ElementwiseOp comparison{};
    std::int64_t first_number = 0;
    bool copies_inside = false, copies_outside = false;
    alignas(8) std::array<std::byte, 8> inside{};  // a value of any type
    alignas(8) std::array<std::byte, 8> outside{};
  } range;
  bool streaming = false;  // divide_rows: use streaming stores (elementwise kernels are chosen accordingly)
};

// Groups with inner reductions run in phases: the result of a reduction of phase p is known when a row has completed phase p.
struct Phase {
  std::vector<Instruction> head;  // once per row (per tile if tiles are whole rows)
  std::vector<Instruction> body;  // per tile
  bool ahead = false;             // rows groups: prefetch the next row's inputs between the instructions of the body
};

struct Reduction {
  ReduceKind kind{};
  DType dtype = DType::f32;
  int input = -1;
  int result = -1;  // register, in rows groups
  int phase = 0;    // the phase whose body feeds it
  PartialReduceKernel partial = nullptr;
  ProductSumKernel products = nullptr;  // instead of |partial|, where the elements are products or distances of two that nobody
                                        // else needs: |input| is the first, the other is only in the instruction
  ColumnReduceKernel columns = nullptr;
  ShortRowsKernel short_rows = nullptr;  // instead of |partial|, where tiles are many short rows
  std::vector<Place> targets;            // in reduction groups
};

// Rows of up to this many elements are loaded and reduced many at a time, without a call for each.
inline constexpr std::int64_t kShortRow = 32;

struct LoopGeometry {
  std::vector<std::int64_t> outer;  // extents the row index runs over
  std::vector<int> outer_axes;      // of the domain: the axis whose stride each of them steps by
  int column_axis = 0;
  std::int64_t rows = 1, cols = 1;
  std::int64_t block = 1024;
  std::int64_t tile_rows = 1;  // 1: tiles are segments of a row
  // Rows are shorter than is worth a kernel call of their own, and not reduced in parts. Whether there are many of them makes no
  // difference: a row's results do not depend on the others.
  bool has_short_rows = false;

  // Reduction groups: [outer, red, inner], inner = |between| x cols, or 1 if the reduced axes are the columns. red is split into
  // |parts| of |part_extent| whose results are combined as a tree.
  bool keeps_columns = false;
  std::int64_t reduce_outer = 1, reduce_extent = 1, between = 1, part_extent = 1, parts = 1;

  // The number of results of one reduction, and the distance between those of two parts: in separate cache lines if columns
  // accumulate there.
  std::int64_t kept() const { return reduce_outer * (keeps_columns ? between * cols : 1); }
  std::int64_t partial_stride() const { return keeps_columns ? (kept() + 7) / 8 * 8 : kept(); }

  // One long row.
  bool is_flat() const { return rows == 1 && tile_rows == 1; }
  // The maximum number of elements of a tile.
  std::int64_t tile_elements() const {
    if (tile_rows > 1) return cols > 1 ? tile_rows * cols : tile_rows;
    return cols < 1 ? 1 : cols < block ? cols : block;
  }
};

struct LoopProgram {
  Group::Kind kind = Group::Kind::elementwise;
  LoopGeometry geometry;
  bool stream = false;    // results are written with streaming stores
  bool prefetch = false;  // inputs come from beyond the L2 cache
  double cost = 1;        // of one element, in simple operations
  std::vector<External> externals;
  std::vector<Register> registers;
  std::vector<Instruction> init;  // once per chunk of work
  std::vector<Phase> phases;
  std::vector<Reduction> reductions;
  std::vector<std::byte> constants;

  // Scratch memory: one part per worker (pointers, accumulators, registers), then the partial results of
  // reductions.
  std::vector<int> moving;              // registers whose address changes between tiles
  std::size_t column_accumulators = 0;  // a worker's own, where there is one part; else columns accumulate in the partial results
  std::size_t worker_bytes = 0;
  std::size_t partials_offset = 0;
  std::size_t scratch_bytes = 0;
};

// Assigns memory to every register, for |threads| workers. Sets the fields from |moving| on, and Register::home and offset.
void assign_memory(LoopProgram& program, int threads);

}  // namespace tenon::cpu
