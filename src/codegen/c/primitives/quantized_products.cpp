// Products with matrices of small integers (QuantizedMatMulAttr), for few rows of x: reading the matrix is what takes time.
//
// A first kernel rounds x to 8-bit numbers, one step for 32 columns. In the second a work-group computes 16 neighbouring columns
// of the result for up to kTogether rows: work-item t has column t % 16, and every kPartsth word of its codes. Words that are
// read at once are neighbours in memory. Sums have the same order for a row of x whatever the other rows are.
#include <fmt/format.h>

#include <algorithm>

#include "codegen/c/loops/geometry.h"
#include "codegen/c/primitives/primitives.h"
#include "codegen/c/sort/keys.h"

namespace tenon::emit {
namespace {

constexpr std::int64_t kTogether = 8;  // rows of x for which the codes are read once

// j: 32 columns of a row. Numbers that are not finite make the whole block NaN, as they do in floats.
constexpr std::string_view kRound = R"(const GLOBAL f32* const from = $X + j * 32;
f32 largest = 0.0f;
i32 is_finite = 1;
for (i32 i = 0; i < 32; ++i) {
const f32 size = fabs(from[i]);
is_finite = is_finite && size <= AS_F32(0x7f7fffffu);
largest = size > largest ? size : largest;
}
const f32 factor = largest == 0.0f ? 0.0f : 127.0f / largest;
const f32 step = largest / 127.0f;
$STEPS[j] = is_finite ? $ROUNDED_STEP : AS_F32(0x7fc00000u);
i32 sum = 0;
for (i32 w = 0; w < 8; ++w) {
u32 word = 0u;
for (i32 i = 0; i < 4; ++i) {
const i32 code = is_finite ? (i32)rint(from[w * 4 + i] * factor) : 0;
word |= ((u32)code & 255u) << (i * 8);
sum += code;
}
$CODES[j * 8 + w] = word;
if ((w + 1) % (GROUP / 4) == 0) {
$SUMS[j * (32 / GROUP) + w / (GROUP / 4)] = (f32)sum;
sum = 0;
}
}
)";

// The same by the 32 lanes of a warp, each with one column.
constexpr std::string_view kRoundByWarp = R"(const i64 j = (i64)group_id(0) * WARPS + threadIdx.x / 32;
const i32 lane = threadIdx.x % 32;
if (j < $COUNT) {
const f32 x = $X[j * 32 + lane];
const f32 size = fabsf(x);
const i32 is_finite = __all_sync(0xffffffffu, size <= AS_F32(0x7f7fffffu));
f32 largest = size;
UNROLL for (i32 distance = 16; distance > 0; distance /= 2) largest = fmaxf(largest, SHUFFLE(largest, distance));
const f32 factor = largest == 0.0f ? 0.0f : 127.0f / largest;
const f32 step = largest / 127.0f;
const i32 code = is_finite ? (i32)rintf(x * factor) : 0;
u32 word = ((u32)code & 255u) << (lane % 4 * 8);
word |= SHUFFLE(word, 1);
word |= SHUFFLE(word, 2);
i32 sum = code;
UNROLL for (i32 distance = GROUP / 2; distance > 0; distance /= 2) sum += SHUFFLE(sum, distance);
if (lane == 0) $STEPS[j] = is_finite ? $ROUNDED_STEP : AS_F32(0x7fc00000u);
if (lane % 4 == 0) $CODES[j * 8 + lane / 4] = word;
if (lane % GROUP == 0) $SUMS[j * (32 / GROUP) + lane / GROUP] = (f32)sum;
}
)";

// A unit is one word of the codes of each of 16 rows; |units| of them make a row.
constexpr std::string_view kMultiply = R"(const i32 t = local_id(0), column = t % 16, part = t / 16;
const i64 block = group_id(0);
const i32 first_row = (i32)group_id(1) * TOGETHER, rows = (i32)$ROW_COUNT, units = (i32)$UNITS, x_words = (i32)$X_WORDS;
const i32 x_steps = x_words / 8, groups = units / UNITS_OF_GROUP;
GLOBAL const u32* const codes = $CODES + block * units * 16 + column;
f32 sum[TOGETHER];
i32 row[TOGETHER];
UNROLL for (i32 r = 0; r < TOGETHER; ++r) {
sum[r] = 0.0f;
row[r] = first_row + r < rows ? first_row + r : rows - 1;
}
UNROLL_BY(AHEAD) for (i32 unit = part; unit < units; unit += PARTS) {
const i32 group = unit / UNITS_OF_GROUP, inside = unit % UNITS_OF_GROUP;
const u32 word = codes[(i64)unit * 16];
const i64 place = (block * groups + group) * 16 + column;
const f32 scale = $SCALE;
UNROLL for (i32 r = 0; r < TOGETHER; ++r) {
GLOBAL const u32* const x = $X_CODES + (i64)row[r] * x_words + group * (GROUP / 4) + inside;
const f32 step = $STEPS[(i64)row[r] * x_steps + group * GROUP / 32];
i32 dot = 0;
$DOT
sum[r] += scale * step * (f32)dot;
$CORRECTION
}
}
LOCAL f32 sums[TOGETHER * PARTS * 16];
UNROLL for (i32 r = 0; r < TOGETHER; ++r) sums[(r * PARTS + part) * 16 + column] = sum[r];
BARRIER;
for (i32 i = t; i < TOGETHER * 16; i += THREADS) {
const i32 r = i / 16, c = i % 16;
f32 total = 0.0f;
for (i32 p = 0; p < PARTS; ++p) total += sums[(r * PARTS + p) * 16 + c];
if (first_row + r < rows) $OUT[(i64)(first_row + r) * $OUT_COUNT + block * 16 + c] = total;
}
)";

// dot += the products of four signed bytes each.
std::string dot_text(const KernelTarget& target, const std::string& a, const std::string& b) {
  if (target.dialect == Dialect::cuda) return fmt::format("dot = __dp4a((i32)({}), (i32){}, dot);\n", a, b);
  std::string text = fmt::format("{{ const u32 a = {}, b = {};\n", a, b);
  for (const int shift : {0, 8, 16, 24})
    text += fmt::format("dot += (i32)(i8)(a >> {0} & 255u) * (i32)(i8)(b >> {0} & 255u);\n", shift);
  return text + "}\n";
}

}  // namespace

bool can_quantized_matmul(const KernelTarget& target, const Shape& out, const QuantizedMatMulAttr& attr) {
  const bool is_known = (attr.bits == 4 && attr.zero < 16) || attr.bits == 8;
  return target.dialect != Dialect::tensix && is_known && out.elements() > 0 && out[0] <= kTogether * 65535 &&
         target.max_group_size >= 256;
}

std::vector<Launch> emit_quantized_matmul(const KernelTarget& target, const QuantizedOperands& m, const QuantizedMatMulAttr& attr,
                                          const Dense& out, const Scratch& scratch) {
  const std::int64_t rows = m.x.shape[0], depth = m.x.shape[1], outs = out.shape[1];
  const auto words = [](std::int64_t count) { return static_cast<std::uint64_t>(count) * 4; };
  const int x_codes = scratch(words(rows * depth / 4)), steps = scratch(words(rows * depth / 32)),
            sums = scratch(words(rows * depth / attr.group));
  Parameters first(true);
  Body round(target, first);
  const std::int64_t blocks_of_x = rows * depth / 32;
  std::map<std::string, std::string> round_names{
      {"X", first.input(DType::f32, m.x.slot)},
      {"CODES", first.buffer("u32", x_codes)},
      {"STEPS", first.buffer("f32", steps)},
      {"SUMS", first.buffer("f32", sums)},
      {"ROUNDED_STEP", round.cast(DType::f16, DType::f32, round.cast(DType::f32, DType::f16, "step"))}};
  constexpr int kWarps = 4;
  const std::string head = fmt::format("enum {{ GROUP = {}, WARPS = {} }};\n", attr.group, kWarps);
  Launch rounding = [&] {
    if (target.dialect != Dialect::cuda) return emit_items(round, blocks_of_x, 64, head + filled(kRound, round_names));
    round_names["COUNT"] = first.whole_number(blocks_of_x);
    return make_launch(round, {32 * kWarps, 1, 1}, {static_cast<std::uint32_t>(ceil_div(blocks_of_x, kWarps)), 1, 1},
                       head + filled(kRoundByWarp, round_names));
  }();

  const std::int64_t together = std::min<std::int64_t>(power_of_two_from(rows), kTogether);
  const std::int64_t blocks = outs / 16, row_blocks = ceil_div(rows, together);
  // Few work-groups have more work-items each.
  const int threads = blocks * row_blocks < 4 * target.compute_units && target.max_group_size >= 512 ? 512 : 256;
  Parameters p(true);
  Body body(target, p);
  std::map<std::string, std::string> names{
      {"ROW_COUNT", p.whole_number(rows)},
      {"UNITS", p.whole_number(depth * attr.bits / 32)},
      {"X_WORDS", p.whole_number(depth / 4)},
      {"OUT_COUNT", p.whole_number(outs)},
      {"CODES", p.buffer("const u32", m.codes.slot)},
      {"X_CODES", p.buffer("const u32", x_codes)},
      {"STEPS", p.buffer("const f32", steps)},
      {"SCALE", body.loaded(m.scales.stored, p.input(m.scales.stored, m.scales.slot) + "[place]")},
      {"OUT", p.output(out.stored, out.slot)}};
  // Codes of 4 bits less their zero are signed bytes; codes of 8 bits are so less 128, and what that leaves is added for a group.
  std::string correction;
  if (attr.bits == 4) {
    const auto signed_bytes = [&](const std::string& codes) {
      return fmt::format("((({}) | 0x80808080u) - {}u) ^ 0x80808080u", codes, attr.zero * 0x01010101);
    };
    names["DOT"] = dot_text(target, signed_bytes("word & 0x0f0f0f0fu"), "x[0]") +
                   dot_text(target, signed_bytes("word >> 4 & 0x0f0f0f0fu"), "x[GROUP / 8]");
  } else {
    names["DOT"] = dot_text(target, "word ^ 0x80808080u", "x[0]");
    if (attr.zero != 128) correction = fmt::format("{} * scale", literal(DType::f32, static_cast<double>(128 - attr.zero)));
  }
  if (m.minima) {
    const std::string minimum = body.loaded(m.minima->stored, p.input(m.minima->stored, m.minima->slot) + "[place]");
    correction = correction.empty() ? minimum : fmt::format("{} + {}", minimum, correction);
  }
  if (!correction.empty())
    correction = fmt::format("if (inside == 0) sum[r] += ({}) * step * {}[(i64)row[r] * groups + group];", correction,
                             p.buffer("const f32", sums));
  names["CORRECTION"] = correction;
  const std::string text = fmt::format(
      "enum {{ GROUP = {}, UNITS_OF_GROUP = {}, TOGETHER = {}, THREADS = {}, PARTS = {} }};\n#define AHEAD {}\n{}#undef AHEAD\n",
      attr.group, attr.group * attr.bits / 32, together, threads, threads / 16, together == 1 ? 8 : 2, filled(kMultiply, names));
  return {
      std::move(rounding),
      make_launch(body, {threads, 1, 1}, {static_cast<std::uint32_t>(blocks), static_cast<std::uint32_t>(row_blocks), 1}, text)};
}

}  // namespace tenon::emit
