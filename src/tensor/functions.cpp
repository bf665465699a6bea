// Made by tools/docs from the catalogue; not to be edited.
// clang-format off
#include "tenon/tensor/functions.h"

#include "tensor/argument.h"
#include "tensor/node.h"

namespace tenon {

Tensor abs(const Tensor& x) {
  static const OpInfo& op = find_op("abs");
  return apply_one(op, {&x});
}

Tensor acos(const Tensor& x) {
  static const OpInfo& op = find_op("acos");
  return apply_one(op, {&x});
}

Tensor acosh(const Tensor& x) {
  static const OpInfo& op = find_op("acosh");
  return apply_one(op, {&x});
}

Tensor adaptive_avg_pool1d(const Tensor& x, const Integers& output_size) {
  static const OpInfo& op = find_op("adaptive_avg_pool1d");
  return apply_one(op, {&x},
      {{"output_size", parameter(output_size)}});
}

Tensor adaptive_avg_pool2d(const Tensor& x, const Integers& output_size) {
  static const OpInfo& op = find_op("adaptive_avg_pool2d");
  return apply_one(op, {&x},
      {{"output_size", parameter(output_size)}});
}

Tensor adaptive_avg_pool3d(const Tensor& x, const Integers& output_size) {
  static const OpInfo& op = find_op("adaptive_avg_pool3d");
  return apply_one(op, {&x},
      {{"output_size", parameter(output_size)}});
}

Tensor adaptive_max_pool1d(const Tensor& x, const Integers& output_size) {
  static const OpInfo& op = find_op("adaptive_max_pool1d");
  return apply_one(op, {&x},
      {{"output_size", parameter(output_size)}});
}

Tensor adaptive_max_pool2d(const Tensor& x, const Integers& output_size) {
  static const OpInfo& op = find_op("adaptive_max_pool2d");
  return apply_one(op, {&x},
      {{"output_size", parameter(output_size)}});
}

Tensor adaptive_max_pool3d(const Tensor& x, const Integers& output_size) {
  static const OpInfo& op = find_op("adaptive_max_pool3d");
  return apply_one(op, {&x},
      {{"output_size", parameter(output_size)}});
}

Tensor add(const Tensor& x, const Tensor& y) {
  static const OpInfo& op = find_op("add");
  return apply_one(op, {&x, &y});
}

Tensor addalpha(const Tensor& x, const Tensor& y, Scalar alpha) {
  static const OpInfo& op = find_op("addalpha");
  return apply_one(op, {&x, &y},
      {{"alpha", parameter(alpha)}});
}

Tensor addcdiv(const Tensor& x, const Tensor& y, const Tensor& z, Scalar value) {
  static const OpInfo& op = find_op("addcdiv");
  return apply_one(op, {&x, &y, &z},
      {{"value", parameter(value)}});
}

Tensor addcmul(const Tensor& x, const Tensor& y, const Tensor& z, Scalar value) {
  static const OpInfo& op = find_op("addcmul");
  return apply_one(op, {&x, &y, &z},
      {{"value", parameter(value)}});
}

Tensor addmm(const Tensor& c, const Tensor& a, const Tensor& b, Scalar beta, Scalar alpha) {
  static const OpInfo& op = find_op("addmm");
  return apply_one(op, {&c, &a, &b},
      {{"beta", parameter(beta)}, {"alpha", parameter(alpha)}});
}

Tensor all(const Tensor& x, const Integers& axis, bool keepdims) {
  static const OpInfo& op = find_op("all");
  return apply_one(op, {&x},
      {{"axis", parameter(axis)}, {"keepdims", parameter(keepdims)}});
}

Tensor any(const Tensor& x, const Integers& axis, bool keepdims) {
  static const OpInfo& op = find_op("any");
  return apply_one(op, {&x},
      {{"axis", parameter(axis)}, {"keepdims", parameter(keepdims)}});
}

Tensor arange(Scalar start, std::optional<Scalar> stop, Scalar step, std::optional<DType> dtype) {
  static const OpInfo& op = find_op("arange");
  return apply_one(op, {},
      {{"start", parameter(start)}, {"stop", parameter(stop)}, {"step", parameter(step)}, {"dtype", parameter(dtype)}});
}

Tensor argmax(const Tensor& x, std::optional<std::int64_t> axis, bool keepdims) {
  static const OpInfo& op = find_op("argmax");
  return apply_one(op, {&x},
      {{"axis", parameter(axis)}, {"keepdims", parameter(keepdims)}});
}

Tensor argmin(const Tensor& x, std::optional<std::int64_t> axis, bool keepdims) {
  static const OpInfo& op = find_op("argmin");
  return apply_one(op, {&x},
      {{"axis", parameter(axis)}, {"keepdims", parameter(keepdims)}});
}

Tensor argsort(const Tensor& x, std::int64_t axis, bool descending) {
  static const OpInfo& op = find_op("argsort");
  return apply_one(op, {&x},
      {{"axis", parameter(axis)}, {"descending", parameter(descending)}});
}

Tensor asin(const Tensor& x) {
  static const OpInfo& op = find_op("asin");
  return apply_one(op, {&x});
}

Tensor asinh(const Tensor& x) {
  static const OpInfo& op = find_op("asinh");
  return apply_one(op, {&x});
}

Tensor atan(const Tensor& x) {
  static const OpInfo& op = find_op("atan");
  return apply_one(op, {&x});
}

Tensor atan2(const Tensor& y, const Tensor& x) {
  static const OpInfo& op = find_op("atan2");
  return apply_one(op, {&y, &x});
}

Tensor atanh(const Tensor& x) {
  static const OpInfo& op = find_op("atanh");
  return apply_one(op, {&x});
}

Tensor avg_pool1d(const Tensor& x, const Integers& kernel, const Integers& stride, const Integers& padding,
                  const Integers& dilation, bool count_include_pad) {
  static const OpInfo& op = find_op("avg_pool1d");
  return apply_one(op, {&x},
      {{"kernel", parameter(kernel)}, {"stride", parameter(stride)}, {"padding", parameter(padding)},
       {"dilation", parameter(dilation)}, {"count_include_pad", parameter(count_include_pad)}});
}

Tensor avg_pool2d(const Tensor& x, const Integers& kernel, const Integers& stride, const Integers& padding,
                  const Integers& dilation, bool count_include_pad) {
  static const OpInfo& op = find_op("avg_pool2d");
  return apply_one(op, {&x},
      {{"kernel", parameter(kernel)}, {"stride", parameter(stride)}, {"padding", parameter(padding)},
       {"dilation", parameter(dilation)}, {"count_include_pad", parameter(count_include_pad)}});
}

Tensor avg_pool3d(const Tensor& x, const Integers& kernel, const Integers& stride, const Integers& padding,
                  const Integers& dilation, bool count_include_pad) {
  static const OpInfo& op = find_op("avg_pool3d");
  return apply_one(op, {&x},
      {{"kernel", parameter(kernel)}, {"stride", parameter(stride)}, {"padding", parameter(padding)},
       {"dilation", parameter(dilation)}, {"count_include_pad", parameter(count_include_pad)}});
}

Tensor batch_norm(const Tensor& x, const Tensor& mean, const Tensor& var, const Tensor& weight, const Tensor& bias,
                  std::int64_t axis, Scalar eps) {
  static const OpInfo& op = find_op("batch_norm");
  return apply_one(op, {&x, &mean, &var, &weight, &bias},
      {{"axis", parameter(axis)}, {"eps", parameter(eps)}});
}

Tensor bernoulli(const Integers& shape, Scalar p, DType dtype, std::int64_t seed) {
  static const OpInfo& op = find_op("bernoulli");
  return apply_one(op, {},
      {{"shape", parameter(shape)}, {"p", parameter(p)}, {"dtype", parameter(dtype)}, {"seed", parameter(seed)}});
}

Tensor binary_cross_entropy(const Tensor& x, const Tensor& target, std::string_view reduction) {
  static const OpInfo& op = find_op("binary_cross_entropy");
  return apply_one(op, {&x, &target},
      {{"reduction", parameter(reduction)}});
}

Tensor binary_cross_entropy_with_logits(const Tensor& x, const Tensor& target, std::string_view reduction) {
  static const OpInfo& op = find_op("binary_cross_entropy_with_logits");
  return apply_one(op, {&x, &target},
      {{"reduction", parameter(reduction)}});
}

Tensor bitwise_and(const Tensor& x, const Tensor& y) {
  static const OpInfo& op = find_op("bitwise_and");
  return apply_one(op, {&x, &y});
}

Tensor bitwise_not(const Tensor& x) {
  static const OpInfo& op = find_op("bitwise_not");
  return apply_one(op, {&x});
}

Tensor bitwise_or(const Tensor& x, const Tensor& y) {
  static const OpInfo& op = find_op("bitwise_or");
  return apply_one(op, {&x, &y});
}

Tensor bitwise_xor(const Tensor& x, const Tensor& y) {
  static const OpInfo& op = find_op("bitwise_xor");
  return apply_one(op, {&x, &y});
}

Tensor bmm(const Tensor& a, const Tensor& b) {
  static const OpInfo& op = find_op("bmm");
  return apply_one(op, {&a, &b});
}

Tensor cast(const Tensor& x, DType dtype) {
  static const OpInfo& op = find_op("cast");
  return apply_one(op, {&x},
      {{"dtype", parameter(dtype)}});
}

Tensor cbrt(const Tensor& x) {
  static const OpInfo& op = find_op("cbrt");
  return apply_one(op, {&x});
}

Tensor cdist(const Tensor& a, const Tensor& b, Scalar p, bool exact) {
  static const OpInfo& op = find_op("cdist");
  return apply_one(op, {&a, &b},
      {{"p", parameter(p)}, {"exact", parameter(exact)}});
}

Tensor ceil(const Tensor& x) {
  static const OpInfo& op = find_op("ceil");
  return apply_one(op, {&x});
}

Tensor celu(const Tensor& x, Scalar alpha) {
  static const OpInfo& op = find_op("celu");
  return apply_one(op, {&x},
      {{"alpha", parameter(alpha)}});
}

std::vector<Tensor> chunk(const Tensor& x, std::int64_t chunks, std::int64_t axis) {
  return apply_several("chunk", {&x},
      {{"chunks", parameter(chunks)}, {"axis", parameter(axis)}});
}

Tensor clamp(const Tensor& x, std::optional<Scalar> min, std::optional<Scalar> max) {
  static const OpInfo& op = find_op("clamp");
  return apply_one(op, {&x},
      {{"min", parameter(min)}, {"max", parameter(max)}});
}

Tensor clamp_max(const Tensor& x, Scalar max) {
  static const OpInfo& op = find_op("clamp_max");
  return apply_one(op, {&x},
      {{"max", parameter(max)}});
}

Tensor clamp_min(const Tensor& x, Scalar min) {
  static const OpInfo& op = find_op("clamp_min");
  return apply_one(op, {&x},
      {{"min", parameter(min)}});
}

Tensor clip(const Tensor& x, std::optional<Scalar> min, std::optional<Scalar> max) {
  static const OpInfo& op = find_op("clip");
  return apply_one(op, {&x},
      {{"min", parameter(min)}, {"max", parameter(max)}});
}

Tensor clone(const Tensor& x) {
  static const OpInfo& op = find_op("clone");
  return apply_one(op, {&x});
}

Tensor concat(const std::vector<Tensor>& tensors, std::int64_t axis) {
  return apply_one("concat", pointers(tensors),
      {{"axis", parameter(axis)}});
}

Tensor conv1d(const Tensor& x, const Tensor& weight, const Tensor& bias, const Integers& stride, const Integers& padding,
              const Integers& dilation, std::int64_t groups) {
  static const OpInfo& op = find_op("conv1d");
  return apply_one(op, {&x, &weight, &bias},
      {{"stride", parameter(stride)}, {"padding", parameter(padding)}, {"dilation", parameter(dilation)},
       {"groups", parameter(groups)}});
}

Tensor conv2d(const Tensor& x, const Tensor& weight, const Tensor& bias, const Integers& stride, const Integers& padding,
              const Integers& dilation, std::int64_t groups) {
  static const OpInfo& op = find_op("conv2d");
  return apply_one(op, {&x, &weight, &bias},
      {{"stride", parameter(stride)}, {"padding", parameter(padding)}, {"dilation", parameter(dilation)},
       {"groups", parameter(groups)}});
}

Tensor conv3d(const Tensor& x, const Tensor& weight, const Tensor& bias, const Integers& stride, const Integers& padding,
              const Integers& dilation, std::int64_t groups) {
  static const OpInfo& op = find_op("conv3d");
  return apply_one(op, {&x, &weight, &bias},
      {{"stride", parameter(stride)}, {"padding", parameter(padding)}, {"dilation", parameter(dilation)},
       {"groups", parameter(groups)}});
}

Tensor conv_transpose1d(const Tensor& x, const Tensor& weight, const Tensor& bias, const Integers& stride,
                        const Integers& padding, const Integers& output_padding, std::int64_t groups, const Integers& dilation) {
  static const OpInfo& op = find_op("conv_transpose1d");
  return apply_one(op, {&x, &weight, &bias},
      {{"stride", parameter(stride)}, {"padding", parameter(padding)}, {"output_padding", parameter(output_padding)},
       {"groups", parameter(groups)}, {"dilation", parameter(dilation)}});
}

Tensor conv_transpose2d(const Tensor& x, const Tensor& weight, const Tensor& bias, const Integers& stride,
                        const Integers& padding, const Integers& output_padding, std::int64_t groups, const Integers& dilation) {
  static const OpInfo& op = find_op("conv_transpose2d");
  return apply_one(op, {&x, &weight, &bias},
      {{"stride", parameter(stride)}, {"padding", parameter(padding)}, {"output_padding", parameter(output_padding)},
       {"groups", parameter(groups)}, {"dilation", parameter(dilation)}});
}

Tensor conv_transpose3d(const Tensor& x, const Tensor& weight, const Tensor& bias, const Integers& stride,
                        const Integers& padding, const Integers& output_padding, std::int64_t groups, const Integers& dilation) {
  static const OpInfo& op = find_op("conv_transpose3d");
  return apply_one(op, {&x, &weight, &bias},
      {{"stride", parameter(stride)}, {"padding", parameter(padding)}, {"output_padding", parameter(output_padding)},
       {"groups", parameter(groups)}, {"dilation", parameter(dilation)}});
}

Tensor copysign(const Tensor& x, const Tensor& y) {
  static const OpInfo& op = find_op("copysign");
  return apply_one(op, {&x, &y});
}

Tensor cos(const Tensor& x) {
  static const OpInfo& op = find_op("cos");
  return apply_one(op, {&x});
}

Tensor cosh(const Tensor& x) {
  static const OpInfo& op = find_op("cosh");
  return apply_one(op, {&x});
}

Tensor cosine_similarity(const Tensor& a, const Tensor& b, std::int64_t axis, Scalar eps) {
  static const OpInfo& op = find_op("cosine_similarity");
  return apply_one(op, {&a, &b},
      {{"axis", parameter(axis)}, {"eps", parameter(eps)}});
}

Tensor count_nonzero(const Tensor& x, const Integers& axis, bool keepdims) {
  static const OpInfo& op = find_op("count_nonzero");
  return apply_one(op, {&x},
      {{"axis", parameter(axis)}, {"keepdims", parameter(keepdims)}});
}

Tensor cross(const Tensor& a, const Tensor& b, std::int64_t axis) {
  static const OpInfo& op = find_op("cross");
  return apply_one(op, {&a, &b},
      {{"axis", parameter(axis)}});
}

Tensor cross_entropy(const Tensor& x, const Tensor& target, std::string_view reduction) {
  static const OpInfo& op = find_op("cross_entropy");
  return apply_one(op, {&x, &target},
      {{"reduction", parameter(reduction)}});
}

Tensor cumprod(const Tensor& x, std::int64_t axis) {
  static const OpInfo& op = find_op("cumprod");
  return apply_one(op, {&x},
      {{"axis", parameter(axis)}});
}

Tensor cumsum(const Tensor& x, std::int64_t axis) {
  static const OpInfo& op = find_op("cumsum");
  return apply_one(op, {&x},
      {{"axis", parameter(axis)}});
}

Tensor deg2rad(const Tensor& x) {
  static const OpInfo& op = find_op("deg2rad");
  return apply_one(op, {&x});
}

Tensor dequantize(const Tensor& x, double scale, std::int64_t zero_point) {
  static const OpInfo& op = find_op("dequantize");
  return apply_one(op, {&x},
      {{"scale", parameter(scale)}, {"zero_point", parameter(zero_point)}});
}

Tensor diag(const Tensor& x, std::int64_t offset) {
  static const OpInfo& op = find_op("diag");
  return apply_one(op, {&x},
      {{"offset", parameter(offset)}});
}

Tensor diagonal(const Tensor& x, std::int64_t offset, std::int64_t axis1, std::int64_t axis2) {
  static const OpInfo& op = find_op("diagonal");
  return apply_one(op, {&x},
      {{"offset", parameter(offset)}, {"axis1", parameter(axis1)}, {"axis2", parameter(axis2)}});
}

Tensor digamma(const Tensor& x) {
  static const OpInfo& op = find_op("digamma");
  return apply_one(op, {&x});
}

Tensor div(const Tensor& x, const Tensor& y, std::string_view rounding_mode) {
  static const OpInfo& op = find_op("div");
  return apply_one(op, {&x, &y},
      {{"rounding_mode", parameter(rounding_mode)}});
}

Tensor div_no_nan(const Tensor& x, const Tensor& y) {
  static const OpInfo& op = find_op("div_no_nan");
  return apply_one(op, {&x, &y});
}

Tensor divide(const Tensor& x, const Tensor& y, std::string_view rounding_mode) {
  static const OpInfo& op = find_op("divide");
  return apply_one(op, {&x, &y},
      {{"rounding_mode", parameter(rounding_mode)}});
}

Tensor dot(const Tensor& a, const Tensor& b) {
  static const OpInfo& op = find_op("dot");
  return apply_one(op, {&a, &b});
}

Tensor einsum(std::string_view equation, const std::vector<Tensor>& operands) {
  return apply_one("einsum", pointers(operands),
      {{"equation", parameter(equation)}});
}

Tensor elu(const Tensor& x, Scalar alpha) {
  static const OpInfo& op = find_op("elu");
  return apply_one(op, {&x},
      {{"alpha", parameter(alpha)}});
}

Tensor embedding(const Tensor& indices, const Tensor& weight) {
  static const OpInfo& op = find_op("embedding");
  return apply_one(op, {&indices, &weight});
}

Tensor entr(const Tensor& x) {
  static const OpInfo& op = find_op("entr");
  return apply_one(op, {&x});
}

Tensor eq(const Tensor& x, const Tensor& y) {
  static const OpInfo& op = find_op("eq");
  return apply_one(op, {&x, &y});
}

Tensor eqz(const Tensor& x) {
  static const OpInfo& op = find_op("eqz");
  return apply_one(op, {&x});
}

Tensor erf(const Tensor& x) {
  static const OpInfo& op = find_op("erf");
  return apply_one(op, {&x});
}

Tensor erfc(const Tensor& x) {
  static const OpInfo& op = find_op("erfc");
  return apply_one(op, {&x});
}

Tensor erfinv(const Tensor& x) {
  static const OpInfo& op = find_op("erfinv");
  return apply_one(op, {&x});
}

Tensor exp(const Tensor& x) {
  static const OpInfo& op = find_op("exp");
  return apply_one(op, {&x});
}

Tensor exp10(const Tensor& x) {
  static const OpInfo& op = find_op("exp10");
  return apply_one(op, {&x});
}

Tensor exp2(const Tensor& x) {
  static const OpInfo& op = find_op("exp2");
  return apply_one(op, {&x});
}

Tensor expand(const Tensor& x, const Integers& shape) {
  static const OpInfo& op = find_op("expand");
  return apply_one(op, {&x},
      {{"shape", parameter(shape)}});
}

Tensor expm1(const Tensor& x) {
  static const OpInfo& op = find_op("expm1");
  return apply_one(op, {&x});
}

Tensor eye(std::int64_t n, std::optional<std::int64_t> m, std::int64_t k, DType dtype) {
  static const OpInfo& op = find_op("eye");
  return apply_one(op, {},
      {{"n", parameter(n)}, {"m", parameter(m)}, {"k", parameter(k)}, {"dtype", parameter(dtype)}});
}

Tensor fake_quantize(const Tensor& x, double scale, std::int64_t zero_point, std::string_view dtype) {
  static const OpInfo& op = find_op("fake_quantize");
  return apply_one(op, {&x},
      {{"scale", parameter(scale)}, {"zero_point", parameter(zero_point)}, {"dtype", parameter(dtype)}});
}

Tensor flatten(const Tensor& x, std::int64_t start_axis, std::int64_t end_axis) {
  static const OpInfo& op = find_op("flatten");
  return apply_one(op, {&x},
      {{"start_axis", parameter(start_axis)}, {"end_axis", parameter(end_axis)}});
}

Tensor flip(const Tensor& x, const Integers& axis) {
  static const OpInfo& op = find_op("flip");
  return apply_one(op, {&x},
      {{"axis", parameter(axis)}});
}

Tensor float_power(const Tensor& x, const Tensor& exponent) {
  static const OpInfo& op = find_op("float_power");
  return apply_one(op, {&x, &exponent});
}

Tensor floor(const Tensor& x) {
  static const OpInfo& op = find_op("floor");
  return apply_one(op, {&x});
}

Tensor floor_div(const Tensor& x, const Tensor& y) {
  static const OpInfo& op = find_op("floor_div");
  return apply_one(op, {&x, &y});
}

Tensor fmax(const Tensor& x, const Tensor& y) {
  static const OpInfo& op = find_op("fmax");
  return apply_one(op, {&x, &y});
}

Tensor fmin(const Tensor& x, const Tensor& y) {
  static const OpInfo& op = find_op("fmin");
  return apply_one(op, {&x, &y});
}

Tensor fmod(const Tensor& x, const Tensor& y) {
  static const OpInfo& op = find_op("fmod");
  return apply_one(op, {&x, &y});
}

Tensor frac(const Tensor& x) {
  static const OpInfo& op = find_op("frac");
  return apply_one(op, {&x});
}

Tensor full(const Integers& shape, Scalar value, DType dtype) {
  static const OpInfo& op = find_op("full");
  return apply_one(op, {},
      {{"shape", parameter(shape)}, {"value", parameter(value)}, {"dtype", parameter(dtype)}});
}

Tensor full_like(const Tensor& x, Scalar value, std::optional<DType> dtype) {
  static const OpInfo& op = find_op("full_like");
  return apply_one(op, {&x},
      {{"value", parameter(value)}, {"dtype", parameter(dtype)}});
}

Tensor gather(const Tensor& x, const Tensor& indices, std::int64_t axis) {
  static const OpInfo& op = find_op("gather");
  return apply_one(op, {&x, &indices},
      {{"axis", parameter(axis)}});
}

Tensor gcd(const Tensor& x, const Tensor& y) {
  static const OpInfo& op = find_op("gcd");
  return apply_one(op, {&x, &y});
}

Tensor ge(const Tensor& x, const Tensor& y) {
  static const OpInfo& op = find_op("ge");
  return apply_one(op, {&x, &y});
}

Tensor geglu(const Tensor& x, std::int64_t axis) {
  static const OpInfo& op = find_op("geglu");
  return apply_one(op, {&x},
      {{"axis", parameter(axis)}});
}

Tensor gelu(const Tensor& x, std::string_view approximate) {
  static const OpInfo& op = find_op("gelu");
  return apply_one(op, {&x},
      {{"approximate", parameter(approximate)}});
}

Tensor gez(const Tensor& x) {
  static const OpInfo& op = find_op("gez");
  return apply_one(op, {&x});
}

Tensor global_avg_pool(const Tensor& x) {
  static const OpInfo& op = find_op("global_avg_pool");
  return apply_one(op, {&x});
}

Tensor global_max_pool(const Tensor& x) {
  static const OpInfo& op = find_op("global_max_pool");
  return apply_one(op, {&x});
}

Tensor glu(const Tensor& x, std::int64_t axis) {
  static const OpInfo& op = find_op("glu");
  return apply_one(op, {&x},
      {{"axis", parameter(axis)}});
}

Tensor group_norm(const Tensor& x, std::int64_t groups, const Tensor& weight, const Tensor& bias, Scalar eps) {
  static const OpInfo& op = find_op("group_norm");
  return apply_one(op, {&x, &weight, &bias},
      {{"groups", parameter(groups)}, {"eps", parameter(eps)}});
}

Tensor gt(const Tensor& x, const Tensor& y) {
  static const OpInfo& op = find_op("gt");
  return apply_one(op, {&x, &y});
}

Tensor gtz(const Tensor& x) {
  static const OpInfo& op = find_op("gtz");
  return apply_one(op, {&x});
}

Tensor hardshrink(const Tensor& x, Scalar lambda) {
  static const OpInfo& op = find_op("hardshrink");
  return apply_one(op, {&x},
      {{"lambda", parameter(lambda)}});
}

Tensor hardsigmoid(const Tensor& x) {
  static const OpInfo& op = find_op("hardsigmoid");
  return apply_one(op, {&x});
}

Tensor hardswish(const Tensor& x) {
  static const OpInfo& op = find_op("hardswish");
  return apply_one(op, {&x});
}

Tensor hardtanh(const Tensor& x, Scalar min_val, Scalar max_val) {
  static const OpInfo& op = find_op("hardtanh");
  return apply_one(op, {&x},
      {{"min_val", parameter(min_val)}, {"max_val", parameter(max_val)}});
}

Tensor heaviside(const Tensor& x, const Tensor& values, Scalar value) {
  static const OpInfo& op = find_op("heaviside");
  return apply_one(op, {&x, &values},
      {{"value", parameter(value)}});
}

Tensor huber_loss(const Tensor& x, const Tensor& target, std::string_view reduction, double delta) {
  static const OpInfo& op = find_op("huber_loss");
  return apply_one(op, {&x, &target},
      {{"reduction", parameter(reduction)}, {"delta", parameter(delta)}});
}

Tensor hypot(const Tensor& x, const Tensor& y) {
  static const OpInfo& op = find_op("hypot");
  return apply_one(op, {&x, &y});
}

Tensor i0(const Tensor& x) {
  static const OpInfo& op = find_op("i0");
  return apply_one(op, {&x});
}

Tensor identity(const Tensor& x) {
  static const OpInfo& op = find_op("identity");
  return apply_one(op, {&x});
}

Tensor index_select(const Tensor& x, const Tensor& indices, std::int64_t axis) {
  static const OpInfo& op = find_op("index_select");
  return apply_one(op, {&x, &indices},
      {{"axis", parameter(axis)}});
}

Tensor inner(const Tensor& a, const Tensor& b) {
  static const OpInfo& op = find_op("inner");
  return apply_one(op, {&a, &b});
}

Tensor instance_norm(const Tensor& x, const Tensor& weight, const Tensor& bias, Scalar eps) {
  static const OpInfo& op = find_op("instance_norm");
  return apply_one(op, {&x, &weight, &bias},
      {{"eps", parameter(eps)}});
}

Tensor isclose(const Tensor& x, const Tensor& y, Scalar rtol, Scalar atol, bool equal_nan) {
  static const OpInfo& op = find_op("isclose");
  return apply_one(op, {&x, &y},
      {{"rtol", parameter(rtol)}, {"atol", parameter(atol)}, {"equal_nan", parameter(equal_nan)}});
}

Tensor isfinite(const Tensor& x) {
  static const OpInfo& op = find_op("isfinite");
  return apply_one(op, {&x});
}

Tensor isinf(const Tensor& x) {
  static const OpInfo& op = find_op("isinf");
  return apply_one(op, {&x});
}

Tensor isnan(const Tensor& x) {
  static const OpInfo& op = find_op("isnan");
  return apply_one(op, {&x});
}

Tensor isneginf(const Tensor& x) {
  static const OpInfo& op = find_op("isneginf");
  return apply_one(op, {&x});
}

Tensor isposinf(const Tensor& x) {
  static const OpInfo& op = find_op("isposinf");
  return apply_one(op, {&x});
}

Tensor kl_div(const Tensor& x, const Tensor& target, std::string_view reduction) {
  static const OpInfo& op = find_op("kl_div");
  return apply_one(op, {&x, &target},
      {{"reduction", parameter(reduction)}});
}

Tensor kron(const Tensor& a, const Tensor& b) {
  static const OpInfo& op = find_op("kron");
  return apply_one(op, {&a, &b});
}

Tensor l1_loss(const Tensor& x, const Tensor& target, std::string_view reduction) {
  static const OpInfo& op = find_op("l1_loss");
  return apply_one(op, {&x, &target},
      {{"reduction", parameter(reduction)}});
}

Tensor layer_norm(const Tensor& x, const Tensor& weight, const Tensor& bias, const Integers& axis, Scalar eps) {
  static const OpInfo& op = find_op("layer_norm");
  return apply_one(op, {&x, &weight, &bias},
      {{"axis", parameter(axis)}, {"eps", parameter(eps)}});
}

Tensor lcm(const Tensor& x, const Tensor& y) {
  static const OpInfo& op = find_op("lcm");
  return apply_one(op, {&x, &y});
}

Tensor ldexp(const Tensor& x, const Tensor& exponent) {
  static const OpInfo& op = find_op("ldexp");
  return apply_one(op, {&x, &exponent});
}

Tensor le(const Tensor& x, const Tensor& y) {
  static const OpInfo& op = find_op("le");
  return apply_one(op, {&x, &y});
}

Tensor leaky_relu(const Tensor& x, Scalar negative_slope) {
  static const OpInfo& op = find_op("leaky_relu");
  return apply_one(op, {&x},
      {{"negative_slope", parameter(negative_slope)}});
}

Tensor left_shift(const Tensor& x, const Tensor& y) {
  static const OpInfo& op = find_op("left_shift");
  return apply_one(op, {&x, &y});
}

Tensor lerp(const Tensor& x, const Tensor& y, const Tensor& weight) {
  static const OpInfo& op = find_op("lerp");
  return apply_one(op, {&x, &y, &weight});
}

Tensor lez(const Tensor& x) {
  static const OpInfo& op = find_op("lez");
  return apply_one(op, {&x});
}

Tensor lgamma(const Tensor& x) {
  static const OpInfo& op = find_op("lgamma");
  return apply_one(op, {&x});
}

Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias) {
  static const OpInfo& op = find_op("linear");
  return apply_one(op, {&x, &weight, &bias});
}

Tensor linspace(Scalar start, Scalar stop, std::int64_t num, DType dtype) {
  static const OpInfo& op = find_op("linspace");
  return apply_one(op, {},
      {{"start", parameter(start)}, {"stop", parameter(stop)}, {"num", parameter(num)}, {"dtype", parameter(dtype)}});
}

Tensor log(const Tensor& x) {
  static const OpInfo& op = find_op("log");
  return apply_one(op, {&x});
}

Tensor log10(const Tensor& x) {
  static const OpInfo& op = find_op("log10");
  return apply_one(op, {&x});
}

Tensor log1p(const Tensor& x) {
  static const OpInfo& op = find_op("log1p");
  return apply_one(op, {&x});
}

Tensor log2(const Tensor& x) {
  static const OpInfo& op = find_op("log2");
  return apply_one(op, {&x});
}

Tensor log_sigmoid(const Tensor& x) {
  static const OpInfo& op = find_op("log_sigmoid");
  return apply_one(op, {&x});
}

Tensor log_softmax(const Tensor& x, std::int64_t axis) {
  static const OpInfo& op = find_op("log_softmax");
  return apply_one(op, {&x},
      {{"axis", parameter(axis)}});
}

Tensor logaddexp(const Tensor& x, const Tensor& y) {
  static const OpInfo& op = find_op("logaddexp");
  return apply_one(op, {&x, &y});
}

Tensor logaddexp2(const Tensor& x, const Tensor& y) {
  static const OpInfo& op = find_op("logaddexp2");
  return apply_one(op, {&x, &y});
}

Tensor logical_and(const Tensor& x, const Tensor& y) {
  static const OpInfo& op = find_op("logical_and");
  return apply_one(op, {&x, &y});
}

Tensor logical_not(const Tensor& x) {
  static const OpInfo& op = find_op("logical_not");
  return apply_one(op, {&x});
}

Tensor logical_or(const Tensor& x, const Tensor& y) {
  static const OpInfo& op = find_op("logical_or");
  return apply_one(op, {&x, &y});
}

Tensor logical_xor(const Tensor& x, const Tensor& y) {
  static const OpInfo& op = find_op("logical_xor");
  return apply_one(op, {&x, &y});
}

Tensor logit(const Tensor& x, std::optional<Scalar> eps) {
  static const OpInfo& op = find_op("logit");
  return apply_one(op, {&x},
      {{"eps", parameter(eps)}});
}

Tensor logspace(Scalar start, Scalar stop, std::int64_t num, Scalar base, DType dtype) {
  static const OpInfo& op = find_op("logspace");
  return apply_one(op, {},
      {{"start", parameter(start)}, {"stop", parameter(stop)}, {"num", parameter(num)}, {"base", parameter(base)},
       {"dtype", parameter(dtype)}});
}

Tensor logsumexp(const Tensor& x, const Integers& axis, bool keepdims) {
  static const OpInfo& op = find_op("logsumexp");
  return apply_one(op, {&x},
      {{"axis", parameter(axis)}, {"keepdims", parameter(keepdims)}});
}

Tensor lt(const Tensor& x, const Tensor& y) {
  static const OpInfo& op = find_op("lt");
  return apply_one(op, {&x, &y});
}

Tensor ltz(const Tensor& x) {
  static const OpInfo& op = find_op("ltz");
  return apply_one(op, {&x});
}

Tensor mac(const Tensor& x, const Tensor& y, const Tensor& z) {
  static const OpInfo& op = find_op("mac");
  return apply_one(op, {&x, &y, &z});
}

Tensor masked_fill(const Tensor& x, const Tensor& mask, Scalar value) {
  static const OpInfo& op = find_op("masked_fill");
  return apply_one(op, {&x, &mask},
      {{"value", parameter(value)}});
}

Tensor matmul(const Tensor& a, const Tensor& b) {
  static const OpInfo& op = find_op("matmul");
  return apply_one(op, {&a, &b});
}

Tensor matrix_power(const Tensor& x, std::int64_t n) {
  static const OpInfo& op = find_op("matrix_power");
  return apply_one(op, {&x},
      {{"n", parameter(n)}});
}

Tensor max(const Tensor& x, const Integers& axis, bool keepdims) {
  static const OpInfo& op = find_op("max");
  return apply_one(op, {&x},
      {{"axis", parameter(axis)}, {"keepdims", parameter(keepdims)}});
}

Tensor max_pool1d(const Tensor& x, const Integers& kernel, const Integers& stride, const Integers& padding,
                  const Integers& dilation) {
  static const OpInfo& op = find_op("max_pool1d");
  return apply_one(op, {&x},
      {{"kernel", parameter(kernel)}, {"stride", parameter(stride)}, {"padding", parameter(padding)},
       {"dilation", parameter(dilation)}});
}

Tensor max_pool2d(const Tensor& x, const Integers& kernel, const Integers& stride, const Integers& padding,
                  const Integers& dilation) {
  static const OpInfo& op = find_op("max_pool2d");
  return apply_one(op, {&x},
      {{"kernel", parameter(kernel)}, {"stride", parameter(stride)}, {"padding", parameter(padding)},
       {"dilation", parameter(dilation)}});
}

Tensor max_pool3d(const Tensor& x, const Integers& kernel, const Integers& stride, const Integers& padding,
                  const Integers& dilation) {
  static const OpInfo& op = find_op("max_pool3d");
  return apply_one(op, {&x},
      {{"kernel", parameter(kernel)}, {"stride", parameter(stride)}, {"padding", parameter(padding)},
       {"dilation", parameter(dilation)}});
}

Tensor maximum(const Tensor& x, const Tensor& y) {
  static const OpInfo& op = find_op("maximum");
  return apply_one(op, {&x, &y});
}

Tensor mean(const Tensor& x, const Integers& axis, bool keepdims) {
  static const OpInfo& op = find_op("mean");
  return apply_one(op, {&x},
      {{"axis", parameter(axis)}, {"keepdims", parameter(keepdims)}});
}

Tensor median(const Tensor& x, std::optional<std::int64_t> axis, bool keepdims) {
  static const OpInfo& op = find_op("median");
  return apply_one(op, {&x},
      {{"axis", parameter(axis)}, {"keepdims", parameter(keepdims)}});
}

Tensor min(const Tensor& x, const Integers& axis, bool keepdims) {
  static const OpInfo& op = find_op("min");
  return apply_one(op, {&x},
      {{"axis", parameter(axis)}, {"keepdims", parameter(keepdims)}});
}

Tensor minimum(const Tensor& x, const Tensor& y) {
  static const OpInfo& op = find_op("minimum");
  return apply_one(op, {&x, &y});
}

Tensor mish(const Tensor& x) {
  static const OpInfo& op = find_op("mish");
  return apply_one(op, {&x});
}

Tensor movedim(const Tensor& x, std::int64_t source, std::int64_t destination) {
  static const OpInfo& op = find_op("movedim");
  return apply_one(op, {&x},
      {{"source", parameter(source)}, {"destination", parameter(destination)}});
}

Tensor mse_loss(const Tensor& x, const Tensor& target, std::string_view reduction) {
  static const OpInfo& op = find_op("mse_loss");
  return apply_one(op, {&x, &target},
      {{"reduction", parameter(reduction)}});
}

Tensor mul(const Tensor& x, const Tensor& y) {
  static const OpInfo& op = find_op("mul");
  return apply_one(op, {&x, &y});
}

Tensor multiply(const Tensor& x, const Tensor& y) {
  static const OpInfo& op = find_op("multiply");
  return apply_one(op, {&x, &y});
}

Tensor mv(const Tensor& a, const Tensor& v) {
  static const OpInfo& op = find_op("mv");
  return apply_one(op, {&a, &v});
}

Tensor nan_to_num(const Tensor& x, Scalar nan, std::optional<Scalar> posinf, std::optional<Scalar> neginf) {
  static const OpInfo& op = find_op("nan_to_num");
  return apply_one(op, {&x},
      {{"nan", parameter(nan)}, {"posinf", parameter(posinf)}, {"neginf", parameter(neginf)}});
}

Tensor ndtr(const Tensor& x) {
  static const OpInfo& op = find_op("ndtr");
  return apply_one(op, {&x});
}

Tensor ne(const Tensor& x, const Tensor& y) {
  static const OpInfo& op = find_op("ne");
  return apply_one(op, {&x, &y});
}

Tensor neg(const Tensor& x) {
  static const OpInfo& op = find_op("neg");
  return apply_one(op, {&x});
}

Tensor nez(const Tensor& x) {
  static const OpInfo& op = find_op("nez");
  return apply_one(op, {&x});
}

Tensor nll_loss(const Tensor& x, const Tensor& target, std::string_view reduction) {
  static const OpInfo& op = find_op("nll_loss");
  return apply_one(op, {&x, &target},
      {{"reduction", parameter(reduction)}});
}

Tensor norm(const Tensor& x, Scalar p, const Integers& axis, bool keepdims) {
  static const OpInfo& op = find_op("norm");
  return apply_one(op, {&x},
      {{"p", parameter(p)}, {"axis", parameter(axis)}, {"keepdims", parameter(keepdims)}});
}

Tensor normalize(const Tensor& x, const Integers& axis, Scalar p, Scalar eps) {
  static const OpInfo& op = find_op("normalize");
  return apply_one(op, {&x},
      {{"axis", parameter(axis)}, {"p", parameter(p)}, {"eps", parameter(eps)}});
}

Tensor one_hot(const Tensor& x, std::int64_t classes, DType dtype) {
  static const OpInfo& op = find_op("one_hot");
  return apply_one(op, {&x},
      {{"classes", parameter(classes)}, {"dtype", parameter(dtype)}});
}

Tensor ones(const Integers& shape, DType dtype) {
  static const OpInfo& op = find_op("ones");
  return apply_one(op, {},
      {{"shape", parameter(shape)}, {"dtype", parameter(dtype)}});
}

Tensor ones_like(const Tensor& x, std::optional<DType> dtype) {
  static const OpInfo& op = find_op("ones_like");
  return apply_one(op, {&x},
      {{"dtype", parameter(dtype)}});
}

Tensor outer(const Tensor& a, const Tensor& b) {
  static const OpInfo& op = find_op("outer");
  return apply_one(op, {&a, &b});
}

Tensor pad(const Tensor& x, const Integers& padding, std::string_view mode, Scalar value) {
  static const OpInfo& op = find_op("pad");
  return apply_one(op, {&x},
      {{"padding", parameter(padding)}, {"mode", parameter(mode)}, {"value", parameter(value)}});
}

Tensor pairwise_distance(const Tensor& a, const Tensor& b, Scalar p, Scalar eps, bool keepdims) {
  static const OpInfo& op = find_op("pairwise_distance");
  return apply_one(op, {&a, &b},
      {{"p", parameter(p)}, {"eps", parameter(eps)}, {"keepdims", parameter(keepdims)}});
}

Tensor permute(const Tensor& x, const Integers& axes) {
  static const OpInfo& op = find_op("permute");
  return apply_one(op, {&x},
      {{"axes", parameter(axes)}});
}

Tensor pixel_shuffle(const Tensor& x, std::int64_t factor) {
  static const OpInfo& op = find_op("pixel_shuffle");
  return apply_one(op, {&x},
      {{"factor", parameter(factor)}});
}

Tensor pixel_unshuffle(const Tensor& x, std::int64_t factor) {
  static const OpInfo& op = find_op("pixel_unshuffle");
  return apply_one(op, {&x},
      {{"factor", parameter(factor)}});
}

Tensor positive(const Tensor& x) {
  static const OpInfo& op = find_op("positive");
  return apply_one(op, {&x});
}

Tensor pow(const Tensor& x, const Tensor& exponent) {
  static const OpInfo& op = find_op("pow");
  return apply_one(op, {&x, &exponent});
}

Tensor prelu(const Tensor& x, const Tensor& weights, Scalar weight) {
  static const OpInfo& op = find_op("prelu");
  return apply_one(op, {&x, &weights},
      {{"weight", parameter(weight)}});
}

Tensor prod(const Tensor& x, const Integers& axis, bool keepdims) {
  static const OpInfo& op = find_op("prod");
  return apply_one(op, {&x},
      {{"axis", parameter(axis)}, {"keepdims", parameter(keepdims)}});
}

Tensor quantile(const Tensor& x, Scalar q, std::optional<std::int64_t> axis, bool keepdims) {
  static const OpInfo& op = find_op("quantile");
  return apply_one(op, {&x},
      {{"q", parameter(q)}, {"axis", parameter(axis)}, {"keepdims", parameter(keepdims)}});
}

Tensor quantize(const Tensor& x, double scale, std::int64_t zero_point, std::string_view dtype) {
  static const OpInfo& op = find_op("quantize");
  return apply_one(op, {&x},
      {{"scale", parameter(scale)}, {"zero_point", parameter(zero_point)}, {"dtype", parameter(dtype)}});
}

Tensor quick_gelu(const Tensor& x) {
  static const OpInfo& op = find_op("quick_gelu");
  return apply_one(op, {&x});
}

Tensor rad2deg(const Tensor& x) {
  static const OpInfo& op = find_op("rad2deg");
  return apply_one(op, {&x});
}

Tensor rand(const Integers& shape, DType dtype, std::int64_t seed) {
  static const OpInfo& op = find_op("rand");
  return apply_one(op, {},
      {{"shape", parameter(shape)}, {"dtype", parameter(dtype)}, {"seed", parameter(seed)}});
}

Tensor randint(const Integers& shape, std::int64_t low, std::int64_t high, DType dtype, std::int64_t seed) {
  static const OpInfo& op = find_op("randint");
  return apply_one(op, {},
      {{"shape", parameter(shape)}, {"low", parameter(low)}, {"high", parameter(high)}, {"dtype", parameter(dtype)},
       {"seed", parameter(seed)}});
}

Tensor randn(const Integers& shape, DType dtype, std::int64_t seed) {
  static const OpInfo& op = find_op("randn");
  return apply_one(op, {},
      {{"shape", parameter(shape)}, {"dtype", parameter(dtype)}, {"seed", parameter(seed)}});
}

Tensor randperm(std::int64_t n, DType dtype, std::int64_t seed) {
  static const OpInfo& op = find_op("randperm");
  return apply_one(op, {},
      {{"n", parameter(n)}, {"dtype", parameter(dtype)}, {"seed", parameter(seed)}});
}

Tensor reciprocal(const Tensor& x) {
  static const OpInfo& op = find_op("reciprocal");
  return apply_one(op, {&x});
}

Tensor relu(const Tensor& x) {
  static const OpInfo& op = find_op("relu");
  return apply_one(op, {&x});
}

Tensor relu6(const Tensor& x) {
  static const OpInfo& op = find_op("relu6");
  return apply_one(op, {&x});
}

Tensor relu_squared(const Tensor& x) {
  static const OpInfo& op = find_op("relu_squared");
  return apply_one(op, {&x});
}

Tensor remainder(const Tensor& x, const Tensor& y) {
  static const OpInfo& op = find_op("remainder");
  return apply_one(op, {&x, &y});
}

Tensor repeat(const Tensor& x, std::int64_t repeats, std::optional<std::int64_t> axis) {
  static const OpInfo& op = find_op("repeat");
  return apply_one(op, {&x},
      {{"repeats", parameter(repeats)}, {"axis", parameter(axis)}});
}

Tensor reshape(const Tensor& x, const Integers& shape) {
  static const OpInfo& op = find_op("reshape");
  return apply_one(op, {&x},
      {{"shape", parameter(shape)}});
}

Tensor right_shift(const Tensor& x, const Tensor& y) {
  static const OpInfo& op = find_op("right_shift");
  return apply_one(op, {&x, &y});
}

Tensor rms_norm(const Tensor& x, const Tensor& weight, const Tensor& bias, const Integers& axis, Scalar eps) {
  static const OpInfo& op = find_op("rms_norm");
  return apply_one(op, {&x, &weight, &bias},
      {{"axis", parameter(axis)}, {"eps", parameter(eps)}});
}

Tensor roll(const Tensor& x, const Integers& shift, const Integers& axis) {
  static const OpInfo& op = find_op("roll");
  return apply_one(op, {&x},
      {{"shift", parameter(shift)}, {"axis", parameter(axis)}});
}

Tensor rope(const Tensor& x, const Tensor& positions, double base, bool interleaved, double offset) {
  static const OpInfo& op = find_op("rope");
  return apply_one(op, {&x, &positions},
      {{"base", parameter(base)}, {"interleaved", parameter(interleaved)}, {"offset", parameter(offset)}});
}

Tensor round(const Tensor& x, std::int64_t decimals) {
  static const OpInfo& op = find_op("round");
  return apply_one(op, {&x},
      {{"decimals", parameter(decimals)}});
}

Tensor rsqrt(const Tensor& x) {
  static const OpInfo& op = find_op("rsqrt");
  return apply_one(op, {&x});
}

Tensor rsub(const Tensor& x, const Tensor& y, Scalar alpha) {
  static const OpInfo& op = find_op("rsub");
  return apply_one(op, {&x, &y},
      {{"alpha", parameter(alpha)}});
}

Tensor scaled_dot_product_attention(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& mask, bool causal,
                                    std::optional<double> scale) {
  static const OpInfo& op = find_op("scaled_dot_product_attention");
  return apply_one(op, {&q, &k, &v, &mask},
      {{"causal", parameter(causal)}, {"scale", parameter(scale)}});
}

Tensor scatter(const Tensor& x, const Tensor& indices, const Tensor& updates, std::int64_t axis) {
  static const OpInfo& op = find_op("scatter");
  return apply_one(op, {&x, &indices, &updates},
      {{"axis", parameter(axis)}});
}

Tensor scatter_add(const Tensor& x, const Tensor& indices, const Tensor& updates, std::int64_t axis) {
  static const OpInfo& op = find_op("scatter_add");
  return apply_one(op, {&x, &indices, &updates},
      {{"axis", parameter(axis)}});
}

Tensor select(const Tensor& x, std::int64_t axis, std::int64_t index) {
  static const OpInfo& op = find_op("select");
  return apply_one(op, {&x},
      {{"axis", parameter(axis)}, {"index", parameter(index)}});
}

Tensor selu(const Tensor& x) {
  static const OpInfo& op = find_op("selu");
  return apply_one(op, {&x});
}

Tensor sgn(const Tensor& x) {
  static const OpInfo& op = find_op("sgn");
  return apply_one(op, {&x});
}

Tensor sigmoid(const Tensor& x) {
  static const OpInfo& op = find_op("sigmoid");
  return apply_one(op, {&x});
}

Tensor sigmoid_accurate(const Tensor& x) {
  static const OpInfo& op = find_op("sigmoid_accurate");
  return apply_one(op, {&x});
}

Tensor sign(const Tensor& x) {
  static const OpInfo& op = find_op("sign");
  return apply_one(op, {&x});
}

Tensor signbit(const Tensor& x) {
  static const OpInfo& op = find_op("signbit");
  return apply_one(op, {&x});
}

Tensor silu(const Tensor& x) {
  static const OpInfo& op = find_op("silu");
  return apply_one(op, {&x});
}

Tensor sin(const Tensor& x) {
  static const OpInfo& op = find_op("sin");
  return apply_one(op, {&x});
}

Tensor sinc(const Tensor& x) {
  static const OpInfo& op = find_op("sinc");
  return apply_one(op, {&x});
}

Tensor sinh(const Tensor& x) {
  static const OpInfo& op = find_op("sinh");
  return apply_one(op, {&x});
}

Tensor slice(const Tensor& x, const Integers& start, const Integers& stop, const Integers& step, const Integers& axis) {
  static const OpInfo& op = find_op("slice");
  return apply_one(op, {&x},
      {{"start", parameter(start)}, {"stop", parameter(stop)}, {"step", parameter(step)}, {"axis", parameter(axis)}});
}

Tensor smooth_l1_loss(const Tensor& x, const Tensor& target, std::string_view reduction, double beta) {
  static const OpInfo& op = find_op("smooth_l1_loss");
  return apply_one(op, {&x, &target},
      {{"reduction", parameter(reduction)}, {"beta", parameter(beta)}});
}

Tensor softmax(const Tensor& x, std::int64_t axis) {
  static const OpInfo& op = find_op("softmax");
  return apply_one(op, {&x},
      {{"axis", parameter(axis)}});
}

Tensor softmin(const Tensor& x, std::int64_t axis) {
  static const OpInfo& op = find_op("softmin");
  return apply_one(op, {&x},
      {{"axis", parameter(axis)}});
}

Tensor softplus(const Tensor& x, Scalar beta, Scalar threshold) {
  static const OpInfo& op = find_op("softplus");
  return apply_one(op, {&x},
      {{"beta", parameter(beta)}, {"threshold", parameter(threshold)}});
}

Tensor softshrink(const Tensor& x, Scalar lambda) {
  static const OpInfo& op = find_op("softshrink");
  return apply_one(op, {&x},
      {{"lambda", parameter(lambda)}});
}

Tensor softsign(const Tensor& x) {
  static const OpInfo& op = find_op("softsign");
  return apply_one(op, {&x});
}

Tensor sort(const Tensor& x, std::int64_t axis, bool descending) {
  static const OpInfo& op = find_op("sort");
  return apply_one(op, {&x},
      {{"axis", parameter(axis)}, {"descending", parameter(descending)}});
}

std::vector<Tensor> split(const Tensor& x, const Integers& sections, std::int64_t axis) {
  return apply_several("split", {&x},
      {{"sections", parameter(sections)}, {"axis", parameter(axis)}});
}

Tensor sqrt(const Tensor& x) {
  static const OpInfo& op = find_op("sqrt");
  return apply_one(op, {&x});
}

Tensor square(const Tensor& x) {
  static const OpInfo& op = find_op("square");
  return apply_one(op, {&x});
}

Tensor squared_difference(const Tensor& x, const Tensor& y) {
  static const OpInfo& op = find_op("squared_difference");
  return apply_one(op, {&x, &y});
}

Tensor squeeze(const Tensor& x, const Integers& axis) {
  static const OpInfo& op = find_op("squeeze");
  return apply_one(op, {&x},
      {{"axis", parameter(axis)}});
}

Tensor stack(const std::vector<Tensor>& tensors, std::int64_t axis) {
  return apply_one("stack", pointers(tensors),
      {{"axis", parameter(axis)}});
}

Tensor std(const Tensor& x, const Integers& axis, bool keepdims, Scalar correction) {
  static const OpInfo& op = find_op("std");
  return apply_one(op, {&x},
      {{"axis", parameter(axis)}, {"keepdims", parameter(keepdims)}, {"correction", parameter(correction)}});
}

Tensor sub(const Tensor& x, const Tensor& y) {
  static const OpInfo& op = find_op("sub");
  return apply_one(op, {&x, &y});
}

Tensor subalpha(const Tensor& x, const Tensor& y, Scalar alpha) {
  static const OpInfo& op = find_op("subalpha");
  return apply_one(op, {&x, &y},
      {{"alpha", parameter(alpha)}});
}

Tensor subtract(const Tensor& x, const Tensor& y) {
  static const OpInfo& op = find_op("subtract");
  return apply_one(op, {&x, &y});
}

Tensor sum(const Tensor& x, const Integers& axis, bool keepdims) {
  static const OpInfo& op = find_op("sum");
  return apply_one(op, {&x},
      {{"axis", parameter(axis)}, {"keepdims", parameter(keepdims)}});
}

Tensor swapaxes(const Tensor& x, std::int64_t axis1, std::int64_t axis2) {
  static const OpInfo& op = find_op("swapaxes");
  return apply_one(op, {&x},
      {{"axis1", parameter(axis1)}, {"axis2", parameter(axis2)}});
}

Tensor swiglu(const Tensor& x, std::int64_t axis) {
  static const OpInfo& op = find_op("swiglu");
  return apply_one(op, {&x},
      {{"axis", parameter(axis)}});
}

Tensor swish(const Tensor& x) {
  static const OpInfo& op = find_op("swish");
  return apply_one(op, {&x});
}

Tensor take(const Tensor& x, const Tensor& indices, std::optional<std::int64_t> axis) {
  static const OpInfo& op = find_op("take");
  return apply_one(op, {&x, &indices},
      {{"axis", parameter(axis)}});
}

Tensor take_along_axis(const Tensor& x, const Tensor& indices, std::int64_t axis) {
  static const OpInfo& op = find_op("take_along_axis");
  return apply_one(op, {&x, &indices},
      {{"axis", parameter(axis)}});
}

Tensor tan(const Tensor& x) {
  static const OpInfo& op = find_op("tan");
  return apply_one(op, {&x});
}

Tensor tanh(const Tensor& x) {
  static const OpInfo& op = find_op("tanh");
  return apply_one(op, {&x});
}

Tensor tanhshrink(const Tensor& x) {
  static const OpInfo& op = find_op("tanhshrink");
  return apply_one(op, {&x});
}

Tensor tensordot(const Tensor& a, const Tensor& b, std::int64_t axes) {
  static const OpInfo& op = find_op("tensordot");
  return apply_one(op, {&a, &b},
      {{"axes", parameter(axes)}});
}

Tensor threshold(const Tensor& x, Scalar threshold, Scalar value) {
  static const OpInfo& op = find_op("threshold");
  return apply_one(op, {&x},
      {{"threshold", parameter(threshold)}, {"value", parameter(value)}});
}

Tensor tile(const Tensor& x, const Integers& reps) {
  static const OpInfo& op = find_op("tile");
  return apply_one(op, {&x},
      {{"reps", parameter(reps)}});
}

std::vector<Tensor> top_k(const Tensor& x, std::int64_t k, std::int64_t axis, bool largest) {
  return apply_several("top_k", {&x},
      {{"k", parameter(k)}, {"axis", parameter(axis)}, {"largest", parameter(largest)}});
}

Tensor trace(const Tensor& x, std::int64_t offset) {
  static const OpInfo& op = find_op("trace");
  return apply_one(op, {&x},
      {{"offset", parameter(offset)}});
}

Tensor transpose(const Tensor& x, const Integers& axes) {
  static const OpInfo& op = find_op("transpose");
  return apply_one(op, {&x},
      {{"axes", parameter(axes)}});
}

Tensor tril(const Tensor& x, std::int64_t diagonal) {
  static const OpInfo& op = find_op("tril");
  return apply_one(op, {&x},
      {{"diagonal", parameter(diagonal)}});
}

Tensor triu(const Tensor& x, std::int64_t diagonal) {
  static const OpInfo& op = find_op("triu");
  return apply_one(op, {&x},
      {{"diagonal", parameter(diagonal)}});
}

Tensor true_divide(const Tensor& x, const Tensor& y) {
  static const OpInfo& op = find_op("true_divide");
  return apply_one(op, {&x, &y});
}

Tensor trunc(const Tensor& x) {
  static const OpInfo& op = find_op("trunc");
  return apply_one(op, {&x});
}

Tensor trunc_div(const Tensor& x, const Tensor& y) {
  static const OpInfo& op = find_op("trunc_div");
  return apply_one(op, {&x, &y});
}

Tensor uniform(const Integers& shape, double low, double high, DType dtype, std::int64_t seed) {
  static const OpInfo& op = find_op("uniform");
  return apply_one(op, {},
      {{"shape", parameter(shape)}, {"low", parameter(low)}, {"high", parameter(high)}, {"dtype", parameter(dtype)},
       {"seed", parameter(seed)}});
}

Tensor unsqueeze(const Tensor& x, std::int64_t axis) {
  static const OpInfo& op = find_op("unsqueeze");
  return apply_one(op, {&x},
      {{"axis", parameter(axis)}});
}

Tensor upsample_nearest(const Tensor& x, std::int64_t factor) {
  static const OpInfo& op = find_op("upsample_nearest");
  return apply_one(op, {&x},
      {{"factor", parameter(factor)}});
}

Tensor var(const Tensor& x, const Integers& axis, bool keepdims, Scalar correction) {
  static const OpInfo& op = find_op("var");
  return apply_one(op, {&x},
      {{"axis", parameter(axis)}, {"keepdims", parameter(keepdims)}, {"correction", parameter(correction)}});
}

Tensor vecdot(const Tensor& a, const Tensor& b, std::int64_t axis) {
  static const OpInfo& op = find_op("vecdot");
  return apply_one(op, {&a, &b},
      {{"axis", parameter(axis)}});
}

Tensor where(const Tensor& condition, const Tensor& x, const Tensor& y) {
  static const OpInfo& op = find_op("where");
  return apply_one(op, {&condition, &x, &y});
}

Tensor xlog1py(const Tensor& x, const Tensor& y) {
  static const OpInfo& op = find_op("xlog1py");
  return apply_one(op, {&x, &y});
}

Tensor xlogy(const Tensor& x, const Tensor& y) {
  static const OpInfo& op = find_op("xlogy");
  return apply_one(op, {&x, &y});
}

Tensor zeros(const Integers& shape, DType dtype) {
  static const OpInfo& op = find_op("zeros");
  return apply_one(op, {},
      {{"shape", parameter(shape)}, {"dtype", parameter(dtype)}});
}

Tensor zeros_like(const Tensor& x, std::optional<DType> dtype) {
  static const OpInfo& op = find_op("zeros_like");
  return apply_one(op, {&x},
      {{"dtype", parameter(dtype)}});
}

}  // namespace tenon
