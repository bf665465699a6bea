#include <fmt/format.h>

#include <optional>

#include "ops/build.h"
#include "ops/composed/spatial.h"
#include "ops/parameters.h"
#include "ops/register.h"

namespace tenon {
namespace {

using namespace build;
using Results = std::vector<NodeId>;

// A missing batch axis is added, and taken away from the result.
struct Batch {
  Expr x;
  bool added;
  Results result(Expr y) const { return {added ? squeeze(y, one_axis(0)).id() : y.id()}; }
};

Batch batched(const OpCall& call, int n) {
  const Expr x = floating(input(call, 0));
  if (x.rank() == n + 2) return {x, false};
  if (x.rank() == n + 1) return {unsqueeze(x, 0), true};
  call.fail(fmt::format("x must be [batch, channels, {} spatial {}]", n, n == 1 ? "axis" : "axes"));
}

Expr add_bias(const OpCall& call, Expr y) {
  if (!call.has_input(2)) return y;
  const Expr bias = input(call, 2);
  if (bias.shape().elements() != y.extent(1))
    call.fail(fmt::format("bias has {} elements, but there are {} output channels", bias.shape().elements(), y.extent(1)));
  return y + along(bias, 1, y.rank());
}

Expr kernel(const OpCall& call, int n) {
  const Expr w = floating(input(call, 1));
  if (w.rank() != n + 2) call.fail(fmt::format("weight must have {} axes", n + 2));
  return w;
}

template <int n>
Results conv(const OpCall& call) {
  const Batch batch = batched(call, n);
  const Expr w = kernel(call, n);
  ConvAttr attr;
  attr.stride = spatial(call, "stride", n, 1);
  attr.dilation = spatial(call, "dilation", n, 1);
  attr.groups = call.integer("groups");
  const auto [low, high] = spatial_padding(call, "padding", n);
  attr.pad_low = low;
  attr.pad_high = high;
  if (batch.x.extent(1) != w.extent(1) * attr.groups)
    call.fail(fmt::format("x has {} channels, but weight expects {} in {} groups", batch.x.extent(1), w.extent(1) * attr.groups,
                          attr.groups),
              "the shape of weight is [out, channels / groups, kernel...]");
  return batch.result(add_bias(call, Expr(call.graph(), call.graph().conv(batch.x.id(), w.id(), attr))));
}

// |count| zeros between neighbours of an axis.
Expr spread(Expr x, int axis, std::int64_t count) {
  const std::int64_t n = x.extent(axis);
  if (count == 0 || n <= 1) return x;
  const Expr padded = pad_axis(unsqueeze(x, axis + 1), axis + 1, 0, count);
  return narrow(reshape(padded, x.shape().with(axis, n * (count + 1))), axis, 0, n * (count + 1) - count);
}

// The gradient of a convolution: x spread by the stride, convolved with the flipped kernel, group by group.
template <int n>
Results conv_transpose(const OpCall& call) {
  const Batch batch = batched(call, n);
  Expr x = batch.x;
  Expr w = kernel(call, n);
  const std::int64_t groups = call.integer("groups"), in = w.extent(0), out = w.extent(1);
  if (x.extent(1) != in || in % groups != 0)
    call.fail(fmt::format("x has {} channels, but weight expects {} in {} groups", x.extent(1), in, groups),
              "the shape of weight is [channels, out / groups, kernel...]");

  const Spatial stride = spatial(call, "stride", n, 1), dilation = spatial(call, "dilation", n, 1);
  const Spatial extra = spatial(call, "output_padding", n, 0);
  const auto [low, high] = spatial_padding(call, "padding", n);
  // Both enter a product.
  const DType dtype = promote(x.dtype(), w.dtype());
  const auto prepared = [&](Expr e) { return Expr(call.graph(), call.graph().rounded(build::cast(e, dtype).id())); };
  const Expr whole = x = prepared(x), flat = w = prepared(w);
  Spatial cut_high{};
  for (int i = 0; i < n; ++i) {
    const std::size_t s = static_cast<std::size_t>(i);
    const int axis = i + 2;
    cut_high[s] = high[s] - extra[s];
    if (extra[s] >= std::max(stride[s], dilation[s])) call.fail("output_padding must be smaller than stride or dilation");
    x = spread(x, axis, stride[s] - 1);
    if (w.extent(axis) > (std::int64_t{1} << 31)) call.fail("the kernel has more than 2^31 elements along an axis");
    const std::int64_t reach = dilation[s] * (w.extent(axis) - 1);
    const std::int64_t before = reach - low[s], after = reach - high[s] + extra[s];
    x = pad_axis(x, axis, std::max<std::int64_t>(before, 0), std::max<std::int64_t>(after, 0));
    const std::int64_t cut_before = std::max<std::int64_t>(-before, 0), cut_after = std::max<std::int64_t>(-after, 0);
    if (cut_before + cut_after >= x.extent(axis)) call.fail("the padding removes the whole result; use less padding");
    x = narrow(x, axis, cut_before, x.extent(axis) - cut_before - cut_after);
    w = reverse(w, axis);
  }
  Dims grouped = dims(w.shape()), joined = grouped;
  grouped[0] = in / groups;
  grouped.insert(grouped.begin(), groups);
  joined[0] = groups * out;
  joined[1] = in / groups;
  w = reshape(swap_axes(reshape(w, Shape(grouped)), 1, 2), Shape(joined));
  ConvAttr attr;
  attr.dilation = dilation;
  attr.groups = groups;
  const Expr y(call.graph(), call.graph().conv(x.id(), w.id(), attr));
  if (y.dtype() == whole.dtype() && y.shape().elements() > 0)
    call.graph().mark({{whole.id(), flat.id()}, y.id(), ConvTransposeAttr{stride, dilation, low, cut_high, groups}});
  return batch.result(add_bias(call, y));
}

Results pixel_shuffle(const OpCall& call) {
  const Expr x = input(call, 0);
  const std::int64_t r = call.integer("factor");
  if (x.rank() != 4 || x.extent(1) % (r * r) != 0)
    call.fail(fmt::format("expected [n, channels, h, w] with channels a multiple of {}", r * r));
  const std::int64_t n = x.extent(0), c = x.extent(1) / (r * r), h = x.extent(2), w = x.extent(3);
  const Expr split = transpose(reshape(x, Shape{n, c, r, r, h, w}), {0, 1, 4, 2, 5, 3});
  return {reshape(split, Shape{n, c, h * r, w * r}).id()};
}

Results pixel_unshuffle(const OpCall& call) {
  const Expr x = input(call, 0);
  const std::int64_t r = call.integer("factor");
  if (x.rank() != 4 || x.extent(2) % r != 0 || x.extent(3) % r != 0)
    call.fail(fmt::format("expected [n, channels, h, w] with h and w multiples of {}", r));
  const std::int64_t n = x.extent(0), c = x.extent(1), h = x.extent(2) / r, w = x.extent(3) / r;
  const Expr split = transpose(reshape(x, Shape{n, c, h, r, w, r}), {0, 1, 3, 5, 2, 4});
  return {reshape(split, Shape{n, c * r * r, h, w}).id()};
}

Results upsample_nearest(const OpCall& call) {
  Expr x = input(call, 0);
  const std::int64_t factor = call.integer("factor");
  if (x.rank() < 3 || x.rank() > 5) call.fail("expected [n, channels, spatial...]");
  // All axes at once: the elements are copied only once.
  Dims split = dims(x.shape()), repeated = split;
  Shape result = x.shape();
  for (int axis = x.rank() - 1; axis >= 2; --axis) {
    split.insert(split.begin() + axis + 1, 1);
    repeated.insert(repeated.begin() + axis + 1, factor);
    result = result.with(axis, result[axis] * factor);
  }
  x = reshape(broadcast(reshape(x, Shape(split)), Shape(repeated)), result);
  return {x.id()};
}

Family convolution_family() {
  return {.category = "convolution", .inputs = {"x", "weight", "bias"}, .min_inputs = 2, .dtypes = float_dtypes()};
}
Family rearrangement_family() { return {.category = "convolution"}; }

Parameter factor_parameter(std::string doc) {
  return {.name = "factor", .type = ParameterType::integer, .required = true, .min = 1.0, .max = 65536.0, .doc = std::move(doc)};
}

Parameter groups_parameter() {
  return {.name = "groups",
          .type = ParameterType::integer,
          .fallback = std::int64_t{1},
          .min = 1.0,
          .max = 1048576.0,
          .doc = "number of independent groups of channels"};
}

void add_convolution(OpList& ops, int n, const std::string& x, const std::string& w, Results (*build)(const OpCall&)) {
  Entry(ops, convolution_family(), fmt::format("conv{}d", n), build)
      .parameters({stride_parameter("1"), padding_parameter(), dilation_parameter(), groups_parameter()})
      .formula("y[o, p] = sum_c sum_k w[o, c, k] x[c, p stride + k dilation - padding] + b[o]")
      .doc(fmt::format("Convolution over {} spatial {}: x [n, c, ...], weight [out, c / groups, ...], bias [out].", n,
                       n == 1 ? "axis" : "axes"))
      .example(fmt::format("conv{}d({}, {}, padding=1)", n, x, w));
}

void add_transposed(OpList& ops, int n, const std::string& x, const std::string& w, Results (*build)(const OpCall&)) {
  Parameter extra = integers_parameter("output_padding", {0}, "extra extent added to one side of the result");
  extra.min = 0.0;
  Entry(ops, convolution_family(), fmt::format("conv_transpose{}d", n), build)
      .parameters({stride_parameter("1"), padding_parameter(), extra, groups_parameter(), dilation_parameter()})
      .formula("y[o, p stride + k dilation - padding] += w[c, o, k] x[c, p]")
      .doc(fmt::format("Transposed convolution over {} spatial {}: weight [c, out / groups, ...].", n, n == 1 ? "axis" : "axes"))
      .example(fmt::format("conv_transpose{}d({}, {}, stride=2)", n, x, w));
}

}  // namespace

void register_convolution_ops(OpList& ops) {
  const std::string x1 = "[[[1.0, 2.0, 3.0]]]", w1 = "[[[1.0, 0.0, -1.0]]]";
  const std::string x2 = "[[[[1.0, 2.0], [3.0, 4.0]]]]", w2 = "[[[[1.0, 0.0], [0.0, 1.0]]]]";
  const std::string x3 = "[[[[[1.0, 2.0], [3.0, 4.0]]]]]", w3 = "[[[[[1.0, 0.0], [0.0, 1.0]]]]]";
  add_convolution(ops, 1, x1, w1, conv<1>);
  add_convolution(ops, 2, x2, w2, conv<2>);
  add_convolution(ops, 3, x3, w3, conv<3>);
  add_transposed(ops, 1, x1, w1, conv_transpose<1>);
  add_transposed(ops, 2, x2, w2, conv_transpose<2>);
  add_transposed(ops, 3, x3, w3, conv_transpose<3>);
  Entry(ops, rearrangement_family(), "pixel_shuffle", pixel_shuffle)
      .parameters({factor_parameter("factor by which the image grows")})
      .formula("[n, c r^2, h, w] -> [n, c, h r, w r]")
      .doc("Rearranges channels into the pixels of a larger image.")
      .example("pixel_shuffle([[[[1]], [[2]], [[3]], [[4]]]], factor=2)");
  Entry(ops, rearrangement_family(), "pixel_unshuffle", pixel_unshuffle)
      .parameters({factor_parameter("factor by which the image shrinks")})
      .formula("[n, c, h r, w r] -> [n, c r^2, h, w]")
      .doc("Rearranges pixels into the channels of a smaller image.")
      .example("pixel_unshuffle([[[[1, 2], [3, 4]]]], factor=2)");
  Entry(ops, rearrangement_family(), "upsample_nearest", upsample_nearest)
      .parameters({factor_parameter("how many times each element is repeated")})
      .formula("y[i] = x[i div factor]")
      .doc("Upsamples every spatial axis by repeating elements.")
      .example("upsample_nearest([[[[1, 2], [3, 4]]]], factor=2)");
}

}  // namespace tenon
