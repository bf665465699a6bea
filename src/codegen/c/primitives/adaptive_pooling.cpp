// Pooling to a given number of windows, on NVIDIA GPUs. A group takes rows of windows: its work-items read whole rows of the
// input, each a column of them, and join the elements that the windows of a row have in common above each other. Windows that
// overlap along the row then take their columns from local memory.
#include <fmt/format.h>

#include <algorithm>

#include "codegen/c/loops/group.h"
#include "codegen/c/primitives/primitives.h"
#include "codegen/c/sort/keys.h"

namespace tenon::emit {
namespace {

constexpr int kThreads = 256;

constexpr std::string_view kText = R"(LOCAL $TYPE columns[LINES * WIDTH];
const i32 t = threadIdx.x, lane = t % LANES, line = t / LANES;
const i32 depth = (i32)$DEPTH, height = (i32)$HEIGHT, width = (i32)$WIDTH, depths = (i32)$DEPTHS, heights = (i32)$HEIGHTS, widths = (i32)$WIDTHS;
const i64 row = (i64)blockIdx.x * ROWS + line / PER;
if (row < $ALL) {
const i32 h_out = (i32)(row % heights), d_out = (i32)(row / heights % depths);
const i32 d_end = ((d_out + 1) * depth + depths - 1) / depths;
const i32 h_first = h_out * height / heights, h_count = ((h_out + 1) * height + heights - 1) / heights - h_first;
GLOBAL const $STORED* const image = $IN + (row / heights / depths * depth * height + h_first) * width;
for (i32 c = lane; c < width; c += LANES) {
$TYPE found = $IDENTITY;
const i32 d_step = PER / h_count, h_step = PER % h_count;
i32 d = d_out * depth / depths + line % PER / h_count, h = line % PER % h_count;
while (d < d_end) {
$STORED next[TOGETHER];
i32 count = 0;
UNROLL for (i32 k = 0; k < TOGETHER; ++k)
if (d < d_end) {
next[k] = image[(d * height + h) * width + c];
count = k + 1;
d += d_step;
h += h_step;
if (h >= h_count) { h -= h_count; ++d; }
}
UNROLL for (i32 k = 0; k < TOGETHER; ++k)
if (k < count) { const $TYPE value = $NEXT; found = $JOINED; }
}
columns[line * WIDTH + c] = found;
}
}
BARRIER;
for (i32 first = 0; first < ROWS * widths; first += THREADS / SHARE) {
const i32 n = first + t / SHARE, place = n < ROWS * widths ? n : ROWS * widths - 1, own = place / widths, w_out = place % widths;
const i32 begin = w_out * width / widths, end = ((w_out + 1) * width + widths - 1) / widths;
$TOTAL total = $TOTAL_IDENTITY;
const i64 to = (i64)blockIdx.x * ROWS + own;
if (to < $ALL)
for (i32 c = begin + t % SHARE; c < end; c += SHARE)
UNROLL for (i32 k = 0; k < PER; ++k) { const $TOTAL other = ($TOTAL)columns[(own * PER + k) * WIDTH + c]; total = $TOTAL_JOINED; }
UNROLL for (i32 distance = SHARE / 2; distance > 0; distance /= 2) { const $TOTAL other = ($TOTAL)SHUFFLE(total, distance); total = $TOTAL_JOINED; }
if (n < ROWS * widths && to < $ALL && t % SHARE == 0) {
$COUNT
$OUT[to * widths + w_out] = $RESULT;
}
}
)";

// [images, depth, height, width]: spatial axes that are not there have one element.
struct Space {
  std::int64_t images, depth = 1, height = 1, width = 1;

  explicit Space(const Shape& shape) : images(shape[0] * shape[1]), width(shape[shape.rank() - 1]) {
    if (shape.rank() >= 4) height = shape[shape.rank() - 2];
    if (shape.rank() == 5) depth = shape[2];
  }
  std::int64_t longest() const { return std::max({depth, height, width}); }
};

}  // namespace

bool can_adaptive_pool(const KernelTarget& target, const Shape& x, const Shape& out, DType dtype) {
  constexpr std::int64_t kWidest = 2048, kLongest = 1 << 15, kLargest = (std::int64_t{1} << 31) - (1 << 24);
  const Space from(x), to(out);
  return target.dialect == Dialect::cuda && target.max_group_size >= kThreads && is_float(dtype) && !is_block(dtype) &&
         from.width <= kWidest && from.longest() <= kLongest && to.longest() <= kLongest &&
         from.depth * from.height * from.width < kLargest && from.images * to.depth * to.height < kLargest && out.elements() > 0;
}

Launch emit_adaptive_pool(const KernelTarget& target, const Dense& x, const AdaptivePoolAttr& attr, const Dense& out) {
  const Space from(x.shape), to(out.shape);
  const DType compute = compute_dtype(x.stored);
  const DType total = !attr.max && compute == DType::f32 ? DType::f64 : compute;
  const ReduceKind kind = attr.max ? ReduceKind::max : ReduceKind::sum;
  const std::int64_t all = from.images * to.depth * to.height;
  const int lanes = static_cast<int>(std::min<std::int64_t>(power_of_two_from(from.width), kThreads)), lines = kThreads / lanes;
  // Lines that share the rows of a row of windows, so that each has a few.
  constexpr int kTogether = 4;
  const std::int64_t above = ceil_div(from.depth, to.depth) * ceil_div(from.height, to.height);
  const int per = static_cast<int>(std::min<std::int64_t>(power_of_two_from(ceil_div(above, 2 * kTogether)), lines)),
            rows = lines / per;
  // Work-items that share a window.
  const int share = static_cast<int>(std::min<std::int64_t>(power_of_two_from(ceil_div(from.width, to.width * 8)), 32));

  Parameters p(true);
  Body body(target, p);
  std::map<std::string, std::string> names{
      {"TYPE", variable_type(compute)},
      {"TOTAL", variable_type(total)},
      {"STORED", stored_type(x.stored)},
      {"IN", p.input(x.stored, x.slot)},
      {"OUT", p.output(out.stored, out.slot)},
      {"ALL", p.whole_number(all)},
      {"DEPTH", p.whole_number(from.depth)},
      {"HEIGHT", p.whole_number(from.height)},
      {"WIDTH", p.whole_number(from.width)},
      {"DEPTHS", p.whole_number(to.depth)},
      {"HEIGHTS", p.whole_number(to.height)},
      {"WIDTHS", p.whole_number(to.width)},
      {"NEXT", body.loaded(x.stored, "next[k]")},
      {"IDENTITY", identity_text(kind, compute)},
      {"TOTAL_IDENTITY", identity_text(kind, total)},
      {"JOINED", combine_text(kind, compute, "found", "value")},
      {"TOTAL_JOINED", combine_text(kind, total, "total", "other")},
      {"COUNT", ""},
  };
  std::string result = "total";
  if (!attr.max) {
    names["COUNT"] = R"(const i32 h_own = (i32)(to % heights), d_own = (i32)(to / heights % depths);
const i32 count = (((d_own + 1) * depth + depths - 1) / depths - d_own * depth / depths) * (((h_own + 1) * height + heights - 1) / heights - h_own * height / heights) * (end - begin);)";
    result = fmt::format("total / ({})count", variable_type(total));
    if (total != compute) result = fmt::format("(f32)({})", result);
  }
  names["RESULT"] = body.to_store(out.stored, result);
  const std::string sizes = fmt::format(
      "enum {{ THREADS = {}, LANES = {}, LINES = {}, PER = {}, ROWS = {}, WIDTH = {}, SHARE = {}, TOGETHER = {} }};\n", kThreads,
      lanes, lines, per, rows, power_of_two_from(from.width), share, kTogether);
  return make_launch(body, {kThreads, 1, 1}, {static_cast<std::uint32_t>(ceil_div(all, rows)), 1, 1},
                     sizes + filled(kText, names));
}

}  // namespace tenon::emit
