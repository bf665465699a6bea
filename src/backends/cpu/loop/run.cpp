#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <numeric>

#include "backends/cpu/loop/accumulate.h"
#include "backends/cpu/loop/loop.h"
#include "backends/cpu/loop/short_rows.h"
#include "base/threads/stop_scope.h"

namespace tenon::cpu {
namespace {

// Below this much work (elements x cost) a second thread costs more than it gains.
constexpr double kParallelWork = 24'000;
// Elements a thread claims at once.
constexpr std::int64_t kChunkElements = 32768;

std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

template <class T>
void fill_as(void* out, const void* value, std::int64_t n) {
  T v;
  std::memcpy(&v, value, sizeof v);
  std::fill_n(static_cast<T*>(out), n, v);
}

void fill_value(void* out, const void* value, std::int64_t n, std::size_t size) {
  switch (size) {
    case 1: fill_as<std::uint8_t>(out, value, n); break;
    case 2: fill_as<std::uint16_t>(out, value, n); break;
    case 4: fill_as<std::uint32_t>(out, value, n); break;
    default: fill_as<std::uint64_t>(out, value, n); break;
  }
}

template <class T>
void gather_as(void* out, const void* in, std::int64_t n, std::int64_t stride) {
  const T* source = static_cast<const T*>(in);
  T* target = static_cast<T*>(out);
  for (std::int64_t i = 0; i < n; ++i) target[i] = source[i * stride];
}

// out[i] = in[i * stride]
void load_strided(void* out, const void* in, std::int64_t n, std::int64_t stride, std::size_t size) {
  if (n == 0) return;
  if (stride == 1) return kernels().copy(out, in, at(n) * size);
  if (stride == 0) return fill_value(out, in, n, size);
  switch (size) {
    case 1: gather_as<std::uint8_t>(out, in, n, stride); break;
    case 2: gather_as<std::uint16_t>(out, in, n, stride); break;
    case 4: gather_as<std::uint32_t>(out, in, n, stride); break;
    default: gather_as<std::uint64_t>(out, in, n, stride); break;
  }
}

// out[r * cols + c] = in[r * row_stride + c * col_stride]
void load_rows_strided(std::byte* out, const std::byte* in, std::int64_t rows, std::int64_t row_stride, std::int64_t cols,
                       std::int64_t col_stride, std::size_t size) {
  if (cols <= kShortRow) return load_short_rows(out, in, rows, row_stride, cols, col_stride, size);
  const std::int64_t step = row_stride * static_cast<std::int64_t>(size);
  for (std::int64_t r = 0; r < rows; ++r) load_strided(out + at(r * cols) * size, in + r * step, cols, col_stride, size);
}

}  // namespace

// One worker's walk over a part of a loop's domain.
class LoopRunner {
 public:
  LoopRunner(const LoopProgram& loop, std::byte* const* locations, std::byte* scratch)
      : loop_(loop),
        locations_(locations),
        scratch_(scratch),
        pointers_(reinterpret_cast<std::byte**>(scratch)) {
    accumulators_ = reinterpret_cast<Accumulator*>(scratch + (loop.registers.size() * sizeof(void*) + 63) / 64 * 64);
    for (std::size_t r = 0; r < loop.registers.size(); ++r) {
      const Register& reg = loop.registers[r];
      pointers_[r] = reg.home == Register::Home::constant ? const_cast<std::byte*>(loop.constants.data()) + reg.offset
                                                          : scratch + reg.offset;
    }
    if (!loop.init.empty()) {
      tile_ = {0, loop.geometry.tile_rows, 0, head_columns()};
      execute(loop.init);
    }
  }

  // Reduction groups that keep columns: where the accumulators of a reduction's columns are. Those of the next one are |stride|
  // further on.
  void accumulate_columns_at(Accumulator* first, std::int64_t stride) {
    columns_ = first;
    columns_stride_ = stride;
  }
  Accumulator* own_columns() { return reinterpret_cast<Accumulator*>(scratch_ + loop_.column_accumulators); }
  Accumulator* column_accumulators(std::size_t reduction) { return columns_ + at(columns_stride_) * reduction; }

  // Elementwise groups: tiles [first, last) of the whole domain.
  void tiles(std::int64_t first, std::int64_t last) {
    const Phase& phase = loop_.phases[0];
    if (loop_.geometry.tile_rows > 1) {
      for (std::int64_t t = first; t < last; ++t) {
        const std::int64_t row = t * loop_.geometry.tile_rows;
        move_to({row, std::min(loop_.geometry.tile_rows, loop_.geometry.rows - row), 0, loop_.geometry.cols});
        execute(phase.head);
        execute(phase.body);
      }
      return;
    }
    if (loop_.geometry.is_flat() && phase.head.empty()) return segments(first, last);
    const std::int64_t per_row = (loop_.geometry.cols + loop_.geometry.block - 1) / loop_.geometry.block;
    std::int64_t row = first / per_row, segment = first % per_row;
    bool new_row = true;
    for (std::int64_t t = first; t < last; ++t) {
      if (new_row && !phase.head.empty()) {
        move_to({row, 1, 0, head_columns()});
        execute(phase.head);
      }
      const std::int64_t column = segment * loop_.geometry.block;
      move_to({row, 1, column, std::min(loop_.geometry.block, loop_.geometry.cols - column)});
      execute(phase.body);
      new_row = ++segment == per_row;
      if (new_row) {
        segment = 0;
        ++row;
      }
    }
  }

  // Rows groups: |count| rows from |row| on, at most tile_rows_.
  void rows(std::int64_t row, std::int64_t count) {
    if (loop_.geometry.tile_rows > 1) {
      move_to({row, count, 0, loop_.geometry.cols});
      for (const Phase& phase : loop_.phases) {
        execute(phase.head);
        execute(phase.body);
      }
      return;
    }
    const bool is_one_tile = loop_.geometry.cols <= loop_.geometry.block;
    if (is_one_tile) move_to({row, 1, 0, loop_.geometry.cols});
    for (std::size_t p = 0; p < loop_.phases.size(); ++p) {
      const Phase& phase = loop_.phases[p];
      if (!phase.head.empty()) {
        if (!is_one_tile) move_to({row, 1, 0, head_columns()});
        execute(phase.head);
      }
      if (phase.body.empty()) continue;
      start_reductions(static_cast<int>(p));
      for (std::int64_t column = 0; column < loop_.geometry.cols; column += loop_.geometry.block) {
        if (!is_one_tile) move_to({row, 1, column, std::min(loop_.geometry.block, loop_.geometry.cols - column)});
        if (phase.ahead)
          execute_ahead(phase.body, row + 1, column);
        else
          execute(phase.body);
        check_stop_at_times();
      }
      for (std::size_t i = 0; i < loop_.reductions.size(); ++i)
        if (loop_.reductions[i].phase == static_cast<int>(p))
          store(accumulators_[i], loop_.reductions[i].dtype, pointers_[loop_.reductions[i].result]);
    }
  }

  // Reduction groups over columns: columns [first, last) of |row|; results are left in accumulator().
  void reduce_segment(std::int64_t row, std::int64_t first, std::int64_t last) {
    const Phase& phase = loop_.phases[0];
    if (!phase.head.empty()) {
      move_to({row, 1, 0, head_columns()});
      execute(phase.head);
    }
    start_reductions(0);
    for (std::int64_t column = first; column < last; column += loop_.geometry.block) {
      move_to({row, 1, column, std::min(loop_.geometry.block, last - column)});
      execute(phase.body);
    }
  }
  Accumulator accumulator(std::size_t reduction) const { return accumulators_[reduction]; }

  // The same for whole rows where nothing is computed before.
  void reduce_whole_rows(std::size_t reduction, std::int64_t row, std::int64_t rows, Accumulator* results) {
    const Reduction& r = loop_.reductions[reduction];
    const Register& reg = loop_.registers[at(r.input)];
    const std::int64_t cols = loop_.geometry.cols, step = cols * static_cast<std::int64_t>(element_bytes(reg.dtype));
    const std::byte* in = address(loop_.externals[at(reg.external)], row, 0);
    if (cols > 0 && cols <= kShortRow && reg.dtype == DType::f32 && kernels().short_rows[static_cast<int>(r.kind)])
      return kernels().short_rows[static_cast<int>(r.kind)](reinterpret_cast<const float*>(in), rows, cols, results);
    for (std::int64_t i = 0; i < rows; ++i, in += step) results[i] = r.partial(in, cols);
    if (stop_) stop_->check();
  }

  // Nothing is computed before the reductions, and their inputs are dense: whole bands of rows go to the kernel at once.
  bool reduces_plain_rows() const {
    const Phase& phase = loop_.phases[0];
    if (!phase.head.empty() || !loop_.init.empty()) return false;
    for (const Instruction& i : phase.body) {
      if (i.code != Instruction::Code::reduce || i.in[1] >= 0) return false;
      const Register& reg = loop_.registers[at(i.in[0])];
      if (reg.home != Register::Home::input || !loop_.externals[at(reg.external)].dense) return false;
    }
    return true;
  }

  // Reduction groups that keep columns: adds |count| rows, |step| apart, columns [column, column + width), to the column
  // accumulators.
  void reduce_rows(std::int64_t row, std::int64_t count, std::int64_t step, std::int64_t column, std::int64_t width) {
    const Phase& phase = loop_.phases[0];
    if (reduces_plain_rows()) {
      move_to({row, 1, column, width});
      for (std::size_t i = 0; i < loop_.reductions.size(); ++i)
        reduce_columns(loop_.reductions[i], pointers_[loop_.reductions[i].input], count, step * loop_.geometry.cols, width,
                       column_accumulators(i));
      return;
    }
    for (std::int64_t done = 0; done < count;) {
      const std::int64_t rows = step == 1 ? std::min(loop_.geometry.tile_rows, count - done) : 1;
      if (!phase.head.empty()) {
        move_to({row + done * step, rows, 0, loop_.geometry.tile_rows > 1 ? loop_.geometry.cols : head_columns()});
        execute(phase.head);
      }
      move_to({row + done * step, rows, column, width});
      execute(phase.body);
      done += rows;
    }
  }

 private:
  struct Tile {
    std::int64_t row = 0, rows = 1, column = 0, columns = 0;
    std::int64_t elements() const { return rows * columns; }
  };

  // Tiles [first, last) of one long row: pointers only step on.
  void segments(std::int64_t first, std::int64_t last) {
    const std::int64_t block = loop_.geometry.block;
    move_to({0, 1, first * block, block});
    for (std::int64_t t = first; t < last; ++t) {
      tile_.columns = std::min(block, loop_.geometry.cols - tile_.column);
      execute(loop_.phases[0].body);
      for (int r : loop_.moving) pointers_[r] += at(block) * element_bytes(loop_.registers[at(r)].dtype);
      tile_.column += block;
    }
  }

  // Values that are written once per row must cover every segment of it.
  std::int64_t head_columns() const {
    return loop_.geometry.tile_rows > 1 ? loop_.geometry.cols : std::min(loop_.geometry.block, loop_.geometry.cols);
  }

  std::int64_t row_offset(const External& external, std::int64_t row) const {
    std::int64_t offset = 0;
    // The first axis needs no division, and often is the only one.
    for (std::size_t i = loop_.geometry.outer.size(); i-- > 1 && row != 0;) {
      offset += row % loop_.geometry.outer[i] * external.row_strides[i];
      row /= loop_.geometry.outer[i];
    }
    return offset + row * external.row_strides[0];
  }

  std::byte* address(const External& external, std::int64_t row, std::int64_t column) const {
    const std::int64_t element = external.offset + (external.dense ? row * loop_.geometry.cols + column
                                                                   : row_offset(external, row) + column * external.col_stride);
    return locations_[external.place.location] + element * static_cast<std::int64_t>(element_bytes(external.place.stored));
  }

  void move_to(const Tile& tile) {
    tile_ = tile;
    for (int r : loop_.moving) {
      const Register& reg = loop_.registers[at(r)];
      pointers_[r] = reg.home == Register::Home::row ? scratch_ + reg.offset + at(tile.column) * element_bytes(reg.dtype)
                                                     : address(loop_.externals[at(reg.external)], tile.row, tile.column);
    }
  }

  // One row can be the whole tensor.
  void check_stop_at_times() {
    constexpr unsigned kTiles = 16;
    if (stop_ && ++tiles_done_ % kTiles == 0) stop_->check();
  }

  void start_reductions(int phase) {
    for (std::size_t i = 0; i < loop_.reductions.size(); ++i)
      if (loop_.reductions[i].phase == phase) accumulators_[i] = identity(loop_.reductions[i].kind, loop_.reductions[i].dtype);
  }

  void execute(const std::vector<Instruction>& instructions) {
    for (const Instruction& i : instructions) execute(i);
  }

  // The same, with the inputs of the tile at (row, column) asked for between the instructions: a few cache lines at a time,
  // because more than a dozen outstanding ones stall the core.
  void execute_ahead(const std::vector<Instruction>& instructions, std::int64_t row, std::int64_t column) {
    const std::size_t parts = instructions.size();
    for (std::size_t part = 0; part < parts; ++part) {
      for (int r : loop_.moving) {
        const Register& reg = loop_.registers[at(r)];
        if (reg.home != Register::Home::input) continue;
        const External& external = loop_.externals[at(reg.external)];
        const std::size_t bytes = at(tile_.elements()) * element_bytes(reg.dtype);
        const std::byte* next = address(external, row, column);
        for (std::size_t b = bytes * part / parts; b < bytes * (part + 1) / parts; b += 64) __builtin_prefetch(next + b);
      }
      execute(instructions[part]);
    }
  }

  void execute(const Instruction& i) {
    using Code = Instruction::Code;
    switch (i.code) {
      case Code::elementwise:
      case Code::row_values: {
        const void* in[3] = {i.in[0] >= 0 ? pointers_[i.in[0]] : nullptr, i.in[1] >= 0 ? pointers_[i.in[1]] : nullptr,
                             i.in[2] >= 0 ? pointers_[i.in[2]] : nullptr};
        i.kernel(in, pointers_[i.out], i.code == Code::elementwise ? tile_.elements() : tile_.rows, i.params.data());
        break;
      }
      case Code::convert: i.convert(pointers_[i.in[0]], pointers_[i.out], tile_.elements()); break;
      case Code::convert_rows: i.convert(pointers_[i.in[0]], pointers_[i.out], tile_.rows); break;
      case Code::load: load(i); break;
      case Code::load_rows: load_rows(i); break;
      case Code::expand: expand(i); break;
      case Code::with_rows: with_rows(i); break;
      case Code::divide_rows: divide_rows(i); break;
      case Code::reduce: reduce(i); break;
      case Code::store_and_reduce: store_and_reduce(i); break;
      case Code::exp_sum: exp_sum(i); break;
      case Code::squared_deviations: squared_deviations(i); break;
      case Code::deviation_with: deviation_with(i); break;
      case Code::select_range: select_range(i); break;
      case Code::normalize: normalize(i); break;
      case Code::store: store_tile(i); break;
      case Code::store_rows: store_rows(i); break;
    }
  }

  // The offsets of the rows of a tile one after the other, without a division for each.
  class RowOffsets {
   public:
    RowOffsets(const LoopGeometry& geometry, const External& external, std::int64_t row)
        : outer_(geometry.outer),
          strides_(external.row_strides) {
      for (std::size_t i = outer_.size(); i-- > 0;) {
        place_[i] = i > 0 ? row % outer_[i] : row;
        offset_ += place_[i] * strides_[i];
        if (i > 0) row /= outer_[i];
      }
    }
    // How many rows follow each other by one step, from the current one on, and this step.
    std::int64_t in_step() const { return outer_.empty() ? 1 : outer_.back() - place_[outer_.size() - 1]; }
    std::int64_t step() const { return outer_.empty() ? 0 : strides_[outer_.size() - 1]; }
    std::int64_t offset() const { return offset_; }
    // |count| rows on, at most in_step().
    void skip(std::int64_t count) {
      for (std::size_t i = outer_.size(); i-- > 0; count = 1) {
        offset_ += strides_[i] * count;
        place_[i] += count;
        if (i == 0 || place_[i] < outer_[i]) break;
        offset_ -= strides_[i] * outer_[i];
        place_[i] = 0;
      }
    }
    std::int64_t next() {
      const std::int64_t offset = offset_;
      skip(1);
      return offset;
    }

   private:
    const std::vector<std::int64_t>& outer_;
    const Strides& strides_;
    Strides place_;
    std::int64_t offset_ = 0;
  };

  void load(const Instruction& i) {
    const External& external = loop_.externals[at(i.external)];
    const std::size_t size = element_bytes(external.place.stored);
    std::byte* out = pointers_[i.out];
    if (external.dense || tile_.rows == 1) {
      for (std::int64_t r = 0; r < tile_.rows; ++r)
        load_strided(out + at(r * tile_.columns) * size, address(external, tile_.row + r, tile_.column), tile_.columns,
                     external.col_stride, size);
      return;
    }
    RowOffsets offsets(loop_.geometry, external, tile_.row);
    const std::int64_t first = external.offset + tile_.column * external.col_stride;
    for (std::int64_t done = 0; done < tile_.rows;) {
      const std::int64_t rows = std::min(offsets.in_step(), tile_.rows - done);
      load_rows_strided(out + at(done * tile_.columns) * size,
                        locations_[external.place.location] + static_cast<std::int64_t>(size) * (first + offsets.offset()), rows,
                        offsets.step(), tile_.columns, external.col_stride, size);
      offsets.skip(rows);
      done += rows;
    }
  }

  void load_rows(const Instruction& i) {
    const External& external = loop_.externals[at(i.external)];
    const std::size_t size = element_bytes(external.place.stored);
    const std::byte* const from = locations_[external.place.location] + static_cast<std::int64_t>(size) * external.offset;
    if (tile_.rows == 1) {
      std::memcpy(pointers_[i.out], from + static_cast<std::int64_t>(size) * row_offset(external, tile_.row), size);
      return;
    }
    RowOffsets offsets(loop_.geometry, external, tile_.row);
    for (std::int64_t r = 0; r < tile_.rows; ++r)
      std::memcpy(pointers_[i.out] + at(r) * size, from + static_cast<std::int64_t>(size) * offsets.next(), size);
  }

  void expand(const Instruction& i) {
    const std::size_t size = element_bytes(loop_.registers[at(i.out)].dtype);
    if (tile_.columns <= kShortRow)
      return load_short_rows(pointers_[i.out], pointers_[i.in[0]], tile_.rows, 1, tile_.columns, 0, size);
    for (std::int64_t r = 0; r < tile_.rows; ++r)
      fill_value(pointers_[i.out] + at(r * tile_.columns) * size, pointers_[i.in[0]] + at(r) * size, tile_.columns, size);
  }

  void with_rows(const Instruction& i) {
    const std::size_t size = element_bytes(loop_.registers[at(i.out)].dtype);
    for (std::int64_t r = 0; r < tile_.rows; ++r) {
      const std::size_t first = at(r * tile_.columns) * size;
      const void* in[3] = {pointers_[i.in[0]] + first, pointers_[i.in[1]] + at(r) * size,
                           i.in[2] >= 0 ? pointers_[i.in[2]] + at(r) * size : nullptr};
      i.kernel(in, pointers_[i.out] + first, tile_.columns, i.params.data());
    }
  }

  void divide_rows(const Instruction& i) {
    const float* in = reinterpret_cast<const float*>(pointers_[i.in[0]]);
    const float* divisors = reinterpret_cast<const float*>(pointers_[i.in[1]]);
    float* out = reinterpret_cast<float*>(pointers_[i.out]);
    for (std::int64_t r = 0; r < tile_.rows; ++r, in += tile_.columns, out += tile_.columns) {
      const float divisor = divisors[r];
      // The reciprocal of an ordinary number is a normal number; of 0, a subnormal or an infinity it is not.
      if (std::abs(divisor) > 0x1p-100f && std::abs(divisor) < 0x1p100f) {
        (i.streaming ? kernels().streaming_scale : kernels().scale)(in, 1.0f / divisor, out, tile_.columns);
      } else {
        std::fill_n(out, tile_.columns, divisor);
        const void* operands[3] = {in, out, nullptr};
        i.kernel(operands, out, tile_.columns, i.params.data());
      }
    }
  }

  void reduce(const Instruction& i) {
    const Reduction& reduction = loop_.reductions[at(i.reduction)];
    if (loop_.geometry.keeps_columns)
      return reduce_columns(reduction, pointers_[i.in[0]], tile_.rows, tile_.columns, tile_.columns,
                            column_accumulators(at(i.reduction)));
    const std::size_t size = element_bytes(loop_.registers[at(i.in[0])].dtype);
    if (reduction.short_rows) return reduce_short_rows(reduction, reinterpret_cast<const float*>(pointers_[i.in[0]]));
    const auto row = [&](std::int64_t r) {
      const std::size_t first = at(r * tile_.columns) * size;
      if (reduction.products) return reduction.products(pointers_[i.in[0]] + first, pointers_[i.in[1]] + first, tile_.columns);
      return reduction.partial(pointers_[i.in[0]] + first, tile_.columns);
    };
    for (std::int64_t r = 0; r < tile_.rows; ++r) add_to_row(i, r, row(r));
  }

  void reduce_short_rows(const Reduction& reduction, const float* in) {
    constexpr std::int64_t kTogether = 256;
    std::array<Accumulator, kTogether> results;
    const std::size_t size = element_bytes(reduction.dtype);
    for (std::int64_t r = 0; r < tile_.rows; r += kTogether) {
      const std::int64_t rows = std::min(kTogether, tile_.rows - r);
      reduction.short_rows(in + r * tile_.columns, rows, tile_.columns, results.data());
      store(results.data(), rows, reduction.dtype, pointers_[reduction.result] + at(r) * size);
    }
  }

  // Adds rows to column accumulators. A few columns leave most lanes of a vector empty: several rows are then taken as one.
  void reduce_columns(const Reduction& reduction, const std::byte* in, std::int64_t rows, std::int64_t row_stride,
                      std::int64_t columns, Accumulator* accumulators) const {
    constexpr std::int64_t kLanes = 16, kWidest = 128;
    const std::int64_t even = kLanes / std::gcd(columns, kLanes);  // rows that fill whole vectors
    const std::int64_t together = even * columns <= kWidest ? kWidest / (even * columns) * even : kWidest / columns;
    if (row_stride != columns || columns > kShortRow || rows < 4 * together)
      return reduction.columns(in, rows, row_stride, columns, accumulators);
    std::array<Accumulator, kWidest> wide;
    std::fill_n(wide.begin(), together * columns, identity(reduction.kind, reduction.dtype));
    const std::int64_t whole = rows / together, done = whole * together;
    reduction.columns(in, whole, together * columns, together * columns, wide.data());
    const AccumulatorClass cls = accumulator_class(reduction.dtype);
    combine_tree(reduction.kind, cls, wide.data(), together, columns, columns);
    for (std::int64_t j = 0; j < columns; ++j) accumulators[j] = combine(reduction.kind, cls, accumulators[j], wide[at(j)]);
    const std::size_t size = element_bytes(loop_.registers[at(reduction.input)].dtype);
    if (done < rows) reduction.columns(in + at(done * columns) * size, rows - done, columns, columns, accumulators);
  }

  // What a reduction gives for row |r| of the tile: all of it, or one segment's part.
  void add_to_row(const Instruction& i, std::int64_t r, Accumulator value) {
    const Reduction& reduction = loop_.reductions[at(i.reduction)];
    if (loop_.geometry.tile_rows > 1) {
      store(value, reduction.dtype, pointers_[reduction.result] + at(r) * element_bytes(reduction.dtype));
      return;
    }
    Accumulator& acc = accumulators_[i.reduction];
    acc = combine(reduction.kind, accumulator_class(reduction.dtype), acc, value);
  }

  void store_and_reduce(const Instruction& i) {
    const std::size_t size = element_bytes(loop_.registers[at(i.out)].dtype);
    for (std::int64_t r = 0; r < tile_.rows; ++r) {
      const std::size_t first = at(r * tile_.columns) * size;
      add_to_row(
          i, r,
          i.store_and_reduce(pointers_[i.in[0]] + first, pointers_[i.in[1]] + first, pointers_[i.out] + first, tile_.columns));
    }
  }

  // The same segment of the next row; what is in the caches anyway if there is nothing to prefetch.
  Ahead ahead_of(const Instruction& i, const std::byte* otherwise) const {
    const auto place = [&](int external) {
      return external < 0 ? otherwise : address(loop_.externals[at(external)], tile_.row + 1, tile_.column);
    };
    return {place(i.ahead[0]), place(i.ahead[1])};
  }

  void exp_sum(const Instruction& i) {
    const float* shifts = reinterpret_cast<const float*>(pointers_[i.in[1]]);
    for (std::int64_t r = 0; r < tile_.rows; ++r) {
      const std::size_t first = at(r * tile_.columns) * sizeof(float);
      const std::byte* in = pointers_[i.in[0]] + first;
      float* out = i.out < 0 ? nullptr : reinterpret_cast<float*>(pointers_[i.out] + first);
      add_to_row(i, r,
                 (out ? kernels().exp_sum : kernels().exp_sum_alone)(reinterpret_cast<const float*>(in), shifts[r], out,
                                                                     tile_.columns, ahead_of(i, in)));
    }
  }

  void squared_deviations(const Instruction& i) {
    const std::size_t size = element_bytes(loop_.registers[at(i.in[0])].dtype);
    const std::size_t one = element_bytes(loop_.registers[at(i.in[1])].dtype);
    for (std::int64_t r = 0; r < tile_.rows; ++r) {
      const std::byte* in = pointers_[i.in[0]] + at(r * tile_.columns) * size;
      add_to_row(i, r, i.squares(in, pointers_[i.in[1]] + at(r) * one, tile_.columns, ahead_of(i, in)));
    }
  }

  void deviation_with(const Instruction& i) {
    const std::size_t size = element_bytes(loop_.registers[at(i.out)].dtype);
    for (std::int64_t r = 0; r < tile_.rows; ++r) {
      const std::size_t first = at(r * tile_.columns) * size;
      const void* in[3] = {pointers_[i.in[0]] + first, pointers_[i.in[1]] + at(r) * size, pointers_[i.in[2]] + at(r) * size};
      i.kernel(in, pointers_[i.out] + first, tile_.columns, i.params.data());
    }
  }

  void select_range(const Instruction& i) {
    const std::int64_t cols = tile_.columns;
    const std::size_t size = element_bytes(loop_.registers[at(i.out)].dtype);
    const auto* const rows = reinterpret_cast<const std::int32_t*>(pointers_[i.in[1]]);
    const auto write = [&](std::int64_t row, std::int64_t begin, std::int64_t end, bool copies, const std::byte* value) {
      const std::size_t first = at(row * cols + begin) * size;
      if (begin == end) return;
      if (copies)
        kernels().copy(pointers_[i.out] + first, pointers_[i.in[0]] + first, at(end - begin) * size);
      else
        fill_value(pointers_[i.out] + first, value, end - begin, size);
    };
    for (std::int64_t r = 0; r < tile_.rows; ++r) {
      // The column that has the row's number, and the columns below it or up to it.
      const std::int64_t equal = rows[r] - i.range.first_number - tile_.column;
      const std::int64_t below = std::clamp<std::int64_t>(equal, 0, cols), up_to = std::clamp<std::int64_t>(equal + 1, 0, cols);
      std::int64_t begin = 0, end = cols;
      switch (i.range.comparison) {
        case ElementwiseOp::Lt: end = below; break;
        case ElementwiseOp::Le: end = up_to; break;
        case ElementwiseOp::Gt: begin = up_to; break;
        case ElementwiseOp::Ge: begin = below; break;
        default: begin = below, end = up_to; break;
      }
      write(r, 0, begin, i.range.copies_outside, i.range.outside.data());
      write(r, begin, end, i.range.copies_inside, i.range.inside.data());
      write(r, end, cols, i.range.copies_outside, i.range.outside.data());
    }
  }

  void normalize(const Instruction& i) {
    const std::size_t in_size = element_bytes(loop_.registers[at(i.in[0])].dtype);
    const std::size_t out_size = element_bytes(loop_.registers[at(i.out)].dtype);
    for (std::int64_t r = 0; r < tile_.rows; ++r) {
      float rows[4];
      for (std::size_t k = 0; k < 4; ++k) rows[k] = reinterpret_cast<const float*>(pointers_[i.in[k + 1]])[r];
      const std::size_t first = at(r * tile_.columns);
      i.normalize(pointers_[i.in[0]] + first * in_size, rows, pointers_[i.out] + first * out_size, tile_.columns);
    }
  }

  void store_tile(const Instruction& i) {
    const External& external = loop_.externals[at(i.external)];
    std::byte* target = address(external, tile_.row, tile_.column);
    const std::size_t bytes = at(tile_.elements()) * element_bytes(external.place.stored);
    if (loop_.stream)
      kernels().stream_copy(target, pointers_[i.in[0]], bytes);
    else
      kernels().copy(target, pointers_[i.in[0]], bytes);
  }

  void store_rows(const Instruction& i) {
    const External& external = loop_.externals[at(i.external)];
    const std::size_t size = element_bytes(external.place.stored);
    std::memcpy(locations_[external.place.location] + at(tile_.row) * size, pointers_[i.in[0]], at(tile_.rows) * size);
  }

  const LoopProgram& loop_;
  std::byte* const* locations_;
  std::byte* scratch_;
  std::byte** pointers_;
  Accumulator* accumulators_;
  Accumulator* columns_ = nullptr;
  std::int64_t columns_stride_ = 0;
  const StopScope* stop_ = StopScope::current();
  unsigned tiles_done_ = 0;
  Tile tile_;
};

namespace {

// Runs body(first, last, worker) over [0, units) in chunks of |grain| units, or all at once in the caller when that pays more.
template <class Body>
void split(ThreadPool& pool, std::int64_t units, std::int64_t grain, bool parallel, const Body& body) {
  if (units <= 0) return;
  if (!parallel || units <= grain) return body(std::int64_t{0}, units, 0);
  pool.for_each((units + grain - 1) / grain,
                [&](std::int64_t chunk, int worker) { body(chunk * grain, std::min(units, (chunk + 1) * grain), worker); });
}

}  // namespace

void Loop::run(ThreadPool& pool, std::byte* const* locations, std::byte* scratch) const {
  const LoopGeometry& g = program_.geometry;
  const bool parallel = static_cast<double>(g.rows) * static_cast<double>(g.cols) * program_.cost > kParallelWork;
  const auto worker_scratch = [&](int worker) { return scratch + at(worker) * program_.worker_bytes; };
  const auto finish = [&] {
    if (program_.stream) kernels().stream_fence();
  };

  if (program_.kind == Group::Kind::elementwise) {
    const std::int64_t tiles =
        g.tile_rows > 1 ? (g.rows + g.tile_rows - 1) / g.tile_rows : g.rows * ((g.cols + g.block - 1) / g.block);
    const std::int64_t tile_elements = g.tile_rows > 1 ? g.tile_rows * g.cols : std::min(g.block, g.cols);
    // Small loops are split in as many parts as there are threads, large ones finer, so that a late thread costs little.
    const std::int64_t grain = std::max<std::int64_t>(
        1, std::min(kChunkElements / std::max<std::int64_t>(tile_elements, 1), (tiles + pool.threads() - 1) / pool.threads()));
    split(pool, tiles, grain, parallel, [&](std::int64_t first, std::int64_t last, int worker) {
      LoopRunner(program_, locations, worker_scratch(worker)).tiles(first, last);
      finish();
    });
    return;
  }

  if (program_.kind == Group::Kind::rows) {
    const std::int64_t tiles = (g.rows + g.tile_rows - 1) / g.tile_rows;
    const std::int64_t grain =
        std::max<std::int64_t>(1, std::min(kChunkElements / std::max<std::int64_t>(g.tile_rows * g.cols, 1),
                                           (tiles + pool.threads() - 1) / pool.threads()));
    split(pool, tiles, grain, parallel, [&](std::int64_t first, std::int64_t last, int worker) {
      LoopRunner runner(program_, locations, worker_scratch(worker));
      for (std::int64_t t = first; t < last; ++t) runner.rows(t * g.tile_rows, std::min(g.tile_rows, g.rows - t * g.tile_rows));
      finish();
    });
    return;
  }
  run_reduction(pool, locations, scratch, parallel);
}

void Loop::run_reduction(ThreadPool& pool, std::byte* const* locations, std::byte* scratch, bool parallel) const {
  const LoopGeometry& g = program_.geometry;
  const std::int64_t inner = g.keeps_columns ? g.between * g.cols : 1;
  const std::int64_t kept = g.kept(), stride = g.partial_stride();
  Accumulator* partials = reinterpret_cast<Accumulator*>(scratch + program_.partials_offset);
  const auto partial = [&](std::size_t reduction, std::int64_t part) {
    return partials + (at(part) * program_.reductions.size() + reduction) * at(stride);
  };
  // Results [index, index + n) of a reduction.
  const auto deliver = [&](std::size_t reduction, std::int64_t index, const Accumulator* values, std::int64_t n) {
    constexpr std::int64_t kAtOnce = 256;
    const DType dtype = program_.reductions[reduction].dtype;
    for (std::int64_t done = 0; done < n; done += kAtOnce) {
      const std::int64_t count = std::min(kAtOnce, n - done);
      alignas(64) std::byte elements[kAtOnce * sizeof(Accumulator)];
      store(values + done, count, dtype, elements);
      for (const Place& place : program_.reductions[reduction].targets)
        kernels().convert[static_cast<int>(dtype)][static_cast<int>(place.stored)](
            elements, locations[place.location] + at(index + done) * element_bytes(place.stored), count);
    }
  };

  // As many units at a time as are worth a claim.
  const auto grain_of = [&](std::int64_t units, std::int64_t elements) {
    const std::int64_t most = std::max<std::int64_t>(1, (units + pool.threads() - 1) / pool.threads());
    return std::clamp<std::int64_t>(kChunkElements / std::max<std::int64_t>(elements, 1), 1, most);
  };
  if (!g.keeps_columns) {
    const std::int64_t units = g.reduce_outer * g.parts;
    split(pool, units, grain_of(units, std::min(g.cols, g.part_extent)), parallel,
          [&](std::int64_t first, std::int64_t last, int worker) {
            LoopRunner runner(program_, locations, scratch + at(worker) * program_.worker_bytes);
            if (g.parts == 1 && runner.reduces_plain_rows()) {
              // Whole rows, which nothing is computed on before.
              constexpr std::int64_t kAtOnce = 64;
              Accumulator values[kAtOnce];
              for (std::int64_t row = first; row < last; row += kAtOnce) {
                const std::int64_t rows = std::min(kAtOnce, last - row);
                for (std::size_t i = 0; i < program_.reductions.size(); ++i) {
                  runner.reduce_whole_rows(i, row, rows, values);
                  deliver(i, row, values, rows);
                }
              }
              return;
            }
            for (std::int64_t unit = first; unit < last; ++unit) {
              const std::int64_t row = unit / g.parts, part = unit % g.parts;
              runner.reduce_segment(row, part * g.part_extent, std::min(g.cols, (part + 1) * g.part_extent));
              for (std::size_t i = 0; i < program_.reductions.size(); ++i) {
                const Accumulator value = runner.accumulator(i);
                if (g.parts == 1)
                  deliver(i, row, &value, 1);
                else
                  partial(i, part)[row] = value;
              }
            }
            if (program_.stream) kernels().stream_fence();
          });
  } else {
    const std::int64_t segments = g.tile_rows > 1 ? 1 : (g.cols + g.block - 1) / g.block;
    const std::int64_t units = g.reduce_outer * g.between * segments * g.parts;
    const std::int64_t width_of_unit = g.tile_rows > 1 ? g.cols : std::min(g.block, g.cols);
    const std::int64_t grain = grain_of(units, g.part_extent * width_of_unit);
    split(pool, units, grain, parallel, [&](std::int64_t first, std::int64_t last, int worker) {
      LoopRunner runner(program_, locations, scratch + at(worker) * program_.worker_bytes);
      for (std::int64_t unit = first; unit < last; ++unit) {
        std::int64_t rest = unit;
        const std::int64_t part = rest % g.parts;
        rest /= g.parts;
        const std::int64_t segment = rest % segments;
        rest /= segments;
        const std::int64_t between = rest % g.between, outer = rest / g.between;
        const std::int64_t column = segment * g.block, width = g.tile_rows > 1 ? g.cols : std::min(g.block, g.cols - column);
        const std::int64_t index = outer * inner + between * g.cols + column;
        if (g.parts == 1)
          runner.accumulate_columns_at(runner.own_columns(), width);
        else
          runner.accumulate_columns_at(partial(0, part) + index, stride);
        for (std::size_t i = 0; i < program_.reductions.size(); ++i)
          std::fill_n(runner.column_accumulators(i), width, identity(program_.reductions[i].kind, program_.reductions[i].dtype));
        const std::int64_t begin = part * g.part_extent, count = std::min(g.reduce_extent, begin + g.part_extent) - begin;
        if (count > 0)
          runner.reduce_rows((outer * g.reduce_extent + begin) * g.between + between, count, g.between, column, width);
        if (g.parts > 1) continue;
        for (std::size_t i = 0; i < program_.reductions.size(); ++i) deliver(i, index, runner.column_accumulators(i), width);
      }
      if (program_.stream) kernels().stream_fence();
    });
  }

  if (g.parts == 1) return;
  const auto count = static_cast<std::int64_t>(program_.reductions.size());
  constexpr std::int64_t kTogether = 1024;
  split(pool, kept, kTogether, static_cast<double>(kept * g.parts * count) > kParallelWork,
        [&](std::int64_t first, std::int64_t last, int) {
          for (std::size_t i = 0; i < program_.reductions.size(); ++i) {
            Accumulator* results = partial(i, 0) + first;
            combine_tree(program_.reductions[i].kind, accumulator_class(program_.reductions[i].dtype), results, g.parts,
                         count * stride, last - first);
            deliver(i, first, results, last - first);
          }
        });
}

}  // namespace tenon::cpu
