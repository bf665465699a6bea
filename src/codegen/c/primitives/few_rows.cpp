// Products of few rows with a matrix whose elements are neighbours along k, on NVIDIA GPUs: reading the matrix is what takes
// time.
//
// PARTS warps read OUTS neighbouring rows of the (transposed) matrix, 16 bytes a lane and step, several steps before the first
// is used. Every row of the other operand is multiplied with what was read; it stays in the cache.
//
// The first part of a matrix that is an input of the program is fetched while the kernel in front of this one still runs. If the
// rows are norms of others, every work-group computes all of them, which takes less than a kernel of their own would;
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <limits>

#include "codegen/c/loops/geometry.h"
#include "codegen/c/primitives/primitives.h"
#include "codegen/c/sort/keys.h"

namespace tenon::emit {
namespace {

constexpr int kWarps = 8, kGroups = 2;  // of a work-group, on a multiprocessor
// More rows are worth it only where a library's product would not be.
constexpr std::int64_t kFewRows = 4, kMostRows = 16, kSmallProduct = std::int64_t{1} << 21;

constexpr std::string_view kText = R"(const i32 lane = threadIdx.x % 32, warp = threadIdx.x / 32, part = warp % PARTS;
const i32 n = (i32)$N, words = (i32)($K / EACH), tiles = (i32)$TILES, items = (i32)$ITEMS;
const auto widened = [](const u16 x) -> f32 { f32 y; asm("cvt.f32.f16 %0, %1;" : "=f"(y) : "h"(x)); return y; };
GLOBAL const uint4* lines[OUTS];
const auto aim = [&](const i32 item) {
const i64 batch = item / tiles, first = (item % tiles * (WARPS / PARTS) + warp / PARTS) * TOGETHER;
UNROLL for (i32 o = 0; o < OUTS; ++o) {
const i64 out = first + o % TOGETHER;
lines[o] = (GLOBAL const uint4*)($B + $B_OFFSET + batch * $B_BATCH + ((out < n ? out : n - 1) + (i64)(o / TOGETHER) * n) * $B_COLUMN);
}
};
VARRAY($ELEMENT, EACH, line[AHEAD][OUTS]);
const auto fetch = [&](const i32 a, const i32 word) {
UNROLL for (i32 o = 0; o < OUTS; ++o) *(uint4*)line[a][o] = IS_EVEN || word < words ? __ldcs(lines[o] + word) : uint4{0, 0, 0, 0};
};
const i32 begin = part * 32 + lane, steps = (words + PARTS * 32 * AHEAD - 1) / (PARTS * 32 * AHEAD);
aim(blockIdx.x);
const auto fetch_first = [&] { UNROLL for (i32 a = 0; a < AHEAD; ++a) fetch(a, begin + a * PARTS * 32); };
$FIRST
#if PARTS > 1
LOCAL f32 sums[2][WARPS][ROWS * OUTS];
#endif
for (i32 item = blockIdx.x, turn = 0; item < items; item += gridDim.x, turn ^= 1) {
const i64 batch = item / tiles, first = (item % tiles * (WARPS / PARTS) + warp / PARTS) * TOGETHER;
$ROWS_OF_A
f32 sum[ROWS][OUTS];
UNROLL for (i32 r = 0; r < ROWS; ++r) UNROLL for (i32 o = 0; o < OUTS; ++o) sum[r][o] = 0.0f;
i32 w = begin;
for (i32 step = 1; step <= steps; ++step) {
// What was used makes room for what comes next, at last for the first of the next rows.
const bool is_last = step == steps, has_next = !is_last || item + (i32)gridDim.x < items;
const i32 next = is_last ? begin : w + PARTS * 32 * AHEAD;
if (is_last && has_next) aim(item + gridDim.x);
UNROLL for (i32 a = 0; a < AHEAD; ++a) {
const i32 word = w + a * PARTS * 32;
if (IS_EVEN || word < words) {
UNROLL for (i32 r = 0; r < ROWS; ++r) {
VARRAY($ELEMENT, EACH, row);
VLOAD($ELEMENT, EACH, row, x + r * $A_ROW + word * EACH);
UNROLL for (i32 e = 0; e < EACH; ++e) {
const f32 value = $ROW_VALUE;
UNROLL for (i32 o = 0; o < OUTS; ++o) sum[r][o] = fmaf(value, $LINE_VALUE, sum[r][o]);
}
}
}
if (has_next) fetch(a, next + a * PARTS * 32);
}
w = next;
}
UNROLL for (i32 r = 0; r < ROWS; ++r) UNROLL for (i32 o = 0; o < OUTS; ++o)
UNROLL for (i32 distance = 16; distance > 0; distance /= 2) sum[r][o] += SHUFFLE(sum[r][o], distance);
#if PARTS > 1
if (lane == 0) UNROLL for (i32 r = 0; r < ROWS; ++r) UNROLL for (i32 o = 0; o < OUTS; ++o) sums[turn][warp][r * OUTS + o] = sum[r][o];
BARRIER;
UNROLL for (i32 r = 0; r < ROWS; ++r) UNROLL for (i32 o = 0; o < OUTS; ++o) {
f32 all = 0.0f;
UNROLL for (i32 p = 0; p < PARTS; ++p) all += sums[turn][warp - part + p][r * OUTS + o];
sum[r][o] = all;
}
#endif
UNROLL for (i32 r = 0; r < ROWS; ++r) UNROLL for (i32 o = 0; o < TOGETHER; ++o) {
if (part == 0 && lane == (r * OUTS + o) % 32 && first + o < n) {
const i64 column = first + o;
f32 y = sum[r][o];
$EPILOGUE$OUT[$OUT_OFFSET + batch * $OUT_BATCH + r * $OUT_ROW + column * $OUT_COLUMN] = $STORED;
}
}
}
)";

// Short rows and their scales stay in registers.
constexpr std::string_view kNorm = R"(LOCAL __align__(16) $ELEMENT normed[ROWS * COLUMNS];
LOCAL f32 squares[ROWS][WARPS];
f32 kept[ROWS][KEPT], scales[KEPT];
const auto place = [&](const i32 j) -> i32 { const i32 i = j * WARPS * 32 + threadIdx.x; return i < COLUMNS ? i : COLUMNS - 1; };
#define FETCH_SCALES UNROLL for (i32 j = 0; j < KEPT; ++j) scales[j] = $WEIGHT[$WEIGHT_OFFSET + place(j)];
#if SCALES_ARE_GIVEN
FETCH_SCALES
#endif
fetch_first();
$WAIT
UNROLL for (i32 r = 0; r < ROWS; ++r) UNROLL for (i32 j = 0; j < KEPT; ++j) kept[r][j] = $X[$X_OFFSET + r * $X_ROW + place(j)];
#if !SCALES_ARE_GIVEN
FETCH_SCALES
#endif
#undef FETCH_SCALES
const auto value = [&](const i32 r, const i32 j, const i32 i) -> f32 { return j < KEPT ? kept[r][j % KEPT] : $X[$X_OFFSET + r * $X_ROW + i]; };
UNROLL for (i32 r = 0; r < ROWS; ++r) {
f32 square = 0.0f;
UNROLL_BY(8) for (i32 j = 0; j < EACH_THREAD; ++j) {
const i32 i = j * WARPS * 32 + threadIdx.x;
const f32 v = i < COLUMNS ? value(r, j, i) : 0.0f;
square += v * v;
}
UNROLL for (i32 distance = 16; distance > 0; distance /= 2) square += SHUFFLE(square, distance);
if (lane == 0) squares[r][warp] = square;
}
BARRIER;
UNROLL for (i32 r = 0; r < ROWS; ++r) {
f32 square = 0.0f;
UNROLL for (i32 i = 0; i < WARPS; ++i) square += squares[r][i];
const f32 root = sqrt(square / $COUNT + $EPS), reciprocal = row_reciprocal(root);
UNROLL_BY(8) for (i32 j = 0; j < EACH_THREAD; ++j) {
const i32 i = j * WARPS * 32 + threadIdx.x;
if (i < COLUMNS) {
const f32 v = value(r, j, i);
const f32 quotient = $QUOTIENT;
const f32 y = quotient * (j < KEPT ? scales[j % KEPT] : $WEIGHT[$WEIGHT_OFFSET + i]);
normed[r * COLUMNS + i] = $ROUNDED;
}
}
}
BARRIER;
)";

bool is_aligned(const Matrix& x, std::size_t line) {
  const auto each = static_cast<std::int64_t>(16 / element_bytes(x.stored));
  return x.offset % each == 0 && x.strides[0] % each == 0 && x.strides[line] % each == 0;
}

Matrix transposed(Matrix x) {
  std::swap(x.strides[1], x.strides[2]);
  return x;
}

// How the matrix is shared out: an item is OUTS of its rows for every PARTS of the warps of a work-group, which read AHEAD words
// of each row at a time.
struct Shares {
  int outs = 1, parts = 1, ahead = 1;
  std::int64_t items = 0;
};
Shares shares_of(const KernelTarget& target, const MatrixSize& size, int segments, int each) {
  constexpr std::int64_t kItem = 800;  // elements that a warp could read while an item begins and ends
  constexpr int kWords = 16;           // that a lane holds
  const std::int64_t slots = std::int64_t{target.compute_units} * kGroups, words = size.k / each;
  const auto most = static_cast<int>(std::min<std::uint64_t>(std::bit_floor(16 / static_cast<std::uint64_t>(size.m)), 4));
  Shares best;
  std::int64_t least = std::numeric_limits<std::int64_t>::max();
  for (int outs = std::max(most, segments); outs >= segments; outs /= 2)
    for (int parts = 1; parts <= kWarps && (parts == 1 || words >= 32 * parts); parts *= 2) {
      const std::int64_t items = ceil_div(size.n / segments, std::int64_t{outs} / segments * kWarps / parts) * size.batches;
      const std::int64_t cost = ceil_div(items, slots) * (outs * size.k / parts + kItem);
      if (cost >= least) continue;
      least = cost;
      const std::int64_t ahead = std::clamp<std::int64_t>(ceil_div(words, 32 * parts), 1, std::max(kWords / outs, 1));
      best = {outs, parts, static_cast<int>(std::bit_floor(static_cast<std::uint64_t>(ahead))), items};
    }
  return best;
}

}  // namespace

std::optional<Launch> emit_few_rows(const KernelTarget& target, MatrixSize size, DType compute, Matrix a, Matrix b, Matrix out,
                                    const ProductEnd& end) {
  constexpr std::int64_t kLeastOuts = 64, kMostOuts = std::int64_t{1} << 30;
  if (target.dialect != Dialect::cuda || compute != DType::f32 || a.stored != b.stored) return std::nullopt;
  if (a.stored != DType::f32 && a.stored != DType::f16 && a.stored != DType::bf16) return std::nullopt;
  // A matrix times few columns is the transpose of few rows times a matrix.
  if (size.n < size.m && !end.bias && !end.tail && !end.norm) {
    std::swap(size.m, size.n);
    const Matrix first = a;
    a = transposed(b);
    b = transposed(first);
    out = transposed(out);
  }
  if (size.m == 1) a.strides[1] = 0;
  if (size.batches == 1) a.strides[0] = b.strides[0] = 0;
  const int each = static_cast<int>(16 / element_bytes(a.stored));
  const bool is_small = size.n * size.k < kSmallProduct / kMostRows / std::max<std::int64_t>(size.batches, 1);
  const std::int64_t most = is_small ? kMostRows : kFewRows;
  const bool lies_along_k = (a.strides[2] == 1 || size.k == 1) && b.strides[1] == 1;
  if (size.m < 1 || size.m > most || size.n < kLeastOuts || size.n > kMostOuts || size.k % each != 0 || size.k < 32 * each)
    return std::nullopt;
  if (!lies_along_k || !is_aligned(a, 1) || !is_aligned(b, 2) || size.k >= (std::int64_t{1} << 30)) return std::nullopt;
  constexpr std::int64_t kMostNormed = 16 * 1024;  // bytes of a work-group's norms
  if (end.norm && (size.batches != 1 || size.m * size.k * static_cast<std::int64_t>(element_bytes(b.stored)) > kMostNormed))
    return std::nullopt;
  const std::int64_t each_thread = ceil_div(size.k, 32 * kWarps);
  const int segments = end.tail ? static_cast<int>(end.tail->segments) : 1;

  const Shares shares = shares_of(target, size, segments, each);
  const std::int64_t columns = size.n / segments, together = shares.outs / segments;
  const std::int64_t tiles = ceil_div(columns, together * kWarps / shares.parts);
  if (shares.items > std::numeric_limits<std::int32_t>::max() / 2) return std::nullopt;
  const std::int64_t groups = std::min(shares.items, std::int64_t{target.compute_units} * kGroups);

  Parameters p(true);
  Body body(target, p);
  const auto number = [&](std::int64_t value) { return p.whole_number(value); };
  // One instruction; what it does to the sign of a NaN does not matter here.
  const auto value = [&](DType stored, const std::string& x) {
    return stored == DType::f16 ? fmt::format("widened({})", x) : body.loaded(stored, x);
  };
  std::map<std::string, std::string> names{{"N", number(columns)},
                                           {"TILES", number(tiles)},
                                           {"K", number(size.k)},
                                           {"ITEMS", number(shares.items)},
                                           {"ELEMENT", stored_type(a.stored)},
                                           {"B", p.input(b.stored, b.slot)},
                                           {"B_OFFSET", number(b.offset)},
                                           {"B_BATCH", number(b.strides[0])},
                                           {"B_COLUMN", number(b.strides[2])},
                                           {"OUT", p.output(out.stored, out.slot)},
                                           {"OUT_OFFSET", number(out.offset)},
                                           {"OUT_BATCH", number(out.strides[0])},
                                           {"OUT_ROW", number(out.strides[1])},
                                           {"OUT_COLUMN", number(out.strides[2])},
                                           {"ROW_VALUE", value(a.stored, "row[e]")},
                                           {"LINE_VALUE", value(b.stored, "line[a][o][e]")},
                                           {"STORED", body.to_store(out.stored, "y")},
                                           {"EPILOGUE", ""}};
  if (end.bias)
    names["EPILOGUE"] += fmt::format(
        "y += {};\n", body.loaded(end.bias->stored, fmt::format("{}[{} + column]", p.input(end.bias->stored, end.bias->slot),
                                                                number(end.bias->offset))));
  names["WAIT"] = b.is_given ? "WAIT_FOR_LAST;" : "";
  if (end.norm) {
    const ProductEnd::Norm& norm = *end.norm;
    names["A_ROW"] = "COLUMNS";
    names["ROWS_OF_A"] = filled("const $ELEMENT* const x = normed;", names);
    names["X"] = p.input(norm.x.stored, norm.x.slot);
    names["X_OFFSET"] = number(norm.x.offset);
    names["X_ROW"] = number(size.m == 1 ? 0 : norm.x.strides[0]);
    names["WEIGHT"] = p.input(norm.weight.stored, norm.weight.slot);
    names["WEIGHT_OFFSET"] = number(norm.weight.offset);
    names["COUNT"] = p.number(DType::f32, static_cast<double>(size.k));
    names["EPS"] = p.number(DType::f32, norm.eps);
    names["ROUNDED"] = body.to_store(b.stored, "y");
    names["QUOTIENT"] = body.call("quotient_by_row", "v, root, reciprocal");
    names["FIRST"] = filled(kNorm, names);
  } else {
    names["A"] = p.input(a.stored, a.slot);
    names["A_OFFSET"] = number(a.offset);
    names["A_BATCH"] = number(a.strides[0]);
    names["A_ROW"] = number(a.strides[1]);
    names["ROWS_OF_A"] = filled("GLOBAL const $ELEMENT* const x = $A + $A_OFFSET + batch * $A_BATCH;", names);
    names["FIRST"] = filled(b.is_given ? "fetch_first();\n$WAIT" : "fetch_first();", names);
  }
  if (end.tail) {
    std::vector<std::string> values{"y"};
    for (int s = 1; s < segments; ++s) {
      values.push_back(fmt::format("y{}", s));
      names["EPILOGUE"] += fmt::format("const f32 y{0} = sum[r][o + {0} * (OUTS / SEGMENTS)];\n", s);
    }
    std::string result;
    names["EPILOGUE"] += end.tail->text(body, values, "r", "column", result);
    names["STORED"] = body.to_store(out.stored, result);
  }
  if (end.relu) names["EPILOGUE"] += "y = y > 0.0f || y != y ? y : 0.0f;\n";
  const bool is_even = size.k % (std::int64_t{each} * 32 * shares.parts * shares.ahead) == 0;
  std::string text = fmt::format(
      "enum {{ ROWS = {}, OUTS = {}, SEGMENTS = {}, TOGETHER = OUTS / SEGMENTS, EACH = {}, WARPS = {}, AHEAD = {}, IS_EVEN = {} "
      "}};\n",
      size.m, shares.outs, segments, each, kWarps, shares.ahead, int{is_even});
  if (end.norm)
    text +=
        fmt::format("enum {{ COLUMNS = {}, EACH_THREAD = {}, KEPT = {} }};\n#define SCALES_ARE_GIVEN {}\n", size.k, each_thread,
                    std::clamp<std::int64_t>(16 / size.m, 1, std::min<std::int64_t>(each_thread, 8)), int{end.norm->is_given});
  text += fmt::format("#define PARTS {}\n", shares.parts) + filled(kText, names) + "#undef PARTS\n" +
          (end.norm ? "#undef SCALES_ARE_GIVEN\n" : "");
  return make_launch(body, {32 * kWarps, 1, 1}, {static_cast<std::uint32_t>(groups), 1, 1},
                     (b.is_given ? "LET_NEXT_BEGIN;\n" : "") + text, size.m <= kFewRows ? kGroups : 0, b.is_given);
}

}  // namespace tenon::emit
