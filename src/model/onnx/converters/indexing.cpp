#include <fmt/format.h>

#include <numeric>

#include "model/onnx/converters/families.h"

namespace tenon::onnx {
namespace {

using namespace build;

std::int64_t product(std::span<const std::int64_t> extents) {
  return std::accumulate(extents.begin(), extents.end(), std::int64_t{1}, std::multiplies<>());
}

Results gather_op(const NodeContext& node) {
  const Shape& shape = node.shape(0);
  const int axis = node.axis("axis", 0, shape.rank());
  if (node.value(0)->is_string()) {
    if (shape.rank() != 1) node.refuse("strings are gathered from one axis only");
    std::vector<std::string> out;
    for (const std::int64_t index : node.host_integers(1)) {
      const std::int64_t place = index < 0 ? index + shape[0] : index;
      if (place < 0 || place >= shape[0]) node.fail(fmt::format("index {} is out of range", index));
      out.push_back((*node.value(0)->strings)[static_cast<std::size_t>(place)]);
    }
    return {text(node.shape(1), std::move(out))};
  }
  return {moved(node, 0, take(node.in(0), node.in(1), axis))};
}

Results gather_elements(const NodeContext& node) {
  Expr x = node.in(0);
  const Expr indices = node.in(1);
  const int axis = node.axis("axis", 0, x.rank());
  // The other axes of the indices may be shorter.
  for (int i = 0; i < x.rank(); ++i)
    if (i != axis) x = narrow(x, i, 0, indices.extent(i));
  return {moved(node, 0, gather(x, indices, axis))};
}

// Indices [..., k] into axes of |extents| as places in those axes joined to one.
Expr joined_indices(const NodeContext& node, Expr indices, std::span<const std::int64_t> extents) {
  const int last = indices.rank() - 1;
  const Dims strides = strides_of(Dims(extents.begin(), extents.end()));
  std::optional<Expr> sum;
  for (std::size_t i = 0; i < extents.size(); ++i) {
    const Expr each = squeeze(narrow(indices, last, static_cast<std::int64_t>(i), 1), one_axis(last));
    const Expr place = wrapped_indices(each, extents[i]) * static_cast<double>(strides[i]);
    sum = sum ? *sum + place : place;
  }
  if (!sum) node.refuse("indices of no axes");
  return *sum;
}

Results gather_nd(const NodeContext& node) {
  const Expr x = node.in(0), indices = cast(node.in(1), DType::i64);
  const auto batch = static_cast<std::size_t>(node.integer("batch_dims", 0));
  const Dims from = dims(x.shape()), at = dims(indices.shape());
  if (at.empty() || batch >= at.size() || batch > from.size()) node.fail("batch_dims is out of range");
  const auto depth = static_cast<std::size_t>(at.back());
  if (depth == 0 || batch + depth > from.size())
    node.fail(fmt::format("indices of {} axes into {}", depth, to_string(x.shape())));
  const std::span<const std::int64_t> indexed(from.begin() + static_cast<std::ptrdiff_t>(batch), depth),
      rest(from.begin() + static_cast<std::ptrdiff_t>(batch + depth), from.end());
  const std::int64_t batches = product(std::span(from).first(batch)), places = product(indexed), width = product(rest);
  Expr flat = joined_indices(
      node,
      reshape(indices, Shape{batches, batches == 0 ? 0 : indices.shape().elements() / static_cast<std::int64_t>(depth) / batches,
                             static_cast<std::int64_t>(depth)}),
      indexed);
  if (batches > 1) flat = flat + build::iota(node.graph(), flat.shape(), 0) * static_cast<double>(places);
  const Expr rows = take(reshape(x, Shape{batches * places, width}), flat, 0);
  Dims out(at.begin(), at.end() - 1);
  out.insert(out.end(), rest.begin(), rest.end());
  return {moved(node, 0, reshape(rows, Shape(out)))};
}

// Updates along |axis| that are combined with what they meet. There is no primitive for products and extremes, so each place
// looks at all updates.
Expr scatter_reduced(const NodeContext& node, Expr x, Expr indices, Expr updates, int axis, const std::string& reduction) {
  if (x.rank() >= kMaxRank) node.refuse(fmt::format("reduction '{}' of {} axes", reduction, x.rank()));
  const std::int64_t extent = x.extent(axis);
  Dims table = dims(indices.shape());
  table.insert(table.begin() + axis + 1, extent);
  if (product(table) > (std::int64_t{1} << 28)) node.refuse(fmt::format("reduction '{}' of this size", reduction));
  const Expr place = build::iota(node.graph(), Shape(table), axis + 1);
  const Expr hit = unsqueeze(wrapped_indices(indices, extent), axis + 1) == place;
  const Expr neutral = reduction == "mul" ? cast(same(x, 1), x.dtype()) : reduction == "max" ? lowest(x) : highest(x);
  const Expr each = where(hit, unsqueeze(updates, axis + 1), neutral);
  Expr found = squeeze(reduction == "mul"   ? prod_keep(each, one_axis(axis))
                       : reduction == "max" ? max_keep(each, one_axis(axis))
                                            : min_keep(each, one_axis(axis)),
                       one_axis(axis));
  found = convert(found, x.dtype());
  // The other axes of the indices may be shorter; what lies beyond stays as it is.
  Dims low(static_cast<std::size_t>(x.rank()), 0);
  Expr touched = any_keep(hit, one_axis(axis));
  touched = squeeze(touched, one_axis(axis));
  for (int i = 0; i < x.rank(); ++i) {
    found = pad_axis(found, i, 0, x.extent(i) - found.extent(i));
    touched = pad_axis(touched, i, 0, x.extent(i) - touched.extent(i));
  }
  const Expr combined = reduction == "mul" ? x * found : reduction == "max" ? maximum(x, found) : minimum(x, found);
  return where(touched, combined, x);
}

Expr scattered(const NodeContext& node, Expr x, Expr indices, Expr updates, int axis) {
  const std::string reduction = node.text("reduction", "none");
  if (reduction != "none" && reduction != "add") {
    if (reduction != "mul" && reduction != "min" && reduction != "max") node.refuse(fmt::format("reduction '{}'", reduction));
    return scatter_reduced(node, x, indices, updates, axis, reduction);
  }
  // A scatter with shorter indices on other axes writes into a part of x.
  const Shape full = x.shape();
  bool is_part = false;
  Expr part = x;
  for (int i = 0; i < x.rank(); ++i)
    if (i != axis && indices.extent(i) != full[i]) {
      part = narrow(part, i, 0, indices.extent(i));
      is_part = true;
    }
  Expr y(node.graph(),
         node.graph().scatter(part.id(), wrapped_indices(indices, full[axis]).id(), updates.id(), axis, reduction == "add"));
  if (!is_part) return y;
  for (int i = 0; i < x.rank(); ++i)
    if (y.extent(i) != full[i]) {
      Expr around = x;
      for (int k = i + 1; k < x.rank(); ++k) around = narrow(around, k, 0, y.extent(k));
      for (int k = 0; k < i; ++k) around = narrow(around, k, 0, y.extent(k));
      const Expr parts[] = {y, narrow(around, i, y.extent(i), full[i] - y.extent(i))};
      y = concat(parts, i);
    }
  return y;
}

Results scatter_elements(const NodeContext& node) {
  const Expr x = node.in(0);
  return {cast(scattered(node, x, node.in(1), node.in(2), node.axis("axis", 0, x.rank())), x.dtype())};
}

Results scatter_nd(const NodeContext& node) {
  const Expr x = node.in(0), indices = cast(node.in(1), DType::i64), updates = node.in(2);
  const Dims from = dims(x.shape());
  const auto depth = static_cast<std::size_t>(indices.extent(indices.rank() - 1));
  if (depth > from.size()) node.fail(fmt::format("indices of {} axes into {}", depth, to_string(x.shape())));
  const std::span<const std::int64_t> indexed(from.begin(), depth),
      rest(from.begin() + static_cast<std::ptrdiff_t>(depth), from.end());
  const std::int64_t places = product(indexed), width = product(rest),
                     count = depth == 0 ? 1 : indices.shape().elements() / static_cast<std::int64_t>(depth);
  const Expr flat =
      reshape(joined_indices(node, reshape(indices, Shape{count, static_cast<std::int64_t>(depth)}), indexed), Shape{count, 1});
  const Expr y = scattered(node, reshape(x, Shape{places, width}), expand_to(flat, Shape{count, width}),
                           reshape(updates, Shape{count, width}), 0);
  return {cast(reshape(y, x.shape()), x.dtype())};
}

Results one_hot(const NodeContext& node) {
  const Expr indices = node.in(0);
  const std::int64_t depth = node.host_integers(1).at(0);
  if (depth <= 0) node.fail("the depth must be positive");
  const Expr values = node.in(2);
  if (values.shape() != Shape{2}) node.fail("values must be [off, on]");
  const int axis = normalize_axis(node.integer("axis", -1), indices.rank() + 1);
  const Expr place = unsqueeze(wrapped_indices(cast(indices, DType::i64), depth), axis);
  Dims extents = dims(place.shape());
  extents[static_cast<std::size_t>(axis)] = depth;
  const Expr hit = build::iota(node.graph(), Shape(extents), axis) == place;
  const Expr off = reshape(narrow(values, 0, 0, 1), {}), on = reshape(narrow(values, 0, 1, 1), {});
  return {where(hit, expand_to(on, hit.shape()), off)};
}

// Writes |updates| into a cache at positions along one axis, from |write_indices| of each batch on.
Results tensor_scatter(const NodeContext& node) {
  const Expr past = node.in(0), update = node.in(1);
  const int axis = normalize_axis(node.integer("axis", -2), past.rank());
  const bool circular = node.text("mode", "linear") == "circular";
  const std::int64_t extent = past.extent(axis);
  Expr start = node.has(2) ? cast(node.in(2), DType::i64) : node.constant(HostArray::zeros(DType::i64, Shape{past.extent(0)}));
  Expr place = along(start, 0, past.rank()) + build::iota(node.graph(), update.shape(), axis);
  if (circular) place = node.apply("remainder", {place, same(place, static_cast<double>(extent))});
  return {Expr(node.graph(), node.graph().scatter(past.id(), place.id(), update.id(), axis, false))};
}

Results array_feature_extractor(const NodeContext& node) {
  const Expr x = node.in(0);
  return {take(x.rank() == 1 ? unsqueeze(x, 0) : x, reshape(node.in(1), Shape{node.shape(1).elements()}),
               x.rank() == 1 ? 1 : x.rank() - 1)};
}

}  // namespace

void add_indexing(ConverterTable& table) {
  table.add("Gather", gather_op);
  table.add("GatherElements", gather_elements);
  table.add("GatherND", gather_nd);
  table.add({"Scatter", "ScatterElements"}, scatter_elements);
  table.add("ScatterND", scatter_nd);
  table.add("OneHot", one_hot);
  table.add("TensorScatter", tensor_scatter);
  table.add("ai.onnx.ml.ArrayFeatureExtractor", array_feature_extractor);
}

}  // namespace tenon::onnx
