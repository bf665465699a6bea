// Made by tools/docs from the catalogue; not to be edited.
// clang-format off
#include "tenon/functions.h"

#include "tensor/argument.h"
#include "tensor/node.h"

namespace tenon {

Tensor abs(const Tensor& x) {
  return apply_one("abs", {&x});
}

Tensor acos(const Tensor& x) {
  return apply_one("acos", {&x});
}

Tensor acosh(const Tensor& x) {
  return apply_one("acosh", {&x});
}

Tensor adaptive_avg_pool1d(const Tensor& x, const Integers& output_size) {
  return apply_one("adaptive_avg_pool1d", {&x},
      {{"output_size", parameter(output_size)}});
}

Tensor adaptive_avg_pool2d(const Tensor& x, const Integers& output_size) {
  return apply_one("adaptive_avg_pool2d", {&x},
      {{"output_size", parameter(output_size)}});
}

Tensor adaptive_avg_pool3d(const Tensor& x, const Integers& output_size) {
  return apply_one("adaptive_avg_pool3d", {&x},
      {{"output_size", parameter(output_size)}});
}

Tensor adaptive_max_pool1d(const Tensor& x, const Integers& output_size) {
  return apply_one("adaptive_max_pool1d", {&x},
      {{"output_size", parameter(output_size)}});
}

Tensor adaptive_max_pool2d(const Tensor& x, const Integers& output_size) {
  return apply_one("adaptive_max_pool2d", {&x},
      {{"output_size", parameter(output_size)}});
}

Tensor adaptive_max_pool3d(const Tensor& x, const Integers& output_size) {
  return apply_one("adaptive_max_pool3d", {&x},
      {{"output_size", parameter(output_size)}});
}

Tensor add(const Tensor& x, const Tensor& y) {
  return apply_one("add", {&x, &y});
}

Tensor addalpha(const Tensor& x, const Tensor& y, double alpha) {
  return apply_one("addalpha", {&x, &y},
      {{"alpha", parameter(alpha)}});
}

Tensor addcdiv(const Tensor& x, const Tensor& y, const Tensor& z, double value) {
  return apply_one("addcdiv", {&x, &y, &z},
      {{"value", parameter(value)}});
}

Tensor addcmul(const Tensor& x, const Tensor& y, const Tensor& z, double value) {
  return apply_one("addcmul", {&x, &y, &z},
      {{"value", parameter(value)}});
}

Tensor addmm(const Tensor& c, const Tensor& a, const Tensor& b, double beta, double alpha) {
  return apply_one("addmm", {&c, &a, &b},
      {{"beta", parameter(beta)}, {"alpha", parameter(alpha)}});
}

Tensor all(const Tensor& x, const Integers& axis, bool keepdims) {
  return apply_one("all", {&x},
      {{"axis", parameter(axis)}, {"keepdims", parameter(keepdims)}});
}

Tensor any(const Tensor& x, const Integers& axis, bool keepdims) {
  return apply_one("any", {&x},
      {{"axis", parameter(axis)}, {"keepdims", parameter(keepdims)}});
}

Tensor arange(double start, std::optional<double> stop, double step, std::optional<DType> dtype) {
  return apply_one("arange", {},
      {{"start", parameter(start)}, {"stop", parameter(stop)}, {"step", parameter(step)}, {"dtype", parameter(dtype)}});
}

Tensor argmax(const Tensor& x, std::optional<std::int64_t> axis, bool keepdims) {
  return apply_one("argmax", {&x},
      {{"axis", parameter(axis)}, {"keepdims", parameter(keepdims)}});
}

Tensor argmin(const Tensor& x, std::optional<std::int64_t> axis, bool keepdims) {
  return apply_one("argmin", {&x},
      {{"axis", parameter(axis)}, {"keepdims", parameter(keepdims)}});
}

Tensor argsort(const Tensor& x, std::int64_t axis, bool descending) {
  return apply_one("argsort", {&x},
      {{"axis", parameter(axis)}, {"descending", parameter(descending)}});
}

Tensor asin(const Tensor& x) {
  return apply_one("asin", {&x});
}

Tensor asinh(const Tensor& x) {
  return apply_one("asinh", {&x});
}

Tensor atan(const Tensor& x) {
  return apply_one("atan", {&x});
}

Tensor atan2(const Tensor& y, const Tensor& x) {
  return apply_one("atan2", {&y, &x});
}

Tensor atanh(const Tensor& x) {
  return apply_one("atanh", {&x});
}

Tensor avg_pool1d(const Tensor& x, const Integers& kernel, const Integers& stride, const Integers& padding,
                  const Integers& dilation, bool count_include_pad) {
  return apply_one("avg_pool1d", {&x},
      {{"kernel", parameter(kernel)}, {"stride", parameter(stride)}, {"padding", parameter(padding)},
       {"dilation", parameter(dilation)}, {"count_include_pad", parameter(count_include_pad)}});
}

Tensor avg_pool2d(const Tensor& x, const Integers& kernel, const Integers& stride, const Integers& padding,
                  const Integers& dilation, bool count_include_pad) {
  return apply_one("avg_pool2d", {&x},
      {{"kernel", parameter(kernel)}, {"stride", parameter(stride)}, {"padding", parameter(padding)},
       {"dilation", parameter(dilation)}, {"count_include_pad", parameter(count_include_pad)}});
}

Tensor avg_pool3d(const Tensor& x, const Integers& kernel, const Integers& stride, const Integers& padding,
                  const Integers& dilation, bool count_include_pad) {
  return apply_one("avg_pool3d", {&x},
      {{"kernel", parameter(kernel)}, {"stride", parameter(stride)}, {"padding", parameter(padding)},
       {"dilation", parameter(dilation)}, {"count_include_pad", parameter(count_include_pad)}});
}

Tensor batch_norm(const Tensor& x, const Tensor& mean, const Tensor& var, const Tensor& weight, const Tensor& bias,
                  std::int64_t axis, double eps) {
  return apply_one("batch_norm", {&x, &mean, &var, &weight, &bias},
      {{"axis", parameter(axis)}, {"eps", parameter(eps)}});
}

Tensor bernoulli(const Integers& shape, double p, DType dtype, std::int64_t seed) {
  return apply_one("bernoulli", {},
      {{"shape", parameter(shape)}, {"p", parameter(p)}, {"dtype", parameter(dtype)}, {"seed", parameter(seed)}});
}

Tensor binary_cross_entropy(const Tensor& x, const Tensor& target, std::string_view reduction) {
  return apply_one("binary_cross_entropy", {&x, &target},
      {{"reduction", parameter(reduction)}});
}

Tensor binary_cross_entropy_with_logits(const Tensor& x, const Tensor& target, std::string_view reduction) {
  return apply_one("binary_cross_entropy_with_logits", {&x, &target},
      {{"reduction", parameter(reduction)}});
}

Tensor bitwise_and(const Tensor& x, const Tensor& y) {
  return apply_one("bitwise_and", {&x, &y});
}

Tensor bitwise_not(const Tensor& x) {
  return apply_one("bitwise_not", {&x});
}

Tensor bitwise_or(const Tensor& x, const Tensor& y) {
  return apply_one("bitwise_or", {&x, &y});
}

Tensor bitwise_xor(const Tensor& x, const Tensor& y) {
  return apply_one("bitwise_xor", {&x, &y});
}

Tensor bmm(const Tensor& a, const Tensor& b) {
  return apply_one("bmm", {&a, &b});
}

Tensor cast(const Tensor& x, DType dtype) {
  return apply_one("cast", {&x},
      {{"dtype", parameter(dtype)}});
}

Tensor cbrt(const Tensor& x) {
  return apply_one("cbrt", {&x});
}

Tensor cdist(const Tensor& a, const Tensor& b, double p) {
  return apply_one("cdist", {&a, &b},
      {{"p", parameter(p)}});
}

Tensor ceil(const Tensor& x) {
  return apply_one("ceil", {&x});
}

Tensor celu(const Tensor& x, double alpha) {
  return apply_one("celu", {&x},
      {{"alpha", parameter(alpha)}});
}

std::vector<Tensor> chunk(const Tensor& x, std::int64_t chunks, std::int64_t axis) {
  return apply_several("chunk", {&x},
      {{"chunks", parameter(chunks)}, {"axis", parameter(axis)}});
}

Tensor clamp(const Tensor& x, std::optional<double> min, std::optional<double> max) {
  return apply_one("clamp", {&x},
      {{"min", parameter(min)}, {"max", parameter(max)}});
}

Tensor clamp_max(const Tensor& x, double max) {
  return apply_one("clamp_max", {&x},
      {{"max", parameter(max)}});
}

Tensor clamp_min(const Tensor& x, double min) {
  return apply_one("clamp_min", {&x},
      {{"min", parameter(min)}});
}

Tensor clip(const Tensor& x, std::optional<double> min, std::optional<double> max) {
  return apply_one("clip", {&x},
      {{"min", parameter(min)}, {"max", parameter(max)}});
}

Tensor clone(const Tensor& x) {
  return apply_one("clone", {&x});
}

Tensor concat(const std::vector<Tensor>& tensors, std::int64_t axis) {
  return apply_one("concat", pointers(tensors),
      {{"axis", parameter(axis)}});
}

Tensor conv1d(const Tensor& x, const Tensor& weight, const Tensor& bias, const Integers& stride, const Integers& padding,
              const Integers& dilation, std::int64_t groups) {
  return apply_one("conv1d", {&x, &weight, &bias},
      {{"stride", parameter(stride)}, {"padding", parameter(padding)}, {"dilation", parameter(dilation)},
       {"groups", parameter(groups)}});
}

Tensor conv2d(const Tensor& x, const Tensor& weight, const Tensor& bias, const Integers& stride, const Integers& padding,
              const Integers& dilation, std::int64_t groups) {
  return apply_one("conv2d", {&x, &weight, &bias},
      {{"stride", parameter(stride)}, {"padding", parameter(padding)}, {"dilation", parameter(dilation)},
       {"groups", parameter(groups)}});
}

Tensor conv3d(const Tensor& x, const Tensor& weight, const Tensor& bias, const Integers& stride, const Integers& padding,
              const Integers& dilation, std::int64_t groups) {
  return apply_one("conv3d", {&x, &weight, &bias},
      {{"stride", parameter(stride)}, {"padding", parameter(padding)}, {"dilation", parameter(dilation)},
       {"groups", parameter(groups)}});
}

Tensor conv_transpose1d(const Tensor& x, const Tensor& weight, const Tensor& bias, const Integers& stride,
                        const Integers& padding, const Integers& output_padding, std::int64_t groups, const Integers& dilation) {
  return apply_one("conv_transpose1d", {&x, &weight, &bias},
      {{"stride", parameter(stride)}, {"padding", parameter(padding)}, {"output_padding", parameter(output_padding)},
       {"groups", parameter(groups)}, {"dilation", parameter(dilation)}});
}

Tensor conv_transpose2d(const Tensor& x, const Tensor& weight, const Tensor& bias, const Integers& stride,
                        const Integers& padding, const Integers& output_padding, std::int64_t groups, const Integers& dilation) {
  return apply_one("conv_transpose2d", {&x, &weight, &bias},
      {{"stride", parameter(stride)}, {"padding", parameter(padding)}, {"output_padding", parameter(output_padding)},
       {"groups", parameter(groups)}, {"dilation", parameter(dilation)}});
}

Tensor conv_transpose3d(const Tensor& x, const Tensor& weight, const Tensor& bias, const Integers& stride,
                        const Integers& padding, const Integers& output_padding, std::int64_t groups, const Integers& dilation) {
  return apply_one("conv_transpose3d", {&x, &weight, &bias},
      {{"stride", parameter(stride)}, {"padding", parameter(padding)}, {"output_padding", parameter(output_padding)},
       {"groups", parameter(groups)}, {"dilation", parameter(dilation)}});
}

Tensor copysign(const Tensor& x, const Tensor& y) {
  return apply_one("copysign", {&x, &y});
}

Tensor cos(const Tensor& x) {
  return apply_one("cos", {&x});
}

Tensor cosh(const Tensor& x) {
  return apply_one("cosh", {&x});
}

Tensor cosine_similarity(const Tensor& a, const Tensor& b, std::int64_t axis, double eps) {
  return apply_one("cosine_similarity", {&a, &b},
      {{"axis", parameter(axis)}, {"eps", parameter(eps)}});
}

Tensor count_nonzero(const Tensor& x, const Integers& axis, bool keepdims) {
  return apply_one("count_nonzero", {&x},
      {{"axis", parameter(axis)}, {"keepdims", parameter(keepdims)}});
}

Tensor cross(const Tensor& a, const Tensor& b, std::int64_t axis) {
  return apply_one("cross", {&a, &b},
      {{"axis", parameter(axis)}});
}

Tensor cross_entropy(const Tensor& x, const Tensor& target, std::string_view reduction) {
  return apply_one("cross_entropy", {&x, &target},
      {{"reduction", parameter(reduction)}});
}

Tensor cumprod(const Tensor& x, std::int64_t axis) {
  return apply_one("cumprod", {&x},
      {{"axis", parameter(axis)}});
}

Tensor cumsum(const Tensor& x, std::int64_t axis) {
  return apply_one("cumsum", {&x},
      {{"axis", parameter(axis)}});
}

Tensor deg2rad(const Tensor& x) {
  return apply_one("deg2rad", {&x});
}

Tensor dequantize(const Tensor& x, double scale, std::int64_t zero_point) {
  return apply_one("dequantize", {&x},
      {{"scale", parameter(scale)}, {"zero_point", parameter(zero_point)}});
}

Tensor diag(const Tensor& x, std::int64_t offset) {
  return apply_one("diag", {&x},
      {{"offset", parameter(offset)}});
}

Tensor diagonal(const Tensor& x, std::int64_t offset, std::int64_t axis1, std::int64_t axis2) {
  return apply_one("diagonal", {&x},
      {{"offset", parameter(offset)}, {"axis1", parameter(axis1)}, {"axis2", parameter(axis2)}});
}

Tensor digamma(const Tensor& x) {
  return apply_one("digamma", {&x});
}

Tensor div(const Tensor& x, const Tensor& y, std::string_view rounding_mode) {
  return apply_one("div", {&x, &y},
      {{"rounding_mode", parameter(rounding_mode)}});
}

Tensor div_no_nan(const Tensor& x, const Tensor& y) {
  return apply_one("div_no_nan", {&x, &y});
}

Tensor divide(const Tensor& x, const Tensor& y, std::string_view rounding_mode) {
  return apply_one("divide", {&x, &y},
      {{"rounding_mode", parameter(rounding_mode)}});
}

Tensor dot(const Tensor& a, const Tensor& b) {
  return apply_one("dot", {&a, &b});
}

Tensor einsum(std::string_view equation, const std::vector<Tensor>& operands) {
  return apply_one("einsum", pointers(operands),
      {{"equation", parameter(equation)}});
}

Tensor elu(const Tensor& x, double alpha) {
  return apply_one("elu", {&x},
      {{"alpha", parameter(alpha)}});
}

Tensor embedding(const Tensor& indices, const Tensor& weight) {
  return apply_one("embedding", {&indices, &weight});
}

Tensor entr(const Tensor& x) {
  return apply_one("entr", {&x});
}

Tensor eq(const Tensor& x, const Tensor& y) {
  return apply_one("eq", {&x, &y});
}

Tensor eqz(const Tensor& x) {
  return apply_one("eqz", {&x});
}

Tensor erf(const Tensor& x) {
  return apply_one("erf", {&x});
}

Tensor erfc(const Tensor& x) {
  return apply_one("erfc", {&x});
}

Tensor erfinv(const Tensor& x) {
  return apply_one("erfinv", {&x});
}

Tensor exp(const Tensor& x) {
  return apply_one("exp", {&x});
}

Tensor exp10(const Tensor& x) {
  return apply_one("exp10", {&x});
}

Tensor exp2(const Tensor& x) {
  return apply_one("exp2", {&x});
}

Tensor expand(const Tensor& x, const Integers& shape) {
  return apply_one("expand", {&x},
      {{"shape", parameter(shape)}});
}

Tensor expm1(const Tensor& x) {
  return apply_one("expm1", {&x});
}

Tensor eye(std::int64_t n, std::optional<std::int64_t> m, std::int64_t k, DType dtype) {
  return apply_one("eye", {},
      {{"n", parameter(n)}, {"m", parameter(m)}, {"k", parameter(k)}, {"dtype", parameter(dtype)}});
}

Tensor fake_quantize(const Tensor& x, double scale, std::int64_t zero_point, std::string_view dtype) {
  return apply_one("fake_quantize", {&x},
      {{"scale", parameter(scale)}, {"zero_point", parameter(zero_point)}, {"dtype", parameter(dtype)}});
}

Tensor flatten(const Tensor& x, std::int64_t start_axis, std::int64_t end_axis) {
  return apply_one("flatten", {&x},
      {{"start_axis", parameter(start_axis)}, {"end_axis", parameter(end_axis)}});
}

Tensor flip(const Tensor& x, const Integers& axis) {
  return apply_one("flip", {&x},
      {{"axis", parameter(axis)}});
}

Tensor float_power(const Tensor& x, const Tensor& exponent) {
  return apply_one("float_power", {&x, &exponent});
}

Tensor floor(const Tensor& x) {
  return apply_one("floor", {&x});
}

Tensor floor_div(const Tensor& x, const Tensor& y) {
  return apply_one("floor_div", {&x, &y});
}

Tensor fmax(const Tensor& x, const Tensor& y) {
  return apply_one("fmax", {&x, &y});
}

Tensor fmin(const Tensor& x, const Tensor& y) {
  return apply_one("fmin", {&x, &y});
}

Tensor fmod(const Tensor& x, const Tensor& y) {
  return apply_one("fmod", {&x, &y});
}

Tensor frac(const Tensor& x) {
  return apply_one("frac", {&x});
}

Tensor full(const Integers& shape, double value, DType dtype) {
  return apply_one("full", {},
      {{"shape", parameter(shape)}, {"value", parameter(value)}, {"dtype", parameter(dtype)}});
}

Tensor full_like(const Tensor& x, double value, std::optional<DType> dtype) {
  return apply_one("full_like", {&x},
      {{"value", parameter(value)}, {"dtype", parameter(dtype)}});
}

Tensor gather(const Tensor& x, const Tensor& indices, std::int64_t axis) {
  return apply_one("gather", {&x, &indices},
      {{"axis", parameter(axis)}});
}

Tensor gcd(const Tensor& x, const Tensor& y) {
  return apply_one("gcd", {&x, &y});
}

Tensor ge(const Tensor& x, const Tensor& y) {
  return apply_one("ge", {&x, &y});
}

Tensor geglu(const Tensor& x, std::int64_t axis) {
  return apply_one("geglu", {&x},
      {{"axis", parameter(axis)}});
}

Tensor gelu(const Tensor& x, std::string_view approximate) {
  return apply_one("gelu", {&x},
      {{"approximate", parameter(approximate)}});
}

Tensor gez(const Tensor& x) {
  return apply_one("gez", {&x});
}

Tensor global_avg_pool(const Tensor& x) {
  return apply_one("global_avg_pool", {&x});
}

Tensor global_max_pool(const Tensor& x) {
  return apply_one("global_max_pool", {&x});
}

Tensor glu(const Tensor& x, std::int64_t axis) {
  return apply_one("glu", {&x},
      {{"axis", parameter(axis)}});
}

Tensor group_norm(const Tensor& x, std::int64_t groups, const Tensor& weight, const Tensor& bias, double eps) {
  return apply_one("group_norm", {&x, &weight, &bias},
      {{"groups", parameter(groups)}, {"eps", parameter(eps)}});
}

Tensor gt(const Tensor& x, const Tensor& y) {
  return apply_one("gt", {&x, &y});
}

Tensor gtz(const Tensor& x) {
  return apply_one("gtz", {&x});
}

Tensor hardshrink(const Tensor& x, double lambda) {
  return apply_one("hardshrink", {&x},
      {{"lambda", parameter(lambda)}});
}

Tensor hardsigmoid(const Tensor& x) {
  return apply_one("hardsigmoid", {&x});
}

Tensor hardswish(const Tensor& x) {
  return apply_one("hardswish", {&x});
}

Tensor hardtanh(const Tensor& x, double min_val, double max_val) {
  return apply_one("hardtanh", {&x},
      {{"min_val", parameter(min_val)}, {"max_val", parameter(max_val)}});
}

Tensor heaviside(const Tensor& x, const Tensor& values, double value) {
  return apply_one("heaviside", {&x, &values},
      {{"value", parameter(value)}});
}

Tensor huber_loss(const Tensor& x, const Tensor& target, std::string_view reduction, double delta) {
  return apply_one("huber_loss", {&x, &target},
      {{"reduction", parameter(reduction)}, {"delta", parameter(delta)}});
}

Tensor hypot(const Tensor& x, const Tensor& y) {
  return apply_one("hypot", {&x, &y});
}

Tensor i0(const Tensor& x) {
  return apply_one("i0", {&x});
}

Tensor identity(const Tensor& x) {
  return apply_one("identity", {&x});
}

Tensor index_select(const Tensor& x, const Tensor& indices, std::int64_t axis) {
  return apply_one("index_select", {&x, &indices},
      {{"axis", parameter(axis)}});
}

Tensor inner(const Tensor& a, const Tensor& b) {
  return apply_one("inner", {&a, &b});
}

Tensor instance_norm(const Tensor& x, const Tensor& weight, const Tensor& bias, double eps) {
  return apply_one("instance_norm", {&x, &weight, &bias},
      {{"eps", parameter(eps)}});
}

Tensor isclose(const Tensor& x, const Tensor& y, double rtol, double atol, bool equal_nan) {
  return apply_one("isclose", {&x, &y},
      {{"rtol", parameter(rtol)}, {"atol", parameter(atol)}, {"equal_nan", parameter(equal_nan)}});
}

Tensor isfinite(const Tensor& x) {
  return apply_one("isfinite", {&x});
}

Tensor isinf(const Tensor& x) {
  return apply_one("isinf", {&x});
}

Tensor isnan(const Tensor& x) {
  return apply_one("isnan", {&x});
}

Tensor isneginf(const Tensor& x) {
  return apply_one("isneginf", {&x});
}

Tensor isposinf(const Tensor& x) {
  return apply_one("isposinf", {&x});
}

Tensor kl_div(const Tensor& x, const Tensor& target, std::string_view reduction) {
  return apply_one("kl_div", {&x, &target},
      {{"reduction", parameter(reduction)}});
}

Tensor kron(const Tensor& a, const Tensor& b) {
  return apply_one("kron", {&a, &b});
}

Tensor l1_loss(const Tensor& x, const Tensor& target, std::string_view reduction) {
  return apply_one("l1_loss", {&x, &target},
      {{"reduction", parameter(reduction)}});
}

Tensor layer_norm(const Tensor& x, const Tensor& weight, const Tensor& bias, const Integers& axis, double eps) {
  return apply_one("layer_norm", {&x, &weight, &bias},
      {{"axis", parameter(axis)}, {"eps", parameter(eps)}});
}

Tensor lcm(const Tensor& x, const Tensor& y) {
  return apply_one("lcm", {&x, &y});
}

Tensor ldexp(const Tensor& x, const Tensor& exponent) {
  return apply_one("ldexp", {&x, &exponent});
}

Tensor le(const Tensor& x, const Tensor& y) {
  return apply_one("le", {&x, &y});
}

Tensor leaky_relu(const Tensor& x, double negative_slope) {
  return apply_one("leaky_relu", {&x},
      {{"negative_slope", parameter(negative_slope)}});
}

Tensor left_shift(const Tensor& x, const Tensor& y) {
  return apply_one("left_shift", {&x, &y});
}

Tensor lerp(const Tensor& x, const Tensor& y, const Tensor& weight) {
  return apply_one("lerp", {&x, &y, &weight});
}

Tensor lez(const Tensor& x) {
  return apply_one("lez", {&x});
}

Tensor lgamma(const Tensor& x) {
  return apply_one("lgamma", {&x});
}

Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias) {
  return apply_one("linear", {&x, &weight, &bias});
}

Tensor linspace(double start, double stop, std::int64_t num, DType dtype) {
  return apply_one("linspace", {},
      {{"start", parameter(start)}, {"stop", parameter(stop)}, {"num", parameter(num)}, {"dtype", parameter(dtype)}});
}

Tensor log(const Tensor& x) {
  return apply_one("log", {&x});
}

Tensor log10(const Tensor& x) {
  return apply_one("log10", {&x});
}

Tensor log1p(const Tensor& x) {
  return apply_one("log1p", {&x});
}

Tensor log2(const Tensor& x) {
  return apply_one("log2", {&x});
}

Tensor log_sigmoid(const Tensor& x) {
  return apply_one("log_sigmoid", {&x});
}

Tensor log_softmax(const Tensor& x, std::int64_t axis) {
  return apply_one("log_softmax", {&x},
      {{"axis", parameter(axis)}});
}

Tensor logaddexp(const Tensor& x, const Tensor& y) {
  return apply_one("logaddexp", {&x, &y});
}

Tensor logaddexp2(const Tensor& x, const Tensor& y) {
  return apply_one("logaddexp2", {&x, &y});
}

Tensor logical_and(const Tensor& x, const Tensor& y) {
  return apply_one("logical_and", {&x, &y});
}

Tensor logical_not(const Tensor& x) {
  return apply_one("logical_not", {&x});
}

Tensor logical_or(const Tensor& x, const Tensor& y) {
  return apply_one("logical_or", {&x, &y});
}

Tensor logical_xor(const Tensor& x, const Tensor& y) {
  return apply_one("logical_xor", {&x, &y});
}

Tensor logit(const Tensor& x, std::optional<double> eps) {
  return apply_one("logit", {&x},
      {{"eps", parameter(eps)}});
}

Tensor logspace(double start, double stop, std::int64_t num, double base, DType dtype) {
  return apply_one("logspace", {},
      {{"start", parameter(start)}, {"stop", parameter(stop)}, {"num", parameter(num)}, {"base", parameter(base)},
       {"dtype", parameter(dtype)}});
}

Tensor logsumexp(const Tensor& x, const Integers& axis, bool keepdims) {
  return apply_one("logsumexp", {&x},
      {{"axis", parameter(axis)}, {"keepdims", parameter(keepdims)}});
}

Tensor lt(const Tensor& x, const Tensor& y) {
  return apply_one("lt", {&x, &y});
}

Tensor ltz(const Tensor& x) {
  return apply_one("ltz", {&x});
}

Tensor mac(const Tensor& x, const Tensor& y, const Tensor& z) {
  return apply_one("mac", {&x, &y, &z});
}

Tensor masked_fill(const Tensor& x, const Tensor& mask, double value) {
  return apply_one("masked_fill", {&x, &mask},
      {{"value", parameter(value)}});
}

Tensor matmul(const Tensor& a, const Tensor& b) {
  return apply_one("matmul", {&a, &b});
}

Tensor matrix_power(const Tensor& x, std::int64_t n) {
  return apply_one("matrix_power", {&x},
      {{"n", parameter(n)}});
}

Tensor max(const Tensor& x, const Integers& axis, bool keepdims) {
  return apply_one("max", {&x},
      {{"axis", parameter(axis)}, {"keepdims", parameter(keepdims)}});
}

Tensor max_pool1d(const Tensor& x, const Integers& kernel, const Integers& stride, const Integers& padding,
                  const Integers& dilation) {
  return apply_one("max_pool1d", {&x},
      {{"kernel", parameter(kernel)}, {"stride", parameter(stride)}, {"padding", parameter(padding)},
       {"dilation", parameter(dilation)}});
}

Tensor max_pool2d(const Tensor& x, const Integers& kernel, const Integers& stride, const Integers& padding,
                  const Integers& dilation) {
  return apply_one("max_pool2d", {&x},
      {{"kernel", parameter(kernel)}, {"stride", parameter(stride)}, {"padding", parameter(padding)},
       {"dilation", parameter(dilation)}});
}

Tensor max_pool3d(const Tensor& x, const Integers& kernel, const Integers& stride, const Integers& padding,
                  const Integers& dilation) {
  return apply_one("max_pool3d", {&x},
      {{"kernel", parameter(kernel)}, {"stride", parameter(stride)}, {"padding", parameter(padding)},
       {"dilation", parameter(dilation)}});
}

Tensor maximum(const Tensor& x, const Tensor& y) {
  return apply_one("maximum", {&x, &y});
}

Tensor mean(const Tensor& x, const Integers& axis, bool keepdims) {
  return apply_one("mean", {&x},
      {{"axis", parameter(axis)}, {"keepdims", parameter(keepdims)}});
}

Tensor median(const Tensor& x, std::optional<std::int64_t> axis, bool keepdims) {
  return apply_one("median", {&x},
      {{"axis", parameter(axis)}, {"keepdims", parameter(keepdims)}});
}

Tensor min(const Tensor& x, const Integers& axis, bool keepdims) {
  return apply_one("min", {&x},
      {{"axis", parameter(axis)}, {"keepdims", parameter(keepdims)}});
}

Tensor minimum(const Tensor& x, const Tensor& y) {
  return apply_one("minimum", {&x, &y});
}

Tensor mish(const Tensor& x) {
  return apply_one("mish", {&x});
}

Tensor movedim(const Tensor& x, std::int64_t source, std::int64_t destination) {
  return apply_one("movedim", {&x},
      {{"source", parameter(source)}, {"destination", parameter(destination)}});
}

Tensor mse_loss(const Tensor& x, const Tensor& target, std::string_view reduction) {
  return apply_one("mse_loss", {&x, &target},
      {{"reduction", parameter(reduction)}});
}

Tensor mul(const Tensor& x, const Tensor& y) {
  return apply_one("mul", {&x, &y});
}

Tensor multiply(const Tensor& x, const Tensor& y) {
  return apply_one("multiply", {&x, &y});
}

Tensor mv(const Tensor& a, const Tensor& v) {
  return apply_one("mv", {&a, &v});
}

Tensor nan_to_num(const Tensor& x, double nan, std::optional<double> posinf, std::optional<double> neginf) {
  return apply_one("nan_to_num", {&x},
      {{"nan", parameter(nan)}, {"posinf", parameter(posinf)}, {"neginf", parameter(neginf)}});
}

Tensor ndtr(const Tensor& x) {
  return apply_one("ndtr", {&x});
}

Tensor ne(const Tensor& x, const Tensor& y) {
  return apply_one("ne", {&x, &y});
}

Tensor neg(const Tensor& x) {
  return apply_one("neg", {&x});
}

Tensor nez(const Tensor& x) {
  return apply_one("nez", {&x});
}

Tensor nll_loss(const Tensor& x, const Tensor& target, std::string_view reduction) {
  return apply_one("nll_loss", {&x, &target},
      {{"reduction", parameter(reduction)}});
}

Tensor norm(const Tensor& x, double p, const Integers& axis, bool keepdims) {
  return apply_one("norm", {&x},
      {{"p", parameter(p)}, {"axis", parameter(axis)}, {"keepdims", parameter(keepdims)}});
}

Tensor normalize(const Tensor& x, const Integers& axis, double p, double eps) {
  return apply_one("normalize", {&x},
      {{"axis", parameter(axis)}, {"p", parameter(p)}, {"eps", parameter(eps)}});
}

Tensor one_hot(const Tensor& x, std::int64_t classes, DType dtype) {
  return apply_one("one_hot", {&x},
      {{"classes", parameter(classes)}, {"dtype", parameter(dtype)}});
}

Tensor ones(const Integers& shape, DType dtype) {
  return apply_one("ones", {},
      {{"shape", parameter(shape)}, {"dtype", parameter(dtype)}});
}

Tensor ones_like(const Tensor& x, std::optional<DType> dtype) {
  return apply_one("ones_like", {&x},
      {{"dtype", parameter(dtype)}});
}

Tensor outer(const Tensor& a, const Tensor& b) {
  return apply_one("outer", {&a, &b});
}

Tensor pad(const Tensor& x, const Integers& padding, std::string_view mode, double value) {
  return apply_one("pad", {&x},
      {{"padding", parameter(padding)}, {"mode", parameter(mode)}, {"value", parameter(value)}});
}

Tensor pairwise_distance(const Tensor& a, const Tensor& b, double p, double eps, bool keepdims) {
  return apply_one("pairwise_distance", {&a, &b},
      {{"p", parameter(p)}, {"eps", parameter(eps)}, {"keepdims", parameter(keepdims)}});
}

Tensor permute(const Tensor& x, const Integers& axes) {
  return apply_one("permute", {&x},
      {{"axes", parameter(axes)}});
}

Tensor pixel_shuffle(const Tensor& x, std::int64_t factor) {
  return apply_one("pixel_shuffle", {&x},
      {{"factor", parameter(factor)}});
}

Tensor pixel_unshuffle(const Tensor& x, std::int64_t factor) {
  return apply_one("pixel_unshuffle", {&x},
      {{"factor", parameter(factor)}});
}

Tensor positive(const Tensor& x) {
  return apply_one("positive", {&x});
}

Tensor pow(const Tensor& x, const Tensor& exponent) {
  return apply_one("pow", {&x, &exponent});
}

Tensor prelu(const Tensor& x, const Tensor& weights, double weight) {
  return apply_one("prelu", {&x, &weights},
      {{"weight", parameter(weight)}});
}

Tensor prod(const Tensor& x, const Integers& axis, bool keepdims) {
  return apply_one("prod", {&x},
      {{"axis", parameter(axis)}, {"keepdims", parameter(keepdims)}});
}

Tensor quantile(const Tensor& x, double q, std::optional<std::int64_t> axis, bool keepdims) {
  return apply_one("quantile", {&x},
      {{"q", parameter(q)}, {"axis", parameter(axis)}, {"keepdims", parameter(keepdims)}});
}

Tensor quantize(const Tensor& x, double scale, std::int64_t zero_point, std::string_view dtype) {
  return apply_one("quantize", {&x},
      {{"scale", parameter(scale)}, {"zero_point", parameter(zero_point)}, {"dtype", parameter(dtype)}});
}

Tensor quick_gelu(const Tensor& x) {
  return apply_one("quick_gelu", {&x});
}

Tensor rad2deg(const Tensor& x) {
  return apply_one("rad2deg", {&x});
}

Tensor rand(const Integers& shape, DType dtype, std::int64_t seed) {
  return apply_one("rand", {},
      {{"shape", parameter(shape)}, {"dtype", parameter(dtype)}, {"seed", parameter(seed)}});
}

Tensor randint(const Integers& shape, std::int64_t low, std::int64_t high, DType dtype, std::int64_t seed) {
  return apply_one("randint", {},
      {{"shape", parameter(shape)}, {"low", parameter(low)}, {"high", parameter(high)}, {"dtype", parameter(dtype)},
       {"seed", parameter(seed)}});
}

Tensor randn(const Integers& shape, DType dtype, std::int64_t seed) {
  return apply_one("randn", {},
      {{"shape", parameter(shape)}, {"dtype", parameter(dtype)}, {"seed", parameter(seed)}});
}

Tensor randperm(std::int64_t n, DType dtype, std::int64_t seed) {
  return apply_one("randperm", {},
      {{"n", parameter(n)}, {"dtype", parameter(dtype)}, {"seed", parameter(seed)}});
}

Tensor reciprocal(const Tensor& x) {
  return apply_one("reciprocal", {&x});
}

Tensor relu(const Tensor& x) {
  return apply_one("relu", {&x});
}

Tensor relu6(const Tensor& x) {
  return apply_one("relu6", {&x});
}

Tensor relu_squared(const Tensor& x) {
  return apply_one("relu_squared", {&x});
}

Tensor remainder(const Tensor& x, const Tensor& y) {
  return apply_one("remainder", {&x, &y});
}

Tensor repeat(const Tensor& x, std::int64_t repeats, std::optional<std::int64_t> axis) {
  return apply_one("repeat", {&x},
      {{"repeats", parameter(repeats)}, {"axis", parameter(axis)}});
}

Tensor reshape(const Tensor& x, const Integers& shape) {
  return apply_one("reshape", {&x},
      {{"shape", parameter(shape)}});
}

Tensor right_shift(const Tensor& x, const Tensor& y) {
  return apply_one("right_shift", {&x, &y});
}

Tensor rms_norm(const Tensor& x, const Tensor& weight, const Tensor& bias, const Integers& axis, double eps) {
  return apply_one("rms_norm", {&x, &weight, &bias},
      {{"axis", parameter(axis)}, {"eps", parameter(eps)}});
}

Tensor roll(const Tensor& x, const Integers& shift, const Integers& axis) {
  return apply_one("roll", {&x},
      {{"shift", parameter(shift)}, {"axis", parameter(axis)}});
}

Tensor rope(const Tensor& x, const Tensor& positions, double base, bool interleaved, double offset) {
  return apply_one("rope", {&x, &positions},
      {{"base", parameter(base)}, {"interleaved", parameter(interleaved)}, {"offset", parameter(offset)}});
}

Tensor round(const Tensor& x, std::int64_t decimals) {
  return apply_one("round", {&x},
      {{"decimals", parameter(decimals)}});
}

Tensor rsqrt(const Tensor& x) {
  return apply_one("rsqrt", {&x});
}

Tensor rsub(const Tensor& x, const Tensor& y, double alpha) {
  return apply_one("rsub", {&x, &y},
      {{"alpha", parameter(alpha)}});
}

Tensor scaled_dot_product_attention(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& mask, bool causal,
                                    std::optional<double> scale) {
  return apply_one("scaled_dot_product_attention", {&q, &k, &v, &mask},
      {{"causal", parameter(causal)}, {"scale", parameter(scale)}});
}

Tensor scatter(const Tensor& x, const Tensor& indices, const Tensor& updates, std::int64_t axis) {
  return apply_one("scatter", {&x, &indices, &updates},
      {{"axis", parameter(axis)}});
}

Tensor scatter_add(const Tensor& x, const Tensor& indices, const Tensor& updates, std::int64_t axis) {
  return apply_one("scatter_add", {&x, &indices, &updates},
      {{"axis", parameter(axis)}});
}

Tensor select(const Tensor& x, std::int64_t axis, std::int64_t index) {
  return apply_one("select", {&x},
      {{"axis", parameter(axis)}, {"index", parameter(index)}});
}

Tensor selu(const Tensor& x) {
  return apply_one("selu", {&x});
}

Tensor sgn(const Tensor& x) {
  return apply_one("sgn", {&x});
}

Tensor sigmoid(const Tensor& x) {
  return apply_one("sigmoid", {&x});
}

Tensor sigmoid_accurate(const Tensor& x) {
  return apply_one("sigmoid_accurate", {&x});
}

Tensor sign(const Tensor& x) {
  return apply_one("sign", {&x});
}

Tensor signbit(const Tensor& x) {
  return apply_one("signbit", {&x});
}

Tensor silu(const Tensor& x) {
  return apply_one("silu", {&x});
}

Tensor sin(const Tensor& x) {
  return apply_one("sin", {&x});
}

Tensor sinc(const Tensor& x) {
  return apply_one("sinc", {&x});
}

Tensor sinh(const Tensor& x) {
  return apply_one("sinh", {&x});
}

Tensor slice(const Tensor& x, const Integers& start, const Integers& stop, const Integers& step, const Integers& axis) {
  return apply_one("slice", {&x},
      {{"start", parameter(start)}, {"stop", parameter(stop)}, {"step", parameter(step)}, {"axis", parameter(axis)}});
}

Tensor smooth_l1_loss(const Tensor& x, const Tensor& target, std::string_view reduction, double beta) {
  return apply_one("smooth_l1_loss", {&x, &target},
      {{"reduction", parameter(reduction)}, {"beta", parameter(beta)}});
}

Tensor softmax(const Tensor& x, std::int64_t axis) {
  return apply_one("softmax", {&x},
      {{"axis", parameter(axis)}});
}

Tensor softmin(const Tensor& x, std::int64_t axis) {
  return apply_one("softmin", {&x},
      {{"axis", parameter(axis)}});
}

Tensor softplus(const Tensor& x, double beta, double threshold) {
  return apply_one("softplus", {&x},
      {{"beta", parameter(beta)}, {"threshold", parameter(threshold)}});
}

Tensor softshrink(const Tensor& x, double lambda) {
  return apply_one("softshrink", {&x},
      {{"lambda", parameter(lambda)}});
}

Tensor softsign(const Tensor& x) {
  return apply_one("softsign", {&x});
}

Tensor sort(const Tensor& x, std::int64_t axis, bool descending) {
  return apply_one("sort", {&x},
      {{"axis", parameter(axis)}, {"descending", parameter(descending)}});
}

std::vector<Tensor> split(const Tensor& x, const Integers& sections, std::int64_t axis) {
  return apply_several("split", {&x},
      {{"sections", parameter(sections)}, {"axis", parameter(axis)}});
}

Tensor sqrt(const Tensor& x) {
  return apply_one("sqrt", {&x});
}

Tensor square(const Tensor& x) {
  return apply_one("square", {&x});
}

Tensor squared_difference(const Tensor& x, const Tensor& y) {
  return apply_one("squared_difference", {&x, &y});
}

Tensor squeeze(const Tensor& x, const Integers& axis) {
  return apply_one("squeeze", {&x},
      {{"axis", parameter(axis)}});
}

Tensor stack(const std::vector<Tensor>& tensors, std::int64_t axis) {
  return apply_one("stack", pointers(tensors),
      {{"axis", parameter(axis)}});
}

Tensor std(const Tensor& x, const Integers& axis, bool keepdims, double correction) {
  return apply_one("std", {&x},
      {{"axis", parameter(axis)}, {"keepdims", parameter(keepdims)}, {"correction", parameter(correction)}});
}

Tensor sub(const Tensor& x, const Tensor& y) {
  return apply_one("sub", {&x, &y});
}

Tensor subalpha(const Tensor& x, const Tensor& y, double alpha) {
  return apply_one("subalpha", {&x, &y},
      {{"alpha", parameter(alpha)}});
}

Tensor subtract(const Tensor& x, const Tensor& y) {
  return apply_one("subtract", {&x, &y});
}

Tensor sum(const Tensor& x, const Integers& axis, bool keepdims) {
  return apply_one("sum", {&x},
      {{"axis", parameter(axis)}, {"keepdims", parameter(keepdims)}});
}

Tensor swapaxes(const Tensor& x, std::int64_t axis1, std::int64_t axis2) {
  return apply_one("swapaxes", {&x},
      {{"axis1", parameter(axis1)}, {"axis2", parameter(axis2)}});
}

Tensor swiglu(const Tensor& x, std::int64_t axis) {
  return apply_one("swiglu", {&x},
      {{"axis", parameter(axis)}});
}

Tensor swish(const Tensor& x) {
  return apply_one("swish", {&x});
}

Tensor take(const Tensor& x, const Tensor& indices, std::optional<std::int64_t> axis) {
  return apply_one("take", {&x, &indices},
      {{"axis", parameter(axis)}});
}

Tensor take_along_axis(const Tensor& x, const Tensor& indices, std::int64_t axis) {
  return apply_one("take_along_axis", {&x, &indices},
      {{"axis", parameter(axis)}});
}

Tensor tan(const Tensor& x) {
  return apply_one("tan", {&x});
}

Tensor tanh(const Tensor& x) {
  return apply_one("tanh", {&x});
}

Tensor tanhshrink(const Tensor& x) {
  return apply_one("tanhshrink", {&x});
}

Tensor tensordot(const Tensor& a, const Tensor& b, std::int64_t axes) {
  return apply_one("tensordot", {&a, &b},
      {{"axes", parameter(axes)}});
}

Tensor threshold(const Tensor& x, double threshold, double value) {
  return apply_one("threshold", {&x},
      {{"threshold", parameter(threshold)}, {"value", parameter(value)}});
}

Tensor tile(const Tensor& x, const Integers& reps) {
  return apply_one("tile", {&x},
      {{"reps", parameter(reps)}});
}

std::vector<Tensor> top_k(const Tensor& x, std::int64_t k, std::int64_t axis, bool largest) {
  return apply_several("top_k", {&x},
      {{"k", parameter(k)}, {"axis", parameter(axis)}, {"largest", parameter(largest)}});
}

Tensor trace(const Tensor& x, std::int64_t offset) {
  return apply_one("trace", {&x},
      {{"offset", parameter(offset)}});
}

Tensor transpose(const Tensor& x, const Integers& axes) {
  return apply_one("transpose", {&x},
      {{"axes", parameter(axes)}});
}

Tensor tril(const Tensor& x, std::int64_t diagonal) {
  return apply_one("tril", {&x},
      {{"diagonal", parameter(diagonal)}});
}

Tensor triu(const Tensor& x, std::int64_t diagonal) {
  return apply_one("triu", {&x},
      {{"diagonal", parameter(diagonal)}});
}

Tensor true_divide(const Tensor& x, const Tensor& y) {
  return apply_one("true_divide", {&x, &y});
}

Tensor trunc(const Tensor& x) {
  return apply_one("trunc", {&x});
}

Tensor trunc_div(const Tensor& x, const Tensor& y) {
  return apply_one("trunc_div", {&x, &y});
}

Tensor uniform(const Integers& shape, double low, double high, DType dtype, std::int64_t seed) {
  return apply_one("uniform", {},
      {{"shape", parameter(shape)}, {"low", parameter(low)}, {"high", parameter(high)}, {"dtype", parameter(dtype)},
       {"seed", parameter(seed)}});
}

Tensor unsqueeze(const Tensor& x, std::int64_t axis) {
  return apply_one("unsqueeze", {&x},
      {{"axis", parameter(axis)}});
}

Tensor upsample_nearest(const Tensor& x, std::int64_t factor) {
  return apply_one("upsample_nearest", {&x},
      {{"factor", parameter(factor)}});
}

Tensor var(const Tensor& x, const Integers& axis, bool keepdims, double correction) {
  return apply_one("var", {&x},
      {{"axis", parameter(axis)}, {"keepdims", parameter(keepdims)}, {"correction", parameter(correction)}});
}

Tensor vecdot(const Tensor& a, const Tensor& b, std::int64_t axis) {
  return apply_one("vecdot", {&a, &b},
      {{"axis", parameter(axis)}});
}

Tensor where(const Tensor& condition, const Tensor& x, const Tensor& y) {
  return apply_one("where", {&condition, &x, &y});
}

Tensor xlog1py(const Tensor& x, const Tensor& y) {
  return apply_one("xlog1py", {&x, &y});
}

Tensor xlogy(const Tensor& x, const Tensor& y) {
  return apply_one("xlogy", {&x, &y});
}

Tensor zeros(const Integers& shape, DType dtype) {
  return apply_one("zeros", {},
      {{"shape", parameter(shape)}, {"dtype", parameter(dtype)}});
}

Tensor zeros_like(const Tensor& x, std::optional<DType> dtype) {
  return apply_one("zeros_like", {&x},
      {{"dtype", parameter(dtype)}});
}

}  // namespace tenon
