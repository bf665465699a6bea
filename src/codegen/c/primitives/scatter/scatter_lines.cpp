// Scatter with an index for each element, on NVIDIA GPUs: a warp takes a line of the result, keeps it in local memory, and goes
// through the line's updates in their order, 32 at a time, while the next ones are on their way. Those of one place among the 32
// take turns, so that sums are formed in the order of the indices and the last update wins, without a sort and without atomics.
#include <fmt/format.h>

#include <algorithm>

#include "codegen/c/loops/geometry.h"
#include "codegen/c/primitives/scatter/scatter.h"
#include "codegen/c/sort/keys.h"

namespace tenon::emit {
namespace {

std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

constexpr std::int64_t kMostLines = 8;  // of a group

constexpr std::string_view kText = R"(extern __shared__ __align__(16) unsigned char memory[];
$TYPE* const all = ($TYPE*)memory;
const i32 t = threadIdx.x, lane = t & 31, places = (i32)$PLACES;
const i64 first = (i64)blockIdx.x * LINES;
const i32 lines = $LINE_COUNT - first < LINES ? (i32)($LINE_COUNT - first) : LINES;
UNROLL_BY(8) for (i32 k = t; k < lines * places; k += THREADS) {
const i32 own = $OWN_LINE, place = $OWN_PLACE;
const i64 line = first + own;
$OFFSETS
all[own * LENGTH + place] = $START;
}
BARRIER;
if (t / 32 < lines) {
const i64 line = first + t / 32;
$TYPE* const values = all + t / 32 * LENGTH;
$OFFSETS
$INDEX next_wanted[TOGETHER];
$STORED next_update[TOGETHER];
const auto load = [&](const i32 begin) {
UNROLL for (i32 k = 0; k < TOGETHER; ++k) {
const i32 n = begin + k * 32 + lane;
const i64 from = o0 + (i64)n * $STEP;
if (n < (i32)$UPDATES) { next_wanted[k] = $INDICES[from]; next_update[k] = $VALUES[from]; }
}
};
load(0);
for (i32 begin = 0; begin < (i32)$UPDATES; begin += 32 * TOGETHER) {
$INDEX wanted[TOGETHER];
$STORED update[TOGETHER];
UNROLL for (i32 k = 0; k < TOGETHER; ++k) { wanted[k] = next_wanted[k]; update[k] = next_update[k]; }
load(begin + 32 * TOGETHER);
UNROLL for (i32 k = 0; k < TOGETHER; ++k) {
const i32 is_there = begin + k * 32 + lane < (i32)$UPDATES;
const i32 place = is_there ? (i32)$RESOLVED : -1 - lane;
const u32 same = __match_any_sync(0xffffffffu, place);
const $TYPE value = is_there ? $VALUE : ($TYPE)0;
$TAKE
__syncwarp();
}
}
}
BARRIER;
UNROLL_BY(8) for (i32 k = t; k < lines * places; k += THREADS) {
const i32 own = $OWN_LINE, place = $OWN_PLACE;
const i64 line = first + own;
$OFFSETS
$OUT[o1 + place * $OUT_STEP] = $RESULT;
}
)";

std::int64_t most_bytes(const KernelTarget& target) {
  return target.has_warpgroup_products ? 200 * 1024 : static_cast<std::int64_t>(target.local_bytes);
}
std::int64_t value_bytes(DType dtype) {
  const DType compute = compute_dtype(dtype);
  return compute == DType::boolean ? 4 : static_cast<std::int64_t>(element_bytes(compute));
}
// Lines begin at few different distances: they are in the text, so that kernels that need different amounts of local memory are
// different ones.
std::int64_t line_bytes(std::int64_t places, DType dtype) {
  return value_bytes(dtype) * (places <= 1024 ? power_of_two_from(places) : ceil_div(places, 1024) * 1024);
}

// The lines' other axes are the same in the indices and in the result.
bool has_all_lines(const Shape& indices, const Shape& out, int axis) {
  for (int i = 0; i < out.rank(); ++i)
    if (i != axis && indices[i] != out[i]) return false;
  return true;
}

}  // namespace

bool can_scatter_lines(const KernelTarget& target, const Shape& indices, const ScatterAttr& attr, const Shape& out, DType dtype) {
  constexpr std::int64_t kFew = 16, kShort = 512;
  const std::int64_t count = indices[attr.axis], lines = indices.elements() / std::max<std::int64_t>(count, 1);
  if (target.dialect != Dialect::cuda || count <= kFew || count >= (1 << 30) || !has_all_lines(indices, out, attr.axis) ||
      (attr.add && !is_float(dtype)) || line_bytes(out[attr.axis], dtype) > most_bytes(target))
    return false;
  // A warp takes its line's updates one after the other: there have to be many lines, or few updates.
  return lines * 2 >= target.compute_units || count <= kShort;
}

Launch emit_scatter_lines(const KernelTarget& target, const Access& x, const Dense& indices, const Dense& updates,
                          const ScatterAttr& attr, const Dense& out, int status) {
  const std::int64_t count = indices.shape[attr.axis], places = out.shape[attr.axis], lines = indices.shape.elements() / count;
  const std::int64_t bytes = line_bytes(places, out.stored),
                     together = std::clamp<std::int64_t>(most_bytes(target) / bytes, 1, kMostLines);
  const DType compute = compute_dtype(out.stored);
  // Those without a line of their own help to read and to write the lines.
  const std::int64_t threads = together * bytes > 48 * 1024 ? 512 : 32 * kMostLines;
  Parameters p(true);
  Body body(target, p);
  const Strides index_strides = contiguous_strides(indices.shape), out_strides = contiguous_strides(out.shape);
  std::vector<std::int64_t> extents;
  std::vector<std::vector<std::int64_t>> strides(3);
  for (int axis = 0; axis < out.shape.rank(); ++axis) {
    if (axis == attr.axis) continue;
    extents.push_back(out.shape[axis]);
    strides[0].push_back(index_strides[at(axis)]);
    strides[1].push_back(out_strides[at(axis)]);
    strides[2].push_back(x.strides[at(axis)]);
  }
  const std::int64_t out_step = out_strides[at(attr.axis)];
  // Neighbouring work-items touch neighbours in memory: of one line, or of several.
  const bool is_line_together = out_step == 1;
  std::map<std::string, std::string> names{
      {"TYPE", variable_type(compute)},
      {"PLACES", p.whole_number(places)},
      {"LINE_COUNT", p.whole_number(lines)},
      {"UPDATES", p.whole_number(count)},
      {"STEP", p.whole_number(index_strides[at(attr.axis)])},
      {"OUT_STEP", p.whole_number(out_step)},
      {"INDEX", stored_type(indices.stored)},
      {"STORED", stored_type(updates.stored)},
      {"INDICES", p.input(indices.stored, indices.slot)},
      {"VALUES", p.input(updates.stored, updates.slot)},
      {"OUT", p.output(out.stored, out.slot)},
      {"OWN_LINE", is_line_together ? "k / places" : "k % lines"},
      {"OWN_PLACE", is_line_together ? "k % places" : "k / lines"},
      {"OFFSETS", offset_text(p, joined(extents, strides), {0, 0, x.offset}, "line")},
      {"VALUE", body.loaded(updates.stored, "update[k]")},
      {"RESULT", body.to_store(out.stored, "all[own * LENGTH + place]")},
  };
  names["START"] = body.loaded(
      x.stored, fmt::format("{}[o2 + place * {}]", p.input(x.stored, x.slot), p.whole_number(x.strides[at(attr.axis)])));
  names["RESOLVED"] = body.call("resolve", fmt::format("wanted[k], {}, {}", p.whole_number(places), p.buffer("i64", status)));
  names["TAKE"] = attr.add ? R"(const i32 turn = __popc(same & ((1u << lane) - 1u));
for (i32 now = 0; __ballot_sync(0xffffffffu, turn >= now); ++now) {
if (is_there && turn == now) values[place] = values[place] + value;
__syncwarp();
})"
                           : "if (is_there && same >> lane == 1u) values[place] = value;";
  const std::string sizes = fmt::format("enum {{ LINES = {}, LENGTH = {}, THREADS = {}, TOGETHER = 8 }};\n", together,
                                        bytes / value_bytes(out.stored), threads);
  Launch launch = make_launch(body, {static_cast<int>(threads), 1, 1},
                              {static_cast<std::uint32_t>(ceil_div(lines, together)), 1, 1}, sizes + filled(kText, names));
  launch.kernel.dynamic_bytes = static_cast<int>(together * bytes);
  return launch;
}

}  // namespace tenon::emit
