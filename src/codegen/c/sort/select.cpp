// A work-group takes a line. It finds the keys of the first and the last wanted rank, eleven bits at a time: in each round it
// counts the digits of the keys that agree with the bits known so far. Then it collects the elements between the two, of those
// equal to either as many as belong to the range, in the order of their indices, and sorts them. Where there are few lines, a
// work-group takes a part of one, and the parts' first ones are sorted afterwards (radix_sort.cpp).
#include "codegen/c/sort/select.h"

#include <fmt/format.h>

#include <algorithm>

#include "codegen/c/loops/geometry.h"

namespace tenon::emit {
namespace {

// Defines find(rank, less): the key of this rank, and how many keys are smaller.
constexpr std::string_view kFind = R"(enum { RADIX = 11, BINS = 1 << RADIX };
LOCAL u32 bins[BINS];
LOCAL u32 found_bin, found_before;
const auto find = [&](const u32 rank, u32& less) -> KEY {
KEY prefix = 0, mask = 0;
u32 left = rank;
UNROLL_BY(1) for (i32 high = BITS; high > 0; high -= RADIX) {
const i32 low = high > RADIX ? high - RADIX : 0;
const u32 digits = (1u << (high - low)) - 1u;
BARRIER;
UNROLL for (i32 i = 0; i < BINS / 256; ++i) bins[i * 256 + t] = 0;
BARRIER;
const i32 length = (i32)$EXTENT;
for (i32 b = t; b < length; b += 256 * 8) {
KEY key[8];
UNROLL for (i32 k = 0; k < 8; ++k) key[k] = b + k * 256 < length ? key_of($IN[from + (i64)(b + k * 256) * $INNER]) : (KEY)0;
UNROLL for (i32 k = 0; k < 8; ++k)
if (b + k * 256 < length && (key[k] & mask) == prefix) atomicAdd(bins + ((u32)(key[k] >> low) & digits), 1u);
}
BARRIER;
u32 own = 0, all;
UNROLL for (i32 i = 0; i < BINS / 256; ++i) own += bins[t * (BINS / 256) + i];
u32 before = total_before(own, all);
if (before <= left && left < before + own)
for (i32 i = 0; i < BINS / 256; ++i) {
const u32 c = bins[t * (BINS / 256) + i];
if (before <= left && left < before + c) {
found_bin = t * (BINS / 256) + i;
found_before = before;
}
before += c;
}
BARRIER;
prefix |= (KEY)found_bin << low;
mask |= (KEY)digits << low;
left -= found_before;
}
less = rank - left;
return prefix;
};
)";

constexpr std::string_view kCollect = R"(const u32 last = (u32)$FIRST + (u32)$WANTED - 1u;
u32 less_first = 0, less_last = 0;
const KEY key_last = find(last, less_last);
KEY key_first = key_last;
if ($WANTED == 1) less_first = less_last;
else key_first = $FIRST == 0 ? (KEY)0 : find((u32)$FIRST, less_first);
const i32 from_start = $FIRST == 0 && $WANTED > 1;
const i32 is_one = !from_start && key_first == key_last;
const u32 skip = from_start ? 0u : (u32)$FIRST - less_first, keep = last - less_last + 1u;
LOCAL KEY selected_keys[ITEMS * 256];
LOCAL u32 selected[ITEMS * 256];
UNROLL for (i32 k = 0; k < ITEMS; ++k) selected_keys[k * 256 + t] = (KEY)~(KEY)0;
u32 seen_first = 0, seen_last = 0, taken = 0;
BARRIER;
for (i64 b = 0; b < $EXTENT; b += 1024) {
KEY key[4];
u32 firsts = 0, lasts = 0, between = 0;
UNROLL for (i32 k = 0; k < 4; ++k) {
const i64 i = b + t * 4 + k;
const i32 is_in = i < $EXTENT;
key[k] = is_in ? key_of($IN[from + i * $INNER]) : (KEY)0;
const i32 first = is_in && !from_start && key[k] == key_first, last_one = is_in && key[k] == key_last;
const i32 inside = is_in && key[k] < key_last && (from_start || key[k] > key_first);
firsts |= (u32)first << k;
lasts |= (u32)last_one << k;
between |= (u32)inside << k;
}
if (!__syncthreads_or(firsts | lasts | between)) continue;
u32 sum;
const u32 before = total_before(__popc(firsts) << 16 | __popc(lasts), sum);
u32 nth_first = seen_first + (before >> 16), nth_last = seen_last + (before & 0xffffu), wanted = between;
UNROLL for (i32 k = 0; k < 4; ++k) {
const i32 is_first = firsts >> k & 1u, is_last = lasts >> k & 1u;
if (is_one) wanted |= (u32)(is_last && nth_last >= skip && nth_last < keep) << k;
else wanted |= (u32)((is_first && nth_first >= skip) || (is_last && nth_last < keep)) << k;
nth_first += is_first;
nth_last += is_last;
}
seen_first += sum >> 16;
seen_last += sum & 0xffffu;
u32 place = taken + total_before(__popc(wanted), sum);
taken += sum;
UNROLL for (i32 k = 0; k < 4; ++k)
if (wanted >> k & 1u) {
selected_keys[place] = key[k];
selected[place] = (u32)(b + t * 4 + k);
++place;
}
}
BARRIER;
KEY key[ITEMS];
u32 index[ITEMS], rank[ITEMS];
UNROLL for (i32 k = 0; k < ITEMS; ++k) {
key[k] = selected_keys[(warp * ITEMS + k) * 32 + lane];
index[k] = selected[(warp * ITEMS + k) * 32 + lane];
}
UNROLL_BY(1) for (i32 pass = 0; pass < BITS / 8; ++pass) {
rank_keys(key, rank, pass * 8);
UNROLL for (i32 k = 0; k < ITEMS; ++k) { selected_keys[rank[k]] = key[k]; selected[rank[k]] = index[k]; }
BARRIER;
UNROLL for (i32 k = 0; k < ITEMS; ++k) {
key[k] = selected_keys[(warp * ITEMS + k) * 32 + lane];
index[k] = selected[(warp * ITEMS + k) * 32 + lane];
}
}
UNROLL for (i32 k = 0; k < ITEMS; ++k) {
const i64 at = (warp * ITEMS + k) * 32 + lane;
if (at < $WANTED) {
const i64 into = (line / $INNER * $WANTED + at) * $INNER + line % $INNER;
)";

}  // namespace

Launch emit_select_lines(const KernelTarget& target, const Dense& x, const Keys& keys, const SelectLines& lines,
                         const SortResult& to) {
  Parameters p(true);
  Body body(target, p);
  const std::int64_t each = power_of_two_from(ceil_div(lines.wanted, kSortThreads));
  const std::map<std::string, std::string> names{
      {"IN", p.input(x.stored, x.slot)},
      {"EXTENT", lines.parts > 1 ? "extent" : p.whole_number(lines.extent)},
      {"INNER", lines.inner == 1 ? "1" : p.whole_number(lines.inner)},
      {"FIRST", p.whole_number(lines.first)},
      {"WANTED", p.whole_number(lines.wanted)},
  };
  std::string text = fmt::format("typedef {} KEY;\nenum {{ ITEMS = {}, BITS = {} }};\n", keys.type(), each, keys.bits());
  text += group_text() + keys.functions() + rank_text();
  if (lines.parts > 1) {
    const std::string extent = p.whole_number(lines.extent), parts = p.whole_number(lines.parts);
    text += fmt::format("const i64 line = (i64)blockIdx.x, part = line % {1}, start = {0} * part / {1};\n", extent, parts);
    text += fmt::format("const i64 extent = {0} * (part + 1) / {1} - start, from = line / {1} * {0} + start;\n", extent, parts);
  } else {
    text += filled("const i64 line = (i64)blockIdx.x, from = line / $INNER * $EXTENT * $INNER + line % $INNER;\n", names);
  }
  text += filled(kFind, names) + filled(kCollect, names);
  if (to.indices)
    text +=
        fmt::format("{}[into] = {}(i64)index[k];\n", p.output(DType::i64, to.indices->slot), lines.parts > 1 ? "start + " : "");
  if (to.values) {
    text +=
        filled("const auto element = is_ambiguous(key[k]) ? $IN[from + (i64)index[k] * $INNER] : element_of(key[k]);\n", names);
    const std::string moved =
        to.values->stored == x.stored ? "element" : body.to_store(to.values->stored, body.loaded(x.stored, "element"));
    text += fmt::format("{}[into] = {};\n", p.output(to.values->stored, to.values->slot), moved);
  }
  return make_launch(body, {kSortThreads, 1, 1}, {static_cast<std::uint32_t>(lines.count * lines.parts), 1, 1}, text + "}\n}\n");
}

}  // namespace tenon::emit
