#include <fmt/format.h>

#include <algorithm>

#include "codegen/c/loops/geometry.h"
#include "codegen/c/sort/keys.h"
#include "codegen/c/sort/select.h"
#include "codegen/c/sort/sort.h"

namespace tenon::emit {
namespace {

constexpr std::int64_t kBlockLine = 4096;  // elements that a work-group can sort by itself
constexpr std::int64_t kShortLine = 64;    // for fewer, a work-group has too little to do

std::uint64_t bytes_of(std::int64_t count, int each) { return static_cast<std::uint64_t>(count) * static_cast<unsigned>(each); }

// One axis of a dense tensor; element i of line l lies at (l / inner * extent + i) * inner + l % inner.
struct Lines {
  std::int64_t count = 1, extent = 1, inner = 1;
};

int used_bits(DType stored, std::int64_t limit) {
  const int all = static_cast<int>(element_bytes(stored)) * 8;
  int bits = 1;
  while (bits < all && limit > 0 && (std::int64_t{1} << bits) < limit) ++bits;
  return limit > 0 ? bits : all;
}

class RadixSort {
 public:
  RadixSort(const KernelTarget& target, const Dense& x, const SortRange& range, const SortResult& to)
      : target_(target),
        x_(x),
        to_(to),
        keys_{x.stored, range.descending, used_bits(x.stored, range.limit)},
        range_(range),
        first_(range.first) {
    lines_.extent = x.shape[range.axis];
    for (int i = range.axis + 1; i < x.shape.rank(); ++i) lines_.inner *= x.shape[i];
    lines_.count = x.shape.elements() / std::max<std::int64_t>(lines_.extent, 1);
    count_ = range.count < 0 ? lines_.extent : range.count;
  }

  bool is_possible() const {
    return lines_.extent > kShortLine && lines_.extent < (std::int64_t{1} << 31) - 4096 && lines_.count * tiles() < (1 << 30) &&
           count_ > 0;
  }

  std::vector<Launch> run(const Scratch& scratch) {
    if (lines_.extent <= kBlockLine) return {sort_lines()};
    if (const std::int64_t parts = parts_of_line(); parts > 1) return select_in_parts(parts, scratch);
    if (count_ <= kSelected && count_ * 8 <= lines_.extent &&
        (lines_.extent <= (1 << 16) || lines_.count * 2 >= target_.compute_units))
      return {emit_select_lines(target_, x_, keys_, {lines_.count, lines_.extent, lines_.inner, first_, count_}, to_)};
    return sort_by_tiles(scratch);
  }

 private:
  int items() const { return keys_.bits() == 64 ? 8 : 16; }
  std::int64_t tile() const { return std::int64_t{kSortThreads} * items(); }
  std::int64_t tiles() const { return ceil_div(lines_.extent, tile()); }

  // Parts of a line that are worth a work-group each, whose first elements one work-group can sort.
  std::int64_t parts_of_line() const {
    constexpr std::int64_t kShortest = 2048, kFewest = 3;
    if (first_ != 0 || lines_.inner != 1 || range_.numbers >= 0 || lines_.count * 2 > target_.compute_units) return 1;
    const std::int64_t parts = std::min({ceil_div(std::int64_t{target_.compute_units} * 2, lines_.count), kBlockLine / count_,
                                         lines_.extent / std::max(kShortest, count_ * 4)});
    return parts >= kFewest && parts * count_ > kShortLine ? parts : 1;
  }

  std::vector<Launch> select_in_parts(std::int64_t parts, const Scratch& scratch) const {
    const Shape shape{lines_.count, parts * count_};
    const std::int64_t all = shape.elements();
    const Dense elements{scratch(bytes_of(all, static_cast<int>(element_bytes(x_.stored)))), x_.stored, shape},
        numbers{scratch(bytes_of(all, 8)), DType::i64, shape};
    std::vector<Launch> launches{emit_select_lines(target_, x_, keys_, {lines_.count, lines_.extent, 1, 0, count_, parts},
                                                   {.indices = numbers, .values = elements})};
    const SortRange range{
        .axis = 1, .descending = range_.descending, .count = count_, .limit = range_.limit, .numbers = numbers.slot};
    for (Launch& launch : RadixSort(target_, elements, range, to_).run(scratch)) launches.push_back(std::move(launch));
    return launches;
  }

  // Statements that store the element with this key and index at a place of the sorted line.
  std::string store(Body& body, const std::map<std::string, std::string>& names) const {
    Parameters& p = body.parameters();
    std::string text;
    std::map<std::string, std::string> all = names;
    all["FIRST"] = p.whole_number(first_);
    all["COUNT"] = p.whole_number(count_);
    text += filled(R"(const i64 at = (i64)$PLACE - $FIRST;
if (at >= 0 && at < $COUNT) {
const i64 into = (line / $INNER * $COUNT + at) * $INNER + line % $INNER;
)",
                   all);
    if (to_.indices) {
      std::string number = "(i64)" + names.at("INDEX");
      if (range_.numbers >= 0) number = fmt::format("{}[from + {}]", p.input(DType::i64, range_.numbers), number);
      text += fmt::format("{}[into] = {};\n", p.output(DType::i64, to_.indices->slot), number);
    }
    if (to_.values) {
      all["TO"] = p.output(to_.values->stored, to_.values->slot);
      text += filled("const auto element = is_ambiguous($VALUE) ? $IN[from + (i64)$INDEX * $INNER] : element_of($VALUE);\n", all);
      const std::string moved =
          to_.values->stored == x_.stored ? "element" : body.to_store(to_.values->stored, body.loaded(x_.stored, "element"));
      text += fmt::format("{}[into] = {};\n", all["TO"], moved);
    }
    return text + "}\n";
  }

  // --- A line by a work-group ---
  Launch sort_lines() {
    Parameters p(true);
    Body body(target_, p);
    const int each = static_cast<int>(std::max<std::int64_t>(power_of_two_from(ceil_div(lines_.extent, kSortThreads)), 1));
    std::map<std::string, std::string> names{{"IN", p.input(x_.stored, x_.slot)},
                                             {"EXTENT", p.whole_number(lines_.extent)},
                                             {"INNER", lines_.inner == 1 ? "1" : p.whole_number(lines_.inner)},
                                             {"PLACE", "place"},
                                             {"INDEX", "index[k]"},
                                             {"VALUE", "key[k]"}};
    std::string text = fmt::format("typedef {} KEY;\nenum {{ ITEMS = {}, PASSES = {} }};\n", keys_.type(), each, keys_.passes());
    text += group_text() + keys_.functions() + rank_text();
    text += filled(R"(LOCAL KEY exchange[ITEMS * 256];
const i64 line = (i64)blockIdx.x, from = line / $INNER * $EXTENT * $INNER + line % $INNER;
KEY key[ITEMS];
u32 index[ITEMS], rank[ITEMS];
UNROLL for (i32 k = 0; k < ITEMS; ++k) {
const i32 i = (warp * ITEMS + k) * 32 + lane;
index[k] = i;
key[k] = i < $EXTENT ? key_of($IN[from + (i64)i * $INNER]) : (KEY)~(KEY)0;
}
UNROLL_BY(1) for (i32 pass = 0; pass < PASSES; ++pass) {
rank_keys(key, rank, pass * 8);
UNROLL for (i32 k = 0; k < ITEMS; ++k) exchange[rank[k]] = key[k];
BARRIER;
UNROLL for (i32 k = 0; k < ITEMS; ++k) key[k] = exchange[(warp * ITEMS + k) * 32 + lane];
BARRIER;
UNROLL for (i32 k = 0; k < ITEMS; ++k) ((u32*)exchange)[rank[k]] = index[k];
BARRIER;
UNROLL for (i32 k = 0; k < ITEMS; ++k) index[k] = ((u32*)exchange)[(warp * ITEMS + k) * 32 + lane];
}
UNROLL for (i32 k = 0; k < ITEMS; ++k) {
const i32 place = (warp * ITEMS + k) * 32 + lane;
if (place < $EXTENT) {
)",
                   names);
    text += store(body, names) + "}\n}\n";
    return make_launch(body, {kSortThreads, 1, 1}, {static_cast<std::uint32_t>(lines_.count), 1, 1}, text);
  }

  // --- Long lines ---
  struct Buffers {
    int keys = -1, indices = -1;
  };

  std::vector<Launch> sort_by_tiles(const Scratch& scratch) {
    const std::int64_t all = lines_.count * lines_.extent;
    const int key_bytes = keys_.bits() == 64 ? 8 : 4, passes = keys_.passes();
    Buffers pair[2];
    for (int i = 0; i < std::min(passes - 1, 2); ++i) pair[i] = {scratch(bytes_of(all, key_bytes)), scratch(bytes_of(all, 4))};
    const int counts = scratch(bytes_of(lines_.count * 256 * tiles(), 4)), totals = scratch(bytes_of(lines_.count * 256, 4));
    std::vector<Launch> launches;
    for (int pass = 0; pass < passes; ++pass) {
      const Buffers from = pass == 0 ? Buffers{} : pair[(pass - 1) % 2];
      launches.push_back(count_digits(pass, from, counts));
      launches.push_back(sum_counts(counts, totals));
      launches.push_back(distribute(pass, from, pass == passes - 1 ? Buffers{} : pair[pass % 2], counts, totals));
    }
    return launches;
  }

  std::map<std::string, std::string> names_of(Parameters& p, const Buffers& from, int pass) const {
    std::map<std::string, std::string> names{{"EXTENT", p.whole_number(lines_.extent)},
                                             {"INNER", lines_.inner == 1 ? "1" : p.whole_number(lines_.inner)},
                                             {"TILES", p.whole_number(tiles())},
                                             {"SHIFT", p.whole_number(pass * 8)},
                                             {"IN", p.input(x_.stored, x_.slot)}};
    names["KEY_AT"] = from.keys < 0
                          ? filled("key_of($IN[from + i * $INNER])", names)
                          : fmt::format("{}[line * {} + i]", p.buffer("const " + keys_.type(), from.keys), names["EXTENT"]);
    return names;
  }
  std::string head(const std::map<std::string, std::string>& names) const {
    return fmt::format("typedef {} KEY;\nenum {{ ITEMS = {}, TILE = {} }};\n", keys_.type(), items(), tile()) + group_text() +
           keys_.functions() +
           filled(R"(const i64 tile = (i64)blockIdx.x % $TILES, line = (i64)blockIdx.x / $TILES, begin = tile * TILE;
const i64 from = line / $INNER * $EXTENT * $INNER + line % $INNER;
)",
                  names);
  }
  std::array<std::uint32_t, 3> groups() const { return {static_cast<std::uint32_t>(lines_.count * tiles()), 1, 1}; }

  // How often each digit occurs in each tile: [line][digit][tile].
  Launch count_digits(int pass, const Buffers& from, int counts) {
    Parameters p(true);
    Body body(target_, p);
    std::map<std::string, std::string> names = names_of(p, from, pass);
    names["COUNTS"] = p.buffer("u32", counts);
    std::string text = head(names);
    text += filled(R"(LOCAL u32 found[8 * 256];
UNROLL for (i32 w = 0; w < 8; ++w) found[w * 256 + t] = 0;
BARRIER;
UNROLL for (i32 k = 0; k < ITEMS; ++k) {
const i64 i = begin + k * 256 + t;
if (i < $EXTENT) atomicAdd(found + warp * 256 + ((u32)($KEY_AT >> $SHIFT) & 255u), 1u);
}
BARRIER;
u32 total = 0;
UNROLL for (i32 w = 0; w < 8; ++w) total += found[w * 256 + t];
$COUNTS[(line * 256 + t) * $TILES + tile] = total;
)",
                   names);
    return make_launch(body, {kSortThreads, 1, 1}, groups(), text);
  }

  // Running sums over the tiles of each digit, exclusive, and the digits' totals. Few tiles: a warp for each digit.
  Launch sum_counts(int counts, int totals) {
    Parameters p(true);
    Body body(target_, p);
    const bool by_warps = tiles() <= 64;
    const std::int64_t segments = lines_.count * 256;
    const std::map<std::string, std::string> names{
        {"COUNTS", p.buffer("u32", counts)}, {"TOTALS", p.buffer("u32", totals)},
        {"TILES", p.whole_number(tiles())},  {"LANES", by_warps ? "32" : "256"},
        {"OWN", by_warps ? "lane" : "t"},    {"SEGMENT", by_warps ? "(i64)blockIdx.x * 8 + warp" : "(i64)blockIdx.x"}};
    std::string text = group_text() + filled(R"(const i64 segment = $SEGMENT, begin = segment * $TILES;
u32 carry = 0;
for (i64 b = 0; b < $TILES; b += $LANES) {
const i64 i = b + $OWN;
const u32 value = i < $TILES ? $COUNTS[begin + i] : 0u;
u32 sum = 0, before;
)",
                                             names);
    text += by_warps ? R"(u32 s = value;
UNROLL for (i32 d = 1; d < 32; d *= 2) { const u32 u = SHUFFLE_UP(s, d); s += lane >= d ? u : 0u; }
before = s - value;
sum = SHUFFLE_FROM(s, 31);
)"
                     : "before = total_before(value, sum);\n";
    text += filled(R"(if (i < $TILES) $COUNTS[begin + i] = carry + before;
carry += sum;
}
if ($OWN == 0) $TOTALS[segment] = carry;
)",
                   names);
    return make_launch(body, {kSortThreads, 1, 1}, {static_cast<std::uint32_t>(by_warps ? segments / 8 : segments), 1, 1}, text);
  }

  Launch distribute(int pass, const Buffers& from, const Buffers& into, int counts, int totals) {
    Parameters p(true);
    Body body(target_, p);
    std::map<std::string, std::string> names = names_of(p, from, pass);
    names["COUNTS"] = p.buffer("const u32", counts);
    names["TOTALS"] = p.buffer("const u32", totals);
    names["INDEX_AT"] =
        from.indices < 0 ? "(u32)i" : fmt::format("{}[line * {} + i]", p.buffer("const u32", from.indices), names["EXTENT"]);
    std::string text = head(names) + rank_text();
    text += filled(R"(LOCAL KEY exchange[TILE];
LOCAL u32 bases[256];
KEY key[ITEMS];
u32 rank[ITEMS], dest[ITEMS];
UNROLL for (i32 k = 0; k < ITEMS; ++k) {
const i64 i = begin + (warp * ITEMS + k) * 32 + lane;
key[k] = i < $EXTENT ? (KEY)$KEY_AT : (KEY)~(KEY)0;
}
rank_keys(key, rank, (i32)$SHIFT);
u32 all;
const u32 start = total_before($TOTALS[line * 256 + t], all);
bases[t] = start + $COUNTS[(line * 256 + t) * $TILES + tile] - digit_starts[t];
UNROLL for (i32 k = 0; k < ITEMS; ++k) exchange[rank[k]] = key[k];
BARRIER;
const i32 valid = $EXTENT - begin < TILE ? (i32)($EXTENT - begin) : TILE;
UNROLL for (i32 k = 0; k < ITEMS; ++k) {
key[k] = exchange[k * 256 + t];
dest[k] = bases[(u32)(key[k] >> $SHIFT) & 255u] + k * 256 + t;
}
BARRIER;
UNROLL for (i32 k = 0; k < ITEMS; ++k) {
const i64 i = begin + (warp * ITEMS + k) * 32 + lane;
((u32*)exchange)[rank[k]] = i < $EXTENT ? $INDEX_AT : 0u;
}
BARRIER;
UNROLL for (i32 k = 0; k < ITEMS; ++k)
if (k * 256 + t < valid) {
const u32 index = ((u32*)exchange)[k * 256 + t];
)",
                   names);
    if (into.keys >= 0) {
      names["KEYS"] = p.buffer(keys_.type(), into.keys);
      names["INDICES"] = p.buffer("u32", into.indices);
      text += filled("$KEYS[line * $EXTENT + dest[k]] = key[k];\n$INDICES[line * $EXTENT + dest[k]] = index;\n}\n", names);
    } else {
      names.insert({{"PLACE", "dest[k]"}, {"INDEX", "index"}, {"VALUE", "key[k]"}});
      text += store(body, names) + "}\n";
    }
    // Three work-groups on a multiprocessor: measured to be a fifth faster than what the compiler chooses.
    return make_launch(body, {kSortThreads, 1, 1}, groups(), text, 3);
  }

  const KernelTarget& target_;
  const Dense& x_;
  const SortResult& to_;
  Keys keys_;
  Lines lines_;
  const SortRange range_;
  std::int64_t first_, count_ = 0;
};

}  // namespace

bool can_radix_sort(const KernelTarget& target, const Shape& x, const SortRange& range) {
  const Dense dense{0, DType::f32, x};
  const SortResult nowhere;
  return target.dialect == Dialect::cuda && target.max_group_size >= kSortThreads &&
         RadixSort(target, dense, range, nowhere).is_possible();
}

std::optional<std::vector<Launch>> emit_radix_sort(const KernelTarget& target, const Dense& x, const SortRange& range,
                                                   const SortResult& to, const Scratch& scratch) {
  if (!can_radix_sort(target, x.shape, range)) return std::nullopt;
  return RadixSort(target, x, range, to).run(scratch);
}

}  // namespace tenon::emit
