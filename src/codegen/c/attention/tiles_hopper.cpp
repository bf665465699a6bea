#include <fmt/format.h>

#include <numeric>

#include "codegen/c/attention/attention.h"
#include "codegen/c/loops/geometry.h"
#include "codegen/c/sort/keys.h"

namespace tenon::emit {
namespace {

// A work-group is GROUPS warpgroups that compute, with 64 rows each, and one that copies: it keeps STAGES blocks of keys and of
// values in local memory. Barriers say which of them are full and which are empty. Rows there are pieces of 64 columns, 128
// bytes, whose 16-byte chunks are exchanged by the row's number (the 128-byte swizzle of the matrix units).
//
// A work-group computes one block of rows after another, and copies for the next while the results of one are stored. SET heads,
// whose keys and values fit in the second-level cache together, come one after the other, and of them the blocks with the most
// keys first.
constexpr std::string_view kHead = R"(extern __shared__ unsigned char memory[];
#define INFINITY_F32 AS_F32(0x7f800000u)
const u32 q_at = ((u32)__cvta_generic_to_shared(memory) + 1023) & ~1023u, k_at = q_at + ROWS * E * 2, v_at = k_at + STAGES * KEYS * E * 2;
const u32 full_q = v_at + STAGES * KEYS * D * 2, empty_q = full_q + 8, full_k = full_q + 16, empty_k = full_k + STAGES * 8;
const u32 full_v = empty_k + STAGES * 8, empty_v = full_v + STAGES * 8;
const i32 t = threadIdx.x, lane = t & 31, group = SHUFFLE_FROM(t >> 7, 0), rows = (i32)$ROW_COUNT, keys = (i32)$KEY_COUNT;
const auto arrive = [](const u32 barrier) { asm volatile("mbarrier.arrive.shared.b64 _, [%0];" :: "r"(barrier) : "memory"); };
const auto wait = [](const u32 barrier, const u32 phase) {
asm volatile("{\n.reg .pred done;\nAGAIN:\nmbarrier.try_wait.parity.shared.b64 done, [%0], %1;\n@!done bra AGAIN;\n}"
:: "r"(barrier), "r"(phase) : "memory");
};
if (t == 0) UNROLL for (i32 i = 0; i < 2 + 4 * STAGES; ++i) {
const i32 is_full = i < 2 ? i == 0 : (i - 2) / STAGES % 2 == 0;
asm volatile("mbarrier.init.shared.b64 [%0], %1;" :: "r"(full_q + i * 8), "r"(is_full ? 128 : GROUPS * 4) : "memory");
}
BARRIER;
i32 n, h, first_row, tiles;
const auto choose = [&](const u32 work) {
const u32 in_set = (u32)$SET * (u32)$BLOCKS, before = work / in_set * (u32)$SET, rest = work % in_set, left = (u32)$ALL - before;
const u32 count = left < (u32)$SET ? left : (u32)$SET, head = before + rest % count;
n = head / (u32)$HEADS;
h = head % (u32)$HEADS;
first_row = ((i32)$BLOCKS - 1 - (i32)(rest / count)) * ROWS;
tiles = ((CAUSAL && first_row + ROWS < keys ? first_row + ROWS : keys) + KEYS - 1) / KEYS;
};
const auto next = [](u32& stage, u32& phase) { if (++stage == STAGES) { stage = 0; phase ^= 1; } };
#define EACH_WORK u32 turn = 0, work = blockIdx.x; work < (u32)$BLOCKS * (u32)$ALL; ++turn, work += gridDim.x
)";

constexpr std::string_view kCopy = R"(if (group == GROUPS) {
asm volatile("setmaxnreg.dec.sync.aligned.u32 $FEW;");
u32 k_stage = 0, k_phase = 1, v_stage = 0, v_phase = 1;
const auto fetch = [&](const u32 to, const i32 count, const i32 width, const i32 padded, const u16* from, const i64 stride,
const i32 left, const u32 full) {
const i32 chunks = padded / 8, each = 128 / chunks, row = (t & 127) / chunks, column = (t & 127) % chunks;
const u16* source = from + row * stride + column * 8;
const u32 into = to + column / 8 * count * 128 + row * 128;
UNROLL_BY(8) for (i32 i = 0; i < count; i += each, source += each * stride) {
const i32 bytes = column * 8 < width && i + row < left ? 16 : 0;
asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" :: "r"(into + i * 128 + ((column ^ (row + i)) & 7) * 16), "l"(bytes ? source : from), "r"(bytes) : "memory");
}
asm volatile("cp.async.mbarrier.arrive.noinc.shared.b64 [%0];" :: "r"(full) : "memory");
};
for (EACH_WORK) {
choose(work);
const i32 g = h / (i32)$SHARED;
const u16* const q = $Q + $Q_OFFSET + n * $Q_BATCH + h * $Q_HEAD + first_row * $Q_ROW;
const u16* const k = $K + $K_OFFSET + n * $K_BATCH + g * $K_HEAD;
const u16* const v = $V + $V_OFFSET + n * $V_BATCH + g * $V_HEAD;
const auto fetch_k = [&](const i32 b) {
wait(empty_k + k_stage * 8, k_phase);
fetch(k_at + k_stage * KEYS * E * 2, KEYS, WIDTH, E, k + b * KEYS * $K_ROW, $K_ROW, keys - b * KEYS, full_k + k_stage * 8);
next(k_stage, k_phase);
};
wait(empty_q, ~turn & 1);
fetch(q_at, ROWS, WIDTH, E, q, $Q_ROW, rows - first_row, full_q);
fetch_k(tiles - 1);
for (i32 b = tiles - 1; b >= 0; --b) {
if (b > 0) fetch_k(b - 1);
wait(empty_v + v_stage * 8, v_phase);
fetch(v_at + v_stage * KEYS * D * 2, KEYS, V_WIDTH, D, v + b * KEYS * $V_ROW, $V_ROW, keys - b * KEYS, full_v + v_stage * 8);
next(v_stage, v_phase);
}
}
return;
}
)";

// The fragments of a product are those of mma.m16n8k16: lane / 4 is a row, lane % 4 a pair of columns. While the matrix units
// multiply, the exponentials of the scores before are computed; the warpgroups take turns to start products, so that their
// exponentials do not fall together.
constexpr std::string_view kCompute = R"(asm volatile("setmaxnreg.inc.sync.aligned.u32 $MANY;");
u32 k_stage = 0, k_phase = 0, v_stage = 0, v_phase = 0;
#define SCORES $S_REGISTERS
#define RESULTS $O_REGISTERS
f32 s[KEYS / 2], o[D / 2], largest[2], total[2], change[2];
u32 p[KEYS / 4];
const auto packed = [](const f32 low, const f32 high) -> u32 {
u32 r;
asm("cvt.rn.$TYPEx2.f32 %0, %1, %2;" : "=r"(r) : "f"(high), "f"(low));
return r;
};
const auto power = [](const f32 x) -> f32 { f32 r; asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(x)); return r; };
const auto place = [](const u32 at, const u32 leading) -> u64 { return 1ul << 62 | 64ul << 32 | (u64)(leading / 16) << 16 | at / 16; };
const u64 q_place = place(q_at + group * 64 * 128, 16);
const auto release = [&](const u32 barrier) { if (lane == 0) arrive(barrier); };
// What was copied is visible to the matrix units only after a fence.
const auto arrived = [&](const u32 barrier, const u32 phase) {
wait(barrier, phase);
asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
};
const auto multiply_keys = [&] {
const u64 k_place = place(k_at + k_stage * KEYS * E * 2, 16);
asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
UNROLL for (i32 e = 0; e < (WIDTH + 15) / 16; ++e)
asm volatile("{\n.reg .pred is_added;\nsetp.ne.b32 is_added, %$S_ADDED, 0;\n"
"wgmma.mma_async.sync.aligned.m64n$KEYSk16.f32.$TYPE.$TYPE {$S_NUMBERS}, %$S_LEFT, %$S_RIGHT, is_added, 1, 1, 0, 0;\n}"
: SCORES : "l"(q_place + e / 4 * ROWS * 8 + e % 4 * 2), "l"(k_place + e / 4 * KEYS * 8 + e % 4 * 2), "r"((i32)(e > 0)));
asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
};
const auto multiply_values = [&] {
const u64 v_place = place(v_at + v_stage * KEYS * D * 2, KEYS * 128);
asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
UNROLL for (i32 i = 0; i < KEYS / 16; ++i)
asm volatile("wgmma.mma_async.sync.aligned.m64n$Dk16.f32.$TYPE.$TYPE {$O_NUMBERS}, {$O_LEFT}, %$O_RIGHT, 1, 1, 1, 1;"
: RESULTS : "r"(p[i * 4]), "r"(p[i * 4 + 1]), "r"(p[i * 4 + 2]), "r"(p[i * 4 + 3]), "l"(v_place + i * 128));
asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
};
const auto have_scores = [&](const i32 b) {
asm volatile("wgmma.wait_group.sync.aligned 1;" : SCORES :: "memory");
release(empty_k + k_stage * 8);
next(k_stage, k_phase);
if (b == 0) release(empty_q);
};
const auto have_results = [&] {
asm volatile("wgmma.wait_group.sync.aligned 0;" : RESULTS :: "memory");
release(empty_v + v_stage * 8);
next(v_stage, v_phase);
};
const auto soften = [&](const i32 b, const i32 row, const bool at_edge) {
UNROLL for (i32 r = 0; r < 2; ++r) {
if (at_edge) {
const i32 last = CAUSAL && row + r * 8 < keys ? row + r * 8 + 1 : keys, limit = last - b * KEYS - (lane & 3) * 2;
UNROLL for (i32 i = 0; i < KEYS / 4; ++i) if (i / 2 * 8 + i % 2 >= limit) s[i / 2 * 4 + r * 2 + i % 2] = -INFINITY_F32;
}
f32 top = largest[r], other = top;
UNROLL for (i32 i = 0; i < KEYS / 8; ++i) { top = fmaxf(top, s[i * 4 + r * 2]); other = fmaxf(other, s[i * 4 + r * 2 + 1]); }
top = fmaxf(top, other);
top = fmaxf(top, SHUFFLE(top, 1));
top = fmaxf(top, SHUFFLE(top, 2));
const f32 base = top == -INFINITY_F32 ? 0.0f : top * $SCALE;
change[r] = power(fmaf(largest[r], $SCALE, -base));
largest[r] = top;
f32 sums[2] = {0, 0};
UNROLL for (i32 i = 0; i < KEYS / 4; ++i) {
f32& x = s[i / 2 * 4 + r * 2 + i % 2];
x = power(fmaf(x, $SCALE, -base));
sums[i % 2] += x;
}
total[r] = fmaf(total[r], change[r], sums[0] + sums[1]);
}
};
const auto pack = [&] { UNROLL for (i32 i = 0; i < KEYS / 4; ++i) p[i] = packed(s[i * 2], s[i * 2 + 1]); };
if (group == 0) asm volatile("bar.arrive 1, 256;" ::: "memory");
for (EACH_WORK) {
choose(work);
const i32 row = first_row + group * 64 + ((t & 127) >> 5) * 16 + (lane >> 2);
UNROLL for (i32 i = 0; i < D / 2; ++i) o[i] = 0;
UNROLL for (i32 r = 0; r < 2; ++r) { largest[r] = -INFINITY_F32; total[r] = 0; }
i32 b = tiles - 1;
wait(full_q, turn & 1);
arrived(full_k + k_stage * 8, k_phase);
multiply_keys();
asm volatile("wgmma.wait_group.sync.aligned 0;" : SCORES :: "memory");
have_scores(b);
soften(b, row, true);
pack();
const auto step = [&](const bool at_edge) {
arrived(full_k + k_stage * 8, k_phase);
asm volatile("bar.sync %0, 256;" :: "r"(group + 1) : "memory");
multiply_keys();
arrived(full_v + v_stage * 8, v_phase);
multiply_values();
asm volatile("bar.arrive %0, 256;" :: "r"(group + 1 == GROUPS ? 1 : group + 2) : "memory");
have_scores(b);
soften(b, row, at_edge);
have_results();
UNROLL for (i32 i = 0; i < D / 2; ++i) o[i] *= change[i / 2 % 2];
pack();
};
UNROLL_BY(1) for (i32 i = 1; i < EDGES && b > 0; ++i) { --b; step(true); }
UNROLL_BY(1) while (b > 0) { --b; step(false); }
arrived(full_v + v_stage * 8, v_phase);
multiply_values();
have_results();
UNROLL for (i32 r = 0; r < 2; ++r) {
f32 sum = total[r];
sum += SHUFFLE(sum, 1);
sum += SHUFFLE(sum, 2);
const f32 share = sum == 0 ? 0.0f : 1.0f / sum;
u16* const into = $OUT + (((i64)n * $HEADS + h) * rows + row + r * 8) * V_WIDTH;
UNROLL for (i32 i = 0; i < D / 32; ++i) {
// Four lanes have a pair each of four times eight columns; then each has eight columns.
u32 x[4];
UNROLL for (i32 c = 0; c < 4; ++c) x[c] = packed(o[(i * 4 + c) * 4 + r * 2] * share, o[(i * 4 + c) * 4 + r * 2 + 1] * share);
const i32 odd = lane & 1, upper = lane & 2, column = i * 32 + (lane & 3) * 8;
const u32 y0 = SHUFFLE(odd ? x[0] : x[1], 1), y1 = SHUFFLE(odd ? x[2] : x[3], 1);
if (odd) { x[0] = y0; x[2] = y1; } else { x[1] = y0; x[3] = y1; }
const u32 z0 = SHUFFLE(upper ? x[0] : x[2], 2), z1 = SHUFFLE(upper ? x[1] : x[3], 2);
if (row + r * 8 < rows && column < V_WIDTH) *(uint4*)(into + column) = upper ? make_uint4(z0, z1, x[2], x[3]) : make_uint4(x[0], x[1], z0, z1);
}
}
}
#undef SCORES
#undef RESULTS
#undef EACH_WORK
#undef INFINITY_F32
)";

std::string listed(std::string_view form, std::int64_t first, std::int64_t count) {
  std::string text;
  for (std::int64_t i = first; i < first + count; ++i) text += (text.empty() ? "" : ", ") + fmt::format(fmt::runtime(form), i);
  return text;
}

}  // namespace

bool can_attention_tiles_hopper(const KernelTarget& target, const AttentionOperands& x, const AttentionRule& rule,
                                const Dense& out) {
  return target.has_warpgroup_products && !x.mask && rule.scale > 0 && out.stored == x.q.stored && x.q_shape[3] % 8 == 0 &&
         x.v_shape[3] % 8 == 0 && has_aligned_rows(x.q) && has_aligned_rows(x.k) && has_aligned_rows(x.v);
}

Launch emit_attention_tiles_hopper(const KernelTarget& target, const AttentionOperands& x, const AttentionRule& rule,
                                   const Dense& out) {
  Parameters p(true);
  Body body(target, p);
  const std::int64_t width = x.q_shape[3], v_width = x.v_shape[3], heads = x.q_shape[0] * x.q_shape[1];
  const std::int64_t e = power_of_two_from(std::max<std::int64_t>(width, 64));
  const std::int64_t d = power_of_two_from(std::max<std::int64_t>(v_width, 64)), o = d / 2;
  const bool is_narrow = std::max(e, d) == 64;
  // What the registers have room for: scores, results, and probabilities of 64 rows.
  const int groups = is_narrow ? 3 : 2, rows = groups * 64, keys = std::max(e, d) > 128 ? 80 : 128, s = keys / 2;
  constexpr int kStages = 2;
  constexpr std::int64_t kCached = std::int64_t{16} << 20;
  const std::int64_t blocks = ceil_div(x.q_shape[2], rows), shared = x.q_shape[1] / x.k_shape[1];
  const std::int64_t set = std::min(heads, std::max<std::int64_t>(1, kCached / (x.k_shape[2] * (e + d) * 2)) * shared);
  using Numbers = std::initializer_list<std::pair<const char*, std::int64_t>>;
  std::map<std::string, std::string> names;
  for (const auto& [name, value] : Numbers{{"BLOCKS", blocks},
                                           {"ALL", heads},
                                           {"SET", set},
                                           {"HEADS", x.q_shape[1]},
                                           {"SHARED", shared},
                                           {"ROW_COUNT", x.q_shape[2]},
                                           {"KEY_COUNT", x.k_shape[2]}})
    names[name] = p.whole_number(value);
  // Registers of a work-item that copies are few, of one that computes many.
  for (const auto& [name, value] : Numbers{{"KEYS", keys},
                                           {"D", d},
                                           {"FEW", is_narrow ? 32 : 40},
                                           {"MANY", is_narrow ? 160 : 232},
                                           {"S_LEFT", s},
                                           {"S_RIGHT", s + 1},
                                           {"S_ADDED", s + 2},
                                           {"O_RIGHT", o + 4}})
    names[name] = fmt::to_string(value);
  names["SCALE"] = p.number(DType::f32, rule.scale * 1.4426950408889634);
  names["OUT"] = p.output(out.stored, out.slot);
  names["TYPE"] = x.q.stored == DType::bf16 ? "bf16" : "f16";
  names["S_NUMBERS"] = listed("%{}", 0, s);
  names["S_REGISTERS"] = listed("\"+f\"(s[{}])", 0, s);
  names["O_NUMBERS"] = listed("%{}", 0, o);
  names["O_REGISTERS"] = listed("\"+f\"(o[{}])", 0, o);
  names["O_LEFT"] = listed("%{}", o, 4);
  add_operand(names, p, "Q", x.q);
  add_operand(names, p, "K", x.k);
  add_operand(names, p, "V", x.v);
  // Blocks of keys that the diagonal may cross.
  const std::int64_t edges = rule.causal ? ceil_div(rows + keys - std::gcd(rows, keys), keys) : 1;
  const std::string text = fmt::format(
      "enum {{ E = {}, D = {}, WIDTH = {}, V_WIDTH = {}, GROUPS = {}, ROWS = {}, KEYS = {}, STAGES = {}, CAUSAL = {}, EDGES = {} "
      "}};\n",
      e, d, width, v_width, groups, rows, keys, kStages, int{rule.causal}, edges);
  // Blocks of unequal length are better distributed by the card, as one work-group each.
  const std::int64_t work = blocks * heads, work_groups = rule.causal ? work : std::min<std::int64_t>(work, target.compute_units);
  Launch launch = make_launch(body, {(groups + 1) * 128, 1, 1}, {static_cast<std::uint32_t>(work_groups), 1, 1},
                              text + filled(kHead, names) + filled(kCopy, names) + filled(kCompute, names));
  launch.kernel.dynamic_bytes = static_cast<int>(1024 + (rows * e + kStages * keys * (e + d)) * 2 + (2 + 4 * kStages) * 8);
  launch.kernel.needs_warpgroup_products = true;
  return launch;
}

}  // namespace tenon::emit
