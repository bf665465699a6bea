// Loop: one fused group (graph/fusion.h) as a program of block instructions.
//
// The domain is seen as |rows| x |cols|. It is walked in tiles of at most |block| elements: a segment of one row where rows are
// long, several whole rows where they are short. A tile's values are *registers*: blocks of memory that stay in the L1 cache, or
// pointers straight into inputs and outputs. Each instruction handles a whole tile by one call of a kernel, so interpreting costs
// nothing per element.
//
// Groups with reductions inside run in *phases*: what a reduction of phase p gives is known when all of a row has passed phase p.
// A value that a later phase needs is kept for the whole row.
//
// Lifetime: built once per executable; refers to nothing but the process-wide kernel table.
// Thread safety: run() is const and may be called side by side with different scratch memory.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "backends/cpu/kernels.h"
#include "base/thread_pool.h"
#include "graph/fusion.h"

namespace tenon::cpu {

// Where a value lies: |location| is an index into the table of pointers that a run is given.
struct Place {
  int location = -1;
  DType stored = DType::f32;
};

// What a Loop must know of the program around it.
class Placement {
 public:
  virtual ~Placement() = default;
  // Where the dense memory of a node outside the group is.
  virtual Place source(NodeId base) const = 0;
  // Everywhere the results of an output of the group must be written.
  virtual std::vector<Place> targets(NodeId output) const = 0;
};

// False if |operand| of |group| must be copied into dense memory before a Loop can read it (well).
bool loop_can_read(const Graph& graph, const Plan& plan, const Group& group, NodeId operand);

class Loop {
 public:
  Loop(const Graph& graph, const Plan& plan, int group, const Placement& placement, int threads);

  std::size_t scratch_bytes() const { return scratch_bytes_; }
  // |scratch| of scratch_bytes(), 64-byte aligned.
  void run(ThreadPool& pool, std::byte* const* locations, std::byte* scratch) const;

 private:
  friend class LoopCompiler;
  friend class LoopRunner;

  void run_reduction(ThreadPool& pool, std::byte* const* locations, std::byte* scratch, bool parallel) const;

  // How a value outside the group is addressed by row and column.
  struct External {
    Place place;
    std::int64_t offset = 0;      // elements
    bool dense = false;           // element (r, c) is at r * cols + c
    std::int64_t col_stride = 0;  // elements
    Strides row_strides{};        // elements, one per outer dim
  };

  enum class Home : std::uint8_t {
    block,      // a block of scratch memory, reused
    row,        // scratch memory for a whole row, addressed by column
    row_value,  // one element per row of the tile
    constant,   // filled when the loop was built
    input,      // points into an input
    output,     // points into an output
  };
  struct Register {
    Home home = Home::block;
    DType dtype = DType::f32;
    std::size_t offset = 0;  // in scratch or constants
    int external = -1;       // input, output
  };

  enum class Code : std::uint8_t {
    elementwise,   // all elements of the tile
    row_values,    // elementwise on one element per row
    convert,       // all elements, between dtypes
    convert_rows,  // one element per row, between dtypes
    load,          // from an external, as it is stored, element by element or run by run
    load_rows,     // one element per row of an external
    expand,        // one element per row -> all elements
    reduce,        // all elements -> one per row, or into an accumulator
    store,         // to an external, streaming past the caches if the loop does
    store_rows,    // one element per row to an external
  };
  struct Instruction {
    Code code{};
    int out = -1;
    int in[3] = {-1, -1, -1};
    int external = -1;
    int reduction = -1;  // reduce
    ElementwiseKernel kernel = nullptr;
    ConvertKernel convert = nullptr;
    std::array<double, 4> params{};
  };
  struct Phase {
    std::vector<Instruction> head;  // once per row (per tile where tiles are whole rows)
    std::vector<Instruction> body;  // per tile
  };
  struct Reduction {
    ReduceKind kind{};
    DType dtype = DType::f32;
    int input = -1;
    int result = -1;  // register, in rows groups
    int phase = 0;    // whose body feeds it
    PartialReduceKernel partial = nullptr;
    ColumnReduceKernel columns = nullptr;
    std::vector<Place> targets;  // in reduction groups
  };

  Group::Kind kind_ = Group::Kind::elementwise;
  std::vector<std::int64_t> outer_;  // extents the row index runs over
  std::int64_t rows_ = 1, cols_ = 1;
  std::int64_t block_ = 1024;
  std::int64_t tile_rows_ = 1;  // 1: tiles are segments of a row
  bool stream_ = false;
  double cost_ = 1;  // of one element, in simple operations
  std::vector<External> externals_;
  std::vector<Register> registers_;
  std::vector<int> moving_;        // registers that point into externals
  std::vector<Instruction> init_;  // once per chunk of work
  std::vector<Phase> phases_;
  std::vector<Reduction> reductions_;
  std::vector<std::byte> constants_;

  // Reduction groups: [outer, red, inner], inner = |reduce_between_| x cols (x 1 where the reduced axes are the columns);
  // red is split into |parts_| of |part_extent_| whose results are joined as a tree.
  bool reduce_columns_ = false;  // the columns are kept; otherwise they are what is reduced
  std::int64_t reduce_outer_ = 1, reduce_extent_ = 1, reduce_between_ = 1, part_extent_ = 1, parts_ = 1;

  std::size_t worker_bytes_ = 0;         // scratch of one worker
  std::size_t column_accumulators_ = 0;  // of a worker's column accumulators in its scratch
  std::size_t partials_offset_ = 0;      // of shared partial results in scratch
  std::size_t scratch_bytes_ = 0;
};

}  // namespace tenon::cpu
