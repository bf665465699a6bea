// Copies whose last axis is short (pixel_shuffle, upsample_nearest): a work-item writes a whole vector of neighbours, finds its
// place once, and reads what belongs into it.
#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "codegen/c/loops/geometry.h"
#include "codegen/c/loops/loop.h"

namespace tenon::emit {
namespace {

// A vector is |steps| times |last|: indices of the last axis but one, and of the last axis.
struct Vector {
  int last = 1, steps = 1;
  int width() const { return last * steps; }
};

// The widest vector of at most 16 bytes that divides the last axes evenly.
std::optional<Vector> widest(const Axes& axes, std::size_t bytes, std::int64_t offset) {
  const std::int64_t last = axes.extents.back(), before = axes.extents[axes.extents.size() - 2];
  for (int width = static_cast<int>(16 / bytes); width >= 2; width /= 2) {
    if (offset % width != 0) continue;
    if (last % width == 0) return Vector{width, 1};
    if (width % last == 0 && before % (width / last) == 0) return Vector{static_cast<int>(last), static_cast<int>(width / last)};
  }
  return std::nullopt;
}

bool is_dense(const Axes& axes, std::size_t operand) {
  std::int64_t stride = 1;
  for (std::size_t d = axes.extents.size(); d-- > 0; stride *= axes.extents[d])
    if (axes.strides[operand][d] != stride) return false;
  return true;
}

}  // namespace

std::optional<Launch> emit_short_copy(const KernelTarget& target, const Shape& shape, const Access& from, const Access& to) {
  constexpr std::int64_t kShortBytes = 64;
  Axes axes = joined({shape.begin(), shape.end()}, {from.strides, to.strides});
  const std::size_t bytes = element_bytes(from.stored), last = axes.extents.size() - 1;
  if (target.is_cpu || from.stored != to.stored || axes.extents.size() < 2 || bytes > 8 || !is_dense(axes, 1))
    return std::nullopt;
  const std::int64_t last_stride = axes.strides[0][last], step_stride = axes.strides[0][last - 1];
  if (axes.extents[last] * static_cast<std::int64_t>(bytes) >= kShortBytes || !fits_i32(axes, {from.offset, to.offset}))
    return std::nullopt;
  const std::optional<Vector> vector = widest(axes, bytes, to.offset);
  if (!vector) return std::nullopt;

  // The axes of vectors.
  const std::int64_t count = axes.elements() / vector->width();
  axes.strides.pop_back();
  axes.extents[last] /= vector->last;
  axes.strides[0][last] *= vector->last;
  axes.extents[last - 1] /= vector->steps;
  axes.strides[0][last - 1] *= vector->steps;
  axes = joined(axes.extents, axes.strides);

  // Neighbours in the source that lie in the vector |last| apart are read together.
  bool together = vector->steps > 1 && step_stride == 1 && from.offset % vector->steps == 0 && last_stride % vector->steps == 0;
  for (std::int64_t stride : axes.strides[0]) together = together && stride % vector->steps == 0;

  Parameters p(false);
  Body body(target, p);
  const std::string type = stored_type(from.stored), in = p.input(from.stored, from.slot), out = p.output(to.stored, to.slot);
  const int threads = std::min(256, target.max_group_size), reads = last_stride == 0 ? 1 : vector->last;
  std::string text = fmt::format("const i32 j = (i32)group_id(0) * {} + local_id(0);\nif (j < {}) {{\n", threads, p.index(count));
  text += offset_text(p, axes, {from.offset}, "j") + fmt::format("{} p[{}][{}];\n", type, reads, vector->steps);
  const std::string step = reads > 1 ? " + b * " + p.index(last_stride) : "";
  text += fmt::format("UNROLL for (i32 b = 0; b < {}; ++b) {{\n", reads);
  if (together)
    text += fmt::format(
        "VARRAY({0}, {1}, n);\nVLOAD({0}, {1}, n, {2} + o0{3});\nUNROLL for (i32 s = 0; s < {1}; ++s) p[b][s] = n[s];\n", type,
        vector->steps, in, step);
  else
    text += fmt::format("UNROLL for (i32 s = 0; s < {}; ++s) p[b][s] = {}[{}{}];\n", vector->steps, in,
                        vector->steps > 1 ? place_text(p, "o0", "s", step_stride) : "o0", step);
  text += fmt::format("}}\nVARRAY({0}, {1}, q);\nUNROLL for (i32 l = 0; l < {1}; ++l) q[l] = p[{2}][l / {3}];\n", type,
                      vector->width(), reads > 1 ? fmt::format("l % {}", vector->last) : "0", vector->last);
  text += fmt::format("VSTORE({0}, {1}, q, {2} + {3} + j * {1});\n}}\n", type, vector->width(), out,
                      to.offset == 0 ? "0" : p.index(to.offset));
  return make_launch(body, {threads, 1, 1}, {static_cast<std::uint32_t>(ceil_div(count, threads)), 1, 1}, text);
}

}  // namespace tenon::emit
