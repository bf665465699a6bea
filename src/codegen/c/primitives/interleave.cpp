// Elements of several tensors in turn along the last axis: of a, of b, of a ... The strided stores of one tensor after the other
// would write every line of the memory several times.
#include <fmt/format.h>

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
  std::string text =
      fmt::format("const {0} item = ({0})j, row = item / {1}, column = item % {1};\n", p.index_type(), p.index(columns));
  text += offset_text(p, rows, {to.offset}, "row");
  const std::string out = p.output(to.stored, to.slot), type = stored_type(to.stored);
  text += fmt::format("GLOBAL {}* const place = {} + o0 + column * {};\n", type, out, count);
  for (std::int64_t i = 0; i < count; ++i)
    text += fmt::format("place[{}] = {}[item];\n", i, p.input(to.stored, parts[static_cast<std::size_t>(i)]));
  return emit_items(body, shape.elements(), count, text);
}

}  // namespace tenon::emit
