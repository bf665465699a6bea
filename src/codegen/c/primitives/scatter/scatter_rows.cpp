// Scatter by sorting, on NVIDIA GPUs: places are sorted with the numbers of their updates. Work-items then add the updates of one
// place, which are neighbours in that order; if a place is a whole row, each for a few columns. The order of the sums is that of
// the indices, so the result does not depend on how the work is divided.
#include <fmt/format.h>

#include <algorithm>

#include "codegen/c/primitives/primitives.h"
#include "codegen/c/primitives/scatter/scatter.h"
#include "codegen/c/sort/sort.h"
#include "tenon/error.h"

namespace tenon::emit {
namespace {

// Elements of a row before the next one starts.
std::int64_t row_length(const Shape& shape, int axis) {
  std::int64_t length = 1;
  for (int i = axis + 1; i < shape.rank(); ++i) length *= shape[i];
  return length;
}

// Columns that a work-item takes: as many as one load brings.
int columns(DType a, DType b, std::int64_t length) {
  int width = 16 / static_cast<int>(std::max(element_bytes(a), element_bytes(b)));
  while (length % width != 0) width /= 2;
  return width;
}

// Updates of |length| elements each, whose places are |keys| times |length|, in the order of their places.
struct Updates {
  Dense keys;  // u32
  std::int64_t length = 1, places = 1;
};

constexpr int kAhead = 4;

std::vector<Launch> add_in_order(const KernelTarget& target, const Updates& to_do, const Dense& updates, bool adds,
                                 const Dense& out, const Scratch& scratch) {
  const std::int64_t count = to_do.keys.shape.elements(), length = to_do.length;
  const Dense sorted{scratch(static_cast<std::uint64_t>(count) * 4), DType::u32, Shape{count}};
  const Dense order{scratch(static_cast<std::uint64_t>(count) * 8), DType::i64, Shape{count}};
  auto sorting = emit_radix_sort(target, to_do.keys, {.limit = to_do.places}, {.indices = order, .values = sorted}, scratch);
  if (!sorting) throw Error(ErrorCode::internal, "updates are scattered whose places cannot be sorted");
  std::vector<Launch> launches = std::move(*sorting);

  Parameters p(true);
  Body body(target, p);
  const int width = columns(updates.stored, out.stored, length);
  const std::string known = p.input(DType::u32, sorted.slot), numbers = p.input(DType::i64, order.slot),
                    in = p.input(updates.stored, updates.slot), to = p.buffer(stored_type(out.stored), out.slot),
                    all = p.whole_number(count), row = p.whole_number(length), chunks = p.whole_number(length / width);
  const std::string stored = stored_type(out.stored), update = stored_type(updates.stored);
  std::string text = fmt::format("const i64 n = j / {0}, c = j % {0} * {1};\nconst u32 key = {2}[n];\n", chunks, width, known);
  text += fmt::format("if (n > 0 && {}[n - 1] == key) continue;\n", known);
  text += fmt::format("GLOBAL {}* const place = {} + (i64)key * {} + c;\n", stored, to, row);
  text += fmt::format("VARRAY({0}, {1}, r);\nVARRAY({2}, {1}, u);\n", stored, width, update);
  if (adds) {
    text += fmt::format("{} sum[{}];\nVLOAD({}, {}, r, place);\n", variable_type(out.stored), width, stored, width);
    text += fmt::format("UNROLL for (i32 l = 0; l < {}; ++l) sum[l] = {};\n", width, body.loaded(out.stored, "r[l]"));
    // Several are on their way at once; a place with many updates would wait for each of them otherwise.
    text += fmt::format("for (i64 m = n, more = 1; more; m += {0}) {{\ni64 number[{0}];\n{1} next[{0}][{2}];\n", kAhead, update,
                        width);
    text += fmt::format("UNROLL for (i32 k = 0; k < {}; ++k) number[k] = m + k < {} && {}[m + k] == key ? {}[m + k] : -1;\n",
                        kAhead, all, known, numbers);
    text += fmt::format(
        "UNROLL for (i32 k = 0; k < {0}; ++k)\nif (number[k] >= 0) {{\nVLOAD({1}, {2}, u, {3} + number[k] * {4} + c);\n", kAhead,
        update, width, in, row);
    text += fmt::format("UNROLL for (i32 l = 0; l < {}; ++l) next[k][l] = u[l];\n}}\n", width);
    text +=
        fmt::format("UNROLL for (i32 k = 0; k < {}; ++k)\nif (number[k] >= 0) UNROLL for (i32 l = 0; l < {}; ++l) sum[l] = {};\n",
                    kAhead, width, sum_text(out.stored, "sum[l]", body.loaded(updates.stored, "next[k][l]")));
    text += fmt::format("more = number[{}] >= 0;\n}}\n", kAhead - 1);
    text += fmt::format("UNROLL for (i32 l = 0; l < {}; ++l) r[l] = {};\n", width, body.to_store(out.stored, "sum[l]"));
  } else {
    text += fmt::format("i64 m = n;\nwhile (m + 1 < {0} && {1}[m + 1] == key) ++m;\n", all, known);
    text += fmt::format("VLOAD({}, {}, u, {} + {}[m] * {} + c);\n", update, width, in, numbers, row);
    text += fmt::format("UNROLL for (i32 l = 0; l < {}; ++l) r[l] = {};\n", width,
                        body.to_store(out.stored, body.loaded(updates.stored, "u[l]")));
  }
  text += fmt::format("VSTORE({}, {}, r, place);\n", stored, width);
  launches.push_back(emit_items(body, count * (length / width), 1, text));
  return launches;
}

constexpr std::int64_t kFew = 64, kMany = (std::int64_t{1} << 31) - 4096;

}  // namespace

bool can_scatter_rows(const KernelTarget& target, const Shape& indices, const ScatterAttr& attr, const Dense& out) {
  if (target.dialect != Dialect::cuda || indices[attr.axis] <= kFew || indices[attr.axis] >= kMany ||
      out.shape[attr.axis] >= kMany)
    return false;
  for (int i = 0; i < indices.rank(); ++i)
    if (i != attr.axis && (indices[i] != out.shape[i] || (i < attr.axis && indices[i] != 1))) return false;
  // Single elements that replace each other have a faster way.
  return out.stored != DType::boolean && (attr.add || row_length(out.shape, attr.axis) > 1);
}

std::vector<Launch> emit_scatter_rows(const KernelTarget& target, const Dense& indices, const Dense& updates,
                                      const ScatterAttr& attr, const Dense& out, int status, const Scratch& scratch) {
  const std::int64_t count = indices.shape.elements(), extent = out.shape[attr.axis];
  const Dense keys{scratch(static_cast<std::uint64_t>(count) * 4), DType::u32, Shape{count}};
  Parameters p(true);
  Body body(target, p);
  const std::string in = p.input(indices.stored, indices.slot), state = p.buffer("i64", status), to = p.buffer("u32", keys.slot);
  const std::string text = fmt::format("{}[j] = (u32){};\n", to,
                                       body.call("resolve", fmt::format("{}[j], {}, {}", in, p.whole_number(extent), state)));
  std::vector<Launch> launches{emit_items(body, count, 1, text)};
  for (Launch& launch : add_in_order(target, {keys, row_length(out.shape, attr.axis), extent}, updates, attr.add, out, scratch))
    launches.push_back(std::move(launch));
  return launches;
}

bool can_add_in_order(const KernelTarget& target, const Dense& indices, const Dense& out) {
  return target.dialect == Dialect::cuda && indices.shape.elements() > kFew && indices.shape.elements() < kMany &&
         out.shape.elements() < kMany;
}

// The places of the updates in the result as a whole are sorted. Those of one place keep the order of their line.
std::vector<Launch> emit_add_in_order(const KernelTarget& target, const Dense& indices, const Dense& updates,
                                      const ScatterAttr& attr, const Dense& out, int status, const Scratch& scratch) {
  const std::int64_t count = indices.shape.elements();
  const Dense keys{scratch(static_cast<std::uint64_t>(count) * 4), DType::u32, Shape{count}};
  Parameters p(true);
  Body body(target, p);
  const std::string text =
      place_of_update(body, indices, attr, out, status) + fmt::format("{}[j] = (u32)place;\n", p.buffer("u32", keys.slot));
  std::vector<Launch> launches{emit_items(body, count, 1, text)};
  for (Launch& launch : add_in_order(target, {keys, 1, out.shape.elements()}, updates, true, out, scratch))
    launches.push_back(std::move(launch));
  return launches;
}

}  // namespace tenon::emit
