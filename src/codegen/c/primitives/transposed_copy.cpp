// Copies that change which axis is together in memory: read along one axis and written along the other, by way of local memory,
// so that neighbouring work-items touch neighbouring elements both times.
#include <fmt/format.h>

#include <optional>

#include "codegen/c/loops/geometry.h"
#include "codegen/c/loops/loop.h"

namespace tenon::emit {
namespace {

constexpr int kTile = 64, kLines = 4;
constexpr std::int64_t kSmallest = 16;  // below, most of a tile would be empty

// The axis that is together in the source and not in the target; nothing where a plain copy is as good.
std::optional<std::size_t> transposed_axis(const Axes& axes) {
  if (axes.extents.size() < 2) return std::nullopt;
  const std::size_t last = axes.extents.size() - 1;
  if (axes.strides[1][last] != 1 || axes.strides[0][last] == 1 || axes.strides[0][last] == 0) return std::nullopt;
  for (std::size_t d = 0; d < last; ++d)
    if (axes.strides[0][d] == 1 && axes.extents[d] >= kSmallest && axes.extents[last] >= kSmallest) return d;
  return std::nullopt;
}

}  // namespace

std::optional<Launch> emit_transposed_copy(const KernelTarget& target, const Shape& shape, const Access& from, const Access& to) {
  const Axes axes = joined({shape.begin(), shape.end()}, {from.strides, to.strides});
  const std::optional<std::size_t> transposed = transposed_axis(axes);
  if (!transposed) return std::nullopt;
  if (target.max_group_size < kTile * kLines || target.local_bytes < kTile * (kTile + 1) * sizeof(double)) return std::nullopt;
  const std::size_t last = axes.extents.size() - 1;
  Axes others;
  others.strides.resize(2);
  for (std::size_t d = 0; d < last; ++d) {
    if (d == *transposed) continue;
    others.extents.push_back(axes.extents[d]);
    for (std::size_t k = 0; k < 2; ++k) others.strides[k].push_back(axes.strides[k][d]);
  }
  const std::int64_t width = axes.extents[*transposed], height = axes.extents[last];
  const std::int64_t across = ceil_div(width, kTile), down = ceil_div(height, kTile);
  const std::int64_t tiles = across * down * others.elements();
  if (tiles >= std::int64_t{1} << 30) return std::nullopt;

  const std::vector<std::int64_t> offsets{from.offset, to.offset};
  Parameters parameters(!fits_i32(axes, offsets));
  Body body(target, parameters);
  const std::string& ix = parameters.index_type();
  const std::string source = parameters.input(from.stored, from.slot), result = parameters.output(to.stored, to.slot);
  const std::string w = parameters.index(width), h = parameters.index(height);
  const std::string source_step = parameters.index(axes.strides[0][last]),
                    result_step = parameters.index(axes.strides[1][*transposed]);
  std::string text = fmt::format("LOCAL {} tile[{}][{}];\n", stored_type(from.stored), kTile, kTile + 1);
  text += "const i32 x = local_id(0), y = local_id(1);\n";
  text += fmt::format("const {0} number = group_id(0), column = number % {1} * {2}, rest = number / {1};\n", ix,
                      parameters.index(across), kTile);
  text += fmt::format("const {0} line = rest % {1} * {2}, row = rest / {1};\n", ix, parameters.index(down), kTile);
  text += offset_text(parameters, others, offsets, "row");
  text +=
      fmt::format("UNROLL for (i32 k = 0; k < {0}; k += {1})\nif (column + x < {2} && line + y + k < {3}) ", kTile, kLines, w, h);
  text += fmt::format("tile[y + k][x] = {}[o0 + column + x + (line + y + k) * {}];\nBARRIER;\n", source, source_step);
  std::string value = "tile[x][y + k]";
  if (from.stored != to.stored) {
    const DType wanted = compute_dtype(to.stored);
    value = body.loaded(from.stored, value);
    if (compute_dtype(from.stored) != wanted) value = "(" + body.cast(from.stored, wanted, "(" + value + ")") + ")";
    value = body.to_store(to.stored, value);
  }
  text +=
      fmt::format("UNROLL for (i32 k = 0; k < {0}; k += {1})\nif (column + y + k < {2} && line + x < {3}) ", kTile, kLines, w, h);
  text += fmt::format("{}[o1 + (column + y + k) * {} + line + x] = {};\n", result, result_step, value);
  return make_launch(body, {kTile, kLines, 1}, {static_cast<std::uint32_t>(tiles), 1, 1}, text);
}

}  // namespace tenon::emit
