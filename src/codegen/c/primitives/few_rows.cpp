// Products of few rows with a matrix whose elements are neighbours along k, on NVIDIA GPUs: reading the matrix is what takes
// time.
//
// PARTS warps read OUTS neighbouring rows of the (transposed) matrix, 16 bytes a lane and step, several steps before the first
// is used. Every row of the other operand is multiplied with what was read; it stays in the cache. A matrix that is an input of
// the program is fetched while the kernel in front of this one still runs. If the rows are norms of others, every work-group
// computes all of them, which takes less than a kernel of their own would.
#include <fmt/format.h>

#include <algorithm>

#include "codegen/c/loops/geometry.h"
#include "codegen/c/primitives/primitives.h"
#include "codegen/c/sort/keys.h"

namespace tenon::emit {
namespace {

constexpr int kWarps = 8;
// More rows are worth it only where a library's product would not be.
constexpr std::int64_t kFewRows = 4, kMostRows = 16, kSmallProduct = std::int64_t{1} << 21;

constexpr std::string_view kText = R"(const i32 lane = threadIdx.x % 32, warp = threadIdx.x / 32, part = warp % PARTS;
const i64 first = ((i64)blockIdx.x * (WARPS / PARTS) + warp / PARTS) * (OUTS / SEGMENTS);
const i32 n = (i32)$N, words = (i32)($K / EACH);
const auto widened = [](const u16 x) -> f32 { f32 y; asm("cvt.f32.f16 %0, %1;" : "=f"(y) : "h"(x)); return y; };
for (i64 batch = blockIdx.y; batch < $BATCHES; batch += gridDim.y) {
$ROWS_OF_A
GLOBAL const uint4* lines[OUTS];
UNROLL for (i32 o = 0; o < OUTS; ++o) {
const i64 out = first + o % (OUTS / SEGMENTS);
lines[o] = (GLOBAL const uint4*)($B + $B_OFFSET + batch * $B_BATCH + ((out < n ? out : n - 1) + (i64)(o / (OUTS / SEGMENTS)) * n) * $B_COLUMN);
}
f32 sum[ROWS][OUTS];
UNROLL for (i32 r = 0; r < ROWS; ++r) UNROLL for (i32 o = 0; o < OUTS; ++o) sum[r][o] = 0.0f;
VARRAY($ELEMENT, EACH, line[AHEAD][OUTS]);
const auto fetch = [&](const i32 w) {
UNROLL for (i32 a = 0; a < AHEAD; ++a) {
const i32 word = w + a * PARTS * 32;
UNROLL for (i32 o = 0; o < OUTS; ++o) *(uint4*)line[a][o] = word < words ? __ldcs(lines[o] + word) : uint4{0, 0, 0, 0};
}
};
i32 w = part * 32 + lane;
fetch(w);
$WAIT
$NORM
for (; w < words; w += PARTS * 32 * AHEAD) {
UNROLL for (i32 a = 0; a < AHEAD; ++a) {
const i32 word = w + a * PARTS * 32;
if (word < words) {
UNROLL for (i32 r = 0; r < ROWS; ++r) {
VARRAY($ELEMENT, EACH, row);
VLOAD($ELEMENT, EACH, row, x + r * $A_ROW + word * EACH);
UNROLL for (i32 e = 0; e < EACH; ++e) {
const f32 value = $ROW_VALUE;
UNROLL for (i32 o = 0; o < OUTS; ++o) sum[r][o] = fmaf(value, $LINE_VALUE, sum[r][o]);
}
}
}
}
fetch(w + PARTS * 32 * AHEAD);
}
UNROLL for (i32 r = 0; r < ROWS; ++r) UNROLL for (i32 o = 0; o < OUTS; ++o)
UNROLL for (i32 distance = 16; distance > 0; distance /= 2) sum[r][o] += SHUFFLE(sum[r][o], distance);
#if PARTS > 1
LOCAL f32 sums[WARPS][ROWS * OUTS];
BARRIER;
if (lane == 0) UNROLL for (i32 r = 0; r < ROWS; ++r) UNROLL for (i32 o = 0; o < OUTS; ++o) sums[warp][r * OUTS + o] = sum[r][o];
BARRIER;
UNROLL for (i32 r = 0; r < ROWS; ++r) UNROLL for (i32 o = 0; o < OUTS; ++o) {
f32 all = 0.0f;
UNROLL for (i32 p = 0; p < PARTS; ++p) all += sums[warp - part + p][r * OUTS + o];
sum[r][o] = all;
}
#endif
UNROLL for (i32 r = 0; r < ROWS; ++r) UNROLL for (i32 o = 0; o < OUTS / SEGMENTS; ++o) {
if (part == 0 && lane == r * OUTS + o && first + o < n) {
const i64 column = first + o;
f32 y = sum[r][o];
$EPILOGUE$OUT[$OUT_OFFSET + batch * $OUT_BATCH + r * $OUT_ROW + column * $OUT_COLUMN] = $STORED;
}
}
}
)";

constexpr std::string_view kNorm = R"(LOCAL f32 squares[ROWS][WARPS];
UNROLL for (i32 r = 0; r < ROWS; ++r) {
f32 square = 0.0f;
UNROLL_BY(4) for (i32 i = threadIdx.x; i < COLUMNS; i += WARPS * 32) { const f32 v = $X[$X_OFFSET + r * $X_ROW + i]; square += v * v; }
UNROLL for (i32 distance = 16; distance > 0; distance /= 2) square += SHUFFLE(square, distance);
if (lane == 0) squares[r][warp] = square;
}
BARRIER;
UNROLL for (i32 r = 0; r < ROWS; ++r) {
f32 square = 0.0f;
UNROLL for (i32 i = 0; i < WARPS; ++i) square += squares[r][i];
const f32 root = sqrt(square / $COUNT + $EPS), reciprocal = row_reciprocal(root);
UNROLL_BY(4) for (i32 i = threadIdx.x; i < COLUMNS; i += WARPS * 32) {
const f32 quotient = $QUOTIENT;
const f32 y = quotient * $WEIGHT[$WEIGHT_OFFSET + i];
normed[r * COLUMNS + i] = $ROUNDED;
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
  const int segments = end.tail ? static_cast<int>(end.tail->segments) : 1;

  // Enough warps to have the memory busy: several rows a warp where there are many, several warps a row where there are few.
  const std::int64_t wanted = std::int64_t{target.compute_units} * 16, lines = size.n * size.batches;
  const int outs = std::max(lines >= 4 * wanted ? 4 : lines >= 2 * wanted ? 2 : 1, segments);
  std::int64_t parts = 1;
  while (parts < kWarps && lines / outs * parts < wanted && size.k / (64 * each * parts) >= 2) parts *= 2;

  Parameters p(true);
  Body body(target, p);
  const auto number = [&](std::int64_t value) { return p.whole_number(value); };
  // One instruction; what it does to the sign of a NaN does not matter here.
  const auto value = [&](DType stored, const std::string& x) {
    return stored == DType::f16 ? fmt::format("widened({})", x) : body.loaded(stored, x);
  };
  std::map<std::string, std::string> names{{"N", number(size.n / segments)},
                                           {"K", number(size.k)},
                                           {"BATCHES", number(size.batches)},
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
  if (end.norm) {
    const ProductEnd::Norm& norm = *end.norm;
    names["A_ROW"] = "COLUMNS";
    names["ROWS_OF_A"] = filled("LOCAL __align__(16) $ELEMENT normed[ROWS * COLUMNS];\nconst $ELEMENT* const x = normed;", names);
    names["X"] = p.input(norm.x.stored, norm.x.slot);
    names["X_OFFSET"] = number(norm.x.offset);
    names["X_ROW"] = number(size.m == 1 ? 0 : norm.x.strides[0]);
    names["WEIGHT"] = p.input(norm.weight.stored, norm.weight.slot);
    names["WEIGHT_OFFSET"] = number(norm.weight.offset);
    names["COUNT"] = p.number(DType::f32, static_cast<double>(size.k));
    names["EPS"] = p.number(DType::f32, norm.eps);
    names["ROUNDED"] = body.to_store(b.stored, "y");
    names["QUOTIENT"] = body.call("quotient_by_row", filled("$X[$X_OFFSET + r * $X_ROW + i], root, reciprocal", names));
    names["NORM"] = filled(kNorm, names);
  } else {
    names["A"] = p.input(a.stored, a.slot);
    names["A_OFFSET"] = number(a.offset);
    names["A_BATCH"] = number(a.strides[0]);
    names["A_ROW"] = number(a.strides[1]);
    names["ROWS_OF_A"] = filled("GLOBAL const $ELEMENT* const x = $A + $A_OFFSET + batch * $A_BATCH;", names);
    names["NORM"] = "";
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
  names["WAIT"] = b.is_given ? "WAIT_FOR_LAST;" : "";
  const std::string text = (b.is_given ? "LET_NEXT_BEGIN;\n" : "") +
                           fmt::format(
                               "enum {{ ROWS = {}, OUTS = {}, SEGMENTS = {}, EACH = {}, WARPS = {}, AHEAD = {}{} }};\n#define "
                               "PARTS {}\n{}#undef PARTS\n",
                               size.m, outs, segments, each, kWarps, 8 / outs,
                               end.norm ? fmt::format(", COLUMNS = {}", size.k) : "", parts, filled(kText, names));
  // What is fetched ahead stays in registers while norms are computed; without a limit those take so many more that half as many
  // work-groups run at once.
  const int least_groups = end.norm ? size.m == 1 ? 4 : 3 : 0;
  const std::int64_t groups = ceil_div(size.n / segments, outs / segments * kWarps / parts);
  return make_launch(
      body, {32 * kWarps, 1, 1},
      {static_cast<std::uint32_t>(groups), static_cast<std::uint32_t>(std::min<std::int64_t>(size.batches, 65535)), 1}, text,
      least_groups, b.is_given);
}

}  // namespace tenon::emit
