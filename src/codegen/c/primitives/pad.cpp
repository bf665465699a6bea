// Padding on GPUs: every element of the result is written once, from the source where it lies inside. A work-item writes a word
// of up to 16 bytes; rows that do not begin at a whole word have a part of one at both ends.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "codegen/c/loops/geometry.h"
#include "codegen/c/primitives/primitives.h"

namespace tenon::emit {
namespace {

struct PaddedAxis {
  std::int64_t extent, inside, low, stride;  // of the result, of the source, where the source begins in it, of the source
};

// Axes that are not padded are joined to the one before them where the source allows it.
std::vector<PaddedAxis> padded_axes(const Shape& out, const Shape& inside, const PadAttr& attr, const Access& from) {
  std::vector<PaddedAxis> axes;
  for (int d = 0; d < out.rank(); ++d) {
    const auto k = static_cast<std::size_t>(d);
    const PaddedAxis axis{out[d], inside[d], attr.low[k], from.strides[k]};
    if (axis.extent == 1) continue;
    const bool is_whole = axis.extent == axis.inside;
    if (is_whole && !axes.empty() && (axes.back().stride == axis.stride * axis.extent || axes.back().inside == 1)) {
      PaddedAxis& before = axes.back();
      before = {before.extent * axis.extent, before.inside * axis.extent, before.low * axis.extent, axis.stride};
    } else {
      axes.push_back(axis);
    }
  }
  if (axes.empty()) axes.push_back({1, 1, 0, 1});
  return axes;
}

bool fits_i32(const std::vector<PaddedAxis>& axes, std::int64_t offset) {
  constexpr std::int64_t kLimit = (std::int64_t{1} << 31) - (std::int64_t{1} << 24);
  std::int64_t count = 1, reach = std::abs(offset);
  for (const PaddedAxis& axis : axes) {
    count *= axis.extent;
    reach += std::abs(axis.stride) * axis.extent;
  }
  return count < kLimit && reach < kLimit;
}

}  // namespace

std::optional<Launch> emit_pad(const KernelTarget& target, const Shape& inside, const Access& from, const PadAttr& attr,
                               const Dense& out) {
  std::vector<PaddedAxis> axes = padded_axes(out.shape, inside, attr, from);
  const PaddedAxis last = axes.back();
  // Others are copied by tiles (emit_transposed_copy).
  if (target.is_cpu || std::abs(last.stride) > 1) return std::nullopt;
  Parameters p(!fits_i32(axes, from.offset));
  Body body(target, p);
  axes.pop_back();
  const std::int64_t width = std::min<std::int64_t>(8, 16 / static_cast<std::int64_t>(element_bytes(out.stored)));
  std::int64_t rows = 1;
  for (const PaddedAxis& axis : axes) rows *= axis.extent;
  const bool begins_whole = rows == 1 || last.extent % width == 0;
  const std::int64_t steps = ceil_div(last.extent, width) + (begins_whole ? 0 : 1);
  const int threads = std::min(256, target.max_group_size);
  const int bx = static_cast<int>(std::min<std::int64_t>(threads, power_of_two_from(steps))), by = threads / bx;

  const std::string &ix = p.index_type(), as = ix == "i32" ? "(u32)" : "", type = stored_type(out.stored);
  const std::string in = p.input(from.stored, from.slot), to = p.output(out.stored, out.slot), n = p.index(last.extent),
                    n_in = p.index(last.inside), low = p.index(last.low), all_rows = p.index(rows);
  const DType compute = compute_dtype(out.stored);
  const std::string outside =
      body.to_store(out.stored, p.number(compute, compute == DType::boolean ? (attr.value != 0) : attr.value));
  std::string text = fmt::format(
      "const {0} outside = {1};\nfor ({2} row = ({2})group_id(1) * {3} + local_id(1); row < {4}; row += "
      "({2})group_count(1) * {3}) {{\n",
      type, outside, ix, by, all_rows);
  text += fmt::format("i32 inside = 1;\n{0} from = {1};\n", ix, p.index(from.offset));
  if (!axes.empty()) text += fmt::format("{} rest = row;\n", ix);
  for (std::size_t d = axes.size(); d-- > 0;) {
    const std::string extent = p.index(axes[d].extent);
    const std::string place = d == 0 ? "rest" : fmt::format("({}){}rest % {}{}", ix, as, as, extent);
    text += fmt::format("{{ const {0} c = {1} - {2};\ninside &= c >= 0 && c < {3};\nfrom += c * {4};\n", ix, place,
                        p.index(axes[d].low), p.index(axes[d].inside), p.index(axes[d].stride));
    text += d == 0 ? "}\n" : fmt::format("rest = {}rest / {}{}; }}\n", as, as, extent);
  }
  text += fmt::format("const {0} begin = row * {1}, i = (({0})group_id(0) * {2} + local_id(0)) * {3}{4}, first = i - {5};\n", ix,
                      n, bx, width, begins_whole ? "" : fmt::format(" - begin % {}", width), low);
  text += fmt::format("if (i < {}) {{\nVARRAY({}, {}, r);\n", n, type, width);
  const bool is_moved = from.stored == out.stored;
  if (is_moved && last.stride == 1)
    text += fmt::format(
        "if (inside && first >= 0 && first + {0} <= {1} && (from + first) % {0} == 0) {{ VLOAD({2}, {0}, r, {3} + from + first); "
        "}}\nelse ",
        width, n_in, type, in);
  const std::string element = fmt::format("{}[from{}]", in,
                                          last.stride == 0   ? ""
                                          : last.stride == 1 ? " + (first + l)"
                                                             : " - (first + l)");
  text += fmt::format("UNROLL for (i32 l = 0; l < {}; ++l) r[l] = inside && first + l >= 0 && first + l < {} ? {} : outside;\n",
                      width, n_in, is_moved ? element : body.to_store(out.stored, body.loaded(from.stored, element)));
  text += fmt::format("if (i >= 0 && i + {0} <= {1}) {{ VSTORE({2}, {0}, r, {3} + begin + i); }}\n", width, n, type, to);
  text += fmt::format("else for (i32 l = 0; l < {}; ++l) if (i + l >= 0 && i + l < {}) {}[begin + i + l] = r[l];\n}}\n}}\n",
                      width, n, to);
  return make_launch(body, {bx, by, 1},
                     {static_cast<std::uint32_t>(ceil_div(steps, bx)),
                      static_cast<std::uint32_t>(std::min<std::int64_t>(ceil_div(rows, by), 65535)), 1},
                     text);
}

}  // namespace tenon::emit
