#include <fmt/format.h>

#include "codegen/c/attention/attention.h"
#include "codegen/c/attention/key_parts.h"
#include "codegen/c/loops/geometry.h"
#include "codegen/c/sort/keys.h"

namespace tenon::emit {
namespace {

constexpr int kWarps = 4, kKeys = 16;  // keys of a warp at a time
constexpr std::int64_t kWidest = 256;
constexpr std::int64_t kFew = 8, kMostRows = 32;  // rows of q, and those times the heads of queries that share one of keys

// Scores are k q^T and results v^T p^T, by mma.m16n8k16, so that its 8 columns are rows of q: of NT * 8 rows none is padded
// to 16. The order in which a product adds is free, so the fragments of k are the 16 bytes that each lane reads of a row, and
// those of v pairs of bytes of two rows: keys and values go from memory to registers and no further. |quad| is the fragment's
// row, |part| the pair of columns. What counts as one is raised only where a score is larger by 2^8: sums stay far from the end
// of the range.
constexpr std::string_view kText = R"(#define INFINITY_F32 AS_F32(0x7f800000u)
LOCAL uint4 queries[NT * E_CHUNKS * 32];
LOCAL f32 sums[WARPS][8][WIDTH + 4], tops[WARPS][8], totals[WARPS][8];
const i32 t = threadIdx.x, lane = t & 31, warp = t >> 5, quad = lane >> 2, part = lane & 3;
const u32 split = blockIdx.x % (u32)$SPLITS, chunk = blockIdx.x / (u32)$SPLITS % (u32)$CHUNKS;
const u32 shared_head = blockIdx.x / ((u32)$SPLITS * (u32)$CHUNKS), n = shared_head / (u32)$SHARED_HEADS, g = shared_head % (u32)$SHARED_HEADS;
const i32 keys = (i32)$KEY_COUNT, rows = (i32)$ROW_COUNT, group = (i32)$SHARED;
const i32 begin = (i32)((i64)split * $SPLIT_KEYS), end = begin + (i32)$SPLIT_KEYS < keys ? begin + (i32)$SPLIT_KEYS : keys;
const u16* const k = $K + $K_OFFSET + n * $K_BATCH + g * $K_HEAD + part * 8;
const u16* const v = $V + $V_OFFSET + n * $V_BATCH + g * $V_HEAD + quad * 8;
const auto power = [](const f32 x) -> f32 { f32 r; asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(x)); return r; };
const auto multiply = [](f32 (&c)[4], const u32 a0, const u32 a1, const u32 a2, const u32 a3, const u32 b0, const u32 b1) {
asm("mma.sync.aligned.m16n8k16.row.col.f32.$TYPE.$TYPE.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
: "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]) : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
};
// Two rows of a key, in the place that a product of the values wants.
const auto turned = [](const f32 low, const f32 high) -> u32 {
u32 x, r;
asm("$PACK %0, %1, %2;" : "=r"(x) : "f"(high), "f"(low));
asm volatile("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(r) : "r"(x));
return r;
};
VARRAY(u32, 4, k_part[E_CHUNKS][2]);
VARRAY(u32, 4, v_part[CHUNKS][4]);
const auto read = [](u32* to, const u16* from, const i32 is_in) {
uint4 x = {0, 0, 0, 0};
if (is_in) x = *(const uint4*)from;
*(uint4*)to = x;
};
const auto fetch_k = [&](const i32 start) {
UNROLL for (i32 i = 0; i < 2; ++i) {
const i32 key = start + quad + i * 8;
UNROLL for (i32 c = 0; c < E_CHUNKS; ++c)
read(k_part[c][i], k + (i64)key * $K_ROW + c * 32, key < end && (E % 32 == 0 || c * 32 + part * 8 < E));
}
};
const auto fetch_v = [&](const i32 start) {
UNROLL for (i32 i = 0; i < 4; ++i) {
const i32 key = start + part * 2 + (i & 1) + (i >> 1) * 8;
UNROLL for (i32 c = 0; c < CHUNKS; ++c)
read(v_part[c][i], v + (i64)key * $V_ROW + c * 64, key < end && (WIDTH % 64 == 0 || c * 64 + quad * 8 < WIDTH));
}
};
i32 start = begin + warp * KEYS;
fetch_k(start);
fetch_v(start);
const auto row_number = [&](const i32 number) -> i32 { return number < rows * group ? number % rows : 0; };
const auto head_number = [&](const i32 number) -> i32 { return g * group + (number < rows * group ? number / rows : 0); };
for (i32 i = t; i < NT * E_CHUNKS * 32; i += THREADS) {
const i32 r = i / (E_CHUNKS * 32), c = i / 32 % E_CHUNKS, number = chunk * (NT * 8) + r * 8 + quad;
const u16* const q = $Q + $Q_OFFSET + n * $Q_BATCH + head_number(number) * $Q_HEAD + row_number(number) * $Q_ROW + part * 8;
read((u32*)(queries + i), q + c * 32, number < rows * group && c * 32 + part * 8 < E);
}
f32 sum[NT][CHUNKS][4][4], largest[NT][2], total[NT][2];
i32 row_of[NT][2], head_of[NT][2];
UNROLL for (i32 r = 0; r < NT; ++r) {
UNROLL for (i32 c = 0; c < CHUNKS; ++c) UNROLL for (i32 m = 0; m < 4; ++m) UNROLL for (i32 i = 0; i < 4; ++i) sum[r][c][m][i] = 0;
UNROLL for (i32 i = 0; i < 2; ++i) {
largest[r][i] = -INFINITY_F32;
total[r][i] = 0;
const i32 number = chunk * (NT * 8) + r * 8 + part * 2 + i;
row_of[r][i] = row_number(number);
head_of[r][i] = head_number(number);
}
}
BARRIER;
for (; start < end; start += WARPS * KEYS) {
f32 score[NT][4];
UNROLL for (i32 r = 0; r < NT; ++r) {
UNROLL for (i32 i = 0; i < 4; ++i) score[r][i] = 0;
UNROLL for (i32 c = 0; c < E_CHUNKS; ++c) {
const uint4 q = queries[(r * E_CHUNKS + c) * 32 + lane];
multiply(score[r], k_part[c][0][0], k_part[c][1][0], k_part[c][0][1], k_part[c][1][1], q.x, q.y);
multiply(score[r], k_part[c][0][2], k_part[c][1][2], k_part[c][0][3], k_part[c][1][3], q.z, q.w);
}
}
const i32 next = start + WARPS * KEYS;
if (next < end) fetch_k(next);
i32 is_larger = 0;
UNROLL for (i32 r = 0; r < NT; ++r) UNROLL for (i32 i = 0; i < 4; ++i) {
const i32 key = start + quad + (i >> 1) * 8, row = row_of[r][i & 1], h = head_of[r][i & 1];
const f32 s = score[r][i] * $SCALE;
score[r][i] = key < end && (!CAUSAL || key <= row) ? $MASKED : -INFINITY_F32;
is_larger |= score[r][i] > largest[r][i & 1] + 8.0f;
}
if (__any_sync(0xffffffffu, is_larger)) {
UNROLL for (i32 r = 0; r < NT; ++r) UNROLL for (i32 i = 0; i < 2; ++i) {
f32 top = fmaxf(largest[r][i], fmaxf(score[r][i], score[r][i + 2]));
UNROLL for (i32 distance = 4; distance < 32; distance *= 2) top = fmaxf(top, SHUFFLE(top, distance));
const f32 change = power(largest[r][i] - (top == -INFINITY_F32 ? 0.0f : top));
largest[r][i] = top;
total[r][i] *= change;
UNROLL for (i32 c = 0; c < CHUNKS; ++c) UNROLL for (i32 m = 0; m < 4; ++m) { sum[r][c][m][i] *= change; sum[r][c][m][i + 2] *= change; }
}
}
u32 weights[NT][2];
UNROLL for (i32 r = 0; r < NT; ++r) {
UNROLL for (i32 i = 0; i < 4; ++i) {
const f32 base = largest[r][i & 1];
score[r][i] = power(score[r][i] - (base == -INFINITY_F32 ? 0.0f : base));
total[r][i & 1] += score[r][i];
}
UNROLL for (i32 i = 0; i < 2; ++i) weights[r][i] = turned(score[r][i * 2], score[r][i * 2 + 1]);
}
UNROLL for (i32 c = 0; c < CHUNKS; ++c) UNROLL for (i32 m = 0; m < 4; ++m) {
const u32 a0 = __byte_perm(v_part[c][0][m], v_part[c][1][m], 0x5410), a1 = __byte_perm(v_part[c][0][m], v_part[c][1][m], 0x7632);
const u32 a2 = __byte_perm(v_part[c][2][m], v_part[c][3][m], 0x5410), a3 = __byte_perm(v_part[c][2][m], v_part[c][3][m], 0x7632);
UNROLL for (i32 r = 0; r < NT; ++r) multiply(sum[r][c][m], a0, a1, a2, a3, weights[r][0], weights[r][1]);
}
if (next < end) fetch_v(next);
}
UNROLL for (i32 r = 0; r < NT; ++r) {
if (r > 0) BARRIER;
UNROLL for (i32 i = 0; i < 2; ++i) {
UNROLL for (i32 distance = 4; distance < 32; distance *= 2) total[r][i] += SHUFFLE(total[r][i], distance);
if (quad == 0) { tops[warp][part * 2 + i] = largest[r][i]; totals[warp][part * 2 + i] = total[r][i]; }
}
UNROLL for (i32 c = 0; c < CHUNKS; ++c) if (WIDTH % 64 == 0 || c * 64 + quad * 8 < WIDTH) {
UNROLL for (i32 m = 0; m < 4; ++m) UNROLL for (i32 i = 0; i < 4; ++i)
sums[warp][part * 2 + (i & 1)][c * 64 + quad * 8 + m * 2 + (i >> 1)] = sum[r][c][m][i];
}
BARRIER;
for (i32 place = t; place < 8 * WIDTH; place += THREADS) {
const i32 own = place / WIDTH, c = place % WIDTH, number = chunk * (NT * 8) + r * 8 + own;
if (number < rows * group) {
f32 top = -INFINITY_F32, all = 0, x = 0;
UNROLL for (i32 m = 0; m < WARPS; ++m) top = fmaxf(top, tops[m][own]);
const f32 base = top == -INFINITY_F32 ? 0.0f : top;
UNROLL for (i32 m = 0; m < WARPS; ++m) {
const f32 weight = power(tops[m][own] - base);
all = fmaf(totals[m][own], weight, all);
x = fmaf(sums[m][own][c], weight, x);
}
const i64 line = ((i64)n * $HEADS + head_number(number)) * rows + row_number(number);
$STORE
if (c == 0) $STORE_STATE
}
}
}
#undef INFINITY_F32
)";

// How many work-groups a multiprocessor holds at once, by the registers of the kernels compiled for compute capability 9.0.
int resident_groups(std::int64_t widest, int row_tiles) {
  if (widest <= 64) return row_tiles == 1 ? 5 : 4;
  return widest <= 128 ? 3 : 2;
}

}  // namespace

bool can_few_queries_matrix(const KernelTarget& target, const AttentionOperands& x) {
  if (!target.has_matrix_units || (x.k.stored != DType::f16 && x.k.stored != DType::bf16)) return false;
  if (x.rest || x.query || x.q.stored != x.k.stored || x.v.stored != x.k.stored) return false;
  const std::int64_t width = x.q_shape[3], v_width = x.v_shape[3];
  if (width % 8 != 0 || v_width % 8 != 0 || width > kWidest || v_width > kWidest) return false;
  if (!has_aligned_rows(x.q) || !has_aligned_rows(x.k) || !has_aligned_rows(x.v)) return false;
  return x.q_shape[2] <= kFew || x.q_shape[2] * (x.q_shape[1] / x.k_shape[1]) <= kMostRows;
}

std::vector<Launch> emit_few_queries_matrix(const KernelTarget& target, const AttentionOperands& x, const AttentionRule& rule,
                                            const Dense& out, const Scratch& scratch) {
  const std::int64_t width = x.q_shape[3], v_width = x.v_shape[3], keys = x.k_shape[2], rows = x.q_shape[2];
  const std::int64_t shared = x.q_shape[1] / x.k_shape[1], heads = x.k_shape[0] * x.k_shape[1];
  const int row_tiles = rows * shared <= 8 || std::max(width, v_width) > 128 ? 1 : 2;
  const std::int64_t chunks = ceil_div(rows * shared, 8 * row_tiles), all = heads * chunks;
  const std::int64_t lines = x.q_shape[0] * x.q_shape[1] * rows;
  const int resident = resident_groups(std::max(width, v_width), row_tiles);
  const std::int64_t held = std::int64_t{target.compute_units} * resident, step = kWarps * kKeys;
  const std::int64_t limit = std::clamp<std::int64_t>(keys / (2 * step), 1, std::max<std::int64_t>(held / all, 4));
  KeyParts parts = divided_keys(keys, all, held, limit, step);
  reserve_results(parts, lines, v_width, scratch);

  Parameters p(true);
  Body body(target, p);
  const bool is_bf16 = x.k.stored == DType::bf16;
  std::map<std::string, std::string> names{{"SPLITS", p.whole_number(parts.count)},
                                           {"CHUNKS", p.whole_number(chunks)},
                                           {"SPLIT_KEYS", p.whole_number(parts.keys)},
                                           {"HEADS", p.whole_number(x.q_shape[1])},
                                           {"SHARED_HEADS", p.whole_number(x.k_shape[1])},
                                           {"SHARED", p.whole_number(shared)},
                                           {"ROW_COUNT", p.whole_number(rows)},
                                           {"KEY_COUNT", p.whole_number(keys)},
                                           {"SCALE", p.number(DType::f32, rule.scale * 1.4426950408889634)},
                                           {"TYPE", is_bf16 ? "bf16" : "f16"},
                                           {"PACK", is_bf16 ? "cvt.rn.bf16x2.f32" : "cvt.rn.f16x2.f32"}};
  add_operand(names, p, "Q", x.q);
  add_operand(names, p, "K", x.k);
  add_operand(names, p, "V", x.v);
  names["MASKED"] = masked_score(body, p, x, "s");
  add_result(names, body, parts, out);
  const std::string text = fmt::format(
      "enum {{ E = {}, WIDTH = {}, E_CHUNKS = (E + 31) / 32, CHUNKS = (WIDTH + 63) / 64, NT = {}, WARPS = {}, THREADS = WARPS * "
      "32, KEYS = {}, CAUSAL = {} }};\n",
      width, v_width, row_tiles, kWarps, kKeys, int{rule.causal});
  std::vector<Launch> launches{make_launch(body, {kWarps * 32, 1, 1}, {static_cast<std::uint32_t>(all * parts.count), 1, 1},
                                           text + filled(kText, names), resident)};
  if (parts.count > 1) launches.push_back(emit_joined_parts(target, parts, lines, v_width, out));
  return launches;
}

}  // namespace tenon::emit
