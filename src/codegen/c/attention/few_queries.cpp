#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "codegen/c/attention/attention.h"
#include "codegen/c/attention/key_parts.h"
#include "codegen/c/loops/geometry.h"
#include "codegen/c/sort/keys.h"

namespace tenon::emit {
namespace {

constexpr std::int64_t kFew = 8;       // rows of q
constexpr std::int64_t kWidest = 256;  // elements of a row
constexpr int kTogether = 4;           // rows that one pass over the keys serves
constexpr int kAhead = 2;              // keys of a team that are fetched together
constexpr std::int64_t kCached = std::int64_t{8} << 20;

// A row of k or v is read by LANES lanes, VECTOR elements by each, in several rounds if it is long: EACH elements in all, of
// which place_of() tells the columns. TEAMS rows are read at once. Lanes of a team hold their part of q and of the result for R
// rows.
constexpr std::string_view kText = R"(#define INFINITY_F32 AS_F32(0x7f800000u)
const i32 t = threadIdx.x, team = t / LANES, part = t % LANES;
const u32 split = blockIdx.x % (u32)$SPLITS, chunk = blockIdx.x / (u32)$SPLITS % (u32)$CHUNKS;
const u32 shared_head = blockIdx.x / ((u32)$SPLITS * (u32)$CHUNKS), n = shared_head / (u32)$SHARED_HEADS, g = shared_head % (u32)$SHARED_HEADS;
const i32 keys = (i32)$KEY_COUNT, rows = (i32)$ROW_COUNT, group = (i32)$SHARED;
const i32 begin = (i32)((i64)split * $SPLIT_KEYS), end = begin + (i32)$SPLIT_KEYS < keys ? begin + (i32)$SPLIT_KEYS : keys;
const $ELEMENT* const k = $K + $K_OFFSET + n * $K_BATCH + g * $K_HEAD;
const $ELEMENT* const v = $V + $V_OFFSET + n * $V_BATCH + g * $V_HEAD;
$REST
const auto place_of = [&](const i32 i) -> i32 { return (i / VECTOR * LANES + part) * VECTOR + i % VECTOR; };
const auto is_in_row = [&](const i32 i, const i32 width) -> bool { return width == LANES * EACH || place_of(i) < width; };
const auto load_row = [&]($ELEMENT* to, const $ELEMENT* from, const i32 width) {
UNROLL for (i32 i = 0; i < EACH; i += VECTOR) {
if (is_in_row(i, width)) { VLOAD($ELEMENT, VECTOR, to + i, from + place_of(i)); }
else UNROLL for (i32 j = 0; j < VECTOR; ++j) to[i + j] = 0;
}
};
const auto power = [](const f32 x) -> f32 { f32 r; asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(x)); return r; };
$CONVERSIONS
VARRAY($ELEMENT, EACH, k_part[BUFFERS][AHEAD]);
VARRAY($ELEMENT, EACH, v_part[BUFFERS][AHEAD]);
const auto fetch = [&](const i32 buffer, const i32 start) {
UNROLL for (i32 a = 0; a < AHEAD; ++a) {
const i32 wanted = start + team + a * TEAMS;
const i64 key = wanted < end ? wanted : end - 1;
load_row(k_part[buffer][a], $K_PLACE, E);
load_row(v_part[buffer][a], $V_PLACE, WIDTH);
}
};
$FIRST_FETCH
$LATE_FETCH
f32 query[R][EACH], sum[R][EACH], largest[R], total[R];
i32 row_of[R], head_of[R];
UNROLL for (i32 r = 0; r < R; ++r) {
const i32 number = chunk * R + r, is_in = number < rows * group;
row_of[r] = is_in ? number % rows : 0;
head_of[r] = g * group + (is_in ? number / rows : 0);
$QUERY_ROW
UNROLL for (i32 i = 0; i < EACH; ++i) {
query[r][i] = sum[r][i] = 0;
if (is_in_row(i, E)) {
const i32 place = place_of(i);
$QUERY_TEXT
query[r][i] = is_in ? $QUERY * $SCALE : 0.0f;
}
}
largest[r] = -INFINITY_F32;
total[r] = 0;
}
$USE
for (i32 first = begin; first < end; first += BUFFERS * SPAN) {
UNROLL for (i32 buffer = 0; buffer < BUFFERS; ++buffer) {
const i32 start = first + buffer * SPAN;
if (start < end) use(k_part[buffer], v_part[buffer], start, end);
if (start + BUFFERS * SPAN < end) fetch(buffer, start + BUFFERS * SPAN);
}
}
$LATE_USE
// The teams of a warp are joined first.
LOCAL f32 sums[THREADS / 32][LANES * EACH], tops[THREADS / 32], totals[THREADS / 32];
UNROLL for (i32 r = 0; r < R; ++r) {
UNROLL for (i32 distance = LANES; distance < 32; distance *= 2) {
const f32 other = SHUFFLE(largest[r], distance), top = fmaxf(largest[r], other), base = top == -INFINITY_F32 ? 0.0f : top;
const f32 mine = power(largest[r] - base), its = power(other - base);
total[r] = fmaf(SHUFFLE(total[r], distance), its, total[r] * mine);
UNROLL for (i32 i = 0; i < EACH; ++i) sum[r][i] = fmaf(SHUFFLE(sum[r][i], distance), its, sum[r][i] * mine);
largest[r] = top;
}
BARRIER;
if (t % 32 < LANES) UNROLL for (i32 i = 0; i < EACH; ++i) sums[t / 32][place_of(i)] = sum[r][i];
if (t % 32 == 0) { tops[t / 32] = largest[r]; totals[t / 32] = total[r]; }
BARRIER;
const i32 number = chunk * R + r;
if (number < rows * group) for (i32 c = t; c < WIDTH; c += THREADS) {
f32 top = -INFINITY_F32, all = 0, x = 0;
UNROLL for (i32 m = 0; m < THREADS / 32; ++m) top = fmaxf(top, tops[m]);
const f32 base = top == -INFINITY_F32 ? 0.0f : top;
UNROLL for (i32 m = 0; m < THREADS / 32; ++m) {
const f32 weight = power(tops[m] - base);
all = fmaf(totals[m], weight, all);
x = fmaf(sums[m][c], weight, x);
}
const i64 line = ((i64)n * $HEADS + head_of[r]) * rows + row_of[r];
$STORE
if (c == 0) $STORE_STATE
}
}
#undef INFINITY_F32
)";

// One instruction each; what they do to the sign of a NaN does not matter here.
constexpr std::string_view kHalfConversions =
    R"(const auto widened = [](const u16 x) -> f32 { f32 y; asm("cvt.f32.f16 %0, %1;" : "=f"(y) : "h"(x)); return y; };
const auto narrowed = [](const f32 x) -> u16 { u16 y; asm("cvt.rn.f16.f32 %0, %1;" : "=h"(y) : "f"(x)); return y; };)";

// What |$COUNT| keys of each team add to the results. Each element is converted once for all rows.
constexpr std::string_view kUse =
    R"(const auto $NAME = [&]($ELEMENT (&k_now)[$COUNT][EACH], $ELEMENT (&v_now)[$COUNT][EACH], const i32 start, const i32 end) {
f32 score[R][$COUNT], mask[R][$COUNT];
UNROLL for (i32 r = 0; r < R; ++r) UNROLL for (i32 a = 0; a < $COUNT; ++a) {
const i32 row = row_of[r], h = head_of[r], wanted = start + team + a * TEAMS, key = wanted < end ? wanted : end - 1;
mask[r][a] = $MASK;
}
UNROLL for (i32 a = 0; a < $COUNT; ++a) {
f32 wide[EACH];
UNROLL for (i32 i = 0; i < EACH; ++i) wide[i] = $K_VALUE;
UNROLL for (i32 r = 0; r < R; ++r) {
f32 s = 0;
UNROLL for (i32 i = 0; i < EACH; ++i) s = fmaf(query[r][i], wide[i], s);
score[r][a] = s;
}
}
UNROLL for (i32 distance = LANES / 2; distance > 0; distance /= 2) {
UNROLL for (i32 r = 0; r < R; ++r) UNROLL for (i32 a = 0; a < $COUNT; ++a) score[r][a] += SHUFFLE(score[r][a], distance);
}
UNROLL for (i32 r = 0; r < R; ++r) {
f32 top = largest[r];
UNROLL for (i32 a = 0; a < $COUNT; ++a) {
const i32 key = start + team + a * TEAMS;
const f32 s = score[r][a];
score[r][a] = key < end && (!CAUSAL || key <= row_of[r]) ? $MASKED : -INFINITY_F32;
top = fmaxf(top, score[r][a]);
}
const f32 base = top == -INFINITY_F32 ? 0.0f : top, change = power(largest[r] - base);
largest[r] = top;
total[r] *= change;
UNROLL for (i32 i = 0; i < EACH; ++i) sum[r][i] *= change;
UNROLL for (i32 a = 0; a < $COUNT; ++a) {
const f32 p = power(score[r][a] - base);
total[r] += p;
score[r][a] = $ROUNDED;
}
}
UNROLL for (i32 a = 0; a < $COUNT; ++a) {
f32 wide[EACH];
UNROLL for (i32 i = 0; i < EACH; ++i) wide[i] = $V_VALUE;
UNROLL for (i32 r = 0; r < R; ++r) UNROLL for (i32 i = 0; i < EACH; ++i) sum[r][i] = fmaf(score[r][a], wide[i], sum[r][i]);
}
};)";

// The last keys, if they are renewed, are few, and stand apart from the others: the work-groups of the last part use them, one
// for each team at a time. One of those that read a head stores it. What computes an element is written once: twice it would take
// more registers than all the rest.
constexpr std::string_view kLateFetch = R"(VARRAY(f32, EACH, k_late[1]);
VARRAY(f32, EACH, v_late[1]);
i32 is_new = 0;
const i32 late_keys = split + 1 == (u32)$SPLITS ? (i32)$LATE_KEYS : 0;
const auto fetch_late = [&](const i32 wanted) {
const i32 late = wanted < late_keys ? wanted : late_keys - 1;
load_row(k_late[0], k_rest + late * $LATE_K_ROW, WIDTH);
load_row(v_late[0], v_rest + late * $LATE_V_ROW, WIDTH);
is_new = $IS_NEW;
};
if (late_keys > 0) fetch_late(team);)";
constexpr std::string_view kLateUse = R"($USE_LATE
const auto renewed = [&](const i32 head, const i32 late, const i32 place) -> f32 {
$ELEMENT_TEXTreturn $ELEMENT_NAME;
};
for (i32 start = 0; start < late_keys; start += TEAMS) {
const i32 wanted = start + team, late = wanted < late_keys ? wanted : late_keys - 1;
if (start > 0) fetch_late(wanted);
if (is_new) UNROLL_BY(1) for (i32 is_value = 0; is_value < 2; ++is_value) {
f32 x[EACH];
UNROLL for (i32 i = 0; i < EACH; ++i) x[i] = is_in_row(i, WIDTH) ? renewed(g + (is_value ? $V_FIRST : $K_FIRST), late, place_of(i)) : 0.0f;
UNROLL for (i32 i = 0; i < EACH; ++i) if (is_value) v_late[0][i] = x[i]; else k_late[0][i] = x[i];
}
if (chunk == 0 && wanted < late_keys) UNROLL for (i32 i = 0; i < EACH; i += VECTOR) if (is_in_row(i, WIDTH)) {
VSTORE(f32, VECTOR, k_late[0] + i, $RENEWED_OUT + ((n * $LATE_HEADS + g + $K_FIRST) * $LATE_KEYS + late) * WIDTH + place_of(i));
VSTORE(f32, VECTOR, v_late[0] + i, $RENEWED_OUT + ((n * $LATE_HEADS + g + $V_FIRST) * $LATE_KEYS + late) * WIDTH + place_of(i));
}
use_late(k_late, v_late, keys + start, keys + late_keys);
})";

// How the lanes of a team divide a row.
struct RowLanes {
  int lanes = 32;  // a power of two
  int vector = 1;  // elements of one load
  int each = 1;    // elements of a lane: several loads where a row is longer than one of all lanes
};

// The longest loads, of at most 16 bytes, at whose multiples all rows begin and end.
int vector_of(const AttentionOperands& x) {
  int vector = 16 / static_cast<int>(element_bytes(x.k.stored));
  const auto divide = [&](std::int64_t number) {
    while (number % vector != 0) vector /= 2;
  };
  divide(x.q_shape[3]);
  divide(x.v_shape[3]);
  std::vector<const Access*> rows{&x.k, &x.v};
  if (x.rest) rows.insert(rows.end(), {&x.rest->k, &x.rest->v});
  for (const Access* row : rows) {
    divide(row->offset);
    for (std::size_t i = 0; i < 3; ++i) divide(row->strides[i]);
  }
  return vector;
}

RowLanes lanes_of(const AttentionOperands& x) {
  constexpr std::int64_t kMost = 32;
  RowLanes row;
  row.vector = vector_of(x);
  const std::int64_t loads = ceil_div(std::max(x.q_shape[3], x.v_shape[3]), row.vector);
  row.lanes = static_cast<int>(std::min<std::int64_t>(power_of_two_from(loads), kMost));
  row.each = static_cast<int>(ceil_div(loads, row.lanes)) * row.vector;
  return row;
}

// A lane keeps more registers of a row than those of one load of 16 bytes.
bool is_long(const RowLanes& row, DType dtype) {
  return row.each > row.vector || row.each * static_cast<int>(element_bytes(dtype)) > 16;
}

// How many work-groups of 128 work-items a multiprocessor holds at once: what the registers of the compiled kernels allow, which
// are 72, 80 and 128 in f32, 80, 112 and 168 in 16-bit types; up to 128 and 168 in long rows.
int resident_groups(const RowLanes& row, DType dtype, int together) {
  if (is_long(row, dtype)) return together == 1 ? 4 : 3;
  if (dtype == DType::f32) return together == 1 ? 7 : together == 2 ? 6 : 4;
  return together == 1 ? 6 : together == 2 ? 4 : 3;
}

}  // namespace

bool has_few_queries(const Shape& q, const Shape& /*k*/, const Shape& v) {
  return q[3] <= kWidest && v[3] <= kWidest && q[2] <= kFew;
}

std::vector<Launch> emit_few_queries(const KernelTarget& target, const AttentionOperands& x, const AttentionRule& rule,
                                     const Dense& out, const Scratch& scratch) {
  const DType dtype = x.k.stored;
  const std::int64_t width = x.v_shape[3], shared = x.q_shape[1] / x.k_shape[1], rows = x.q_shape[2];
  const AttentionOperands::Rest::Renewal* const renewal = x.rest && x.rest->renewal ? &*x.rest->renewal : nullptr;
  const std::int64_t keys = renewal ? x.rest->from : x.k_shape[2];
  const RowLanes row = lanes_of(x);
  const std::int64_t heads = x.k_shape[0] * x.k_shape[1];
  // Keys and values that fit in the cache may be read by each row for itself, by larger work-groups: there it is latency that
  // counts.
  const bool is_short = 2 * heads * keys * width * static_cast<std::int64_t>(element_bytes(dtype)) <= kCached;
  const int threads = is_short && target.max_group_size >= 512 ? 512 : 128, teams = threads / row.lanes;
  const bool has_long_rows = is_long(row, dtype);
  const std::int64_t most = has_long_rows ? kTogether / 2 : kTogether;
  const int together = is_short ? 1 : static_cast<int>(std::min(power_of_two_from(rows * shared), most));
  const std::int64_t chunks = ceil_div(rows * shared, together), all = heads * chunks;
  // Each part has some keys for every team.
  const int resident = is_short ? 1 : resident_groups(row, dtype, together);
  const int buffers = is_short && !has_long_rows ? 4 : 2;  // of keys and values that are fetched while those before are used
  const std::int64_t held = std::int64_t{target.compute_units} * resident, lines = x.q_shape[0] * x.q_shape[1] * rows;
  const std::int64_t limit = std::clamp<std::int64_t>(keys / (teams * 8), 1, std::max<std::int64_t>(held / all, 4));
  KeyParts parts = divided_keys(keys, all, held, limit, teams * kAhead * 2);
  reserve_results(parts, lines, width, scratch);

  Parameters p(true);
  Body body(target, p);
  const auto value = [&](const std::string& element) {
    return dtype == DType::f16 ? fmt::format("widened({})", element) : body.loaded(dtype, element);
  };
  std::map<std::string, std::string> names{{"SPLITS", p.whole_number(parts.count)},
                                           {"CHUNKS", p.whole_number(chunks)},
                                           {"SPLIT_KEYS", p.whole_number(parts.keys)},
                                           {"HEADS", p.whole_number(x.q_shape[1])},
                                           {"SHARED_HEADS", p.whole_number(x.k_shape[1])},
                                           {"SHARED", p.whole_number(shared)},
                                           {"ROW_COUNT", p.whole_number(rows)},
                                           {"KEY_COUNT", p.whole_number(keys)},
                                           {"SCALE", p.number(DType::f32, rule.scale * 1.4426950408889634)},
                                           {"ELEMENT", stored_type(dtype)},
                                           {"CONVERSIONS", dtype == DType::f16 ? std::string(kHalfConversions) : ""},
                                           {"K_VALUE", value("k_now[a][i]")},
                                           {"V_VALUE", value("v_now[a][i]")},
                                           {"ROUNDED", dtype == DType::f32   ? "p"
                                                       : dtype == DType::f16 ? "widened(narrowed(p))"
                                                                             : body.loaded(dtype, body.to_store(dtype, "p"))}};
  if (x.query) {
    names["QUERY_ROW"] = "const i32 head = head_of[r];";
    names["QUERY_TEXT"] = x.query(body, "n", "head", "place", names["QUERY"]);
  } else {
    add_operand(names, p, "Q", x.q);
    names["QUERY_ROW"] =
        filled("const $ELEMENT* const q = $Q + $Q_OFFSET + n * $Q_BATCH + head_of[r] * $Q_HEAD + row_of[r] * $Q_ROW;", names);
    names["QUERY_TEXT"] = "";
    names["QUERY"] = body.loaded(dtype, "q[place]");
  }
  add_operand(names, p, "K", x.k);
  add_operand(names, p, "V", x.v);
  names["REST"] = "";
  for (const auto& [name, lower] : {std::pair{"K", "k"}, std::pair{"V", "v"}}) {
    std::string& place = names[fmt::format("{}_PLACE", name)];
    place = fmt::format("{} + key * {}", lower, names[fmt::format("{}_ROW", name)]);
    if (!x.rest) continue;
    const std::string second = fmt::format("{}2", name);
    add_operand(names, p, second, *name == 'K' ? x.rest->k : x.rest->v);
    names["REST"] += fmt::format("const {0}* const {1}_rest = {2} + {3} + n * {4} + g * {5};\n", names["ELEMENT"], lower,
                                 names[second], names[second + "_OFFSET"], names[second + "_BATCH"], names[second + "_HEAD"]);
    if (renewal) continue;
    const std::string from = p.whole_number(x.rest->from);
    place = fmt::format("(key < {0} ? {1} : {2}_rest + (key - {0}) * {3})", from, place, lower, names[second + "_ROW"]);
  }
  names["MASK"] = x.mask ? mask_value(body, p, x) : "0.0f";
  names["MASKED"] = x.mask ? masked_score(x, "s", "mask[r][a]") : "s";
  const auto use = [&](const char* name, const char* count) {
    names["NAME"] = name;
    names["COUNT"] = count;
    return filled(kUse, names);
  };
  names["USE"] = use("use", "AHEAD");
  names["LATE_FETCH"] = names["LATE_USE"] = "";
  if (renewal) {
    names["ELEMENT_TEXT"] = renewal->element(body, "n", "head", "late", "place", names["ELEMENT_NAME"]);
    names["LATE_K_ROW"] = names["K2_ROW"];
    names["LATE_V_ROW"] = names["V2_ROW"];
    names["IS_NEW"] = renewal->is_new(body, "n", "late");
    names["K_FIRST"] = p.whole_number(renewal->k_head);
    names["V_FIRST"] = p.whole_number(renewal->v_head);
    names["LATE_HEADS"] = p.whole_number(renewal->out.shape[1]);
    names["LATE_KEYS"] = p.whole_number(renewal->out.shape[2]);
    names["RENEWED_OUT"] = p.output(DType::f32, renewal->out.slot);
    names["USE_LATE"] = use("use_late", "1");
    names["LATE_FETCH"] = filled(kLateFetch, names);
    names["LATE_USE"] = filled(kLateUse, names);
  }
  // Keys and values that no kernel of the program writes are fetched while the kernel in front of this one still runs.
  const bool is_early = x.is_given && x.rest;
  constexpr std::string_view kFetch = "UNROLL for (i32 b = 0; b < BUFFERS; ++b) {0}fetch(b, begin + b * SPAN);\n";
  if (is_early && renewal)
    names["FIRST_FETCH"] = fmt::format(kFetch, "") + "WAIT_FOR_LAST;\n";
  else
    names["FIRST_FETCH"] = is_early ? fmt::format("const i32 early = (i32){};\n", p.whole_number(x.rest->from)) +
                                          fmt::format(kFetch, "if (begin + (b + 1) * SPAN <= early) ") + "WAIT_FOR_LAST;\n" +
                                          fmt::format(kFetch, "if (begin + (b + 1) * SPAN > early) ")
                                    : fmt::format(kFetch, "");
  add_result(names, body, parts, out);
  std::string text = fmt::format(
      "enum {{ E = {}, WIDTH = {}, VECTOR = {}, EACH = {}, LANES = {}, TEAMS = {}, THREADS = {}, R = {}, AHEAD = {}, SPAN = "
      "TEAMS "
      "* AHEAD, BUFFERS = {}, CAUSAL = {} }};\n",
      x.q_shape[3], width, row.vector, row.each, row.lanes, teams, threads, together, kAhead, buffers, int{rule.causal});
  std::vector<Launch> launches{
      make_launch(body, {threads, 1, 1}, {static_cast<std::uint32_t>(heads * chunks * parts.count), 1, 1},
                  (is_early ? "LET_NEXT_BEGIN;\n" : "") + text + filled(kText, names), resident, is_early)};
  if (parts.count > 1) launches.push_back(emit_joined_parts(target, parts, lines, width, out));
  return launches;
}

}  // namespace tenon::emit
