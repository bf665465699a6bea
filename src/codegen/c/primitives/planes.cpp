// A work-item computes four neighbours of a row. It reads each row under its windows once; the windows' sizes and strides are in
// the text, so that everything but the reads stays in registers.
#include "codegen/c/primitives/planes.h"

#include <fmt/format.h>

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

struct Window {
  Spatial size, stride, dilation, pad;
};

bool fits(const KernelTarget& target, const Shape& x, const Shape& out, const Window& window) {
  const std::int64_t span = (kTogether - 1) * window.stride[1] + (window.size[1] - 1) * window.dilation[1] + 1;
  return target.dialect == Dialect::cuda && x.rank() == 4 && window.size[0] * window.size[1] <= 64 && span <= 48 &&
         x[2] * x[3] < (1 << 30) && out.elements() > 0 && out.elements() < (std::int64_t{1} << 31) && x[3] < (1 << 20) &&
         x[2] < (1 << 20);
}

constexpr std::string_view kText = R"(const u32 j = blockIdx.x * 256u + threadIdx.x;
if (j < (u32)$ITEMS) {
const u32 chunk = j % (u32)$CHUNKS, line = j / (u32)$CHUNKS, oy = line % (u32)$OUT_ROWS, plane = line / (u32)$OUT_ROWS;
const i32 x0 = (i32)chunk * (TOGETHER * STRIDE_X) - PAD_X, y0 = (i32)oy * STRIDE_Y - PAD_Y, rows = (i32)$ROWS, columns = (i32)$COLUMNS;
$BEFORE
const auto* const from = $IN + (i64)$IN_PLANE * (rows * columns);
$TYPE sum[TOGETHER];
UNROLL for (i32 w = 0; w < TOGETHER; ++w) sum[w] = $START;
UNROLL for (i32 ky = 0; ky < SIZE_Y; ++ky) {
const i32 y = y0 + ky * DILATION_Y;
if (y >= 0 && y < rows) {
f32 values[SPAN];
UNROLL for (i32 s = 0; s < SPAN; ++s) {
const i32 x = x0 + s;
values[s] = x >= 0 && x < columns ? $VALUE : $OUTSIDE;
}
UNROLL for (i32 kx = 0; kx < SIZE_X; ++kx) {
const i32 tap = ky * SIZE_X + kx;
UNROLL for (i32 w = 0; w < TOGETHER; ++w) {
const f32 value = values[w * STRIDE_X + kx * DILATION_X];
$STEP
}
}
}
}
const i64 into = (i64)line * $OUT_COLUMNS + chunk * TOGETHER;
VARRAY($STORED, TOGETHER, r);
UNROLL for (i32 w = 0; w < TOGETHER; ++w) r[w] = $RESULT;
$STORE
}
)";

Launch emit_planes(Body& body, const Dense& x, const Dense& out, const Window& window, const std::string& in,
                   const std::string& in_plane, const Combination& how) {
  Parameters& p = body.parameters();
  const std::int64_t chunks = ceil_div(out.shape[3], kTogether), items = out.shape[0] * out.shape[1] * out.shape[2] * chunks;
  const std::string to = p.output(out.stored, out.slot);
  const std::map<std::string, std::string> names{
      {"ITEMS", p.whole_number(items)},
      {"CHUNKS", p.whole_number(chunks)},
      {"OUT_ROWS", p.whole_number(out.shape[2])},
      {"OUT_COLUMNS", p.whole_number(out.shape[3])},
      {"ROWS", p.whole_number(x.shape[2])},
      {"COLUMNS", p.whole_number(x.shape[3])},
      {"IN", in},
      {"IN_PLANE", in_plane},
      {"BEFORE", how.before},
      {"TYPE", how.type},
      {"START", how.start},
      {"OUTSIDE", how.outside},
      {"VALUE", body.loaded(x.stored, "from[y * columns + x]")},
      {"STEP", how.step},
      {"RESULT", body.to_store(out.stored, how.result)},
      {"STORED", stored_type(out.stored)},
      {"STORE",
       out.shape[3] % kTogether == 0
           ? fmt::format("VSTORE({}, TOGETHER, r, {} + into);", stored_type(out.stored), to)
           : fmt::format("UNROLL for (i32 w = 0; w < TOGETHER; ++w) if (chunk * TOGETHER + w < (u32){}) {}[into + w] = r[w];",
                         p.whole_number(out.shape[3]), to)},
  };
  const std::int64_t span = (kTogether - 1) * window.stride[1] + (window.size[1] - 1) * window.dilation[1] + 1;
  const std::string sizes = fmt::format(
      "enum {{ SIZE_Y = {}, SIZE_X = {}, STRIDE_Y = {}, STRIDE_X = {}, DILATION_Y = {}, DILATION_X = {}, PAD_Y = {}, PAD_X = {}, "
      "TOGETHER = {}, SPAN = {} }};\n",
      window.size[0], window.size[1], window.stride[0], window.stride[1], window.dilation[0], window.dilation[1], window.pad[0],
      window.pad[1], kTogether, span);
  return make_launch(body, {static_cast<int>(kThreads), 1, 1}, {static_cast<std::uint32_t>(ceil_div(items, kThreads)), 1, 1},
                     sizes + filled(kText, names));
}

}  // namespace

std::optional<Launch> emit_plane_window(const KernelTarget& target, const Dense& x, const WindowAttr& attr, const Dense& out) {
  const Window window{attr.size, attr.stride, attr.dilation, attr.pad_low};
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
  const Window window{{weight.shape[2], weight.shape[3], 1}, attr.stride, attr.dilation, attr.pad_low};
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
