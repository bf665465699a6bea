#include <limits>

#include "model/onnx/converters/families.h"

namespace tenon::onnx {
namespace {

const ConverterTable& table() {
  static const ConverterTable instance = [] {
    ConverterTable all;
    for (const auto add : {add_attention,
                           add_control,
                           add_convolution,
                           add_elementwise,
                           add_indexing,
                           add_linear_models,
                           add_losses,
                           add_normalization,
                           add_pooling,
                           add_products,
                           add_quantization,
                           add_random,
                           add_recurrent,
                           add_reductions,
                           add_resize,
                           add_selection,
                           add_sequences,
                           add_shape,
                           add_signal,
                           add_support_vectors,
                           add_tables,
                           add_text,
                           add_training,
                           add_trees,
                           add_types,
                           add_vision,
                           add_microsoft_attention,
                           add_microsoft_fused,
                           add_microsoft_quantized})
      add(all);
    return all;
  }();
  return instance;
}

}  // namespace

Converter find_converter(std::string_view domain, std::string_view op) {
  const auto& all = table().all();
  const auto found = domain.empty() ? all.find(op) : all.find(std::string(domain) + "." + std::string(op));
  return found == all.end() ? nullptr : found->second;
}

std::vector<std::string> supported_ops() {
  std::vector<std::string> names;
  for (const auto& [op, converter] : table().all()) names.push_back(op);
  return names;
}

Expr same(Expr x, double value) {
  if (is_float(x.dtype())) return build::number(x.graph(), value);
  return {x.graph(), x.graph().scalar(value, x.dtype())};
}

Dims strides_of(const Dims& extents) {
  Dims strides(extents.size(), 1);
  for (std::size_t i = extents.size(); i-- > 1;) strides[i - 1] = strides[i] * extents[i];
  return strides;
}

Expr axes_last(Expr x, const std::vector<int>& axes) {
  std::vector<int> order;
  const AxisSet set = axis_set(axes);
  for (int i = 0; i < x.rank(); ++i)
    if (!(set >> i & 1)) order.push_back(i);
  order.insert(order.end(), axes.begin(), axes.end());
  return build::transpose(x, order);
}

Expr expand_to(Expr x, const Shape& shape) { return x.shape() == shape ? x : build::broadcast(x, shape); }

Expr wrapped_indices(Expr indices, std::int64_t extent) {
  const Expr wide = build::cast(indices, DType::i64);
  return build::where(wide < same(wide, 0), wide + static_cast<double>(extent), wide);
}

Result moved(const NodeContext& node, std::size_t input, Expr x) { return {x, node.type(input)}; }

namespace {
HostArray extreme(DType dtype, bool high) {
  switch (dtype) {
    case DType::i64:
      return HostArray::from<std::int64_t>(
          {}, {high ? std::numeric_limits<std::int64_t>::max() : std::numeric_limits<std::int64_t>::min()});
    case DType::u64: return HostArray::from<std::uint64_t>({}, {high ? std::numeric_limits<std::uint64_t>::max() : 0});
    case DType::boolean: return HostArray::full(dtype, {}, high ? 1 : 0);
    default: break;
  }
  const double infinity = std::numeric_limits<double>::infinity();
  return HostArray::full(is_float(dtype) ? compute_dtype(dtype) : dtype, {}, high ? infinity : -infinity);  // integers saturate
}
}  // namespace

Expr lowest(Expr like) { return build::cast({like.graph(), like.graph().constant(extreme(like.dtype(), false))}, like.dtype()); }
Expr highest(Expr like) { return build::cast({like.graph(), like.graph().constant(extreme(like.dtype(), true))}, like.dtype()); }

}  // namespace tenon::onnx
