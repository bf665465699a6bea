#include <fmt/format.h>

#include <cmath>

#include "codegen/c/attention/attention.h"
#include "codegen/c/loops/geometry.h"
#include "codegen/c/sort/keys.h"

namespace tenon::emit {
namespace {

constexpr int kWarps = 4;

// The fragments of a 16 x 16 by 16 x 8 product are those of the instruction mma.m16n8k16: lane / 4 is a row, lane % 4 a pair of
// columns. Rows in local memory are 16 bytes longer than their content, which keeps eight of them in different banks.
constexpr std::string_view kHead = R"(extern __shared__ __align__(16) unsigned char memory[];
#define INFINITY_F32 AS_F32(0x7f800000u)
unsigned char* const q_rows = memory;
unsigned char* const k_rows = q_rows + ROWS * Q_BYTES;
unsigned char* const v_rows = k_rows + KEYS * Q_BYTES;
const i32 t = threadIdx.x, lane = t & 31, warp = t >> 5;
const u32 block = (u32)$BLOCKS - 1u - blockIdx.x % (u32)$BLOCKS, head = blockIdx.x / (u32)$BLOCKS;
const u32 n = head / (u32)$HEADS, h = head % (u32)$HEADS, g = h / (u32)$SHARED;
const u16* const q = $Q + $Q_OFFSET + n * $Q_BATCH + h * $Q_HEAD;
const u16* const k = $K + $K_OFFSET + n * $K_BATCH + g * $K_HEAD;
const u16* const v = $V + $V_OFFSET + n * $V_BATCH + g * $V_HEAD;
const i32 first_row = block * ROWS, rows = (i32)$ROW_COUNT, keys = (i32)$KEY_COUNT;
const auto local_address = [](const void* p) -> u32 { return (u32)__cvta_generic_to_shared(p); };
const auto fetch = [&](unsigned char* to, const i32 bytes, const u16* from, const i64 stride, const i32 first, const i32 last,
const i32 count, const i32 width, const i32 padded) {
const i32 chunks = padded / 8;
for (i32 c = t; c < count * chunks; c += THREADS) {
const i32 row = c / chunks, column = c % chunks * 8;
unsigned char* const into = to + row * bytes + column * 2;
const i32 is_in = first + row < last && column < width;
const u16* const source = from + (is_in ? (i64)(first + row) * stride + column : 0);
if (WHOLE) {
asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" :: "r"(local_address(into)), "l"(source), "r"(is_in ? 16 : 0));
} else {
UNROLL for (i32 i = 0; i < 8; ++i) ((u16*)into)[i] = is_in && column + i < width ? source[i] : (u16)0;
}
}
};
const auto commit = [] { asm volatile("cp.async.commit_group;"); };
const auto arrived_but_one = [] { asm volatile("cp.async.wait_group 1;" ::: "memory"); };
const auto load4 = [&](u32 (&r)[4], const unsigned char* p) {
asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];" : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
: "r"(local_address(p)));
};
const auto load4_transposed = [&](u32 (&r)[4], const unsigned char* p) {
asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];" : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]),
"=r"(r[3]) : "r"(local_address(p)));
};
const auto multiply = [](f32 (&c)[4], const u32 (&a)[4], const u32 b0, const u32 b1) {
asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.$TYPE.$TYPE.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
: "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
};
const auto packed = [](const f32 low, const f32 high) -> u32 {
u32 r;
asm("cvt.rn.$TYPE" "x2.f32 %0, %1, %2;" : "=r"(r) : "f"(high), "f"(low));
return r;
};
const auto power = [](const f32 x) -> f32 { f32 r; asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(x)); return r; };
)";

constexpr std::string_view kLoop = R"(f32 result[TILES][D / 8][4], largest[TILES][2], total[TILES][2];
UNROLL for (i32 m = 0; m < TILES; ++m) {
UNROLL for (i32 i = 0; i < D / 8; ++i) UNROLL for (i32 c = 0; c < 4; ++c) result[m][i][c] = 0;
UNROLL for (i32 r = 0; r < 2; ++r) { largest[m][r] = -INFINITY_F32; total[m][r] = 0; }
}
const i32 needed = CAUSAL && first_row + ROWS < keys ? first_row + ROWS : keys, blocks = (needed + KEYS - 1) / KEYS;
fetch(q_rows, Q_BYTES, q, $Q_ROW, first_row, rows, ROWS, WIDTH, E);
fetch(k_rows, Q_BYTES, k, $K_ROW, 0, keys, KEYS, WIDTH, E);
commit();
fetch(v_rows, V_BYTES, v, $V_ROW, 0, keys, KEYS, V_WIDTH, D);
commit();
const unsigned char* const q_from = q_rows + (warp * TILES * 16 + (lane & 15)) * Q_BYTES + (lane >> 4) * 16;
const unsigned char* const k_from = k_rows + ((lane & 7) + (lane >> 4) * 8) * Q_BYTES + (lane >> 3 & 1) * 16;
const unsigned char* const v_from = v_rows + (lane & 15) * V_BYTES + (lane >> 4) * 16;
const i32 own_row = first_row + warp * TILES * 16 + (lane >> 2);
for (i32 b = 0; b < blocks; ++b) {
arrived_but_one();
BARRIER;
f32 score[TILES][KEYS / 8][4];
UNROLL for (i32 m = 0; m < TILES; ++m) UNROLL for (i32 i = 0; i < KEYS / 8; ++i) UNROLL for (i32 c = 0; c < 4; ++c) score[m][i][c] = 0;
UNROLL for (i32 e = 0; e < E / 16; ++e) {
u32 a[TILES][4];
UNROLL for (i32 m = 0; m < TILES; ++m) load4(a[m], q_from + m * 16 * Q_BYTES + e * 32);
UNROLL for (i32 i = 0; i < KEYS / 16; ++i) {
u32 w[4];
load4(w, k_from + i * 16 * Q_BYTES + e * 32);
UNROLL for (i32 m = 0; m < TILES; ++m) {
multiply(score[m][2 * i], a[m], w[0], w[1]);
multiply(score[m][2 * i + 1], a[m], w[2], w[3]);
}
}
}
BARRIER;
if (b + 1 < blocks) fetch(k_rows, Q_BYTES, k, $K_ROW, (b + 1) * KEYS, keys, KEYS, WIDTH, E);
commit();
const i32 at_edge = SCALED || (b + 1) * KEYS > keys || (CAUSAL && (b + 1) * KEYS > first_row + warp * TILES * 16 + 1);
if (at_edge) {
UNROLL for (i32 m = 0; m < TILES; ++m) UNROLL for (i32 i = 0; i < KEYS / 8; ++i) UNROLL for (i32 c = 0; c < 4; ++c) {
const i32 key = b * KEYS + i * 8 + (lane & 3) * 2 + (c & 1), row = own_row + m * 16 + (c >> 1) * 8;
const f32 s = SCALED ? score[m][i][c] * $SCALE : score[m][i][c];
score[m][i][c] = key < keys && $ROW_IS_IN(!CAUSAL || key <= row) ? $MASKED : -INFINITY_F32;
}
}
UNROLL for (i32 m = 0; m < TILES; ++m) UNROLL for (i32 r = 0; r < 2; ++r) {
f32 top = largest[m][r];
UNROLL for (i32 i = 0; i < KEYS / 8; ++i) top = fmaxf(top, fmaxf(score[m][i][r * 2], score[m][i][r * 2 + 1]));
top = fmaxf(top, SHUFFLE(top, 1));
top = fmaxf(top, SHUFFLE(top, 2));
const f32 base = top == -INFINITY_F32 ? 0.0f : top * $FACTOR, change = power(fmaf(largest[m][r], $FACTOR, -base));
largest[m][r] = top;
f32 sum = 0;
UNROLL for (i32 i = 0; i < KEYS / 8; ++i) UNROLL for (i32 c = 0; c < 2; ++c) {
const f32 p = power(fmaf(score[m][i][r * 2 + c], $FACTOR, -base));
score[m][i][r * 2 + c] = p;
sum += p;
}
total[m][r] = fmaf(total[m][r], change, sum);
UNROLL for (i32 i = 0; i < D / 8; ++i) { result[m][i][r * 2] *= change; result[m][i][r * 2 + 1] *= change; }
}
arrived_but_one();
BARRIER;
UNROLL for (i32 i = 0; i < KEYS / 16; ++i) {
u32 a[TILES][4];
UNROLL for (i32 m = 0; m < TILES; ++m) {
a[m][0] = packed(score[m][2 * i][0], score[m][2 * i][1]);
a[m][1] = packed(score[m][2 * i][2], score[m][2 * i][3]);
a[m][2] = packed(score[m][2 * i + 1][0], score[m][2 * i + 1][1]);
a[m][3] = packed(score[m][2 * i + 1][2], score[m][2 * i + 1][3]);
}
UNROLL for (i32 d = 0; d < D / 16; ++d) {
u32 w[4];
load4_transposed(w, v_from + i * 16 * V_BYTES + d * 32);
UNROLL for (i32 m = 0; m < TILES; ++m) {
multiply(result[m][2 * d], a[m], w[0], w[1]);
multiply(result[m][2 * d + 1], a[m], w[2], w[3]);
}
}
}
BARRIER;
if (b + 1 < blocks) fetch(v_rows, V_BYTES, v, $V_ROW, (b + 1) * KEYS, keys, KEYS, V_WIDTH, D);
commit();
}
UNROLL for (i32 m = 0; m < TILES; ++m) UNROLL for (i32 r = 0; r < 2; ++r) {
f32 sum = total[m][r];
sum += SHUFFLE(sum, 1);
sum += SHUFFLE(sum, 2);
const f32 share = sum == 0 ? 0.0f : 1.0f / sum;
const i32 row = own_row + m * 16 + r * 8;
if (row < rows) {
const i64 into = ((i64)head * rows + row) * V_WIDTH;
UNROLL for (i32 i = 0; i < D / 8; ++i) {
const i32 column = i * 8 + (lane & 3) * 2;
const f32 x = result[m][i][r * 2] * share, y = result[m][i][r * 2 + 1] * share;
$STORE
}
}
}
)";

}  // namespace

Launch emit_attention_tiles(const KernelTarget& target, const AttentionOperands& x, const AttentionRule& rule, const Dense& out) {
  Parameters p(true);
  Body body(target, p);
  const std::int64_t width = x.q_shape[3], v_width = x.v_shape[3];
  const std::int64_t e = ceil_div(width, 16) * 16, d = ceil_div(v_width, 16) * 16;
  const int tiles = std::max(e, d) <= 128 ? 2 : 1, rows = 16 * tiles * kWarps;
  // More keys at a time where their scores fit in the registers.
  const int keys = std::max(e, d) <= 64 ? 128 : 64;
  const std::int64_t row_blocks = ceil_div(x.q_shape[2], rows);
  const bool is_bf16 = x.q.stored == DType::bf16;
  std::map<std::string, std::string> names{{"BLOCKS", p.whole_number(row_blocks)},
                                           {"HEADS", p.whole_number(x.q_shape[1])},
                                           {"SHARED", p.whole_number(x.q_shape[1] / x.k_shape[1])},
                                           {"ROW_COUNT", p.whole_number(x.q_shape[2])},
                                           {"KEY_COUNT", p.whole_number(x.k_shape[2])},
                                           {"SCALE", p.number(DType::f32, rule.scale * 1.4426950408889634)},
                                           {"TYPE", is_bf16 ? "bf16" : "f16"}};
  add_operand(names, p, "Q", x.q);
  add_operand(names, p, "K", x.k);
  add_operand(names, p, "V", x.v);
  // Scores are scaled within the exponential, unless something is added to them first or their order changes.
  const bool is_scaled = x.mask.has_value() || !(rule.scale > 0);
  names["FACTOR"] = is_scaled ? "1.0f" : names["SCALE"];
  // Rows outside are not stored; they matter only where they would be read from the mask.
  names["ROW_IS_IN"] = x.mask && x.mask->strides[2] != 0 ? "row < rows && " : "";
  names["MASKED"] = masked_score(body, p, x, "s");
  const std::string to = p.output(out.stored, out.slot);
  if (out.stored == x.q.stored && v_width % 2 == 0)
    names["STORE"] = fmt::format("if (column < V_WIDTH) *(u32*)({} + into + column) = packed(x, y);", to);
  else
    names["STORE"] =
        fmt::format("if (column < V_WIDTH) {0}[into + column] = {1};\nif (column + 1 < V_WIDTH) {0}[into + column + 1] = {2};",
                    to, body.to_store(out.stored, "x"), body.to_store(out.stored, "y"));
  const bool whole =
      width % 8 == 0 && v_width % 8 == 0 && has_aligned_rows(x.q) && has_aligned_rows(x.k) && has_aligned_rows(x.v);
  const std::int64_t q_bytes = e * 2 + 16, v_bytes = d * 2 + 16;
  std::string text = fmt::format(
      "enum {{ E = {}, D = {}, WIDTH = {}, V_WIDTH = {}, TILES = {}, THREADS = {}, ROWS = {}, KEYS = {}, Q_BYTES = {}, V_BYTES = "
      "{}, WHOLE = {}, CAUSAL = {}, SCALED = {} }};\n",
      e, d, width, v_width, tiles, 32 * kWarps, rows, keys, q_bytes, v_bytes, int{whole}, int{rule.causal}, int{is_scaled});
  text += filled(kHead, names) + filled(kLoop, names) + "#undef INFINITY_F32\n";
  Launch launch =
      make_launch(body, {32 * kWarps, 1, 1}, {static_cast<std::uint32_t>(row_blocks * x.q_shape[0] * x.q_shape[1]), 1, 1}, text);
  launch.kernel.dynamic_bytes = static_cast<int>((rows + keys) * q_bytes + keys * v_bytes);
  return launch;
}

}  // namespace tenon::emit
