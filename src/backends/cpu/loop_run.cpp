#include <algorithm>
#include <cstring>

#include "backends/cpu/accumulate.h"
#include "backends/cpu/loop.h"

namespace tenon::cpu {
namespace {

// Below this much work (elements x cost) a second thread costs more than it brings.
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
  if (stride == 1) {
    std::memcpy(out, in, at(n) * size);
    return;
  }
  if (stride == 0) return fill_value(out, in, n, size);
  switch (size) {
    case 1: gather_as<std::uint8_t>(out, in, n, stride); break;
    case 2: gather_as<std::uint16_t>(out, in, n, stride); break;
    case 4: gather_as<std::uint32_t>(out, in, n, stride); break;
    default: gather_as<std::uint64_t>(out, in, n, stride); break;
  }
}

}  // namespace

// One worker's walk over a part of a loop's domain.
class LoopRunner {
 public:
  LoopRunner(const Loop& loop, std::byte* const* locations, std::byte* scratch)
      : loop_(loop),
        locations_(locations),
        scratch_(scratch),
        pointers_(reinterpret_cast<std::byte**>(scratch)) {
    accumulators_ = reinterpret_cast<Accumulator*>(scratch + (loop.registers_.size() * sizeof(void*) + 63) / 64 * 64);
    for (std::size_t r = 0; r < loop.registers_.size(); ++r) {
      const Loop::Register& reg = loop.registers_[r];
      pointers_[r] =
          reg.home == Loop::Home::constant ? const_cast<std::byte*>(loop.constants_.data()) + reg.offset : scratch + reg.offset;
    }
    if (!loop.init_.empty()) {
      tile_ = {0, loop.tile_rows_, 0, head_columns()};
      execute(loop.init_);
    }
  }

  Accumulator* column_accumulators(std::size_t reduction, std::int64_t width) {
    return reinterpret_cast<Accumulator*>(scratch_ + loop_.column_accumulators_) + reduction * at(width);
  }

  // Elementwise groups: tiles [first, last) of the whole domain.
  void tiles(std::int64_t first, std::int64_t last) {
    const Loop::Phase& phase = loop_.phases_[0];
    if (loop_.tile_rows_ > 1) {
      for (std::int64_t t = first; t < last; ++t) {
        const std::int64_t row = t * loop_.tile_rows_;
        move_to({row, std::min(loop_.tile_rows_, loop_.rows_ - row), 0, loop_.cols_});
        execute(phase.head);
        execute(phase.body);
      }
      return;
    }
    const std::int64_t per_row = (loop_.cols_ + loop_.block_ - 1) / loop_.block_;
    std::int64_t row = first / per_row, segment = first % per_row;
    bool new_row = true;
    for (std::int64_t t = first; t < last; ++t) {
      if (new_row && !phase.head.empty()) {
        move_to({row, 1, 0, head_columns()});
        execute(phase.head);
      }
      const std::int64_t column = segment * loop_.block_;
      move_to({row, 1, column, std::min(loop_.block_, loop_.cols_ - column)});
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
    if (loop_.tile_rows_ > 1) {
      move_to({row, count, 0, loop_.cols_});
      for (const Loop::Phase& phase : loop_.phases_) {
        execute(phase.head);
        execute(phase.body);
      }
      return;
    }
    for (std::size_t p = 0; p < loop_.phases_.size(); ++p) {
      const Loop::Phase& phase = loop_.phases_[p];
      if (!phase.head.empty()) {
        move_to({row, 1, 0, head_columns()});
        execute(phase.head);
      }
      if (phase.body.empty()) continue;
      start_reductions(static_cast<int>(p));
      for (std::int64_t column = 0; column < loop_.cols_; column += loop_.block_) {
        move_to({row, 1, column, std::min(loop_.block_, loop_.cols_ - column)});
        execute(phase.body);
      }
      for (std::size_t i = 0; i < loop_.reductions_.size(); ++i)
        if (loop_.reductions_[i].phase == static_cast<int>(p))
          store(accumulators_[i], loop_.reductions_[i].dtype, pointers_[loop_.reductions_[i].result]);
    }
  }

  // Reduction groups over columns: columns [first, last) of |row|; results are left in accumulator().
  void reduce_segment(std::int64_t row, std::int64_t first, std::int64_t last) {
    const Loop::Phase& phase = loop_.phases_[0];
    if (!phase.head.empty()) {
      move_to({row, 1, 0, head_columns()});
      execute(phase.head);
    }
    start_reductions(0);
    for (std::int64_t column = first; column < last; column += loop_.block_) {
      move_to({row, 1, column, std::min(loop_.block_, last - column)});
      execute(phase.body);
    }
  }
  Accumulator accumulator(std::size_t reduction) const { return accumulators_[reduction]; }

  // Reduction groups that keep columns: adds |count| rows, |step| apart, columns [column, column + width), to the column
  // accumulators.
  void reduce_rows(std::int64_t row, std::int64_t count, std::int64_t step, std::int64_t column, std::int64_t width) {
    const Loop::Phase& phase = loop_.phases_[0];
    accumulator_width_ = width;
    if (reduces_plain_rows()) {
      move_to({row, 1, column, width});
      for (std::size_t i = 0; i < loop_.reductions_.size(); ++i)
        loop_.reductions_[i].columns(pointers_[loop_.reductions_[i].input], count, step * loop_.cols_, width,
                                     column_accumulators(i, width));
      return;
    }
    for (std::int64_t done = 0; done < count;) {
      const std::int64_t rows = step == 1 ? std::min(loop_.tile_rows_, count - done) : 1;
      if (!phase.head.empty()) {
        move_to({row + done * step, rows, 0, loop_.tile_rows_ > 1 ? loop_.cols_ : head_columns()});
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

  // What is written once per row must cover every segment of it.
  std::int64_t head_columns() const { return loop_.tile_rows_ > 1 ? loop_.cols_ : std::min(loop_.block_, loop_.cols_); }

  // Nothing is computed before the reductions, and their inputs are dense: whole bands of rows go to the kernel at once.
  bool reduces_plain_rows() const {
    const Loop::Phase& phase = loop_.phases_[0];
    if (!phase.head.empty()) return false;
    for (const Loop::Instruction& i : phase.body) {
      if (i.code != Loop::Code::reduce) return false;
      const Loop::Register& reg = loop_.registers_[at(i.in[0])];
      if (reg.home != Loop::Home::input || !loop_.externals_[at(reg.external)].dense) return false;
    }
    return true;
  }

  std::int64_t row_offset(const Loop::External& external, std::int64_t row) const {
    std::int64_t offset = 0;
    for (std::size_t i = loop_.outer_.size(); i-- > 0 && row != 0;) {
      offset += row % loop_.outer_[i] * external.row_strides[i];
      row /= loop_.outer_[i];
    }
    return offset;
  }

  std::byte* address(const Loop::External& external, std::int64_t row, std::int64_t column) const {
    const std::int64_t element = external.offset + (external.dense ? row * loop_.cols_ + column
                                                                   : row_offset(external, row) + column * external.col_stride);
    return locations_[external.place.location] + element * static_cast<std::int64_t>(element_bytes(external.place.stored));
  }

  void move_to(const Tile& tile) {
    tile_ = tile;
    for (int r : loop_.moving_) {
      const Loop::Register& reg = loop_.registers_[at(r)];
      pointers_[r] = reg.home == Loop::Home::row ? scratch_ + reg.offset + at(tile.column) * element_bytes(reg.dtype)
                                                 : address(loop_.externals_[at(reg.external)], tile.row, tile.column);
    }
  }

  void start_reductions(int phase) {
    for (std::size_t i = 0; i < loop_.reductions_.size(); ++i)
      if (loop_.reductions_[i].phase == phase) accumulators_[i] = identity(loop_.reductions_[i].kind, loop_.reductions_[i].dtype);
  }

  void execute(const std::vector<Loop::Instruction>& instructions) {
    for (const Loop::Instruction& i : instructions) execute(i);
  }

  void execute(const Loop::Instruction& i) {
    using Code = Loop::Code;
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
      case Code::reduce: reduce(i); break;
      case Code::store: store_tile(i); break;
      case Code::store_rows: store_rows(i); break;
    }
  }

  void load(const Loop::Instruction& i) {
    const Loop::External& external = loop_.externals_[at(i.external)];
    const std::size_t size = element_bytes(external.place.stored);
    std::byte* out = pointers_[i.out];
    for (std::int64_t r = 0; r < tile_.rows; ++r)
      load_strided(out + at(r * tile_.columns) * size, address(external, tile_.row + r, tile_.column), tile_.columns,
                   external.col_stride, size);
  }

  void load_rows(const Loop::Instruction& i) {
    const Loop::External& external = loop_.externals_[at(i.external)];
    const std::size_t size = element_bytes(external.place.stored);
    for (std::int64_t r = 0; r < tile_.rows; ++r)
      std::memcpy(pointers_[i.out] + at(r) * size,
                  locations_[external.place.location] +
                      static_cast<std::int64_t>(size) * (external.offset + row_offset(external, tile_.row + r)),
                  size);
  }

  void expand(const Loop::Instruction& i) {
    const std::size_t size = element_bytes(loop_.registers_[at(i.out)].dtype);
    for (std::int64_t r = 0; r < tile_.rows; ++r)
      fill_value(pointers_[i.out] + at(r * tile_.columns) * size, pointers_[i.in[0]] + at(r) * size, tile_.columns, size);
  }

  void reduce(const Loop::Instruction& i) {
    const Loop::Reduction& reduction = loop_.reductions_[at(i.reduction)];
    if (loop_.reduce_columns_) {
      reduction.columns(pointers_[i.in[0]], tile_.rows, tile_.columns, tile_.columns,
                        column_accumulators(at(i.reduction), accumulator_width_));
      return;
    }
    if (loop_.tile_rows_ == 1) {
      Accumulator& acc = accumulators_[i.reduction];
      acc =
          combine(reduction.kind, accumulator_class(reduction.dtype), acc, reduction.partial(pointers_[i.in[0]], tile_.columns));
      return;
    }
    const std::size_t size = element_bytes(reduction.dtype);
    for (std::int64_t r = 0; r < tile_.rows; ++r)
      store(reduction.partial(pointers_[i.in[0]] + at(r * tile_.columns) * size, tile_.columns), reduction.dtype,
            pointers_[i.out] + at(r) * size);
  }

  void store_tile(const Loop::Instruction& i) {
    const Loop::External& external = loop_.externals_[at(i.external)];
    std::byte* target = address(external, tile_.row, tile_.column);
    const std::size_t bytes = at(tile_.elements()) * element_bytes(external.place.stored);
    if (loop_.stream_)
      kernels().stream_copy(target, pointers_[i.in[0]], bytes);
    else
      std::memcpy(target, pointers_[i.in[0]], bytes);
  }

  void store_rows(const Loop::Instruction& i) {
    const Loop::External& external = loop_.externals_[at(i.external)];
    const std::size_t size = element_bytes(external.place.stored);
    std::memcpy(locations_[external.place.location] + at(tile_.row) * size, pointers_[i.in[0]], at(tile_.rows) * size);
  }

  const Loop& loop_;
  std::byte* const* locations_;
  std::byte* scratch_;
  std::byte** pointers_;
  Accumulator* accumulators_;
  std::int64_t accumulator_width_ = 0;
  Tile tile_;
};

namespace {

// Runs body(first, last, worker) over [0, units) in chunks of |grain| units, or all at once in the caller when that pays more.
template <class Body>
void split(ThreadPool& pool, std::int64_t units, std::int64_t grain, bool parallel, const Body& body) {
  if (units <= 0) return;
  if (!parallel || units <= grain || pool.threads() == 1) return body(std::int64_t{0}, units, 0);
  pool.for_each((units + grain - 1) / grain,
                [&](std::int64_t chunk, int worker) { body(chunk * grain, std::min(units, (chunk + 1) * grain), worker); });
}

}  // namespace

void Loop::run(ThreadPool& pool, std::byte* const* locations, std::byte* scratch) const {
  const bool parallel = static_cast<double>(rows_) * static_cast<double>(cols_) * cost_ > kParallelWork;
  const auto worker_scratch = [&](int worker) { return scratch + at(worker) * worker_bytes_; };
  const auto finish = [&] {
    if (stream_) kernels().stream_fence();
  };

  if (kind_ == Group::Kind::elementwise) {
    const std::int64_t tiles = tile_rows_ > 1 ? (rows_ + tile_rows_ - 1) / tile_rows_ : rows_ * ((cols_ + block_ - 1) / block_);
    const std::int64_t tile_elements = tile_rows_ > 1 ? tile_rows_ * cols_ : std::min(block_, cols_);
    // Small loops are split in as many parts as there are threads, large ones finer, so that a late thread costs little.
    const std::int64_t grain = std::max<std::int64_t>(
        1, std::min(kChunkElements / std::max<std::int64_t>(tile_elements, 1), (tiles + pool.threads() - 1) / pool.threads()));
    split(pool, tiles, grain, parallel, [&](std::int64_t first, std::int64_t last, int worker) {
      LoopRunner(*this, locations, worker_scratch(worker)).tiles(first, last);
      finish();
    });
    return;
  }

  if (kind_ == Group::Kind::rows) {
    const std::int64_t tiles = (rows_ + tile_rows_ - 1) / tile_rows_;
    const std::int64_t grain = std::max<std::int64_t>(1, std::min(kChunkElements / std::max<std::int64_t>(tile_rows_ * cols_, 1),
                                                                  (tiles + pool.threads() - 1) / pool.threads()));
    split(pool, tiles, grain, parallel, [&](std::int64_t first, std::int64_t last, int worker) {
      LoopRunner runner(*this, locations, worker_scratch(worker));
      for (std::int64_t t = first; t < last; ++t) runner.rows(t * tile_rows_, std::min(tile_rows_, rows_ - t * tile_rows_));
      finish();
    });
    return;
  }
  run_reduction(pool, locations, scratch, parallel);
}

void Loop::run_reduction(ThreadPool& pool, std::byte* const* locations, std::byte* scratch, bool parallel) const {
  const std::int64_t inner = reduce_columns_ ? reduce_between_ * cols_ : 1;
  const std::int64_t kept = reduce_outer_ * inner;
  Accumulator* partials = reinterpret_cast<Accumulator*>(scratch + partials_offset_);
  const auto partial = [&](std::size_t reduction, std::int64_t part) {
    return partials + (at(part) * reductions_.size() + reduction) * at(kept);
  };
  const auto deliver = [&](std::size_t reduction, std::int64_t index, Accumulator value) {
    for (const Place& place : reductions_[reduction].targets) {
      alignas(8) std::byte element[8];
      store(value, reductions_[reduction].dtype, element);
      kernels().convert[static_cast<int>(reductions_[reduction].dtype)][static_cast<int>(place.stored)](
          element, locations[place.location] + at(index) * element_bytes(place.stored), 1);
    }
  };
  const auto hand_in = [&](std::size_t reduction, std::int64_t part, std::int64_t index, Accumulator value) {
    if (parts_ == 1)
      deliver(reduction, index, value);
    else
      partial(reduction, part)[index] = value;
  };

  if (!reduce_columns_) {
    split(pool, reduce_outer_ * parts_, 1, parallel, [&](std::int64_t first, std::int64_t last, int worker) {
      LoopRunner runner(*this, locations, scratch + at(worker) * worker_bytes_);
      for (std::int64_t unit = first; unit < last; ++unit) {
        const std::int64_t row = unit / parts_, part = unit % parts_;
        runner.reduce_segment(row, part * part_extent_, std::min(cols_, (part + 1) * part_extent_));
        for (std::size_t i = 0; i < reductions_.size(); ++i) hand_in(i, part, row, runner.accumulator(i));
      }
      if (stream_) kernels().stream_fence();
    });
  } else {
    const std::int64_t segments = tile_rows_ > 1 ? 1 : (cols_ + block_ - 1) / block_;
    const std::int64_t units = reduce_outer_ * reduce_between_ * segments * parts_;
    split(pool, units, 1, parallel, [&](std::int64_t first, std::int64_t last, int worker) {
      LoopRunner runner(*this, locations, scratch + at(worker) * worker_bytes_);
      for (std::int64_t unit = first; unit < last; ++unit) {
        std::int64_t rest = unit;
        const std::int64_t part = rest % parts_;
        rest /= parts_;
        const std::int64_t segment = rest % segments;
        rest /= segments;
        const std::int64_t between = rest % reduce_between_, outer = rest / reduce_between_;
        const std::int64_t column = segment * block_, width = tile_rows_ > 1 ? cols_ : std::min(block_, cols_ - column);
        for (std::size_t i = 0; i < reductions_.size(); ++i)
          std::fill_n(runner.column_accumulators(i, width), width, identity(reductions_[i].kind, reductions_[i].dtype));
        const std::int64_t begin = part * part_extent_, count = std::min(reduce_extent_, begin + part_extent_) - begin;
        if (count > 0)
          runner.reduce_rows((outer * reduce_extent_ + begin) * reduce_between_ + between, count, reduce_between_, column, width);
        for (std::size_t i = 0; i < reductions_.size(); ++i)
          for (std::int64_t c = 0; c < width; ++c)
            hand_in(i, part, outer * inner + between * cols_ + column + c, runner.column_accumulators(i, width)[c]);
      }
      if (stream_) kernels().stream_fence();
    });
  }

  if (parts_ == 1) return;
  for (std::size_t i = 0; i < reductions_.size(); ++i)
    for (std::int64_t index = 0; index < kept; ++index)
      deliver(i, index,
              combine_tree(reductions_[i].kind, accumulator_class(reductions_[i].dtype), partial(i, 0) + index, parts_,
                           static_cast<std::int64_t>(reductions_.size()) * kept));
}

}  // namespace tenon::cpu
