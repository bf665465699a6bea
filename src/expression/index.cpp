// x[0, 1:5, ::-1, ..., None, indices]: built from slice and reshape; a tensor of integers from take.
#include <fmt/format.h>

#include <algorithm>

#include "expression/builder.h"

namespace tenon::expression {
namespace {

// Python's slice(start, stop, step).indices(size): its start and its number of elements.
struct Range {
  std::int64_t start = 0, count = 0, step = 1;
};

Range resolve(std::optional<std::int64_t> start, std::optional<std::int64_t> stop, std::int64_t step, std::int64_t size) {
  const bool back = step < 0;
  const std::int64_t low = back ? -1 : 0, high = back ? size - 1 : size;
  const auto place = [&](std::int64_t at) {
    if (at < 0) at = at < -size ? low : at + size;
    return std::clamp(at, low, high);
  };
  const std::int64_t begin = start ? place(*start) : (back ? high : low);
  const std::int64_t end = stop ? place(*stop) : (back ? low : high);
  const std::int64_t distance = back ? begin - end : end - begin;
  if (distance <= 0) return {0, 0, 1};
  // A step as large as the axis selects one element in any case, so its sign can be changed without overflow.
  const std::int64_t stride = back ? -std::max(step, -(size + 1)) : std::min(step, size + 1);
  return {begin, (distance - 1) / stride + 1, back ? -stride : stride};
}

}  // namespace

Value Builder::subscript(const Ast& ast) {
  const AstId base = ast.children[0];
  // Several results, or a tuple: an integer selects one.
  const auto* tensors = std::get_if<Tensors>(&value(base));
  const List* items = as_list(value(base));
  const bool several =
      (tensors != nullptr && tensors->ids.size() != 1) || (items != nullptr && (items->has_tensor || items->is_tuple));
  if (several && ast.children.size() == 2 && part(ast.children[1]).kind != AstKind::slice) {
    const auto count = static_cast<std::int64_t>(tensors != nullptr ? tensors->ids.size() : items->items.size());
    const auto* index = std::get_if<std::int64_t>(&value(ast.children[1]));
    if (index == nullptr)
      fail(part(ast.children[1]).extent, fmt::format("use an integer to select one of the {} results", count));
    if (*index < -count || *index >= count)
      fail(part(ast.children[1]).extent, fmt::format("result {} is out of range; there are {} results", *index, count),
           "results are numbered from 0", ErrorCode::out_of_range);
    const auto at = static_cast<std::size_t>(*index < 0 ? *index + count : *index);
    return tensors != nullptr ? Value(Tensors{{tensors->ids[at]}}) : items->items[at];
  }
  const NodeId x = tensor(base);
  return located(ast.extent, [&] { return index_tensor(x, ast); });
}

NodeId Builder::index_operand(AstId item) {
  const NodeId index = tensor(item);
  const DType dtype = graph_[index].dtype;
  if (dtype == DType::boolean)
    fail(part(item).extent, "a mask would select an unknown number of elements", "use where(mask, x, 0)");
  if (!is_integer(dtype)) fail(part(item).extent, fmt::format("indices must be integers, not {}", tenon::name(dtype)));
  return index;
}

Value Builder::index_tensor(NodeId x, const Ast& ast) {
  const Shape shape = graph_[x].shape;
  const int rank = shape.rank();
  const std::span<const AstId> items = std::span(ast.children).subspan(1);
  const auto kind = [&](AstId id) { return part(id).kind; };
  const auto is_none = [&](AstId id) {
    return kind(id) != AstKind::slice && kind(id) != AstKind::ellipsis && std::holds_alternative<std::monostate>(value(id));
  };

  int named = 0, dots = 0;
  for (const AstId id : items) {
    if (kind(id) == AstKind::ellipsis && ++dots > 1) fail(part(id).extent, "'...' may appear only once");
    if (kind(id) != AstKind::ellipsis && !is_none(id)) ++named;
  }
  if (named > rank)
    fail(ast.extent, fmt::format("{} indices, but the tensor has {} axes, {}", named, rank, to_string(shape)), {},
         ErrorCode::out_of_range);

  const auto bound = [&](AstId id) -> std::optional<std::int64_t> {
    if (id < 0 || std::holds_alternative<std::monostate>(value(id))) return std::nullopt;
    if (const auto* whole = std::get_if<std::int64_t>(&value(id))) return *whole;
    fail(part(id).extent, fmt::format("the bounds of a slice must be integers, not {}", describe(value(id))));
  };

  std::vector<std::int64_t> start, extent, step, kept;
  const auto keep_axis = [&] {
    const std::int64_t size = shape[static_cast<int>(start.size())];
    start.push_back(0);
    extent.push_back(size);
    step.push_back(1);
    kept.push_back(size);
  };
  std::optional<NodeId> indices;
  int index_axis = 0;
  for (const AstId id : items) {
    if (is_none(id)) {
      kept.push_back(1);
      continue;
    }
    if (kind(id) == AstKind::ellipsis) {
      for (int i = named; i < rank; ++i) keep_axis();
      continue;
    }
    const std::int64_t size = shape[static_cast<int>(start.size())];
    if (kind(id) == AstKind::slice) {
      const auto& parts = part(id).children;
      const std::int64_t by = bound(parts[2]).value_or(1);
      if (by == 0) fail(part(id).extent, "the step of a slice must not be 0");
      const Range range = resolve(bound(parts[0]), bound(parts[1]), by, size);
      start.push_back(range.start);
      extent.push_back(range.count);
      step.push_back(range.step);
      kept.push_back(range.count);
    } else if (const auto* whole = std::get_if<std::int64_t>(&value(id))) {
      if (*whole < -size || *whole >= size)
        fail(part(id).extent, fmt::format("index {} is out of range for axis {} of {}", *whole, start.size(), to_string(shape)),
             {}, ErrorCode::out_of_range);
      start.push_back(*whole < 0 ? *whole + size : *whole);
      extent.push_back(1);
      step.push_back(1);
    } else {
      if (indices) fail(part(id).extent, "only one index may be a tensor", "index twice: x[i][:, j]");
      indices = index_operand(id);
      index_axis = static_cast<int>(kept.size());
      keep_axis();
    }
  }
  while (static_cast<int>(start.size()) < rank) keep_axis();

  NodeId result = graph_.reshape(graph_.slice(x, start, extent, step), Shape(kept));
  if (indices) result = graph_.take(result, *indices, index_axis);
  return Tensors{{result}};
}

}  // namespace tenon::expression
