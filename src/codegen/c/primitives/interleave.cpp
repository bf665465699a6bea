// Elements of several tensors in turn along the last axis: of a, of b, of a ... The strided stores of one tensor after the other
// would write every line of the memory several times.
#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include <algorithm>

#include "codegen/c/loops/geometry.h"
#include "codegen/c/primitives/primitives.h"

namespace tenon::emit {

Launch emit_interleaved(const KernelTarget& target, const Shape& shape, std::span<const int> parts, const Access& to) {
  const std::int64_t reach = shape.elements() * static_cast<std::int64_t>(parts.size()) + to.offset;
  std::int64_t extent = to.offset;
  for (int axis = 0; axis < shape.rank(); ++axis) extent += (shape[axis] - 1) * to.strides[static_cast<std::size_t>(axis)];
  Parameters p(std::max(reach, extent) >= (std::int64_t{1} << 31) - (1 << 24));
  Body body(target, p);
  const int rank = shape.rank();
  const std::int64_t columns = shape[rank - 1];
  const auto count = static_cast<std::int64_t>(parts.size());
  std::vector<std::int64_t> extents(shape.begin(), shape.end() - 1), strides(to.strides.begin(), to.strides.end() - 1);
  const Axes rows = joined(extents, {strides});
  // Neighbours of every part that are stored as one word of at most 16 bytes.
  std::int64_t together = 16 / static_cast<std::int64_t>(element_bytes(to.stored)) / count;
  const auto fits = [&](std::int64_t number) { return number % (together * count) == 0; };
  const bool is_whole = std::has_single_bit(static_cast<std::uint64_t>(count)) && together > 1 && columns % together == 0 &&
                        fits(to.offset) && std::ranges::all_of(strides, fits);
  if (!is_whole) together = 1;
  std::string text = fmt::format("const {0} item = ({0})j * {2}, row = item / {1}, column = item % {1};\n", p.index_type(),
                                 p.index(columns), together);
  text += offset_text(p, rows, {to.offset}, "row");
  const std::string out = p.output(to.stored, to.slot), type = stored_type(to.stored);
  text += fmt::format("GLOBAL {}* const place = {} + o0 + column * {};\n", type, out, count);
  if (is_whole) text += fmt::format("VARRAY({}, {}, all);\n", type, together * count);
  for (std::int64_t i = 0; i < count; ++i) {
    const std::string part = p.input(to.stored, parts[static_cast<std::size_t>(i)]);
    if (!is_whole) text += fmt::format("place[{}] = {}[item];\n", i, part);
    if (!is_whole) continue;
    text += fmt::format("VARRAY({0}, {1}, part{2});\nVLOAD({0}, {1}, part{2}, {3} + item);\n", type, together, i, part);
    for (std::int64_t k = 0; k < together; ++k) text += fmt::format("all[{}] = part{}[{}];\n", k * count + i, i, k);
  }
  if (is_whole) text += fmt::format("VSTORE({}, {}, all, place);\n", type, together * count);
  return emit_items(body, shape.elements() / together, count, text);
}

}  // namespace tenon::emit
