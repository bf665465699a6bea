// Index of the largest, and running sums, on GPUs: the work-items of a group take a line together, and where there are too few
// lines to fill the device, a segment of one.
#include <fmt/format.h>

#include <algorithm>

#include "codegen/c/loops/geometry.h"
#include "codegen/c/loops/lines.h"

namespace tenon::emit {
namespace {

std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

constexpr int kGroup = 256;

// How the work-items of a group share lines whose elements are neighbours, |each| elements a work-item and step.
struct LineShape {
  int lanes = 1, lines = 1;  // lanes of a line, lines of a group
  std::int64_t segments = 1, segment = 1;

  LineShape(const KernelTarget& target, std::int64_t count, std::int64_t extent, int each, std::int64_t shortest) {
    const int most = std::min(kGroup, target.max_group_size);
    lanes = static_cast<int>(std::clamp<std::int64_t>(power_of_two_from(ceil_div(extent, each)), 1, most));
    lines = most / lanes;
    const std::int64_t groups = std::max<std::int64_t>(ceil_div(count, lines), 1);
    segments = std::clamp<std::int64_t>(std::int64_t{target.compute_units} * 8 / groups, 1,
                                        std::max<std::int64_t>(extent / shortest, 1));
    segment = ceil_div(ceil_div(extent, segments), each) * each;
    segments = std::max<std::int64_t>(ceil_div(extent, segment), 1);
  }
  // Everything of a group has the same segment, so that all its work-items meet at its barriers.
  std::array<std::uint32_t, 3> groups(std::int64_t count) const {
    return {static_cast<std::uint32_t>(std::min<std::int64_t>(ceil_div(count, lines), 1 << 30)),
            static_cast<std::uint32_t>(segments), 1};
  }
  std::array<int, 3> group_size() const { return {lanes, lines, 1}; }

  // Statements before the loop over lines, which they open: line, active, and begin and end of the segment.
  std::string head(Parameters& p, std::int64_t count, const std::string& extent, const std::string& index) const {
    const std::string all = p.whole_number(count), length = p.whole_number(segment);
    std::string text = "const i32 lane = local_id(0), row = local_id(1);\nconst i64 s = group_id(1);\n";
    text += fmt::format("const {0} begin = ({0})(s * {1}), end = ({0})((s + 1) * {1} < {2} ? (s + 1) * {1} : {2});\n", index,
                        length, extent);
    text +=
        fmt::format("for (i64 first = (i64)group_id(0) * {0}; first < {1}; first += (i64)group_count(0) * {0}) {{\n", lines, all);
    return text + fmt::format("const i32 active = first + row < {0};\nconst i64 line = active ? first + row : {0} - 1;\n", all);
  }
};

std::string index_type(std::int64_t extent) { return extent < (std::int64_t{1} << 31) - (1 << 24) ? "i32" : "i64"; }

// --- Index of the largest ---
std::string across_lanes(const KernelTarget& target, const ArgReduceAttr& attr, const LineShape& shape, const std::string& type,
                         const std::string& index) {
  if (shape.lanes == 1) return {};
  std::string text;
  const auto from_local = [&](int lanes, const std::string& mine) {
    std::string joined;
    joined += fmt::format("BARRIER;\nvalues[{0}] = best;\nplaces[{0}] = place;\nBARRIER;\n", mine);
    joined += fmt::format("for (i32 distance = {}; distance > 0; distance /= 2) {{\nif (lane < distance) {{\n", lanes / 2);
    joined += fmt::format("const {} other = values[{}];\nconst {} other_place = places[{}];\n", type, mine + " + distance", index,
                          mine + " + distance");
    joined += take_better_text(attr) + fmt::format("values[{0}] = best;\nplaces[{0}] = place;\n}}\nBARRIER;\n}}\n", mine);
    return joined;
  };
  if (target.dialect != Dialect::cuda) return from_local(shape.lanes, fmt::format("row * {} + lane", shape.lanes));
  for (int distance = std::min(shape.lanes, 32) / 2; distance > 0; distance /= 2)
    text += fmt::format("{{ const {0} other = ({0})SHUFFLE(best, {2});\nconst {1} other_place = SHUFFLE(place, {2});\n{3}}}\n",
                        type, index, distance, take_better_text(attr));
  const int warps = shape.lanes / 32;
  if (warps <= 1) return text;
  text += fmt::format(
      "BARRIER;\nif (lane % 32 == 0) {{\nvalues[row * {0} + lane / 32] = best;\nplaces[row * {0} + lane / 32] = "
      "place;\n}}\nBARRIER;\n",
      warps);
  text += fmt::format("best = values[row * {0} + lane % {0}];\nplace = places[row * {0} + lane % {0}];\n", warps);
  for (int distance = warps / 2; distance > 0; distance /= 2)
    text += fmt::format("{{ const {0} other = ({0})SHUFFLE(best, {2});\nconst {1} other_place = SHUFFLE(place, {2});\n{3}}}\n",
                        type, index, distance, take_better_text(attr));
  return text;
}

// --- Running sums ---
struct ScanType {
  DType as;
  bool product;
  std::string type = variable_type(as);

  std::string combine(const std::string& a, const std::string& b) const {
    const char *op = product ? "*" : "+", *wrap = element_bytes(as) == 8 ? "u64" : "u32";
    return is_float(as) ? fmt::format("{} {} {}", a, op, b) : fmt::format("({})(({}){} {} ({}){})", type, wrap, a, op, wrap, b);
  }
  std::string identity() const { return literal(as, product ? 1 : 0); }
};

// From |value|, a work-item's own total: |before|, the total of the lanes before it, and |all|, of the whole line.
std::string scan_across_lanes(const KernelTarget& target, const ScanType& scan, const LineShape& shape) {
  const std::string& type = scan.type;
  std::string text = fmt::format("{} before = {}, all = value;\n", type, scan.identity());
  if (shape.lanes == 1) return text;
  if (target.dialect != Dialect::cuda) {
    text += fmt::format("const i32 mine = row * {} + lane;\n", shape.lanes);
    text += fmt::format("for (i32 distance = 1; distance < {}; distance *= 2) {{\nBARRIER;\nscanned[mine] = value;\nBARRIER;\n",
                        shape.lanes);
    text += fmt::format("if (lane >= distance) value = {};\n}}\n", scan.combine("scanned[mine - distance]", "value"));
    text += "BARRIER;\nscanned[mine] = value;\nBARRIER;\nif (lane > 0) before = scanned[mine - 1];\n";
    return text + fmt::format("all = scanned[row * {0} + {0} - 1];\n", shape.lanes);
  }
  const int lanes = std::min(shape.lanes, 32), warps = shape.lanes / 32;
  for (int distance = 1; distance < lanes; distance *= 2)
    text += fmt::format("{{ const {0} other = ({0})SHUFFLE_UP(value, {1}); if (lane % 32 >= {1}) value = {2}; }}\n", type,
                        distance, scan.combine("other", "value"));
  text += fmt::format("{{ const {0} other = ({0})SHUFFLE_UP(value, 1); if (lane % 32 > 0) before = other; }}\n", type);
  if (warps <= 1)
    return text + fmt::format("all = ({0})SHUFFLE_FROM(value, (row * {1} + lane) % 32 | {2});\n", type, shape.lanes, lanes - 1);
  text += fmt::format("BARRIER;\nif (lane % 32 == 31) scanned[row * {} + lane / 32] = value;\nBARRIER;\n", warps);
  text += fmt::format("{} earlier = {};\nall = earlier;\nUNROLL for (i32 w = 0; w < {}; ++w) {{\n", type, scan.identity(), warps);
  text += fmt::format("if (w == lane / 32) earlier = all;\nall = {};\n}}\n",
                      scan.combine("all", fmt::format("scanned[row * {} + w]", warps)));
  return text + fmt::format("before = {};\n", scan.combine("earlier", "before"));
}

struct ScanLines {
  int from, to;
  DType from_stored, to_stored;
  std::int64_t count, extent;
  bool exclusive = false;
  int carries = -1;  // slot of what each segment starts from, [line][segment]; or none
};

// Elements a work-item takes of neighbours: as many as one load brings.
int scan_width(DType stored) { return element_bytes(stored) == 8 ? 2 : 4; }

Launch scan_lines(const KernelTarget& target, const ScanLines& x, const ScanType& scan, const LineShape& shape) {
  Parameters p(true);
  Body body(target, p);
  const int width = scan_width(x.from_stored);
  const bool is_vector = x.extent % width == 0 && element_bytes(x.to_stored) * at(width) <= 16;
  const std::string in = p.input(x.from_stored, x.from), to = p.output(x.to_stored, x.to), extent = p.whole_number(x.extent);
  const std::string ix = index_type(x.extent), stored = stored_type(x.from_stored), result = stored_type(x.to_stored);
  const DType compute = compute_dtype(x.to_stored);
  std::string text;
  if (target.dialect != Dialect::cuda || shape.lanes > 32) text += fmt::format("LOCAL {} scanned[{}];\n", scan.type, kGroup);
  text += shape.head(p, x.count, extent, ix);
  text +=
      fmt::format("{} carry = {};\nconst i64 from = line * {};\n", scan.type,
                  x.carries < 0 ? scan.identity()
                                : fmt::format("{}[line * {} + s]", p.input(scan.as, x.carries), p.whole_number(shape.segments)),
                  extent);
  text +=
      fmt::format("for ({0} t = begin; t < end; t += {1}) {{\nconst {0} c = t + lane * {2};\n", ix, shape.lanes * width, width);
  // Whole: |width| elements from c on. All segments but the last are a multiple of it long.
  text += fmt::format("VARRAY({}, {}, p);\n{} own[{}];\n", stored, width, scan.type, width);
  const std::string one = fmt::format("for (i32 l = 0; l < {}; ++l) p[l] = c + l < end ? {}[from + c + l] : 0;\n", width, in);
  text += is_vector ? fmt::format("if (c < end) {{ VLOAD({}, {}, p, {} + from + c); }}\n", stored, width, in) : one;
  text += fmt::format("UNROLL for (i32 l = 0; l < {}; ++l) own[l] = c + l < end ? ({}){} : {};\n", width, scan.type,
                      body.loaded(x.from_stored, "p[l]"), scan.identity());
  text += fmt::format("UNROLL for (i32 l = 1; l < {}; ++l) own[l] = {};\n", width, scan.combine("own[l - 1]", "own[l]"));
  text += fmt::format("{} value = own[{}];\n", scan.type, width - 1) + scan_across_lanes(target, scan, shape);
  text += fmt::format("before = {};\ncarry = {};\n", scan.combine("carry", "before"), scan.combine("carry", "all"));
  text += fmt::format("VARRAY({}, {}, q);\nUNROLL for (i32 l = 0; l < {}; ++l) {{\n", result, width, width);
  text += x.exclusive
              ? fmt::format("const {} sum = l > 0 ? {} : before;\n", scan.type, scan.combine("before", "own[l > 0 ? l - 1 : 0]"))
              : fmt::format("const {} sum = {};\n", scan.type, scan.combine("before", "own[l]"));
  text += fmt::format("q[l] = {};\n}}\n", body.to_store(x.to_stored, scan.as == compute ? "sum" : "(f32)sum"));
  text += is_vector
              ? fmt::format("if (active && c < end) {{ VSTORE({}, {}, q, {} + from + c); }}\n", result, width, to)
              : fmt::format("for (i32 l = 0; l < {}; ++l) if (active && c + l < end) {}[from + c + l] = q[l];\n", width, to);
  return make_launch(body, shape.group_size(), shape.groups(x.count), text + "}\n}\n");
}

// The total of each segment, [line][segment].
Launch segment_totals(const KernelTarget& target, const ScanLines& x, const ScanType& scan, const LineShape& shape, int totals) {
  Parameters p(true);
  Body body(target, p);
  const std::string in = p.input(x.from_stored, x.from), to = p.output(scan.as, totals), extent = p.whole_number(x.extent);
  const std::string ix = index_type(x.extent);
  constexpr int kUnroll = 8;
  std::string text;
  if (target.dialect != Dialect::cuda || shape.lanes > 32) text += fmt::format("LOCAL {} scanned[{}];\n", scan.type, kGroup);
  text += shape.head(p, x.count, extent, ix);
  text += fmt::format("{} value = {};\nconst i64 from = line * {};\n", scan.type, scan.identity(), extent);
  text += fmt::format("for ({} c = begin + lane; c < end; c += {}) {{\n", ix, shape.lanes * kUnroll);
  text += fmt::format("{} p[{}];\n", stored_type(x.from_stored), kUnroll);
  text += fmt::format(
      "UNROLL for (i32 k = 0; k < {0}; ++k) p[k] = c < end - k * {1} ? {2}[from + c + k * {1}] : 0;\nUNROLL for (i32 k = 0; k < "
      "{0}; ++k)\nif (c < end - k * {1}) {{ const {3} element = ({3}){4}; value = {5}; }}\n}}\n",
      kUnroll, shape.lanes, in, scan.type, body.loaded(x.from_stored, "p[k]"), scan.combine("value", "element"));
  text += scan_across_lanes(target, scan, shape);
  text += fmt::format("if (active && lane == 0) {}[line * {} + s] = all;\n}}\n", to, p.whole_number(shape.segments));
  return make_launch(body, shape.group_size(), shape.groups(x.count), text);
}

}  // namespace

std::string take_better_text(const ArgReduceAttr& attr) {
  return fmt::format(
      "{{ const i32 better = other != other ? best == best || other_place < place : best == best && (other {} best || (other == "
      "best && other_place < place));\nbest = better ? other : best;\nplace = better ? other_place : place; }}\n",
      attr.largest ? ">" : "<");
}
std::string take_later_text(const ArgReduceAttr& attr, const std::string& value, const std::string& place) {
  // The comparison is negated so that NaN is better than any number.
  return fmt::format(
      "{{ const i32 better = best == best && !({0} {1} best);\nbest = better ? {0} : best;\nplace = better ? {2} : place; }}\n",
      value, attr.largest ? "<=" : ">=", place);
}

std::vector<Launch> emit_arg_reduce_lines(const KernelTarget& target, const Dense& x, const ArgReduceAttr& attr, const Dense& out,
                                          std::int64_t count, std::int64_t extent_of_line, const Scratch& scratch) {
  // A second kernel takes about as long as a work-group takes for this many elements; the vocabulary of a language model is more.
  constexpr std::int64_t kShort = 16384, kLong = std::int64_t{1} << 18;
  const LineShape shape(target, count, extent_of_line, 8, extent_of_line > kShort && extent_of_line < kLong ? 4096 : kShort);
  const std::string type = variable_type(x.stored), index = index_type(extent_of_line);
  constexpr int kUnroll = 8;
  int values = -1, places = -1;
  if (shape.segments > 1) {
    values = scratch(at(count * shape.segments) * element_bytes(compute_dtype(x.stored)));
    places = scratch(at(count * shape.segments) * 8);
  }
  std::vector<Launch> launches;
  // Of the elements, then of the segments' results.
  for (const bool of_segments : {false, true}) {
    if (of_segments && shape.segments == 1) break;
    const DType stored = of_segments ? compute_dtype(x.stored) : x.stored;
    const std::int64_t length = of_segments ? shape.segments : extent_of_line;
    LineShape now = shape;
    if (of_segments) {
      now = LineShape(target, count, length, 8, length);
    }
    Parameters p(true);
    Body body(target, p);
    const std::string in = p.input(stored, of_segments ? values : x.slot), extent = p.whole_number(length);
    std::string text;
    const int local = target.dialect != Dialect::cuda ? kGroup : now.lanes > 32 ? kGroup / 32 : 0;
    if (local > 0 && now.lanes > 1)
      text += fmt::format("LOCAL {} values[{}];\nLOCAL {} places[{}];\n", type, local, index, local);
    text += now.head(p, count, extent, index) + fmt::format("const i64 from = line * {};\n", extent);
    // Lanes without an element of their own look at the last one.
    text += fmt::format("{} place = begin + lane < end ? begin + lane : end - 1;\n{} best = {};\n", index, type,
                        body.loaded(stored, fmt::format("{}[from + place]", in)));
    text += fmt::format("for ({} c = begin + lane; c < end; c += {}) {{\n", index, now.lanes * kUnroll);
    text += fmt::format("if (c < end - {}) {{\n{} p[{}];\n", now.lanes * (kUnroll - 1), stored_type(stored), kUnroll);
    text += fmt::format("UNROLL for (i32 k = 0; k < {}; ++k) p[k] = {}[from + c + k * {}];\n", kUnroll, in, now.lanes);
    text += fmt::format("UNROLL for (i32 k = 0; k < {}; ++k) {{\nconst {} value = {};\n{}}}\n", kUnroll, type,
                        body.loaded(stored, "p[k]"), take_later_text(attr, "value", fmt::format("c + k * {}", now.lanes)));
    text += fmt::format("}} else for ({0} n = c; n < end; n += {1}) {{\nconst {2} value = {3};\n{4}}}\n}}\n", index, now.lanes,
                        type, body.loaded(stored, fmt::format("{}[from + n]", in)), take_later_text(attr, "value", "n"));
    text += across_lanes(target, attr, now, type, index) + "if (active && lane == 0) {\n";
    if (now.segments > 1) {
      const std::string segments = p.whole_number(now.segments);
      text += fmt::format("{0}[line * {1} + s] = {2};\n{3}[line * {1} + s] = (i64)place;\n",
                          p.output(compute_dtype(x.stored), values), segments, body.to_store(compute_dtype(x.stored), "best"),
                          p.output(DType::i64, places));
    } else {
      text += fmt::format("{}[line] = {};\n", p.output(out.stored, out.slot),
                          of_segments ? fmt::format("{}[from + place]", p.input(DType::i64, places)) : "(i64)place");
    }
    launches.push_back(make_launch(body, now.group_size(), now.groups(count), text + "}\n}\n"));
  }
  return launches;
}

std::vector<Launch> emit_cumulative_lines(const KernelTarget& target, const Dense& x, const CumulativeAttr& attr,
                                          const Dense& out, std::int64_t count, std::int64_t extent, const Scratch& scratch) {
  const DType compute = compute_dtype(x.stored);
  const ScanType scan{.as = compute == DType::f32 && target.has_f64 ? DType::f64 : compute, .product = attr.product};
  const LineShape shape(target, count, extent, scan_width(x.stored), 16384);
  ScanLines lines{
      .from = x.slot, .to = out.slot, .from_stored = x.stored, .to_stored = out.stored, .count = count, .extent = extent};
  std::vector<Launch> launches;
  if (shape.segments > 1) {
    const std::uint64_t bytes = at(count * shape.segments) * element_bytes(scan.as);
    const int totals = scratch(bytes);
    lines.carries = scratch(bytes);
    launches.push_back(segment_totals(target, lines, scan, shape, totals));
    const ScanLines before{.from = totals,
                           .to = lines.carries,
                           .from_stored = scan.as,
                           .to_stored = scan.as,
                           .count = count,
                           .extent = shape.segments,
                           .exclusive = true};
    launches.push_back(
        scan_lines(target, before, scan, LineShape(target, count, shape.segments, scan_width(scan.as), shape.segments)));
  }
  launches.push_back(scan_lines(target, lines, scan, shape));
  return launches;
}

}  // namespace tenon::emit
