// Index of the largest along an axis that is not the last, on GPUs: neighbouring work-items take neighbouring columns, so that
// they read whole cache lines; the rows of a column are shared by the lines of a group and, where there are few columns, by
// several groups.
#include <fmt/format.h>

#include <algorithm>

#include "codegen/c/loops/geometry.h"
#include "codegen/c/loops/lines.h"

namespace tenon::emit {
namespace {

std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

struct ColumnShape {
  int lanes = 1, lines = 1;  // columns and rows that a group has at a time
  std::int64_t segments = 1, segment = 1;

  ColumnShape(const KernelTarget& target, const Columns& x) {
    const int threads = std::min(256, target.max_group_size);
    lanes = static_cast<int>(
        std::min<std::int64_t>({power_of_two_from(x.inner), threads, target.dialect == Dialect::cuda ? 64 : 32}));
    lines = threads / lanes;
    const std::int64_t groups = x.outer * ceil_div(x.inner, lanes), shortest = std::int64_t{lines} * 16;
    segments = std::clamp<std::int64_t>(std::int64_t{target.compute_units} * 16 / std::max<std::int64_t>(groups, 1), 1,
                                        std::max<std::int64_t>(x.extent / shortest, 1));
    segment = ceil_div(x.extent, segments);
    segments = std::max<std::int64_t>(ceil_div(x.extent, segment), 1);
  }
};

// Where values come from: the elements themselves, or the results of segments with their places.
struct Source {
  int values = -1, places = -1;
  DType stored = DType::f32;
};
struct Target {
  int values = -1, places = -1;  // of segments, [outer][segment][inner]
  Dense out;                     // where values is -1
};

Launch arg_columns(const KernelTarget& target, const Columns& x, const ColumnShape& shape, const ArgReduceAttr& attr,
                   const Source& from, const Target& to) {
  constexpr int kUnroll = 8;
  constexpr std::int64_t kLimit = (std::int64_t{1} << 31) - (1 << 24);
  Parameters p(x.outer * x.extent * x.inner >= kLimit);
  Body body(target, p);
  const std::string &ix = p.index_type(), type = variable_type(from.stored);
  const std::string in = p.input(from.stored, from.values), known = from.places < 0 ? "" : p.input(DType::i64, from.places),
                    extent = p.index(x.extent), inner = p.index(x.inner), outer = p.index(x.outer),
                    length = p.index(shape.segment);
  const int lanes = shape.lanes, lines = shape.lines;
  const auto place_of = [&](const std::string& n) {
    return known.empty() ? "(i64)(" + n + ")" : fmt::format("{}[from + ({}) * {}]", known, n, inner);
  };
  std::string text = fmt::format("LOCAL {0} values[{2}];\nLOCAL {1} places[{2}];\n", type, ix, lanes * lines);
  text += "const i32 lane = local_id(0), line = local_id(1), mine = line * " + fmt::format("{} + lane;\n", lanes);
  text += fmt::format("const {0} s = group_id(2), begin = s * {1}, end = begin + {1} < {2} ? begin + {1} : {2};\n", ix, length,
                      extent);
  text +=
      fmt::format("const {0} column = ({0})group_id(0) * {1} + lane, i = column < {2} ? column : {2} - 1;\n", ix, lanes, inner);
  text += fmt::format("for ({0} o = group_id(1); o < {1}; o += group_count(1)) {{\n", ix, outer);
  text += fmt::format("const {0} from = o * {1} * {2} + i;\n", ix, extent, inner);
  // Lines without a row of their own look at the last one.
  text += fmt::format("{} place = begin + line < end ? begin + line : end - 1;\n{} best = {};\n", ix, type,
                      body.loaded(from.stored, fmt::format("{}[from + place * {}]", in, inner)));
  text += fmt::format("for ({} b = begin + line; b < end; b += {}) {{\n", ix, lines * kUnroll);
  text += fmt::format("if (b < end - {}) {{\n{} p[{}];\n", lines * (kUnroll - 1), stored_type(from.stored), kUnroll);
  text += fmt::format("UNROLL for (i32 k = 0; k < {}; ++k) p[k] = {}[from + (b + k * {}) * {}];\n", kUnroll, in, lines, inner);
  text += fmt::format("UNROLL for (i32 k = 0; k < {}; ++k) {{\nconst {} value = {};\n{}}}\n", kUnroll, type,
                      body.loaded(from.stored, "p[k]"), take_later_text(attr, "value", fmt::format("b + k * {}", lines)));
  text += fmt::format("}} else for ({0} n = b; n < end; n += {1}) {{\nconst {2} value = {3};\n{4}}}\n}}\n", ix, lines, type,
                      body.loaded(from.stored, fmt::format("{}[from + n * {}]", in, inner)), take_later_text(attr, "value", "n"));
  if (lines > 1) {
    text += "BARRIER;\nvalues[mine] = best;\nplaces[mine] = place;\nBARRIER;\n";
    text += fmt::format("for (i32 distance = {}; distance > 0; distance /= 2) {{\nif (line < distance) {{\n", lines / 2);
    text +=
        fmt::format("const {0} other = values[mine + distance * {2}];\nconst {1} other_place = places[mine + distance * {2}];\n",
                    type, ix, lanes);
    text += take_better_text(attr) + "values[mine] = best;\nplaces[mine] = place;\n}\nBARRIER;\n}\n";
  }
  text += fmt::format("if (line == 0 && column < {}) {{\n", inner);
  if (to.values >= 0) {
    text += fmt::format("const {0} into = (o * {1} + s) * {2} + i;\n", ix, p.index(shape.segments), inner);
    text += fmt::format("{}[into] = best;\n{}[into] = {};\n", p.output(compute_dtype(from.stored), to.values),
                        p.output(DType::i64, to.places), place_of("place"));
  } else {
    text += fmt::format("{}[o * {} + i] = {};\n", p.output(to.out.stored, to.out.slot), inner, place_of("place"));
  }
  return make_launch(
      body, {lanes, lines, 1},
      {static_cast<std::uint32_t>(ceil_div(x.inner, lanes)), static_cast<std::uint32_t>(std::min<std::int64_t>(x.outer, 65535)),
       static_cast<std::uint32_t>(to.values >= 0 ? shape.segments : 1)},
      text + "}\n}\n");
}

}  // namespace

std::vector<Launch> emit_arg_reduce_columns(const KernelTarget& target, const Dense& x, const ArgReduceAttr& attr,
                                            const Dense& out, const Columns& columns, const Scratch& scratch) {
  const ColumnShape shape(target, columns);
  if (shape.segments == 1) return {arg_columns(target, columns, shape, attr, {x.slot, -1, x.stored}, {.out = out})};
  const DType compute = compute_dtype(x.stored);
  const Columns parts{columns.outer, shape.segments, columns.inner};
  const std::int64_t count = parts.outer * parts.extent * parts.inner;
  const int values = scratch(at(count) * element_bytes(compute)), places = scratch(at(count) * 8);
  ColumnShape joining(target, parts);
  joining.segments = 1;
  joining.segment = parts.extent;
  return {arg_columns(target, columns, shape, attr, {x.slot, -1, x.stored}, {.values = values, .places = places}),
          arg_columns(target, parts, joining, attr, {values, places, compute}, {.out = out})};
}

}  // namespace tenon::emit
