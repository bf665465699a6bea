// A work-item computes four neighbours of a row. It reads each row under its windows once, by words of four where rows begin at
// one; the windows' sizes and strides are in the text, so that everything but the reads stays in registers. A line is a plane of
// one row, a volume so many planes.
#include "codegen/c/primitives/planes.h"

#include <fmt/format.h>

#include <algorithm>

#include "codegen/c/loops/geometry.h"
#include "codegen/c/sort/keys.h"

namespace tenon::emit {
namespace {

constexpr std::int64_t kTogether = 4, kThreads = 256;

// What differs between the ops: an accumulator for each result, and how a value under the window enters it.
struct Combination {
  std::string type, start, outside;  // of the accumulator, its first value, and the value of pixels outside the plane
  std::string before;                // statements before the loop
  std::string step;                  // from sum[w], value and the tap's number
  std::string result;                // of sum[w]
};

// Of the last three axes: planes, rows and columns.
Spatial extents_of(const Shape& shape) {
  Spatial extents{1, 1, 1};
  for (int d = 2; d < shape.rank(); ++d) extents[static_cast<std::size_t>(d + 5 - shape.rank() - 2)] = shape[d];
  return extents;
}

// Along the same axes.
struct Window {
  Spatial size, stride, dilation, pad;

  // Each has |rank| spatial axes.
  Window(int rank, const Spatial& sizes, const Spatial& strides, const Spatial& dilations, const Spatial& pads)
      : size(placed(rank, sizes, 1)),
        stride(placed(rank, strides, 1)),
        dilation(placed(rank, dilations, 1)),
        pad(placed(rank, pads, 0)) {}

  // Columns under the windows of one work-item.
  std::int64_t span() const { return (kTogether - 1) * stride[2] + (size[2] - 1) * dilation[2] + 1; }

 private:
  static Spatial placed(int rank, const Spatial& given, std::int64_t others) {
    Spatial all{others, others, others};
    for (int d = 0; d < rank; ++d) all[static_cast<std::size_t>(3 - rank + d)] = given[static_cast<std::size_t>(d)];
    return all;
  }
};

bool fits(const KernelTarget& target, const Shape& x, const Shape& out, const Window& window) {
  const Spatial in = extents_of(x);
  const bool is_short = std::ranges::all_of(in, [](std::int64_t extent) { return extent < (1 << 20); });
  return target.dialect == Dialect::cuda && window.size[0] * window.size[1] * window.size[2] <= 64 && window.span() <= 48 &&
         is_short && in[0] * in[1] * in[2] < (1 << 30) && out.elements() > 0 && out.elements() < (std::int64_t{1} << 31);
}

// The loop over planes, whose text is otherwise that of one plane.
constexpr std::string_view kPlanes = R"(const auto* const volume = $IN + (i64)$IN_PLANE * (planes * rows * columns);
for (i32 kz = 0; kz < SIZE_Z; ++kz) {
const i32 z = (i32)oz * STRIDE_Z - PAD_Z + kz * DILATION_Z;
if (z >= 0 && z < planes) {
const auto* const from = volume + z * (rows * columns);)";

constexpr std::string_view kOneByOne = R"(UNROLL for (i32 s = 0; s < SPAN; ++s) {
const i32 x = x0 + s;
values[s] = x >= 0 && x < columns ? $VALUE : $OUTSIDE;
})";
// Where rows and the first windows of work-items are whole words apart: a word is inside as a whole, or outside.
constexpr std::string_view kByWords = R"(UNROLL for (i32 s = -SHIFT; s < SPAN; s += 4) {
const i32 x = x0 + s, inside = x >= 0 && x < columns;
VARRAY($IN_STORED, 4, word);
if (inside) { VLOAD($IN_STORED, 4, word, from + y * columns + x); }
UNROLL for (i32 l = 0; l < 4; ++l) if (s + l >= 0 && s + l < SPAN) values[s + l] = inside ? $VALUE : $OUTSIDE;
})";

constexpr std::string_view kText = R"(const u32 j = blockIdx.x * 256u + threadIdx.x;
if (j < (u32)$ITEMS) {
const u32 chunk = j % (u32)$CHUNKS, line = j / (u32)$CHUNKS, oy = line % (u32)$OUT_ROWS, $PLANE;
const i32 x0 = (i32)chunk * (TOGETHER * STRIDE_X) - PAD_X, y0 = (i32)oy * STRIDE_Y - PAD_Y, rows = (i32)$ROWS, columns = (i32)$COLUMNS;
$BEFORE
$TYPE sum[TOGETHER];
UNROLL for (i32 w = 0; w < TOGETHER; ++w) sum[w] = $START;
$FROM
UNROLL for (i32 ky = 0; ky < SIZE_Y; ++ky) {
const i32 y = y0 + ky * DILATION_Y;
if (y >= 0 && y < rows) {
f32 values[SPAN];
$VALUES
UNROLL for (i32 kx = 0; kx < SIZE_X; ++kx) {
const i32 tap = ky * SIZE_X + kx;
UNROLL for (i32 w = 0; w < TOGETHER; ++w) {
const f32 value = values[w * STRIDE_X + kx * DILATION_X];
$STEP
}
}
}
}
$END
const i64 into = (i64)line * $OUT_COLUMNS + chunk * TOGETHER;
VARRAY($STORED, TOGETHER, r);
UNROLL for (i32 w = 0; w < TOGETHER; ++w) r[w] = $RESULT;
$STORE
}
)";

Launch emit_planes(Body& body, const Dense& x, const Dense& out, const Window& window, const std::string& in,
                   const std::string& in_plane, const Combination& how) {
  Parameters& p = body.parameters();
  const Spatial from = extents_of(x.shape), to = extents_of(out.shape);
  // Words were not measured on planes, which are fast without them.
  const bool is_volume = x.shape.rank() == 5, by_words = x.shape.rank() != 4 && from[2] % 4 == 0;
  const std::int64_t chunks = ceil_div(to[2], kTogether), items = out.shape.elements() / to[2] * chunks;
  const std::string result = p.output(out.stored, out.slot);
  std::map<std::string, std::string> names{
      {"ITEMS", p.whole_number(items)},
      {"CHUNKS", p.whole_number(chunks)},
      {"OUT_ROWS", p.whole_number(to[1])},
      {"OUT_COLUMNS", p.whole_number(to[2])},
      {"ROWS", p.whole_number(from[1])},
      {"COLUMNS", p.whole_number(from[2])},
      {"IN", in},
      {"IN_PLANE", in_plane},
      {"IN_STORED", stored_type(x.stored)},
      {"BEFORE", how.before},
      {"TYPE", how.type},
      {"START", how.start},
      {"OUTSIDE", how.outside},
      {"VALUE", body.loaded(x.stored, by_words ? "word[l]" : "from[y * columns + x]")},
      {"STEP", how.step},
      {"RESULT", body.to_store(out.stored, how.result)},
      {"STORED", stored_type(out.stored)},
      {"STORE",
       to[2] % kTogether == 0
           ? fmt::format("VSTORE({}, TOGETHER, r, {} + into);", stored_type(out.stored), result)
           : fmt::format("UNROLL for (i32 w = 0; w < TOGETHER; ++w) if (chunk * TOGETHER + w < (u32){}) {}[into + w] = r[w];",
                         p.whole_number(to[2]), result)},
  };
  names["VALUES"] = filled(by_words ? kByWords : kOneByOne, names);
  names["PLANE"] = fmt::format("plane = line / (u32){}", names["OUT_ROWS"]);
  names["FROM"] = fmt::format("const auto* const from = {} + (i64){} * (rows * columns);", in, in_plane);
  if (is_volume) {
    names["PLANE"] = fmt::format("slice = line / (u32){0}, oz = slice % (u32){1}, plane = slice / (u32){1}", names["OUT_ROWS"],
                                 p.whole_number(to[0]));
    names["FROM"] = fmt::format("const i32 planes = (i32){};\n", p.whole_number(from[0])) + filled(kPlanes, names);
  }
  names["END"] = is_volume ? "}\n}" : "";
  std::string sizes = fmt::format(
      "enum {{ SIZE_Y = {}, SIZE_X = {}, STRIDE_Y = {}, STRIDE_X = {}, DILATION_Y = {}, DILATION_X = {}, PAD_Y = {}, PAD_X = {}, "
      "TOGETHER = {}, SPAN = {}",
      window.size[1], window.size[2], window.stride[1], window.stride[2], window.dilation[1], window.dilation[2], window.pad[1],
      window.pad[2], kTogether, window.span());
  if (by_words) sizes += fmt::format(", SHIFT = {}", (4 - window.pad[2] % 4) % 4);
  if (is_volume)
    sizes += fmt::format(", SIZE_Z = {}, STRIDE_Z = {}, DILATION_Z = {}, PAD_Z = {}", window.size[0], window.stride[0],
                         window.dilation[0], window.pad[0]);
  return make_launch(body, {static_cast<int>(kThreads), 1, 1}, {static_cast<std::uint32_t>(ceil_div(items, kThreads)), 1, 1},
                     sizes + " };\n" + filled(kText, names));
}

}  // namespace

std::optional<Launch> emit_plane_window(const KernelTarget& target, const Dense& x, const WindowAttr& attr, const Dense& out) {
  const Window window(x.shape.rank() - 2, attr.size, attr.stride, attr.dilation, attr.pad_low);
  if (!fits(target, x.shape, out.shape, window) || compute_dtype(x.stored) != DType::f32) return std::nullopt;
  Parameters p(true);
  Body body(target, p);
  const std::string in = p.input(x.stored, x.slot);
  if (attr.max)
    return emit_planes(body, x, out, window, in, "plane",
                       {"f32", "AS_F32(0xff800000u)", "AS_F32(0xff800000u)", "", "sum[w] = LARGER(sum[w], value);", "sum[w]"});
  // Wide enough that the order of the sum does not matter.
  return emit_planes(body, x, out, window, in, "plane", {"f64", "0", "0.0f", "", "sum[w] += (f64)value;", "(f32)sum[w]"});
}

std::optional<Launch> emit_depthwise(const KernelTarget& target, const Dense& x, const Dense& weight, const ConvAttr& attr,
                                     const Dense& out) {
  if (x.shape.rank() != 4 || weight.shape[1] != 1 || attr.groups != x.shape[1] || compute_dtype(out.stored) != DType::f32)
    return std::nullopt;
  if (compute_dtype(x.stored) != DType::f32 || compute_dtype(weight.stored) != DType::f32) return std::nullopt;
  const Window window(2, {weight.shape[2], weight.shape[3], 1}, attr.stride, attr.dilation, attr.pad_low);
  if (!fits(target, x.shape, out.shape, window)) return std::nullopt;
  Parameters p(true);
  Body body(target, p);
  const std::string in = p.input(x.stored, x.slot), taps = p.input(weight.stored, weight.slot),
                    outs = p.whole_number(out.shape[1]), channels = p.whole_number(x.shape[1]),
                    each = p.whole_number(out.shape[1] / x.shape[1]);
  Combination how{"f32", "0", "0.0f", "", "sum[w] = fmaf(value, weight[tap], sum[w]);", "sum[w]"};
  how.before = fmt::format(
      "const u32 o = plane % (u32){0}, channel = o / (u32){1};\nf32 weight[SIZE_Y * SIZE_X];\nUNROLL for (i32 i = 0; i < SIZE_Y "
      "* "
      "SIZE_X; ++i) weight[i] = {2};\n",
      outs, each, body.loaded(weight.stored, fmt::format("{}[o * (SIZE_Y * SIZE_X) + i]", taps)));
  return emit_planes(body, x, out, window, in, fmt::format("(plane / (u32){} * (u32){} + channel)", outs, channels), how);
}

}  // namespace tenon::emit
