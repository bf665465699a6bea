#include "backends/cpu/primitives/attention.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "backends/cpu/kernels/kernels.h"
#include "backends/cpu/primitives/clones.h"
#include "backends/cpu/primitives/matmul/bf16/gemm_bf16.h"
#include "backends/cpu/primitives/matmul/gemm.h"
#include "backends/cpu/primitives/split.h"

namespace tenon::cpu {
namespace {

// Matrix instructions take keys and values that are packed for each tile: larger tiles pack them less often.
constexpr std::int64_t kTileRows = 64, kNarrowTileRows = 128, kBlockKeys = 256;
constexpr float kMinusInfinity = -std::numeric_limits<float>::infinity();

std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }
std::int64_t padded(std::int64_t floats) { return (floats + 15) / 16 * 16; }

bool has_unit(DType dtype) { return dtype == DType::bf16 && bf16_unit() != Bf16Unit::none; }

// How the work is divided. The parts of the keys follow from the shapes and the dtype alone, because results depend on them; they
// do not depend on the number of rows in a tile. The heads of q that share a head of k are rows of one matrix.
struct Division {
  std::int64_t batches, heads, shared, rows_per_head, keys, width, values;
  std::int64_t rows;  // of all heads that share one: shared * rows_per_head
  std::int64_t tile_rows, tiles, parts, part_keys;

  Division(const Shape& q, const Shape& k, const Shape& v, DType dtype, int threads)
      : batches(q[0]),
        heads(k[1]),
        shared(q[1] / k[1]),
        rows_per_head(q[2]),
        keys(k[2]),
        width(q[3]),
        values(v[3]),
        rows(shared * rows_per_head),
        tile_rows(std::min(rows, has_unit(dtype) ? kNarrowTileRows : kTileRows)),
        tiles((rows + tile_rows - 1) / tile_rows) {
    // Enough parts for the threads of a large machine where there are few tiles, each of several blocks of keys.
    constexpr std::int64_t kUnits = 64;
    const std::int64_t units = batches * heads * tiles, blocks = (keys + kBlockKeys - 1) / kBlockKeys;
    parts = std::clamp<std::int64_t>(kUnits / units, 1, std::max<std::int64_t>(1, blocks / 2));
    part_keys = ((blocks + parts - 1) / parts) * kBlockKeys;
    parts = (keys + part_keys - 1) / part_keys;
    // Shorter tiles where there would not be one for each thread.
    constexpr std::int64_t kShortest = 32;
    const std::int64_t wanted = (2 * threads + batches * heads * parts - 1) / (batches * heads * parts);
    if (threads > 1 && tiles < wanted && tile_rows > kShortest) {
      tile_rows = std::max(kShortest, ((rows + wanted - 1) / wanted + 15) / 16 * 16);
      tiles = (rows + tile_rows - 1) / tile_rows;
    }
  }

  std::int64_t units() const { return batches * heads * tiles * parts; }

  // Floats of one worker: q, q in 16 bits, scores, a product, and k and v if they are converted.
  std::int64_t worker_floats() const {
    return 2 * padded(tile_rows * width) + 2 * padded(tile_rows * kBlockKeys) + padded(tile_rows * values) +
           padded(kBlockKeys * width) + padded(kBlockKeys * values);
  }
  // Floats of one part of a tile: per row the largest score, the sum of probabilities and the result.
  std::int64_t state_floats() const { return padded(tile_rows * (2 + values)); }
};

// What a part of the keys has made of a tile: result rows are sums of exp(score - largest) * v.
struct State {
  float* largest;
  float* total;
  float* result;

  State(float* memory, const Division& d) : largest(memory), total(memory + d.tile_rows), result(memory + 2 * d.tile_rows) {}
};

void convert_rows(const View& from, std::int64_t offset, std::int64_t stride, std::int64_t rows, std::int64_t width, float* to) {
  const ConvertKernel convert = kernels().convert[static_cast<int>(from.dtype)][static_cast<int>(DType::f32)];
  const std::size_t bytes = element_bytes(from.dtype);
  const std::byte* data = static_cast<const std::byte*>(from.data);
  if (stride == width) return convert(data + at(offset) * bytes, to, rows * width);
  for (std::int64_t i = 0; i < rows; ++i) convert(data + at(offset + i * stride) * bytes, to + i * width, width);
}

void convert_values(DType from, const void* values, DType to, void* out, std::int64_t n) {
  kernels().convert[static_cast<int>(from)][static_cast<int>(to)](values, out, n);
}

// Rounds to 16 bits and back, in place, through the memory at |narrow|.
void round_values(DType dtype, float* values, void* narrow, std::int64_t n) {
  convert_values(DType::f32, values, dtype, narrow, n);
  convert_values(dtype, narrow, DType::f32, values, n);
}

float widened(Bf16Bits x) { return std::bit_cast<float>(static_cast<std::uint32_t>(x) << 16); }

// scores[i] = q . row i of |keys|. A single query reads every key once: converting them in a pass of its own would cost more than
// the product.
TENON_CLONES void multiply_one_query(const Matrix<Bf16Bits>& keys, const float* q, float* scores) {
  constexpr std::int64_t kLanes = 32;
  for (std::int64_t key = 0; key < keys.rows; ++key) {
    const Bf16Bits* const row = keys.data + key * keys.row_stride;
    float lanes[kLanes] = {};
    std::int64_t i = 0;
    for (; i + kLanes <= keys.cols; i += kLanes)
      for (std::int64_t l = 0; l < kLanes; ++l) lanes[l] += q[i + l] * widened(row[i + l]);
    for (std::int64_t l = 0; i < keys.cols; ++i, ++l) lanes[l] += q[i] * widened(row[i]);
    for (std::int64_t half = kLanes / 2; half > 0; half /= 2)
      for (std::int64_t l = 0; l < half; ++l) lanes[l] += lanes[l + half];
    scores[key] = lanes[0];
  }
}

// product = the sum of the rows of |values|, each times its weight.
TENON_CLONES void add_weighted_rows(const Matrix<Bf16Bits>& values, const float* weights, float* product) {
  std::fill_n(product, values.cols, 0.0f);
  std::int64_t key = 0;
  for (; key + 4 <= values.rows; key += 4) {
    const Bf16Bits *r0 = values.data + key * values.row_stride, *r1 = r0 + values.row_stride, *r2 = r1 + values.row_stride,
                   *r3 = r2 + values.row_stride;
    const float w0 = weights[key], w1 = weights[key + 1], w2 = weights[key + 2], w3 = weights[key + 3];
    for (std::int64_t j = 0; j < values.cols; ++j)
      product[j] += (w0 * widened(r0[j]) + w1 * widened(r1[j])) + (w2 * widened(r2[j]) + w3 * widened(r3[j]));
  }
  for (; key < values.rows; ++key) {
    const Bf16Bits* const row = values.data + key * values.row_stride;
    for (std::int64_t j = 0; j < values.cols; ++j) product[j] += weights[key] * widened(row[j]);
  }
}

class Tile {
 public:
  Tile(const AttentionOperands& operands, const AttentionAttr& attr, const Division& d, float* scratch)
      : x_(operands),
        attr_(attr),
        d_(d),
        q_(scratch),
        narrow_q_(reinterpret_cast<Bf16Bits*>(q_ + padded(d.tile_rows * d.width))),
        scores_(q_ + 2 * padded(d.tile_rows * d.width)),
        narrow_(scores_ + padded(d.tile_rows * kBlockKeys)),
        product_(narrow_ + padded(d.tile_rows * kBlockKeys)),
        k_(product_ + padded(d.tile_rows * d.values)),
        v_(k_ + padded(kBlockKeys * d.width)),
        has_unit_(has_unit(operands.rounded) && operands.q.dtype == DType::bf16 && operands.k.dtype == DType::bf16 &&
                  operands.v.dtype == DType::bf16) {}

  // Tile |tile| of the rows of one head of k, over keys [begin, end).
  void run(std::int64_t batch, std::int64_t head, std::int64_t tile, std::int64_t begin, std::int64_t end, const State& state) {
    batch_ = batch;
    head_ = head;
    first_row_ = tile * d_.tile_rows;
    rows_ = std::min(d_.tile_rows, d_.rows - first_row_);
    std::fill_n(state.largest, rows_, kMinusInfinity);
    std::fill_n(state.total, rows_, 0.0f);
    std::fill_n(state.result, rows_ * d_.values, 0.0f);
    load_queries();
    if (attr_.causal) end = std::min(end, last_position() + 1);
    for (std::int64_t key = begin; key < end; key += kBlockKeys) add_block(key, std::min(kBlockKeys, end - key), state);
  }

 private:
  std::int64_t position(std::int64_t row) const { return (first_row_ + row) % d_.rows_per_head; }
  std::int64_t query_head(std::int64_t row) const { return head_ * d_.shared + (first_row_ + row) / d_.rows_per_head; }
  std::int64_t last_position() const {
    return position(0) + rows_ > d_.rows_per_head ? d_.rows_per_head - 1 : position(rows_ - 1);
  }

  void load_queries() {
    for (std::int64_t row = 0; row < rows_; ++row) {
      const std::int64_t offset = batch_ * x_.q.strides[0] + query_head(row) * x_.q.strides[1] + position(row) * x_.q.strides[2];
      convert_rows(x_.q, offset, d_.width, 1, d_.width, q_ + row * d_.width);
      if (has_unit_) std::copy_n(static_cast<const Bf16Bits*>(x_.q.data) + offset, d_.width, narrow_q_ + row * d_.width);
    }
    if (has_unit_) q_range_ = range_of({narrow_q_, rows_, d_.width, d_.width, 1});
    kernels().scale(q_, static_cast<float>(attr_.scale), q_, rows_ * d_.width);
  }

  // Rows of k or v as a matrix of f32, in place where they are.
  Matrix<float> block_of(const View& from, std::int64_t key, std::int64_t count, std::int64_t width, float* to) const {
    const std::int64_t offset = batch_ * from.strides[0] + head_ * from.strides[1] + key * from.strides[2];
    const std::int64_t stride = from.strides[2];
    if (from.dtype == DType::f32 && (stride >= width || count == 1))
      return {static_cast<const float*>(from.data) + offset, count, width, std::max(stride, width), 1};
    convert_rows(from, offset, stride, count, width, to);
    return {to, count, width, width, 1};
  }

  // Rows of k or v as they are.
  Matrix<Bf16Bits> bf16_block_of(const View& from, std::int64_t key, std::int64_t count, std::int64_t width) const {
    const std::int64_t offset = batch_ * from.strides[0] + head_ * from.strides[1] + key * from.strides[2];
    return {static_cast<const Bf16Bits*>(from.data) + offset, count, width, from.strides[2], 1};
  }
  // The same for the CPU's matrix instructions; without rows where those do not apply.
  Matrix<Bf16Bits> narrow_block_of(const View& from, std::int64_t key, std::int64_t count, std::int64_t width) const {
    Matrix<Bf16Bits> block = bf16_block_of(from, key, count, width);
    if (!has_unit_ || rows_ == 1 || (block.row_stride < width && count > 1)) return {};
    block.row_stride = std::max(block.row_stride, width);
    return block;
  }

  // scores = q k^T, scaled.
  void multiply_keys(std::int64_t key, std::int64_t count) {
    if (rows_ == 1 && x_.k.dtype == DType::bf16)
      return multiply_one_query(bf16_block_of(x_.k, key, count, d_.width), q_, scores_);
    if (const Matrix<Bf16Bits> narrow = narrow_block_of(x_.k, key, count, d_.width);
        narrow.rows > 0 && !needs_subnormals(q_range_, range_of(narrow))) {
      gemm_bf16({narrow_q_, rows_, d_.width, d_.width, 1}, narrow.transposed(), scores_, count);
      return kernels().scale(scores_, static_cast<float>(attr_.scale), scores_, rows_ * count);
    }
    const Matrix<float> k = block_of(x_.k, key, count, d_.width, k_);
    if (rows_ == 1)
      gemv(k, q_, 1, scores_);
    else
      gemm({q_, rows_, d_.width, d_.width, 1}, k.transposed(), scores_, count);
  }

  // product = probabilities x v. The largest probability of a row is 1, next to which subnormal ones are nothing, unless v is
  // huge.
  void multiply_values(std::int64_t key, std::int64_t count) {
    if (const Matrix<Bf16Bits> narrow = narrow_block_of(x_.v, key, count, d_.values); narrow.rows > 0) {
      const Bf16Range range = range_of(narrow);
      if (!range.has_huge && !needs_subnormals({}, range)) {
        convert_values(DType::f32, scores_, DType::bf16, narrow_, rows_ * count);
        return gemm_bf16({reinterpret_cast<const Bf16Bits*>(narrow_), rows_, count, count, 1}, narrow, product_, d_.values);
      }
    }
    if (x_.rounded != DType::f32) round_values(x_.rounded, scores_, narrow_, rows_ * count);
    if (rows_ == 1 && x_.v.dtype == DType::bf16)
      return add_weighted_rows(bf16_block_of(x_.v, key, count, d_.values), scores_, product_);
    const Matrix<float> v = block_of(x_.v, key, count, d_.values, v_);
    if (rows_ == 1)
      gemv(v.transposed(), scores_, 1, product_);
    else
      gemm({scores_, rows_, count, count, 1}, v, product_, d_.values);
  }

  void add_block(std::int64_t key, std::int64_t count, const State& state) {
    multiply_keys(key, count);
    if (x_.has_mask) add_mask(key, count);
    if (attr_.causal) hide_later_keys(key, count);
    for (std::int64_t row = 0; row < rows_; ++row) normalise(row, count, state);
    multiply_values(key, count);
    const void* terms[] = {state.result, product_};
    kernels().elementwise[static_cast<int>(ElementwiseOp::Add)][static_cast<int>(DType::f32)](terms, state.result,
                                                                                              rows_ * d_.values, nullptr);
  }

  void add_mask(std::int64_t key, std::int64_t count) {
    const Strides& s = x_.mask.strides;
    for (std::int64_t row = 0; row < rows_; ++row) {
      const std::int64_t offset = batch_ * s[0] + query_head(row) * s[1] + position(row) * s[2] + key * s[3];
      float* scores = scores_ + row * count;
      if (x_.mask.dtype == DType::boolean) {
        const std::uint8_t* mask = static_cast<const std::uint8_t*>(x_.mask.data) + offset;
        for (std::int64_t j = 0; j < count; ++j) scores[j] = mask[j * s[3]] != 0 ? scores[j] : kMinusInfinity;
      } else {
        const float* mask = static_cast<const float*>(x_.mask.data) + offset;
        for (std::int64_t j = 0; j < count; ++j) scores[j] += mask[j * s[3]];
      }
    }
  }

  void hide_later_keys(std::int64_t key, std::int64_t count) {
    for (std::int64_t row = 0; row < rows_; ++row) {
      const std::int64_t visible = std::clamp<std::int64_t>(position(row) + 1 - key, 0, count);
      std::fill(scores_ + row * count + visible, scores_ + (row + 1) * count, kMinusInfinity);
    }
  }

  // Scores become exp(score - largest), and what the row has so far is scaled to the same shift.
  void normalise(std::int64_t row, std::int64_t count, const State& state) {
    float* scores = scores_ + row * count;
    const double block =
        kernels().partial_reduce[static_cast<int>(ReduceKind::max)][static_cast<int>(DType::f32)](scores, count).f;
    const float before = state.largest[row];
    // Not std::max: a NaN stays.
    const float largest = static_cast<float>(block) <= before ? before : static_cast<float>(block);
    const float shift = largest == kMinusInfinity ? 0.0f : largest;
    const float sum = static_cast<float>(kernels().exp_sum(scores, shift, scores, count, {scores, scores}).f);
    const float factor = before == largest ? 1.0f : std::exp(before - shift);
    state.largest[row] = largest;
    state.total[row] = state.total[row] * factor + sum;
    if (factor != 1.0f) kernels().scale(state.result + row * d_.values, factor, state.result + row * d_.values, d_.values);
  }

  const AttentionOperands& x_;
  const AttentionAttr& attr_;
  const Division& d_;
  float* q_;
  Bf16Bits* narrow_q_;
  float *scores_, *narrow_, *product_, *k_, *v_;
  const bool has_unit_;  // the CPU multiplies bf16 matrices
  Bf16Range q_range_;
  std::int64_t batch_ = 0, head_ = 0, first_row_ = 0, rows_ = 0;
};

// Adds |part| to |state|, row by row.
void combine(const Division& d, std::int64_t rows, const State& state, const State& part) {
  for (std::int64_t row = 0; row < rows; ++row) {
    const float a = state.largest[row], b = part.largest[row];
    const float largest = b <= a ? a : b;
    const float shift = largest == kMinusInfinity ? 0.0f : largest;
    const float keep = std::exp(a - shift), add = std::exp(b - shift);
    state.largest[row] = largest;
    state.total[row] = state.total[row] * keep + part.total[row] * add;
    float* to = state.result + row * d.values;
    const float* from = part.result + row * d.values;
    for (std::int64_t j = 0; j < d.values; ++j) to[j] = to[j] * keep + from[j] * add;
  }
}

// Divides by the sum of the probabilities. A row without any is zero where a mask may have hidden all keys, NaN otherwise.
// |first|: of the rows in the result.
void store(const Division& d, std::int64_t first, std::int64_t rows, const State& state, bool has_mask, const Target& out) {
  const bool is_wide = out.dtype == DType::f32;
  for (std::int64_t row = 0; row < rows; ++row) {
    const float total = state.total[row] == 0 && has_mask ? 1.0f : state.total[row];
    float* const from = state.result + row * d.values;
    float* const to = is_wide ? static_cast<float*>(out.data) + (first + row) * d.values : from;
    for (std::int64_t j = 0; j < d.values; ++j) to[j] = from[j] / total;
  }
  if (is_wide) return;
  std::byte* const to = static_cast<std::byte*>(out.data) + at(first * d.values) * element_bytes(out.dtype);
  convert_values(DType::f32, state.result, out.dtype, to, rows * d.values);
}

}  // namespace

std::size_t attention_scratch_bytes(const ThreadPool& pool, const Shape& q, const Shape& k, const Shape& v, DType dtype) {
  const Division d(q, k, v, dtype, pool.threads());
  const std::int64_t states = d.parts > 1 ? d.units() : pool.threads();
  return at(pool.threads() * d.worker_floats() + states * d.state_floats()) * sizeof(float);
}

void attention(ThreadPool& pool, const AttentionOperands& operands, const AttentionAttr& attr, const Target& out,
               std::span<std::byte> scratch) {
  const Division d(operands.q.shape, operands.k.shape, operands.v.shape, operands.rounded, pool.threads());
  float* const workers = reinterpret_cast<float*>(scratch.data());
  float* const states = workers + pool.threads() * d.worker_floats();
  const std::int64_t tiles = d.batches * d.heads * d.tiles;
  const auto run = [&](std::int64_t tile, std::int64_t part, int worker, const State& state) {
    const std::int64_t head = tile / d.tiles, begin = part * d.part_keys;
    Tile(operands, attr, d, workers + worker * d.worker_floats())
        .run(head / d.heads, head % d.heads, tile % d.tiles, begin, std::min(d.keys, begin + d.part_keys), state);
  };
  const auto finish = [&](std::int64_t tile, const State& state) {
    const std::int64_t first = tile % d.tiles * d.tile_rows;
    store(d, tile / d.tiles * d.rows + first, std::min(d.tile_rows, d.rows - first), state, operands.has_mask, out);
  };
  if (d.parts == 1) {
    pool.for_each(tiles, [&](std::int64_t tile, int worker) {
      const State state(states + worker * d.state_floats(), d);
      run(tile, 0, worker, state);
      finish(tile, state);
    });
    return;
  }
  pool.for_each(d.units(), [&](std::int64_t unit, int worker) {
    run(unit / d.parts, unit % d.parts, worker, State(states + unit * d.state_floats(), d));
  });
  pool.for_each(tiles, [&](std::int64_t tile, int) {
    const State first(states + tile * d.parts * d.state_floats(), d);
    const std::int64_t rows = std::min(d.tile_rows, d.rows - tile % d.tiles * d.tile_rows);
    for (std::int64_t part = 1; part < d.parts; ++part)
      combine(d, rows, first, State(states + (tile * d.parts + part) * d.state_floats(), d));
    finish(tile, first);
  });
}

}  // namespace tenon::cpu
