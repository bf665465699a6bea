// Transposed convolutions of few multiplications, on GPUs: a work-item forms one result from the pixels and the elements of the
// window that meet there. One kernel, where a convolution for each phase of the stride takes several each.
#include <fmt/format.h>

#include "codegen/c/loops/geometry.h"
#include "codegen/c/primitives/primitives.h"

namespace tenon::emit {

bool can_conv_transpose_directly(const KernelTarget& target, const Shape& x, const Shape& weight, const ConvTransposeAttr& attr,
                                 const Dense& out) {
  constexpr std::int64_t kFew = 1 << 20;
  std::int64_t products = out.shape.elements() * (weight[0] / attr.groups);
  for (int d = 0; d < x.rank() - 2; ++d) {
    const auto axis = static_cast<std::size_t>(d);
    if (attr.pad_low[axis] < 0) return false;
    products *= ceil_div(weight[d + 2], attr.stride[axis]);
  }
  return !target.is_cpu && compute_dtype(out.stored) == DType::f32 && products <= kFew;
}

Launch emit_conv_transpose_directly(const KernelTarget& target, const Dense& x, const Dense& weight,
                                    const ConvTransposeAttr& attr, const Dense& out) {
  Parameters p(false);
  Body body(target, p);
  const std::string in = p.input(x.stored, x.slot), window = p.input(weight.stored, weight.slot),
                    to = p.output(out.stored, out.slot);
  const int axes = x.shape.rank() - 2, threads = std::min(128, target.max_group_size);
  const std::int64_t count = out.shape.elements();
  std::int64_t pixels = 1, taps = 1;
  std::string text =
      fmt::format("const i32 j = (i32)group_id(0) * {} + local_id(0);\nif (j < {}) {{\ni32 rest = j;\n", threads, p.index(count));
  std::string loops, closes, pixel = "0", tap = "0";
  for (int d = axes - 1; d >= 0; --d) {
    const std::string extent = p.index(out.shape[d + 2]);
    text += fmt::format("const i32 q{0} = (i32)((u32)rest % (u32){1}) + {2};\nrest = (i32)((u32)rest / (u32){1});\n", d, extent,
                        p.index(attr.pad_low[static_cast<std::size_t>(d)]));
  }
  for (int d = 0; d < axes; ++d) {
    const auto axis = static_cast<std::size_t>(d);
    const std::string stride = p.index(attr.stride[axis]), size = p.index(weight.shape[d + 2]), extent = p.index(x.shape[d + 2]);
    // Only where the stride is 1 is the dilation not.
    loops += fmt::format(
        "for (i32 t{0} = q{0} % {1}; t{0} < {2}; t{0} += {1}) {{\nconst i32 i{0} = (q{0} - t{0} * {3}) / {1};\nif (q{0} >= t{0} "
        "* {3} "
        "&& i{0} < {4}) {{\n",
        d, stride, size, p.index(attr.dilation[axis]), extent);
    closes += "}\n}\n";
    pixel = fmt::format("({} * {} + i{})", pixel, extent, d);
    tap = fmt::format("({} * {} + t{})", tap, size, d);
    pixels *= x.shape[d + 2];
    taps *= weight.shape[d + 2];
  }
  const std::int64_t outs = weight.shape[1], channels = weight.shape[0] / attr.groups;
  const std::string each = p.index(outs), own = p.index(channels), plane = p.index(pixels), step = p.index(outs * taps);
  text += fmt::format("const i32 o = (i32)((u32)rest % (u32){0}), batch = (i32)((u32)rest / (u32){0}), group = o / {1};\n",
                      p.index(out.shape[1]), each);
  text +=
      fmt::format("const i32 from = (batch * {} + group * {}) * {}, first = group * {} * {} + o % {} * {};\nf32 sum = 0.0f;\n",
                  p.index(x.shape[1]), own, plane, own, step, each, p.index(taps));
  text += loops + fmt::format("const i32 at = from + {}, by = first + {};\n", pixel, tap);
  text += fmt::format("UNROLL_BY(8) for (i32 c = 0; c < {}; ++c) sum = fma({}, {}, sum);\n", own,
                      body.loaded(x.stored, fmt::format("{}[at + c * {}]", in, plane)),
                      body.loaded(weight.stored, fmt::format("{}[by + c * {}]", window, step)));
  text += closes + fmt::format("{}[j] = {};\n}}\n", to, body.to_store(out.stored, "sum"));
  return make_launch(body, {threads, 1, 1}, {static_cast<std::uint32_t>(ceil_div(count, threads)), 1, 1}, text);
}

Launch emit_phases(const KernelTarget& target, const Dense& all, const ConvTransposeAttr& attr, const Dense& out) {
  Parameters p(false);
  Body body(target, p);
  const std::string in = p.input(all.stored, all.slot), to = p.output(out.stored, out.slot), type = stored_type(out.stored);
  const int axes = out.shape.rank() - 2, last = axes - 1, threads = std::min(256, target.max_group_size);
  const std::int64_t columns = out.shape[last + 2], word = 16 / static_cast<std::int64_t>(element_bytes(out.stored));
  const std::int64_t width = std::min<std::int64_t>(word, 8), blocks = ceil_div(columns, width);
  const bool is_whole = columns % width == 0;
  std::int64_t plane = 1, phases = 1;
  for (int d = 0; d < axes; ++d) {
    plane *= all.shape[d + 2];
    phases *= attr.stride[static_cast<std::size_t>(d)];
  }
  const auto cut = [&](int d) { return p.index(attr.pad_low[static_cast<std::size_t>(d)]); };
  const auto before = [&](int d) {
    const auto axis = static_cast<std::size_t>(d);
    return p.index(attr.pad_low[axis] / attr.stride[axis]);
  };
  const std::int64_t count = out.shape.elements() / columns * blocks;
  std::string text = fmt::format("const i32 j = (i32)group_id(0) * {} + local_id(0);\nif (j < {}) {{\n", threads, p.index(count));
  text +=
      fmt::format("const u32 blocks = (u32){};\nconst i32 first = (i32)((u32)j % blocks) * {};\nu32 rest = (u32)j / blocks;\n",
                  p.index(blocks), width);
  std::string phase = "0", place = "0";
  for (int d = last - 1; d >= 0; --d) {
    const std::string extent = p.index(out.shape[d + 2]);
    text += fmt::format("const u32 u{0} = rest % (u32){1} + (u32){2};\nrest /= (u32){1};\n", d, extent, cut(d));
  }
  for (int d = 0; d < last; ++d) {
    const std::int64_t stride = attr.stride[static_cast<std::size_t>(d)];
    phase = fmt::format("({} * {} + u{} % {}u)", phase, stride, d, stride);
    place = fmt::format("({} * {} + (i32)(u{} / {}u) - {})", place, p.index(all.shape[d + 2]), d, stride, before(d));
  }
  const std::int64_t stride = attr.stride[static_cast<std::size_t>(last)];
  const std::string outs = p.index(out.shape[1]), step = p.index(out.shape[1] * plane);
  text += fmt::format("const i32 o = (i32)(rest % (u32){0}), n = (i32)(rest / (u32){0});\n", outs);
  text += fmt::format("const i32 from = ((n * {} + (i32){} * {}) * {} + o) * {} + {} * {} - {};\n", phases, phase, stride, outs,
                      p.index(plane), place, p.index(all.shape[last + 2]), before(last));
  text += fmt::format("VARRAY({}, {}, r);\nUNROLL for (i32 l = 0; l < {}; ++l) {{\n", type, width, width);
  text += fmt::format("const u32 u = (u32)(first + l + {});\n", cut(last));
  text += fmt::format("{}r[l] = {}[from + (i32)(u % {}u) * {} + (i32)(u / {}u)];\n}}\n",
                      is_whole ? "" : fmt::format("if (first + l < {}) ", p.index(columns)), in, stride, step, stride);
  const std::string row = fmt::format("{} + j / (i32)blocks * {} + first", to, p.index(columns));
  text += is_whole
              ? fmt::format("VSTORE({}, {}, r, {});\n", type, width, row)
              : fmt::format("for (i32 l = 0; l < {}; ++l) if (first + l < {}) ({})[l] = r[l];\n", width, p.index(columns), row);
  return make_launch(body, {threads, 1, 1}, {static_cast<std::uint32_t>(ceil_div(count, threads)), 1, 1}, text + "}\n");
}

}  // namespace tenon::emit
