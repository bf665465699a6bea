#include <fmt/format.h>

#include "codegen/c/attention/attention.h"
#include "codegen/c/loops/geometry.h"
#include "codegen/c/sort/keys.h"

namespace tenon::emit {
namespace {

constexpr int kThreads = 128;

// Threads are 8 groups of rows by 16 groups of keys or columns. q, k and the weights are in local memory with rows together, so
// that a thread reads its ROW_COUNT rows or KEY_COUNT keys at once; v has columns together. k and v use the same memory in turn.
constexpr std::string_view kText = R"(extern __shared__ __align__(16) unsigned char memory[];
#define INFINITY_F32 AS_F32(0x7f800000u)
f32* const q_part = (f32*)memory;
f32* const kv_part = q_part + E * Q_LINE;
f32* const weights = kv_part + KV_SIZE;
const i32 t = threadIdx.x, across = t & 15, down = t >> 4;
const u32 block = (u32)$BLOCKS - 1u - blockIdx.x % (u32)$BLOCKS, head = blockIdx.x / (u32)$BLOCKS;
const u32 n = head / (u32)$HEADS, h = head % (u32)$HEADS, g = h / (u32)$SHARED;
const f32* const q = $Q + $Q_OFFSET + n * $Q_BATCH + h * $Q_HEAD;
const f32* const k = $K + $K_OFFSET + n * $K_BATCH + g * $K_HEAD;
const f32* const v = $V + $V_OFFSET + n * $V_BATCH + g * $V_HEAD;
const i32 first_row = block * ROWS, rows = (i32)$ROW_COUNT, keys = (i32)$KEY_COUNT;
const auto power = [](const f32 x) -> f32 { f32 r; asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(x)); return r; };
const auto quad = [](f32 (&to)[4], const f32* from, const i32 column, const i32 width, const i32 is_in) {
if (WHOLE) {
if (is_in && column < width) { VLOAD(f32, 4, to, from + column); }
else UNROLL for (i32 i = 0; i < 4; ++i) to[i] = 0;
} else {
UNROLL for (i32 i = 0; i < 4; ++i) to[i] = is_in && column + i < width ? from[column + i] : 0.0f;
}
};
const auto fetch_turned = [&](f32* to, const i32 line, const f32* from, const i64 stride, const i32 first, const i32 last,
const i32 count, const f32 factor) {
for (i32 c = t; c < count * (E / 4); c += THREADS) {
const i32 row = c % count, column = c / count * 4;
VARRAY(f32, 4, x);
quad(x, from + (i64)(first + row < last ? first + row : 0) * stride, column, WIDTH, first + row < last);
UNROLL for (i32 i = 0; i < 4; ++i) to[(column + i) * line + row] = x[i] * factor;
}
};
f32 result[ROW_EACH][COLUMN_EACH], largest[ROW_EACH], total[ROW_EACH];
UNROLL for (i32 r = 0; r < ROW_EACH; ++r) {
UNROLL for (i32 c = 0; c < COLUMN_EACH; ++c) result[r][c] = 0;
largest[r] = -INFINITY_F32;
total[r] = 0;
}
fetch_turned(q_part, Q_LINE, q, $Q_ROW, first_row, rows, ROWS, $SCALE);
const i32 needed = CAUSAL && first_row + ROWS < keys ? first_row + ROWS : keys;
for (i32 start = 0; start < needed; start += KEYS) {
BARRIER;
fetch_turned(kv_part, K_LINE, k, $K_ROW, start, keys, KEYS, 1.0f);
BARRIER;
f32 score[ROW_EACH][KEY_EACH];
UNROLL for (i32 r = 0; r < ROW_EACH; ++r) UNROLL for (i32 c = 0; c < KEY_EACH; ++c) score[r][c] = 0;
UNROLL_BY(4) for (i32 e = 0; e < E; ++e) {
VARRAY(f32, ROW_EACH, a);
VARRAY(f32, KEY_EACH, b);
UNROLL for (i32 r = 0; r < ROW_EACH; r += 4) { VLOAD(f32, 4, a + r, q_part + e * Q_LINE + down * ROW_EACH + r); }
VLOAD(f32, KEY_EACH, b, kv_part + e * K_LINE + across * KEY_EACH);
UNROLL for (i32 r = 0; r < ROW_EACH; ++r) UNROLL for (i32 c = 0; c < KEY_EACH; ++c) score[r][c] = fmaf(a[r], b[c], score[r][c]);
}
UNROLL for (i32 r = 0; r < ROW_EACH; ++r) {
const i32 row = first_row + down * ROW_EACH + r;
f32 top = largest[r];
UNROLL for (i32 c = 0; c < KEY_EACH; ++c) {
const i32 key = start + across * KEY_EACH + c;
const f32 s = score[r][c];
score[r][c] = key < keys && row < rows && (!CAUSAL || key <= row) ? $MASKED : -INFINITY_F32;
top = fmaxf(top, score[r][c]);
}
UNROLL for (i32 distance = 1; distance < 16; distance *= 2) top = fmaxf(top, SHUFFLE(top, distance));
const f32 base = top == -INFINITY_F32 ? 0.0f : top, change = power(largest[r] - base);
largest[r] = top;
f32 sum = 0;
UNROLL for (i32 c = 0; c < KEY_EACH; ++c) {
score[r][c] = power(score[r][c] - base);
sum += score[r][c];
}
total[r] = fmaf(total[r], change, sum);
UNROLL for (i32 c = 0; c < COLUMN_EACH; ++c) result[r][c] *= change;
}
BARRIER;
UNROLL for (i32 c = 0; c < KEY_EACH; ++c) UNROLL for (i32 r = 0; r < ROW_EACH; r += 4) {
VARRAY(f32, 4, x);
UNROLL for (i32 i = 0; i < 4; ++i) x[i] = score[r + i][c];
VSTORE(f32, 4, x, weights + (across * KEY_EACH + c) * Q_LINE + down * ROW_EACH + r);
}
for (i32 c = t; c < KEYS * (D / 4); c += THREADS) {
const i32 row = c / (D / 4), column = c % (D / 4) * 4;
VARRAY(f32, 4, x);
quad(x, v + (i64)(start + row < keys ? start + row : 0) * $V_ROW, column, V_WIDTH, start + row < keys);
VSTORE(f32, 4, x, kv_part + row * D + column);
}
BARRIER;
UNROLL_BY(4) for (i32 key = 0; key < KEYS; ++key) {
VARRAY(f32, ROW_EACH, a);
VARRAY(f32, COLUMN_EACH, b);
UNROLL for (i32 r = 0; r < ROW_EACH; r += 4) { VLOAD(f32, 4, a + r, weights + key * Q_LINE + down * ROW_EACH + r); }
UNROLL for (i32 c = 0; c < COLUMN_EACH; c += 4) { VLOAD(f32, 4, b + c, kv_part + key * D + across * 4 + c * 16); }
UNROLL for (i32 r = 0; r < ROW_EACH; ++r) UNROLL for (i32 c = 0; c < COLUMN_EACH; ++c) result[r][c] = fmaf(a[r], b[c], result[r][c]);
}
}
UNROLL for (i32 r = 0; r < ROW_EACH; ++r) {
f32 sum = total[r];
UNROLL for (i32 distance = 1; distance < 16; distance *= 2) sum += SHUFFLE(sum, distance);
const f32 share = sum == 0 ? 0.0f : 1.0f / sum;
const i32 row = first_row + down * ROW_EACH + r;
if (row < rows) UNROLL for (i32 c = 0; c < COLUMN_EACH; ++c) {
const i32 column = across * 4 + c / 4 * 64 + c % 4;
if (column < V_WIDTH) {
const f32 x = result[r][c] * share;
$TO[((i64)head * rows + row) * V_WIDTH + column] = $VALUE;
}
}
}
#undef INFINITY_F32
)";

}  // namespace

Launch emit_attention_tiles_f32(const KernelTarget& target, const AttentionOperands& x, const AttentionRule& rule,
                                const Dense& out) {
  Parameters p(true);
  Body body(target, p);
  const std::int64_t width = x.q_shape[3], v_width = x.v_shape[3];
  const std::int64_t e = ceil_div(width, 4) * 4, d = ceil_div(v_width, 64) * 64;
  // Wide heads in smaller blocks, so that they fit in the memory and the registers.
  const int rows = std::max(e, d) <= 128 ? 64 : 32, keys = rows, row_each = rows / 8, key_each = keys / 16;
  const int line = rows + 4;
  const std::int64_t row_blocks = ceil_div(x.q_shape[2], rows);
  std::map<std::string, std::string> names{{"BLOCKS", p.whole_number(row_blocks)},
                                           {"HEADS", p.whole_number(x.q_shape[1])},
                                           {"SHARED", p.whole_number(x.q_shape[1] / x.k_shape[1])},
                                           {"ROW_COUNT", p.whole_number(x.q_shape[2])},
                                           {"KEY_COUNT", p.whole_number(x.k_shape[2])},
                                           {"SCALE", p.number(DType::f32, rule.scale * 1.4426950408889634)},
                                           {"VALUE", body.to_store(out.stored, "x")}};
  add_operand(names, p, "Q", x.q);
  add_operand(names, p, "K", x.k);
  add_operand(names, p, "V", x.v);
  names["MASKED"] = masked_score(body, p, x, "s");
  names["TO"] = p.output(out.stored, out.slot);
  const bool whole =
      width % 4 == 0 && v_width % 4 == 0 && has_aligned_rows(x.q) && has_aligned_rows(x.k) && has_aligned_rows(x.v);
  const std::int64_t kv_size = std::max(e * line, keys * d);
  std::string text = fmt::format(
      "enum {{ E = {}, D = {}, WIDTH = {}, V_WIDTH = {}, THREADS = {}, ROWS = {}, KEYS = {}, ROW_EACH = {}, KEY_EACH = {}, "
      "COLUMN_EACH = {}, Q_LINE = {}, K_LINE = {}, KV_SIZE = {}, WHOLE = {}, CAUSAL = {} }};\n",
      e, d, width, v_width, kThreads, rows, keys, row_each, key_each, d / 16, line, line, kv_size, int{whole}, int{rule.causal});
  text += filled(kText, names);
  Launch launch =
      make_launch(body, {kThreads, 1, 1}, {static_cast<std::uint32_t>(row_blocks * x.q_shape[0] * x.q_shape[1]), 1, 1}, text);
  launch.kernel.dynamic_bytes = static_cast<int>((e * line + kv_size + keys * line) * 4);
  return launch;
}

}  // namespace tenon::emit
