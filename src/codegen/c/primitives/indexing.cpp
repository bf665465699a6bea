#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "codegen/c/loops/geometry.h"
#include "codegen/c/loops/lines.h"

namespace tenon::emit {
namespace {

std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

struct AxisSplit {
  std::int64_t outer = 1, extent = 1, inner = 1;
  AxisSplit(const Shape& shape, int axis) : extent(shape[axis]) {
    for (int i = 0; i < axis; ++i) outer *= shape[i];
    for (int i = axis + 1; i < shape.rank(); ++i) inner *= shape[i];
  }
};

// An element of |from| as it is to be stored in |to|.
std::string moved(Body& body, DType from, DType to, const std::string& element) {
  return from == to ? element : body.to_store(to, body.loaded(from, element));
}

}  // namespace

Launch emit_items(Body& body, std::int64_t count, std::int64_t cost, const std::string& inside) {
  const std::string n = body.parameters().whole_number(count);
  if (body.target().is_cpu) {
    const std::int64_t pieces = std::clamp<std::int64_t>(count * std::max<std::int64_t>(cost, 1) / body.target().least_work, 1,
                                                         body.target().compute_units * 8);
    const std::int64_t chunk = ceil_div(count, std::min(pieces, std::max<std::int64_t>(count, 1)));
    const std::string step = body.parameters().whole_number(chunk);
    const std::string text = fmt::format(
        "const i64 first = (i64)group_id(0) * {0}, last = first + {0} < {1} ? first + {0} : {1};\nfor (i64 j = first; j < last; "
        "++j) {{\n{2}}}\n",
        step, n, inside);
    return make_launch(body, {1, 1, 1}, {static_cast<std::uint32_t>(ceil_div(count, std::max<std::int64_t>(chunk, 1))), 1, 1},
                       text);
  }
  const int threads = std::min(256, body.target().max_group_size);
  const std::string text =
      fmt::format("for (i64 j = (i64)group_id(0) * {0} + local_id(0); j < {1}; j += (i64)group_count(0) * {0}) {{\n{2}}}\n",
                  threads, n, inside);
  return make_launch(body, {threads, 1, 1},
                     {static_cast<std::uint32_t>(std::min<std::int64_t>(ceil_div(count, threads), 1 << 22)), 1, 1}, text);
}

Launch emit_fill(const KernelTarget& target, const Shape& shape, const Access& to, double value) {
  return emit_map(target, shape, {}, std::span(&to, 1), [&](const MapContext& context, std::vector<std::string>& outputs) {
    const DType compute = compute_dtype(to.stored);
    outputs[0] = context.body.parameters().number(compute, compute == DType::boolean ? (value != 0) : value);
    return std::string();
  });
}

Launch emit_iota(const KernelTarget& target, const Dense& out) {
  const Access to = dense_access(out.slot, out.stored, out.shape);
  return emit_map(target, out.shape, {}, std::span(&to, 1), [&](const MapContext& context, std::vector<std::string>& outputs) {
    outputs[0] = fmt::format("({}){}", variable_type(out.stored), context.index);
    return std::string();
  });
}

namespace {

// Rows that are copied as they are: work-items move words of up to 16 bytes, several each, so that the card's memory is busy.
std::optional<Launch> take_words(const KernelTarget& target, const Dense& x, const Dense& indices, const AxisSplit& split,
                                 const Dense& out, int status) {
  const std::uint64_t row_bytes = at(split.inner) * element_bytes(x.stored);
  const std::int64_t rows = split.outer * indices.shape.elements();
  std::uint64_t word = 16;
  while (row_bytes % word != 0) word /= 2;
  const std::int64_t words = static_cast<std::int64_t>(row_bytes / word);
  constexpr std::int64_t kEach = 4, kThreads = 256;
  const std::int64_t count = rows * words;
  if (target.dialect != Dialect::cuda || x.stored != out.stored || word < 4 || count >= (std::int64_t{1} << 31))
    return std::nullopt;
  Parameters p(true);
  Body body(target, p);
  const std::string type = word == 16 ? "uint4" : word == 8 ? "uint2" : "u32";
  const std::string in = p.buffer("const " + type, x.slot), wanted = p.input(indices.stored, indices.slot),
                    to = p.buffer(type, out.slot), state = p.buffer("i64", status), all = p.whole_number(count),
                    length = p.whole_number(words), extent = p.whole_number(split.extent),
                    each = p.whole_number(indices.shape.elements());
  std::string text =
      fmt::format("{} moved[{}];\nconst u32 first = blockIdx.x * {} + threadIdx.x;\n", type, kEach, kEach * kThreads);
  text += fmt::format(
      "UNROLL for (u32 k = 0; k < {0}; ++k) {{\nconst u32 j = first + k * {1};\nif (j < (u32){2}) {{\nconst u32 row = j / "
      "(u32){3};\n",
      kEach, kThreads, all, length);
  text +=
      fmt::format("moved[k] = {0}[((i64)(row / (u32){1}) * {2} + {3}) * {4} + (j - row * (u32){4})];\n}}\n}}\n", in, each, extent,
                  body.call("resolve", fmt::format("{}[row % (u32){}], {}, {}", wanted, each, extent, state)), length);
  text += fmt::format("UNROLL for (u32 k = 0; k < {0}; ++k) if (first + k * {1} < (u32){2}) {3}[first + k * {1}] = moved[k];\n",
                      kEach, kThreads, all, to);
  return make_launch(body, {static_cast<int>(kThreads), 1, 1},
                     {static_cast<std::uint32_t>(ceil_div(count, kEach * kThreads)), 1, 1}, text);
}

}  // namespace

Launch emit_take(const KernelTarget& target, const Dense& x, const Dense& indices, int axis, const Dense& out, int status) {
  const AxisSplit split(x.shape, axis);
  if (auto words = take_words(target, x, indices, split, out, status)) return std::move(*words);
  Parameters p(true);
  Body body(target, p);
  const std::string in = p.input(x.stored, x.slot), wanted = p.input(indices.stored, indices.slot),
                    to = p.output(out.stored, out.slot), state = p.buffer("i64", status);
  const std::string count = p.whole_number(indices.shape.elements()), inner = p.whole_number(split.inner),
                    extent = p.whole_number(split.extent);
  const std::int64_t rows = split.outer * indices.shape.elements();
  const auto found = [&](const std::string& row) {
    return fmt::format("const i64 from = ({0} / {1} * {2} + {3}) * {4};\n", row, count, extent,
                       body.call("resolve", fmt::format("{}[{} % {}], {}, {}", wanted, row, count, extent, state)), inner);
  };
  if (target.is_cpu || split.inner == 1) {
    std::string text = found("j");
    text += fmt::format("for (i64 k = 0; k < {0}; ++k) {1}[j * {0} + k] = {2};\n", inner, to,
                        moved(body, x.stored, out.stored, fmt::format("{}[from + k]", in)));
    return emit_items(body, rows, split.inner, text);
  }
  std::string text = fmt::format("const i64 row = j / {0}, k = j % {0};\n", inner) + found("row");
  text += fmt::format("{}[j] = {};\n", to, moved(body, x.stored, out.stored, fmt::format("{}[from + k]", in)));
  return emit_items(body, rows * split.inner, 1, text);
}

namespace {

// On GPUs a work-item takes four neighbours of the result: it finds their line once, and its loads and stores are wide.
std::optional<Launch> gather_fours(const KernelTarget& target, const Dense& x, const Dense& indices, Axes axes,
                                   std::int64_t stride, std::int64_t extent, const Dense& out, int status) {
  constexpr int kTogether = 4;
  constexpr std::int64_t kLimit = (std::int64_t{1} << 31) - (1 << 24);
  const std::int64_t count = indices.shape.elements();
  if (target.is_cpu || x.shape.elements() >= kLimit || count >= kLimit || axes.extents.empty() ||
      axes.extents.back() % kTogether != 0 || element_bytes(out.stored) > 4)
    return std::nullopt;
  const std::int64_t along = axes.strides[0].back();
  axes.extents.back() /= kTogether;
  axes.strides[0].back() *= kTogether;
  Parameters p(false);
  Body body(target, p);
  const std::string in = p.input(x.stored, x.slot), wanted = p.input(indices.stored, indices.slot),
                    to = p.output(out.stored, out.slot), state = p.buffer("i64", status), length = p.whole_number(extent),
                    index = stored_type(indices.stored), result = stored_type(out.stored);
  const int threads = std::min(256, target.max_group_size);
  const int each = static_cast<int>(std::min<std::size_t>(kTogether, 16 / element_bytes(indices.stored)));
  std::string text =
      fmt::format("const i32 j = (i32)group_id(0) * {} + local_id(0);\nif (j < {}) {{\n", threads, p.index(count / kTogether));
  text += offset_text(p, axes, {0}, "j") + fmt::format("VARRAY({}, {}, w);\n", index, kTogether);
  for (int k = 0; k < kTogether; k += each)
    text += fmt::format("VLOAD({}, {}, w + {}, {} + j * {} + {});\n", index, each, k, wanted, kTogether, k);
  text += fmt::format("VARRAY({}, {}, r);\nUNROLL for (i32 l = 0; l < {}; ++l) {{\n", result, kTogether, kTogether);
  const std::string place = fmt::format("{} + (i32){} * {}", place_text(p, "o0", "l", along),
                                        body.call("resolve", fmt::format("w[l], {}, {}", length, state)), p.index(stride));
  text += fmt::format("r[l] = {};\n}}\n", moved(body, x.stored, out.stored, fmt::format("{}[{}]", in, place)));
  text += fmt::format("VSTORE({0}, {1}, r, {2} + j * {1});\n}}\n", result, kTogether, to);
  return make_launch(body, {threads, 1, 1}, {static_cast<std::uint32_t>(ceil_div(count / kTogether, threads)), 1, 1}, text);
}

}  // namespace

Launch emit_gather(const KernelTarget& target, const Dense& x, const Dense& indices, int axis, const Dense& out, int status) {
  const Strides strides = contiguous_strides(x.shape);
  std::vector<std::int64_t> others(strides.begin(), strides.begin() + x.shape.rank());
  others[at(axis)] = 0;
  const Axes axes = joined({indices.shape.begin(), indices.shape.end()}, {others});
  if (auto fours = gather_fours(target, x, indices, axes, strides[at(axis)], x.shape[axis], out, status))
    return std::move(*fours);
  Parameters p(true);
  Body body(target, p);
  const std::string in = p.input(x.stored, x.slot), wanted = p.input(indices.stored, indices.slot),
                    to = p.output(out.stored, out.slot), state = p.buffer("i64", status);
  std::string text = offset_text(p, axes, {0}, "j");
  text += fmt::format("const i64 from = o0 + {} * {};\n",
                      body.call("resolve", fmt::format("{}[j], {}, {}", wanted, p.whole_number(x.shape[axis]), state)),
                      p.whole_number(strides[at(axis)]));
  text += fmt::format("{}[j] = {};\n", to, moved(body, x.stored, out.stored, fmt::format("{}[from]", in)));
  return emit_items(body, indices.shape.elements(), 1, text);
}

std::vector<Launch> emit_arg_reduce(const KernelTarget& target, const Dense& x, const ArgReduceAttr& attr, const Dense& out,
                                    const Scratch& scratch) {
  const AxisSplit split(x.shape, attr.axis);
  if (!target.is_cpu && split.inner == 1) return emit_arg_reduce_lines(target, x, attr, out, split.outer, split.extent, scratch);
  if (!target.is_cpu) return emit_arg_reduce_columns(target, x, attr, out, {split.outer, split.extent, split.inner}, scratch);
  Parameters p(true);
  Body body(target, p);
  const std::string in = p.input(x.stored, x.slot), to = p.output(out.stored, out.slot);
  const std::string extent = p.whole_number(split.extent), inner = p.whole_number(split.inner), type = variable_type(x.stored);
  std::string text = fmt::format("const i64 from = j / {0} * {1} * {0} + j % {0};\n", inner, extent);
  text += fmt::format("{} best = {};\ni64 place = 0;\n", type, body.loaded(x.stored, fmt::format("{}[from]", in)));
  text += fmt::format("for (i64 a = 1; a < {}; ++a) {{\nconst {} value = {};\n", extent, type,
                      body.loaded(x.stored, fmt::format("{}[from + a * {}]", in, inner)));
  text += fmt::format("const i32 better = best == best && (value != value || value {} best);\n", attr.largest ? ">" : "<");
  text += "best = better ? value : best;\nplace = better ? a : place;\n}\n";
  text += fmt::format("{}[j] = place;\n", to);
  return {emit_items(body, split.outer * split.inner, split.extent, text)};
}

// Segments of a line are scanned by one work-item each, after the sums of the segments before it are known.
std::vector<Launch> emit_cumulative(const KernelTarget& target, const Dense& x, const CumulativeAttr& attr, const Dense& out,
                                    const Scratch& scratch) {
  const AxisSplit split(x.shape, attr.axis);
  if (!target.is_cpu && split.inner == 1) return emit_cumulative_lines(target, x, attr, out, split.outer, split.extent, scratch);
  const std::int64_t lines = split.outer * split.inner,
                     wanted = target.is_cpu ? target.compute_units * 2 : target.compute_units * 1024;
  const std::int64_t segments =
      std::clamp<std::int64_t>(wanted / std::max<std::int64_t>(lines, 1), 1, std::max<std::int64_t>(split.extent / 128, 1));
  const std::int64_t segment = ceil_div(split.extent, segments);
  const DType compute = compute_dtype(x.stored);
  const DType as = compute == DType::f32 && target.has_f64 ? DType::f64 : compute;
  const std::string type = variable_type(as);
  const char* wrap = element_bytes(as) == 8 ? "u64" : "u32";
  const auto combine = [&](const std::string& a, const std::string& b) {
    const char* op = attr.product ? "*" : "+";
    return is_float(as) ? fmt::format("{} {} {}", a, op, b) : fmt::format("({})(({}){} {} ({}){})", type, wrap, a, op, wrap, b);
  };
  const std::string identity = literal(as, attr.product ? 1 : 0);
  // Item j is segment j / lines of line j % lines: neighbouring items read neighbouring lines.
  const auto head = [&](Parameters& p, const std::string& extent, const std::string& inner) {
    std::string text = fmt::format("const i64 line = j % {0}, s = j / {0}, from = line / {1} * {2} * {1} + line % {1};\n",
                                   p.whole_number(lines), inner, extent);
    return text + fmt::format("const i64 begin = s * {0}, end = begin + {0} < {1} ? begin + {0} : {1};\n",
                              p.whole_number(segment), extent);
  };
  std::vector<Launch> launches;
  int partial = -1;
  if (segments > 1) {
    partial = scratch(at(segments * lines) * element_bytes(as));
    {
      Parameters p(true);
      Body body(target, p);
      const std::string in = p.input(x.stored, x.slot), sums = p.output(as, partial), extent = p.whole_number(split.extent),
                        inner = p.whole_number(split.inner);
      std::string text = head(p, extent, inner) + fmt::format("{} sum = {};\n", type, identity);
      text += fmt::format("for (i64 a = begin; a < end; ++a) {{ const {0} value = ({0}){1}; sum = {2}; }}\n{3}[j] = sum;\n", type,
                          body.loaded(x.stored, fmt::format("{}[from + a * {}]", in, inner)), combine("sum", "value"), sums);
      launches.push_back(emit_items(body, segments * lines, segment, text));
    }
    {
      Parameters p(true);
      Body body(target, p);
      const std::string sums = p.buffer(type, partial), count = p.whole_number(segments), stride = p.whole_number(lines);
      std::string text = fmt::format(
          "{} sum = {};\nfor (i64 s = 0; s < {}; ++s) {{ const {} value = {}[s * {} + j]; {}[s * {} + j] = sum; sum = {}; }}\n",
          type, identity, count, type, sums, stride, sums, stride, combine("sum", "value"));
      launches.push_back(emit_items(body, lines, segments, text));
    }
  }
  Parameters p(true);
  Body body(target, p);
  const std::string in = p.input(x.stored, x.slot), to = p.output(out.stored, out.slot), extent = p.whole_number(split.extent),
                    inner = p.whole_number(split.inner);
  std::string text = head(p, extent, inner);
  text += fmt::format("{} sum = {};\n", type, segments > 1 ? p.input(as, partial) + "[j]" : identity);
  const std::string narrow = as == compute ? "sum" : "(f32)sum";
  text += fmt::format("for (i64 a = begin; a < end; ++a) {{\nconst {0} value = ({0}){1};\nsum = {2};\n", type,
                      body.loaded(x.stored, fmt::format("{}[from + a * {}]", in, inner)), combine("sum", "value"));
  text += fmt::format("{}[from + a * {}] = {};\n}}\n", to, inner, body.to_store(out.stored, narrow));
  launches.push_back(emit_items(body, segments * lines, segment, text));
  return launches;
}

// Runs of 16 are sorted by insertion, then pairs of runs merged: an element's place is its own in its run plus the number of
// elements of the other run that come before it.
std::vector<Launch> emit_arg_sort(const KernelTarget& target, const Dense& x, const ArgSortAttr& attr, const Dense& out,
                                  const Scratch& scratch) {
  constexpr std::int64_t kRun = 16;
  const AxisSplit split(x.shape, attr.axis);
  const std::int64_t lines = split.outer * split.inner;
  int merges = 0;
  for (std::int64_t run = kRun; run < split.extent; run *= 2) ++merges;
  const int other = merges > 0 ? scratch(at(x.shape.elements()) * 8) : -1;
  const std::string type = variable_type(x.stored);
  // Whether element a (at index i) stands before b (at index k): NaN last, equal ones by index.
  const std::string before =
      fmt::format("(a == a ? (b != b || a {} b || (a == b && i < k)) : (b != b && i < k))", attr.descending ? ">" : "<");
  std::vector<Launch> launches;
  {
    Parameters p(true);
    Body body(target, p);
    const std::string in = p.input(x.stored, x.slot), to = p.buffer("i64", merges % 2 == 0 ? out.slot : other),
                      extent = p.whole_number(split.extent), inner = p.whole_number(split.inner), count = p.whole_number(lines);
    std::string text =
        fmt::format("const i64 line = j % {0}, begin = j / {0} * {1}, from = line / {2} * {3} * {2} + line % {2};\n", count, kRun,
                    inner, extent);
    text += fmt::format("const i64 end = begin + {0} < {1} ? begin + {0} : {1};\n", kRun, extent);
    text += fmt::format("for (i64 i = begin; i < end; ++i) {{\nconst {} a = {};\ni64 place = i;\n", type,
                        body.loaded(x.stored, fmt::format("{}[from + i * {}]", in, inner)));
    text += fmt::format(
        "for (; place > begin; --place) {{\nconst i64 k = {0}[from + (place - 1) * {1}];\nconst {2} b = {3};\nif (!{4}) break;\n",
        to, inner, type, body.loaded(x.stored, fmt::format("{}[from + k * {}]", in, inner)), before);
    text += fmt::format("{0}[from + place * {1}] = k;\n}}\n{0}[from + place * {1}] = i;\n}}\n", to, inner);
    launches.push_back(emit_items(body, lines * ceil_div(split.extent, kRun), kRun * 4, text));
  }
  std::int64_t run = kRun;
  for (int merge = 0; merge < merges; ++merge, run *= 2) {
    Parameters p(true);
    Body body(target, p);
    const bool into_out = (merges - merge) % 2 == 1;
    const std::string in = p.input(x.stored, x.slot), order = p.input(DType::i64, into_out ? other : out.slot),
                      to = p.output(DType::i64, into_out ? out.slot : other), extent = p.whole_number(split.extent),
                      inner = p.whole_number(split.inner), count = p.whole_number(lines), length = p.whole_number(run);
    std::string text = fmt::format("const i64 line = j % {0}, place = j / {0}, from = line / {1} * {2} * {1} + line % {1};\n",
                                   count, inner, extent);
    text += fmt::format("const i64 i = {0}[from + place * {1}];\nconst {2} a = {3};\n", order, inner, type,
                        body.loaded(x.stored, fmt::format("{}[from + i * {}]", in, inner)));
    text += fmt::format("const i64 mine = place / {0}, pair = mine / 2 * 2 * {0}, sibling = (mine ^ 1) * {0};\n", length);
    text += fmt::format(
        "i64 low = sibling < {0} ? sibling : {0};\nconst i64 start = low;\ni64 high = sibling + {1} < {0} ? sibling + {1} : "
        "{0};\n",
        extent, length);
    text += fmt::format(
        "while (low < high) {{\nconst i64 middle = (low + high) / 2, k = {0}[from + middle * {1}];\nconst {2} b = {3};\n", order,
        inner, type, body.loaded(x.stored, fmt::format("{}[from + k * {}]", in, inner)));
    text += fmt::format("if ({}) high = middle; else low = middle + 1;\n}}\n", before);
    text += fmt::format("{}[from + (pair + place - mine * {} + low - start) * {}] = i;\n", to, length, inner);
    launches.push_back(emit_items(body, lines * split.extent, 16, text));
  }
  return launches;
}

}  // namespace tenon::emit
