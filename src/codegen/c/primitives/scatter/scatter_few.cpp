// Sums of many rows in few places, on NVIDIA GPUs (the sums of clusters, histograms): every work-item has a table of all places
// for one column in local memory, and adds the rows of a part that are its own to it, one after the other. A second kernel joins
// the tables. Nothing is sorted, and how the rows are divided depends on the sizes alone, so every run has the same sums.
#include <fmt/format.h>

#include <algorithm>

#include "codegen/c/loops/geometry.h"
#include "codegen/c/primitives/scatter/scatter.h"
#include "codegen/c/sort/keys.h"

namespace tenon::emit {
namespace {

constexpr std::string_view kTables = R"(extern __shared__ __align__(16) unsigned char memory[];
$TYPE* const table = ($TYPE*)memory + threadIdx.x;
const i32 t = threadIdx.x, places = (i32)$PLACES;
const i64 first = (i64)blockIdx.x * COLUMNS, column = first + t % COLUMNS;
const i64 begin = (i64)blockIdx.y * $SEGMENT, end = begin + $SEGMENT < $COUNT ? begin + $SEGMENT : $COUNT;
for (i32 k = 0; k < places; ++k) table[k * THREADS] = ($TYPE)0;
if (column < $LENGTH)
for (i64 b = begin + t / COLUMNS; b < end; b += STREAMS * TOGETHER) {
$INDEX wanted[TOGETHER];
$STORED update[TOGETHER];
UNROLL for (i32 k = 0; k < TOGETHER; ++k) {
const i64 n = b + k * STREAMS;
if (n < end) { wanted[k] = $INDICES[$OFFSET + n * $STEP]; update[k] = $UPDATES[n * $LENGTH + column]; }
}
UNROLL for (i32 k = 0; k < TOGETHER; ++k)
if (b + k * STREAMS < end) {
$TYPE* const place = table + (i32)$RESOLVED * THREADS;
*place = $SUM;
}
}
BARRIER;
const $TYPE* const all = ($TYPE*)memory;
for (i32 k = t; k < places * COLUMNS; k += THREADS) {
const i32 place = k / COLUMNS, c = k % COLUMNS;
if (first + c >= $LENGTH) continue;
$TOTAL sum = ($TOTAL)0;
UNROLL_BY(8) for (i32 s = 0; s < STREAMS; ++s) { const $TOTAL part = ($TOTAL)all[place * THREADS + s * COLUMNS + c]; sum = $JOINED; }
$PARTS[((i64)blockIdx.y * places + place) * $LENGTH + first + c] = sum;
}
)";

constexpr std::string_view kJoin = R"(LOCAL $TOTAL shared[256];
const i32 t = threadIdx.x;
const i64 j = (i64)blockIdx.x * 32 + t % 32;
$TOTAL sum = ($TOTAL)0;
if (j < $RESULTS)
UNROLL_BY(8) for (i64 p = t / 32; p < $PART_COUNT; p += 8) { const $TOTAL part = $PARTS[p * $RESULTS + j]; sum = $JOINED; }
shared[t] = sum;
BARRIER;
if (t < 32 && j < $RESULTS) {
UNROLL for (i32 w = 1; w < 8; ++w) { const $TOTAL part = shared[w * 32 + t]; sum = $JOINED; }
$FROM
const $TOTAL part = ($TOTAL)$START;
sum = $JOINED;
$OUT[j] = $RESULT;
}
)";

// How the rows of |length| elements are divided.
struct Tables {
  std::int64_t places, length, count;
  DType compute;
  int columns = 1, threads = 256;
  std::int64_t parts = 1, segment = 1;

  Tables(const KernelTarget& target, const Shape& shape, int axis, std::int64_t updates, DType stored)
      : places(shape[axis]),
        length(1),
        count(updates),
        compute(compute_dtype(stored)) {
    for (int i = axis + 1; i < shape.rank(); ++i) length *= shape[i];
    columns = static_cast<int>(std::min<std::int64_t>(power_of_two_from(length), 32));
    constexpr std::int64_t kLeastGroups = 3;
    const std::int64_t most = most_bytes(target);
    if (bytes() * kLeastGroups > most) threads = 128;
    if (bytes() <= 0 || places > most) return;
    // Each part fills and joins its tables: it should have more rows than those have places.
    const std::int64_t groups = std::clamp<std::int64_t>(most / bytes(), 1, 4) * target.compute_units,
                       shortest = streams() * std::max<std::int64_t>(places / 2, 8);
    parts = std::clamp<std::int64_t>(groups / ceil_div(length, columns), 1, std::max<std::int64_t>(count / shortest, 1));
    segment = ceil_div(count, parts);
    parts = std::max<std::int64_t>(ceil_div(count, segment), 1);
  }

  static std::int64_t most_bytes(const KernelTarget& target) {
    return target.has_warpgroup_products ? 200 * 1024 : static_cast<std::int64_t>(target.local_bytes);
  }
  std::int64_t bytes() const { return places * threads * static_cast<std::int64_t>(element_bytes(compute)); }
  std::int64_t streams() const { return threads / columns; }
  DType total() const { return compute == DType::f32 ? DType::f64 : compute; }
};

}  // namespace

bool can_scatter_few(const KernelTarget& target, const Shape& indices, const ScatterAttr& attr, const Shape& out, DType dtype) {
  constexpr std::int64_t kUpdates = 256, kUpdatesOfPlace = 8;
  const std::int64_t count = indices[attr.axis], places = out[attr.axis];
  const DType compute = compute_dtype(dtype);
  if (!attr.add || compute == DType::boolean || element_bytes(compute) < 4 || count < kUpdates ||
      count < places * kUpdatesOfPlace || !can_scatter_rows(target, indices, attr, {0, dtype, out}))
    return false;
  const Tables tables(target, out, attr.axis, count, dtype);
  return places <= Tables::most_bytes(target) && tables.bytes() <= Tables::most_bytes(target);
}

std::vector<Launch> emit_scatter_few(const KernelTarget& target, const Access& x, const Access& indices, const Dense& updates,
                                     const ScatterAttr& attr, const Dense& out, int status, const Scratch& scratch) {
  const Tables tables(target, out.shape, attr.axis, updates.shape[attr.axis], out.stored);
  const std::int64_t results = tables.places * tables.length;
  const int parts = scratch(static_cast<std::uint64_t>(tables.parts * results) * element_bytes(tables.total()));
  const std::string total = variable_type(tables.total());
  const std::string combined = sum_text(tables.total(), "sum", "part");

  Parameters p(true);
  Body body(target, p);
  std::map<std::string, std::string> names{
      {"TYPE", variable_type(tables.compute)},
      {"TOTAL", total},
      {"JOINED", combined},
      {"PLACES", p.whole_number(tables.places)},
      {"LENGTH", p.whole_number(tables.length)},
      {"COUNT", p.whole_number(tables.count)},
      {"SEGMENT", p.whole_number(tables.segment)},
      {"INDEX", stored_type(indices.stored)},
      {"STORED", stored_type(updates.stored)},
      {"INDICES", p.input(indices.stored, indices.slot)},
      {"OFFSET", p.whole_number(indices.offset)},
      {"STEP", p.whole_number(indices.strides[static_cast<std::size_t>(attr.axis)])},
      {"UPDATES", p.input(updates.stored, updates.slot)},
      {"PARTS", p.output(tables.total(), parts)},
      {"SUM", sum_text(out.stored, "*place", body.loaded(updates.stored, "update[k]"))},
  };
  names["RESOLVED"] =
      body.call("resolve", fmt::format("wanted[k], {}, {}", p.whole_number(tables.places), p.buffer("i64", status)));
  const std::string sizes =
      fmt::format("enum {{ THREADS = {}, COLUMNS = {}, STREAMS = THREADS / COLUMNS, TOGETHER = 8, KIB = {} }};\n", tables.threads,
                  tables.columns, ceil_div(tables.bytes(), 1024));
  Launch adding = make_launch(
      body, {tables.threads, 1, 1},
      {static_cast<std::uint32_t>(ceil_div(tables.length, tables.columns)), static_cast<std::uint32_t>(tables.parts), 1},
      sizes + filled(kTables, names));
  adding.kernel.dynamic_bytes = static_cast<int>(ceil_div(tables.bytes(), 1024) * 1024);

  Parameters q(true);
  Body end(target, q);
  const Axes axes = joined({out.shape.begin(), out.shape.end()}, {x.strides});
  std::map<std::string, std::string> of_join{
      {"TOTAL", total},
      {"JOINED", combined},
      {"RESULTS", q.whole_number(results)},
      {"PART_COUNT", q.whole_number(tables.parts)},
      {"PARTS", q.input(tables.total(), parts)},
      {"FROM", offset_text(q, axes, {x.offset}, "j")},
      {"START", end.loaded(x.stored, fmt::format("{}[o0]", q.input(x.stored, x.slot)))},
      {"OUT", q.output(out.stored, out.slot)},
      {"RESULT", end.to_store(out.stored, tables.total() == tables.compute ? "sum" : "(f32)sum")},
  };
  Launch joining =
      make_launch(end, {256, 1, 1}, {static_cast<std::uint32_t>(ceil_div(results, 32)), 1, 1}, filled(kJoin, of_join));
  return {std::move(adding), std::move(joining)};
}

}  // namespace tenon::emit
