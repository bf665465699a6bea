// Every op of the catalogue as a function of tensors. Generated from the catalogue by tools/docs; do not edit.
//
// The inputs of an op come first, then its parameters, with the names and defaults of docs/ops.md. Optional inputs come
// after required parameters. An op whose name is a C++ keyword has a trailing underscore.
// The functions compute nothing: see tensor.h. They throw invalid_argument and out_of_range, naming the op and the shapes.
//
//   Tensor y = softmax(linear(x, weight, bias), /*axis=*/-1);
//   Tensor m = mean(y, {0, 1}, /*keepdims=*/true);
// clang-format off
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "tenon/array/dtype.h"
#include "tenon/array/integers.h"
#include "tenon/array/scalar.h"
#include "tenon/tensor.h"

namespace tenon {

// --- activation ---

// Gated unit with gelu over the two halves of an axis.
//   gelu(a) b
Tensor geglu(const Tensor& x, std::int64_t axis = -1);

// Gated linear unit over the two halves of an axis.
//   a sigmoid(b)
Tensor glu(const Tensor& x, std::int64_t axis = -1);

// Gated unit with silu over the two halves of an axis.
//   silu(a) b
Tensor swiglu(const Tensor& x, std::int64_t axis = -1);

// --- attention ---

// Rotary position embedding of [..., positions, width]; positions default to 0, 1, ...
//   (a cos t - b sin t, a sin t + b cos t), t = position base^(-2 j / width)
Tensor rope(const Tensor& x, const Tensor& positions = {}, double base = 10000, bool interleaved = false, double offset = 0);

// Attention over [..., heads, rows, width]; k and v may have fewer heads. A bool mask is true for keys to attend to; a float mask
// is added to the scores.
//   softmax(q k^T scale + mask) v
Tensor scaled_dot_product_attention(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& mask = {},
                                    bool causal = false, std::optional<double> scale = std::nullopt);

// --- binary ---

// Sum. Integers wrap around.
//   x + y
Tensor add(const Tensor& x, const Tensor& y);

// Sum with the second operand scaled.
//   x + alpha·y
Tensor addalpha(const Tensor& x, const Tensor& y, Scalar alpha = 1);

// Angle of the point (x, y) in (-π, π]; y comes first.
//   angle of (x, y)
Tensor atan2(const Tensor& y, const Tensor& x);

// Bits set in both.
//   x & y
Tensor bitwise_and(const Tensor& x, const Tensor& y);

// Bits set in either.
//   x | y
Tensor bitwise_or(const Tensor& x, const Tensor& y);

// Bits set in exactly one.
//   x ^ y
Tensor bitwise_xor(const Tensor& x, const Tensor& y);

// The magnitude of x with the sign bit of y.
//   |x|·sign(y)
Tensor copysign(const Tensor& x, const Tensor& y);

// Quotient; a float even for integers. With a rounding_mode the quotient is rounded and keeps the type of the inputs.
//   x / y
Tensor div(const Tensor& x, const Tensor& y, std::string_view rounding_mode = "none");

// Quotient that is 0 where the divisor is 0.
//   y = 0 ? 0 : x / y
Tensor div_no_nan(const Tensor& x, const Tensor& y);

// Quotient; a float even for integers. With a rounding_mode the quotient is rounded and keeps the type of the inputs.
//   x / y
Tensor divide(const Tensor& x, const Tensor& y, std::string_view rounding_mode = "none");

// Equal; NaN equals nothing.
//   x = y
Tensor eq(const Tensor& x, const Tensor& y);

// Power computed and returned in float64.
//   xʸ in float64
Tensor float_power(const Tensor& x, const Tensor& exponent);

// Quotient rounded towards minus infinity. Integers divided by 0 give 0.
//   ⌊x / y⌋
Tensor floor_div(const Tensor& x, const Tensor& y);

// The larger value; if one is NaN, the other.
//   max(x, y)
Tensor fmax(const Tensor& x, const Tensor& y);

// The smaller value; if one is NaN, the other.
//   min(x, y)
Tensor fmin(const Tensor& x, const Tensor& y);

// Remainder with the sign of the dividend, as in C. A divisor of 0 gives 0 for integers and NaN for floats.
//   x − y·trunc(x / y)
Tensor fmod(const Tensor& x, const Tensor& y);

// Greatest common divisor of integers; gcd(0, n) is |n|.
//   gcd(|x|, |y|)
Tensor gcd(const Tensor& x, const Tensor& y);

// Greater than or equal.
//   x ≥ y
Tensor ge(const Tensor& x, const Tensor& y);

// Greater than.
//   x > y
Tensor gt(const Tensor& x, const Tensor& y);

// Length of a vector, without intermediate overflow.
//   √(x² + y²)
Tensor hypot(const Tensor& x, const Tensor& y);

// Equal within a tolerance; infinities are equal only to themselves. Integers are compared as float32.
//   |x − y| ≤ atol + rtol·|y|
Tensor isclose(const Tensor& x, const Tensor& y, Scalar rtol = 1e-05, Scalar atol = 1e-08, bool equal_nan = false);

// Least common multiple of integers; 0 if one of them is 0.
//   |x·y| / gcd(x, y)
Tensor lcm(const Tensor& x, const Tensor& y);

// Scales by a power of two without intermediate overflow.
//   x · 2ʸ
Tensor ldexp(const Tensor& x, const Tensor& exponent);

// Less than or equal.
//   x ≤ y
Tensor le(const Tensor& x, const Tensor& y);

// Shifts bits left; 0 if shifted by the type's width or more, or by a negative amount.
//   x << y
Tensor left_shift(const Tensor& x, const Tensor& y);

// Logarithm of the sum of exponentials of two numbers, without overflow.
//   ln(eˣ + eʸ)
Tensor logaddexp(const Tensor& x, const Tensor& y);

// Logarithm of the sum of powers of two, without overflow.
//   log₂(2ˣ + 2ʸ)
Tensor logaddexp2(const Tensor& x, const Tensor& y);

// Both are not zero.
//   x ∧ y
Tensor logical_and(const Tensor& x, const Tensor& y);

// At least one is not zero.
//   x ∨ y
Tensor logical_or(const Tensor& x, const Tensor& y);

// Exactly one is not zero.
//   x ⊻ y
Tensor logical_xor(const Tensor& x, const Tensor& y);

// Less than.
//   x < y
Tensor lt(const Tensor& x, const Tensor& y);

// The larger value; NaN if either is NaN.
//   max(x, y)
Tensor maximum(const Tensor& x, const Tensor& y);

// The smaller value; NaN if either is NaN.
//   min(x, y)
Tensor minimum(const Tensor& x, const Tensor& y);

// Product. Integers wrap around.
//   x · y
Tensor mul(const Tensor& x, const Tensor& y);

// Product; the same as mul.
//   x · y
Tensor multiply(const Tensor& x, const Tensor& y);

// Not equal; NaN differs from everything.
//   x ≠ y
Tensor ne(const Tensor& x, const Tensor& y);

// Power. Integers wrap around; negative exponents give 0, except for the bases 1 and -1.
//   xʸ
Tensor pow(const Tensor& x, const Tensor& exponent);

// Remainder with the sign of the divisor, like Python's %. A divisor of 0 gives 0 for integers and NaN for floats.
//   x − y·⌊x / y⌋
Tensor remainder(const Tensor& x, const Tensor& y);

// Shifts bits right, keeping the sign; shifting by the type's width or more, or by a negative amount, shifts out every bit.
//   x >> y
Tensor right_shift(const Tensor& x, const Tensor& y);

// Difference with the operands reversed and the subtrahend scaled.
//   y − alpha·x
Tensor rsub(const Tensor& x, const Tensor& y, Scalar alpha = 1);

// Square of the difference.
//   (x − y)²
Tensor squared_difference(const Tensor& x, const Tensor& y);

// Difference. Integers wrap around.
//   x − y
Tensor sub(const Tensor& x, const Tensor& y);

// Difference with the second operand scaled.
//   x − alpha·y
Tensor subalpha(const Tensor& x, const Tensor& y, Scalar alpha = 1);

// Difference; the same as sub.
//   x − y
Tensor subtract(const Tensor& x, const Tensor& y);

// Quotient; a float even for integers.
//   x / y
Tensor true_divide(const Tensor& x, const Tensor& y);

// Quotient rounded towards zero. Integers divided by 0 give 0.
//   trunc(x / y)
Tensor trunc_div(const Tensor& x, const Tensor& y);

// Product with log1p; 0 where x is 0 and y is not NaN.
//   x·ln(1 + y)
Tensor xlog1py(const Tensor& x, const Tensor& y);

// Product with a logarithm; 0 where x is 0 and y is not NaN.
//   x·ln y
Tensor xlogy(const Tensor& x, const Tensor& y);

// --- convolution ---

// Convolution over 1 spatial axis: x [n, c, ...], weight [out, c / groups, ...], bias [out].
//   y[o, p] = sum_c sum_k w[o, c, k] x[c, p stride + k dilation - padding] + b[o]
Tensor conv1d(const Tensor& x, const Tensor& weight, const Tensor& bias = {}, const Integers& stride = 1,
              const Integers& padding = 0, const Integers& dilation = 1, std::int64_t groups = 1);

// Convolution over 2 spatial axes: x [n, c, ...], weight [out, c / groups, ...], bias [out].
//   y[o, p] = sum_c sum_k w[o, c, k] x[c, p stride + k dilation - padding] + b[o]
Tensor conv2d(const Tensor& x, const Tensor& weight, const Tensor& bias = {}, const Integers& stride = 1,
              const Integers& padding = 0, const Integers& dilation = 1, std::int64_t groups = 1);

// Convolution over 3 spatial axes: x [n, c, ...], weight [out, c / groups, ...], bias [out].
//   y[o, p] = sum_c sum_k w[o, c, k] x[c, p stride + k dilation - padding] + b[o]
Tensor conv3d(const Tensor& x, const Tensor& weight, const Tensor& bias = {}, const Integers& stride = 1,
              const Integers& padding = 0, const Integers& dilation = 1, std::int64_t groups = 1);

// Transposed convolution over 1 spatial axis: weight [c, out / groups, ...].
//   y[o, p stride + k dilation - padding] += w[c, o, k] x[c, p]
Tensor conv_transpose1d(const Tensor& x, const Tensor& weight, const Tensor& bias = {}, const Integers& stride = 1,
                        const Integers& padding = 0, const Integers& output_padding = 0, std::int64_t groups = 1,
                        const Integers& dilation = 1);

// Transposed convolution over 2 spatial axes: weight [c, out / groups, ...].
//   y[o, p stride + k dilation - padding] += w[c, o, k] x[c, p]
Tensor conv_transpose2d(const Tensor& x, const Tensor& weight, const Tensor& bias = {}, const Integers& stride = 1,
                        const Integers& padding = 0, const Integers& output_padding = 0, std::int64_t groups = 1,
                        const Integers& dilation = 1);

// Transposed convolution over 3 spatial axes: weight [c, out / groups, ...].
//   y[o, p stride + k dilation - padding] += w[c, o, k] x[c, p]
Tensor conv_transpose3d(const Tensor& x, const Tensor& weight, const Tensor& bias = {}, const Integers& stride = 1,
                        const Integers& padding = 0, const Integers& output_padding = 0, std::int64_t groups = 1,
                        const Integers& dilation = 1);

// Rearranges channels into the pixels of a larger image.
//   [n, c r^2, h, w] -> [n, c, h r, w r]
Tensor pixel_shuffle(const Tensor& x, std::int64_t factor);

// Rearranges pixels into the channels of a smaller image.
//   [n, c, h r, w r] -> [n, c r^2, h, w]
Tensor pixel_unshuffle(const Tensor& x, std::int64_t factor);

// Upsamples every spatial axis by repeating elements.
//   y[i] = x[i div factor]
Tensor upsample_nearest(const Tensor& x, std::int64_t factor);

// --- creation ---

// Evenly spaced numbers from start to stop (exclusive).
//   start + i step
Tensor arange(Scalar start, std::optional<Scalar> stop = std::nullopt, Scalar step = 1,
              std::optional<DType> dtype = std::nullopt);

// Random zeros and ones.
//   P(x = 1) = p
Tensor bernoulli(const Integers& shape, Scalar p = 0.5, DType dtype = DType::boolean, std::int64_t seed = 0);

// Ones on a diagonal.
//   1 where j = i + k, else 0
Tensor eye(std::int64_t n, std::optional<std::int64_t> m = std::nullopt, std::int64_t k = 0, DType dtype = DType::f32);

// A tensor filled with one value.
//   value
Tensor full(const Integers& shape, Scalar value, DType dtype = DType::f32);

// One value with the shape of x.
//   value
Tensor full_like(const Tensor& x, Scalar value, std::optional<DType> dtype = std::nullopt);

// Evenly spaced numbers from start to stop (inclusive).
//   start + i (stop - start) / (num - 1)
Tensor linspace(Scalar start, Scalar stop, std::int64_t num = 50, DType dtype = DType::f32);

// Numbers spaced evenly on a logarithmic scale.
//   base^linspace(start, stop)
Tensor logspace(Scalar start, Scalar stop, std::int64_t num = 50, Scalar base = 10, DType dtype = DType::f32);

// A tensor of ones.
//   1
Tensor ones(const Integers& shape, DType dtype = DType::f32);

// Ones with the shape of x.
//   1
Tensor ones_like(const Tensor& x, std::optional<DType> dtype = std::nullopt);

// Uniform random numbers in [0, 1).
//   x ~ U[0, 1)
Tensor rand(const Integers& shape, DType dtype = DType::f32, std::int64_t seed = 0);

// Random integers in [low, high).
//   x ~ U{low, ..., high - 1}
Tensor randint(const Integers& shape, std::int64_t low, std::int64_t high, DType dtype = DType::i64, std::int64_t seed = 0);

// Normal random numbers with mean 0 and variance 1.
//   x ~ N(0, 1)
Tensor randn(const Integers& shape, DType dtype = DType::f32, std::int64_t seed = 0);

// The numbers 0 to n - 1 in random order.
//   a permutation of 0 .. n - 1
Tensor randperm(std::int64_t n, DType dtype = DType::i64, std::int64_t seed = 0);

// Uniform random numbers in [low, high).
//   x ~ U[low, high)
Tensor uniform(const Integers& shape, double low = 0, double high = 1, DType dtype = DType::f32, std::int64_t seed = 0);

// A tensor of zeros.
//   0
Tensor zeros(const Integers& shape, DType dtype = DType::f32);

// Zeros with the shape of x.
//   0
Tensor zeros_like(const Tensor& x, std::optional<DType> dtype = std::nullopt);

// --- distance ---

// Distances from every row of a to every row of b.
//   d_ij = norm(a_i - b_j, p)
Tensor cdist(const Tensor& a, const Tensor& b, Scalar p = 2, bool exact = false);

// Cosine of the angle between vectors.
//   a . b / (max(|a|, eps) max(|b|, eps))
Tensor cosine_similarity(const Tensor& a, const Tensor& b, std::int64_t axis = -1, Scalar eps = 1e-08);

// Distances between corresponding rows.
//   norm(a - b + eps, p)
Tensor pairwise_distance(const Tensor& a, const Tensor& b, Scalar p = 2, Scalar eps = 1e-06, bool keepdims = false);

// --- indexing ---

// The matrix with a vector as its diagonal, or the diagonal of a matrix.
//   y_ii = x_i, or y_i = x_ii
Tensor diag(const Tensor& x, std::int64_t offset = 0);

// The diagonals of two axes as a new last axis.
//   y_i = x_ii
Tensor diagonal(const Tensor& x, std::int64_t offset = 0, std::int64_t axis1 = -2, std::int64_t axis2 = -1);

// Looks up rows of a table by index.
//   y[i] = weight[indices[i]]
Tensor embedding(const Tensor& indices, const Tensor& weight);

// One element of x for each index, along an axis; negative indices count from the end.
//   y[i, j] = x[indices[i, j], j]
Tensor gather(const Tensor& x, const Tensor& indices, std::int64_t axis = 0);

// Selects rows by a vector of indices.
//   y[i] = x[indices[i]]
Tensor index_select(const Tensor& x, const Tensor& indices, std::int64_t axis = 0);

// Replaces elements under a mask by a number.
//   value where mask, else x
Tensor masked_fill(const Tensor& x, const Tensor& mask, Scalar value = 0);

// Encodes each index as a row with a single 1; an index out of range gives a row of zeros.
//   y[.., j] = 1 where j = x, else 0
Tensor one_hot(const Tensor& x, std::int64_t classes, DType dtype = DType::f32);

// A copy of x with elements replaced. If several updates have the same index, the last one wins.
//   y = x; y[indices[i, j], j] = updates[i, j]
Tensor scatter(const Tensor& x, const Tensor& indices, const Tensor& updates, std::int64_t axis = 0);

// A copy of x with updates added to its elements. Updates with the same index add up.
//   y = x; y[indices[i, j], j] += updates[i, j]
Tensor scatter_add(const Tensor& x, const Tensor& indices, const Tensor& updates, std::int64_t axis = 0);

// Selects one row and removes its axis.
//   y = x[index]
Tensor select(const Tensor& x, std::int64_t axis = 0, std::int64_t index = 0);

// Selects rows (or elements) by index; the result has the shape of the indices.
//   y = x[indices]
Tensor take(const Tensor& x, const Tensor& indices, std::optional<std::int64_t> axis = std::nullopt);

// Like gather, with the other axes broadcast.
//   y[i, j] = x[i, indices[i, j]]
Tensor take_along_axis(const Tensor& x, const Tensor& indices, std::int64_t axis = -1);

// --- linear algebra ---

// Adds a matrix product to a tensor.
//   beta c + alpha (a @ b)
Tensor addmm(const Tensor& c, const Tensor& a, const Tensor& b, Scalar beta = 1, Scalar alpha = 1);

// Matrix products of two stacks of matrices.
//   c_nij = sum_k a_nik b_nkj
Tensor bmm(const Tensor& a, const Tensor& b);

// Vector product in three dimensions.
//   (a2 b3 - a3 b2, a3 b1 - a1 b3, a1 b2 - a2 b1)
Tensor cross(const Tensor& a, const Tensor& b, std::int64_t axis = -1);

// Inner product of two vectors.
//   sum_i a_i b_i
Tensor dot(const Tensor& a, const Tensor& b);

// Einstein summation over any number of operands: diagonals, sums, transpositions, products.
//   products, summed over the letters that are not in the result
Tensor einsum(std::string_view equation, const std::vector<Tensor>& operands);

// Products summed over the last axis of both.
//   sum over the last axes
Tensor inner(const Tensor& a, const Tensor& b);

// Kronecker product.
//   blocks a_ij b
Tensor kron(const Tensor& a, const Tensor& b);

// A dense layer: weight is [out, in]; bias [out] is optional.
//   x weight^T + bias
Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias = {});

// Matrix product. Leading axes are batches and broadcast; vectors are rows or columns. Also a @ b.
//   c_ij = sum_k a_ik b_kj
Tensor matmul(const Tensor& a, const Tensor& b);

// Power of a square matrix.
//   x @ x @ ... @ x
Tensor matrix_power(const Tensor& x, std::int64_t n);

// Matrix times vector.
//   y_i = sum_k a_ik v_k
Tensor mv(const Tensor& a, const Tensor& v);

// Every element of a times every element of b.
//   c_ij = a_i b_j
Tensor outer(const Tensor& a, const Tensor& b);

// Products summed over several axes.
//   sum over the last axes of a and the first of b
Tensor tensordot(const Tensor& a, const Tensor& b, std::int64_t axes = 2);

// Sum of a diagonal of the last two axes.
//   sum_i x_ii
Tensor trace(const Tensor& x, std::int64_t offset = 0);

// Inner products of the vectors along an axis.
//   sum_i a_i b_i
Tensor vecdot(const Tensor& a, const Tensor& b, std::int64_t axis = -1);

// --- loss ---

// Cross entropy of probabilities with targets from 0 to 1.
//   -(t log x + (1 - t) log(1 - x))
Tensor binary_cross_entropy(const Tensor& x, const Tensor& target, std::string_view reduction = "mean");

// Cross entropy of sigmoid(x) with targets from 0 to 1, without overflow.
//   max(x, 0) - x t + log(1 + exp(-|x|))
Tensor binary_cross_entropy_with_logits(const Tensor& x, const Tensor& target, std::string_view reduction = "mean");

// Cross entropy of scores x [n, classes, ...]; target has class indices.
//   log(sum(exp(x))) - x[target]
Tensor cross_entropy(const Tensor& x, const Tensor& target, std::string_view reduction = "mean");

// Quadratic for small errors, linear for large ones.
//   e^2 / 2 if e <= delta, else delta (e - delta / 2); e = |x - t|
Tensor huber_loss(const Tensor& x, const Tensor& target, std::string_view reduction = "mean", double delta = 1);

// Divergence of log-probabilities x from probabilities t.
//   t (log t - x)
Tensor kl_div(const Tensor& x, const Tensor& target, std::string_view reduction = "mean");

// Mean absolute error.
//   mean(|x - t|)
Tensor l1_loss(const Tensor& x, const Tensor& target, std::string_view reduction = "mean");

// Mean squared error.
//   mean((x - t)^2)
Tensor mse_loss(const Tensor& x, const Tensor& target, std::string_view reduction = "mean");

// Negative log-likelihood of log-probabilities x [n, classes, ...]; target has class indices.
//   -x[target]
Tensor nll_loss(const Tensor& x, const Tensor& target, std::string_view reduction = "mean");

// Absolute error, smoothed near 0.
//   e^2 / (2 beta) if e <= beta, else e - beta / 2; e = |x - t|
Tensor smooth_l1_loss(const Tensor& x, const Tensor& target, std::string_view reduction = "mean", double beta = 1);

// --- normalization ---

// Batch normalization for inference, with a given mean and variance per channel.
//   (x - mean) / sqrt(var + eps) * weight + bias
Tensor batch_norm(const Tensor& x, const Tensor& mean, const Tensor& var, const Tensor& weight = {}, const Tensor& bias = {},
                  std::int64_t axis = 1, Scalar eps = 1e-05);

// Normalizes each group of channels of [n, channels, ...]; weight and bias are per channel.
//   (x - mean(group)) / sqrt(var(group) + eps) * weight + bias
Tensor group_norm(const Tensor& x, std::int64_t groups, const Tensor& weight = {}, const Tensor& bias = {}, Scalar eps = 1e-05);

// Normalizes each channel of each sample of [n, channels, ...].
//   (x - mean(channel)) / sqrt(var(channel) + eps) * weight + bias
Tensor instance_norm(const Tensor& x, const Tensor& weight = {}, const Tensor& bias = {}, Scalar eps = 1e-05);

// Normalizes each row to mean 0 and variance 1, then applies weight and bias if given.
//   (x - mean(x)) / sqrt(var(x) + eps) * weight + bias
Tensor layer_norm(const Tensor& x, const Tensor& weight = {}, const Tensor& bias = {}, const Integers& axis = -1,
                  Scalar eps = 1e-05);

// Logarithm of softmax, accurate where softmax underflows.
//   x - log(sum(exp(x)))
Tensor log_softmax(const Tensor& x, std::int64_t axis = -1);

// Normalizes rows to length 1.
//   x / max(norm(x, p), eps)
Tensor normalize(const Tensor& x, const Integers& axis = -1, Scalar p = 2, Scalar eps = 1e-12);

// Normalizes each row to root mean square 1.
//   x / sqrt(mean(x^2) + eps) * weight + bias
Tensor rms_norm(const Tensor& x, const Tensor& weight = {}, const Tensor& bias = {}, const Integers& axis = -1,
                Scalar eps = 1e-06);

// Exponentials that sum to 1 along an axis.
//   exp(x) / sum(exp(x))
Tensor softmax(const Tensor& x, std::int64_t axis = -1);

// Softmax of -x.
//   exp(-x) / sum(exp(-x))
Tensor softmin(const Tensor& x, std::int64_t axis = -1);

// --- pooling ---

// Mean of each window over 1 spatial axis, with the windows chosen to give the requested output size.
//   y_i = mean x[floor(i n / m) : ceil((i + 1) n / m)]
Tensor adaptive_avg_pool1d(const Tensor& x, const Integers& output_size);

// Mean of each window over 2 spatial axes, with the windows chosen to give the requested output size.
//   y_i = mean x[floor(i n / m) : ceil((i + 1) n / m)]
Tensor adaptive_avg_pool2d(const Tensor& x, const Integers& output_size);

// Mean of each window over 3 spatial axes, with the windows chosen to give the requested output size.
//   y_i = mean x[floor(i n / m) : ceil((i + 1) n / m)]
Tensor adaptive_avg_pool3d(const Tensor& x, const Integers& output_size);

// Maximum of each window over 1 spatial axis, with the windows chosen to give the requested output size.
//   y_i = max x[floor(i n / m) : ceil((i + 1) n / m)]
Tensor adaptive_max_pool1d(const Tensor& x, const Integers& output_size);

// Maximum of each window over 2 spatial axes, with the windows chosen to give the requested output size.
//   y_i = max x[floor(i n / m) : ceil((i + 1) n / m)]
Tensor adaptive_max_pool2d(const Tensor& x, const Integers& output_size);

// Maximum of each window over 3 spatial axes, with the windows chosen to give the requested output size.
//   y_i = max x[floor(i n / m) : ceil((i + 1) n / m)]
Tensor adaptive_max_pool3d(const Tensor& x, const Integers& output_size);

// Mean of each window over 1 spatial axis.
//   y = mean over a window
Tensor avg_pool1d(const Tensor& x, const Integers& kernel, const Integers& stride = std::nullopt, const Integers& padding = 0,
                  const Integers& dilation = 1, bool count_include_pad = true);

// Mean of each window over 2 spatial axes.
//   y = mean over a window
Tensor avg_pool2d(const Tensor& x, const Integers& kernel, const Integers& stride = std::nullopt, const Integers& padding = 0,
                  const Integers& dilation = 1, bool count_include_pad = true);

// Mean of each window over 3 spatial axes.
//   y = mean over a window
Tensor avg_pool3d(const Tensor& x, const Integers& kernel, const Integers& stride = std::nullopt, const Integers& padding = 0,
                  const Integers& dilation = 1, bool count_include_pad = true);

// Mean of each channel of [n, channels, ...].
//   mean over the spatial axes
Tensor global_avg_pool(const Tensor& x);

// Largest element of each channel of [n, channels, ...].
//   max over the spatial axes
Tensor global_max_pool(const Tensor& x);

// Largest element of each window over 1 spatial axis.
//   y = max over a window
Tensor max_pool1d(const Tensor& x, const Integers& kernel, const Integers& stride = std::nullopt, const Integers& padding = 0,
                  const Integers& dilation = 1);

// Largest element of each window over 2 spatial axes.
//   y = max over a window
Tensor max_pool2d(const Tensor& x, const Integers& kernel, const Integers& stride = std::nullopt, const Integers& padding = 0,
                  const Integers& dilation = 1);

// Largest element of each window over 3 spatial axes.
//   y = max over a window
Tensor max_pool3d(const Tensor& x, const Integers& kernel, const Integers& stride = std::nullopt, const Integers& padding = 0,
                  const Integers& dilation = 1);

// --- quantization ---

// Converts quantized 8-bit integers back to float32.
//   (x - zero_point) scale
Tensor dequantize(const Tensor& x, double scale, std::int64_t zero_point = 0);

// x after quantization to 8 bits and back.
//   dequantize(quantize(x))
Tensor fake_quantize(const Tensor& x, double scale, std::int64_t zero_point = 0, std::string_view dtype = "int8");

// Quantizes floats to 8-bit integers, rounding ties to even and saturating.
//   clamp(round(x / scale) + zero_point)
Tensor quantize(const Tensor& x, double scale, std::int64_t zero_point = 0, std::string_view dtype = "int8");

// --- reduction ---

// True where no element is 0.
//   x1 and x2 and ...
Tensor all(const Tensor& x, const Integers& axis = std::nullopt, bool keepdims = false);

// True where any element is not 0.
//   x1 or x2 or ...
Tensor any(const Tensor& x, const Integers& axis = std::nullopt, bool keepdims = false);

// Index of the first largest element; NaN counts as largest.
//   first i with x[i] = max(x)
Tensor argmax(const Tensor& x, std::optional<std::int64_t> axis = std::nullopt, bool keepdims = false);

// Index of the first smallest element; NaN counts as smallest.
//   first i with x[i] = min(x)
Tensor argmin(const Tensor& x, std::optional<std::int64_t> axis = std::nullopt, bool keepdims = false);

// Number of elements that are not 0.
//   sum(x != 0)
Tensor count_nonzero(const Tensor& x, const Integers& axis = std::nullopt, bool keepdims = false);

// Logarithm of the sum of exponentials, without overflow.
//   log(sum(exp(x)))
Tensor logsumexp(const Tensor& x, const Integers& axis = std::nullopt, bool keepdims = false);

// Largest element; NaN if any element is NaN.
//   max(x)
Tensor max(const Tensor& x, const Integers& axis = std::nullopt, bool keepdims = false);

// Arithmetic mean.
//   sum(x) / n
Tensor mean(const Tensor& x, const Integers& axis = std::nullopt, bool keepdims = false);

// Median; the mean of the two middle elements if n is even.
//   middle of sorted x
Tensor median(const Tensor& x, std::optional<std::int64_t> axis = std::nullopt, bool keepdims = false);

// Smallest element; NaN if any element is NaN.
//   min(x)
Tensor min(const Tensor& x, const Integers& axis = std::nullopt, bool keepdims = false);

// Vector norm of order p: 2 Euclidean, 1 sum of magnitudes, inf largest magnitude, 0 count.
//   (sum |x|^p)^(1/p)
Tensor norm(const Tensor& x, Scalar p = 2, const Integers& axis = std::nullopt, bool keepdims = false);

// Product of elements; bool and integers are multiplied in 64 bits.
//   product(x)
Tensor prod(const Tensor& x, const Integers& axis = std::nullopt, bool keepdims = false);

// Quantile q, with linear interpolation.
//   sorted x at q (n - 1)
Tensor quantile(const Tensor& x, Scalar q, std::optional<std::int64_t> axis = std::nullopt, bool keepdims = false);

// Standard deviation.
//   sqrt(var(x))
Tensor std(const Tensor& x, const Integers& axis = std::nullopt, bool keepdims = false, Scalar correction = 1);

// Sum of elements; bool and integers are summed in 64 bits.
//   sum(x)
Tensor sum(const Tensor& x, const Integers& axis = std::nullopt, bool keepdims = false);

// Variance.
//   sum((x - mean(x))^2) / (n - correction)
Tensor var(const Tensor& x, const Integers& axis = std::nullopt, bool keepdims = false, Scalar correction = 1);

// --- scan ---

// Running product along an axis; bool and integers are multiplied in 64 bits.
//   y_i = x_1 ... x_i
Tensor cumprod(const Tensor& x, std::int64_t axis = -1);

// Running sum along an axis; bool and integers are summed in 64 bits.
//   y_i = x_1 + ... + x_i
Tensor cumsum(const Tensor& x, std::int64_t axis = -1);

// --- shape ---

// Splits a tensor into parts of equal extent, the last of which may be smaller; one result per part.
//   x -> x1, x2, ...
std::vector<Tensor> chunk(const Tensor& x, std::int64_t chunks, std::int64_t axis = 0);

// Concatenates tensors along an existing axis.
//   x1 x2 ...
Tensor concat(const std::vector<Tensor>& tensors, std::int64_t axis = 0);

// Broadcasts axes with extent 1 and adds leading axes, without copying.
//   [1, n] -> [m, n]
Tensor expand(const Tensor& x, const Integers& shape);

// Merges adjacent axes into one.
//   [a, b, c] -> [a b c]
Tensor flatten(const Tensor& x, std::int64_t start_axis = 0, std::int64_t end_axis = -1);

// Reverses the order of elements along axes.
//   y_i = x_(n - 1 - i)
Tensor flip(const Tensor& x, const Integers& axis = std::nullopt);

// Moves one axis; the others keep their order.
//   one axis moved to another position
Tensor movedim(const Tensor& x, std::int64_t source, std::int64_t destination);

// Adds a border to a tensor: a constant, the edge, a reflection, or the opposite end.
//   v v x1 x2 ... v v
Tensor pad(const Tensor& x, const Integers& padding, std::string_view mode = "constant", Scalar value = 0);

// Permutes the axes into the given order.
//   y's axis i is x's axis axes[i]
Tensor permute(const Tensor& x, const Integers& axes);

// Repeats each element.
//   x1 x1 x2 x2 ...
Tensor repeat(const Tensor& x, std::int64_t repeats, std::optional<std::int64_t> axis = std::nullopt);

// The same elements with another shape.
//   same elements in row-major order
Tensor reshape(const Tensor& x, const Integers& shape);

// Shifts elements; those shifted past the end reappear at the start.
//   y_i = x_((i - shift) mod n)
Tensor roll(const Tensor& x, const Integers& shift, const Integers& axis = std::nullopt);

// Slices a tensor by Python's rules. Also x[1:3, ::2].
//   x[start:stop:step]
Tensor slice(const Tensor& x, const Integers& start, const Integers& stop = std::nullopt, const Integers& step = std::nullopt,
             const Integers& axis = std::nullopt);

// Splits a tensor along an axis; one result per part.
//   x -> x1, x2, ...
std::vector<Tensor> split(const Tensor& x, const Integers& sections, std::int64_t axis = 0);

// Removes axes with extent 1.
//   [1, n, 1] -> [n]
Tensor squeeze(const Tensor& x, const Integers& axis = std::nullopt);

// Joins tensors of the same shape along a new axis.
//   [x1, x2, ...]
Tensor stack(const std::vector<Tensor>& tensors, std::int64_t axis = 0);

// Swaps two axes.
//   y[.. j .. i ..] = x[.. i .. j ..]
Tensor swapaxes(const Tensor& x, std::int64_t axis1 = 0, std::int64_t axis2 = 1);

// Repeats the whole tensor along its axes.
//   x x x ...
Tensor tile(const Tensor& x, const Integers& reps);

// Permutes the axes; by default reverses them.
//   y[j, i] = x[i, j]
Tensor transpose(const Tensor& x, const Integers& axes = std::nullopt);

// Inserts an axis with extent 1.
//   [n] -> [1, n]
Tensor unsqueeze(const Tensor& x, std::int64_t axis);

// --- sorting ---

// Indices that sort an axis; stable, NaN last.
//   i with x[i1] <= x[i2] <= ...
Tensor argsort(const Tensor& x, std::int64_t axis = -1, bool descending = false);

// Sorts the elements along an axis; stable, NaN last.
//   x1 <= x2 <= ...
Tensor sort(const Tensor& x, std::int64_t axis = -1, bool descending = false);

// The k largest elements in order, and their indices. Two results.
//   k largest x, and their indices
std::vector<Tensor> top_k(const Tensor& x, std::int64_t k, std::int64_t axis = -1, bool largest = true);

// --- ternary ---

// Adds a scaled quotient; integers are computed as float32.
//   x + value·y/z
Tensor addcdiv(const Tensor& x, const Tensor& y, const Tensor& z, Scalar value = 1);

// Adds a scaled product.
//   x + value·y·z
Tensor addcmul(const Tensor& x, const Tensor& y, const Tensor& z, Scalar value = 1);

// Linear interpolation, exact at both ends.
//   x + weight·(y − x)
Tensor lerp(const Tensor& x, const Tensor& y, const Tensor& weight);

// Multiply-add.
//   x·y + z
Tensor mac(const Tensor& x, const Tensor& y, const Tensor& z);

// Selects per element; a condition that is not bool is true where it is not 0.
//   condition ? x : y
Tensor where(const Tensor& condition, const Tensor& x, const Tensor& y);

// --- type ---

// Converts to another element type. Floats round to nearest even; to integers they truncate and saturate.
//   x as dtype
Tensor cast(const Tensor& x, DType dtype);

// --- unary ---

// Absolute value. The smallest integer of a signed type stays unchanged.
//   |x|
Tensor abs(const Tensor& x);

// Inverse of cosine; NaN outside [-1, 1].
//   arccos x
Tensor acos(const Tensor& x);

// Inverse of cosh; NaN below 1.
//   arcosh x
Tensor acosh(const Tensor& x);

// Inverse of sine; NaN outside [-1, 1].
//   arcsin x
Tensor asin(const Tensor& x);

// Inverse of sinh.
//   arsinh x
Tensor asinh(const Tensor& x);

// Inverse of tangent.
//   arctan x
Tensor atan(const Tensor& x);

// Inverse of tanh; NaN outside [-1, 1].
//   artanh x
Tensor atanh(const Tensor& x);

// Inverts every bit; for a bool, the negation.
//   ~x
Tensor bitwise_not(const Tensor& x);

// Cube root; negative numbers are allowed.
//   ∛x
Tensor cbrt(const Tensor& x);

// Rounds up; integers are unchanged.
//   ⌈x⌉
Tensor ceil(const Tensor& x);

// Exponential linear unit whose slope is continuous for every alpha.
//   x > 0 ? x : alpha·(e^(x/alpha) − 1)
Tensor celu(const Tensor& x, Scalar alpha = 1);

// Clamps values to a range; NaN stays NaN. If min exceeds max, every result is max.
//   min(max(x, min), max)
Tensor clamp(const Tensor& x, std::optional<Scalar> min = std::nullopt, std::optional<Scalar> max = std::nullopt);

// Clamps values from above.
//   min(x, max)
Tensor clamp_max(const Tensor& x, Scalar max = 0);

// Clamps values from below.
//   max(x, min)
Tensor clamp_min(const Tensor& x, Scalar min = 0);

// Clamps values to a range; NaN stays NaN. If min exceeds max, every result is max.
//   min(max(x, min), max)
Tensor clip(const Tensor& x, std::optional<Scalar> min = std::nullopt, std::optional<Scalar> max = std::nullopt);

// A copy.
//   x
Tensor clone(const Tensor& x);

// Cosine of an angle in radians.
//   cos x
Tensor cos(const Tensor& x);

// Hyperbolic cosine.
//   (eˣ + e⁻ˣ) / 2
Tensor cosh(const Tensor& x);

// Degrees to radians.
//   x·π / 180
Tensor deg2rad(const Tensor& x);

// Derivative of lgamma; NaN at the negative integers.
//   Γ′(x) / Γ(x)
Tensor digamma(const Tensor& x);

// Exponential linear unit.
//   x > 0 ? x : alpha·(eˣ − 1)
Tensor elu(const Tensor& x, Scalar alpha = 1);

// Contribution of a probability to the entropy; 0 at 0, -inf below.
//   −x·ln x
Tensor entr(const Tensor& x);

// True where zero.
//   x = 0
Tensor eqz(const Tensor& x);

// Error function.
//   2/√π ∫₀ˣ e^(−t²) dt
Tensor erf(const Tensor& x);

// Complementary error function, accurate where it is tiny.
//   1 − erf x
Tensor erfc(const Tensor& x);

// Inverse of erf; infinite at -1 and 1, NaN outside.
//   erf⁻¹(x)
Tensor erfinv(const Tensor& x);

// Exponential function.
//   eˣ
Tensor exp(const Tensor& x);

// Power of ten.
//   10ˣ
Tensor exp10(const Tensor& x);

// Power of two.
//   2ˣ
Tensor exp2(const Tensor& x);

// Exponential minus one, accurate near 0.
//   eˣ − 1
Tensor expm1(const Tensor& x);

// Rounds down; integers are unchanged.
//   ⌊x⌋
Tensor floor(const Tensor& x);

// Fractional part, with the sign of x.
//   x − trunc(x)
Tensor frac(const Tensor& x);

// Gaussian error linear unit, exact or with the common tanh approximation.
//   x·Φ(x)
Tensor gelu(const Tensor& x, std::string_view approximate = "none");

// True where zero or positive.
//   x ≥ 0
Tensor gez(const Tensor& x);

// True where positive.
//   x > 0
Tensor gtz(const Tensor& x);

// Sets small values to 0.
//   |x| > lambda ? x : 0
Tensor hardshrink(const Tensor& x, Scalar lambda = 0.5);

// Piecewise linear approximation of sigmoid.
//   min(max(x + 3, 0), 6) / 6
Tensor hardsigmoid(const Tensor& x);

// silu with hardsigmoid instead of sigmoid.
//   x·min(max(x + 3, 0), 6) / 6
Tensor hardswish(const Tensor& x);

// Clamps values to a range, by default [-1, 1].
//   min(max(x, min_val), max_val)
Tensor hardtanh(const Tensor& x, Scalar min_val = -1, Scalar max_val = 1);

// Unit step; its value at 0 may be a tensor that broadcasts with x.
//   x < 0 ? 0 : x = 0 ? value : 1
Tensor heaviside(const Tensor& x, const Tensor& values = {}, Scalar value = 0);

// Modified Bessel function of the first kind, order 0.
//   I₀(x)
Tensor i0(const Tensor& x);

// The value itself, with the same dtype.
//   x
Tensor identity(const Tensor& x);

// True where neither infinite nor NaN.
//   |x| < ∞
Tensor isfinite(const Tensor& x);

// True where infinite, of either sign.
//   |x| = ∞
Tensor isinf(const Tensor& x);

// True where not a number.
//   x ≠ x
Tensor isnan(const Tensor& x);

// True where minus infinity.
//   x = −∞
Tensor isneginf(const Tensor& x);

// True where plus infinity.
//   x = ∞
Tensor isposinf(const Tensor& x);

// ReLU with a small slope below 0.
//   x > 0 ? x : negative_slope·x
Tensor leaky_relu(const Tensor& x, Scalar negative_slope = 0.01);

// True where zero or negative.
//   x ≤ 0
Tensor lez(const Tensor& x);

// Logarithm of the absolute value of the gamma function; infinite at 0, -1, -2 ...
//   ln |Γ(x)|
Tensor lgamma(const Tensor& x);

// Natural logarithm; -inf at 0, NaN below.
//   ln x
Tensor log(const Tensor& x);

// Logarithm to base 10.
//   log₁₀ x
Tensor log10(const Tensor& x);

// Logarithm of 1 + x, accurate near 0.
//   ln(1 + x)
Tensor log1p(const Tensor& x);

// Logarithm to base 2.
//   log₂ x
Tensor log2(const Tensor& x);

// Logarithm of sigmoid, accurate in both tails.
//   −ln(1 + e⁻ˣ)
Tensor log_sigmoid(const Tensor& x);

// True where zero.
//   ¬x
Tensor logical_not(const Tensor& x);

// Inverse of sigmoid; NaN outside [0, 1] unless eps is given.
//   ln(x / (1 − x))
Tensor logit(const Tensor& x, std::optional<Scalar> eps = std::nullopt);

// True where negative.
//   x < 0
Tensor ltz(const Tensor& x);

// A smooth activation that dips below 0.
//   x·tanh(softplus(x))
Tensor mish(const Tensor& x);

// Replaces NaN and infinities with numbers.
//   NaN → nan, ∞ → posinf, −∞ → neginf
Tensor nan_to_num(const Tensor& x, Scalar nan = 0, std::optional<Scalar> posinf = std::nullopt,
                  std::optional<Scalar> neginf = std::nullopt);

// Cumulative distribution function of the standard normal distribution.
//   Φ(x) = erfc(−x/√2) / 2
Tensor ndtr(const Tensor& x);

// Negation. Integers wrap around.
//   −x
Tensor neg(const Tensor& x);

// True where not zero.
//   x ≠ 0
Tensor nez(const Tensor& x);

// The value itself.
//   x
Tensor positive(const Tensor& x);

// ReLU with a learned slope below 0; the weight may be a tensor that broadcasts with x.
//   x > 0 ? x : weight·x
Tensor prelu(const Tensor& x, const Tensor& weights = {}, Scalar weight = 0.25);

// GELU approximated by a sigmoid.
//   x·sigmoid(1.702·x)
Tensor quick_gelu(const Tensor& x);

// Radians to degrees.
//   x·180 / π
Tensor rad2deg(const Tensor& x);

// Reciprocal; infinite at 0.
//   1 / x
Tensor reciprocal(const Tensor& x);

// Rectified linear unit.
//   max(x, 0)
Tensor relu(const Tensor& x);

// ReLU with an upper limit of 6.
//   min(max(x, 0), 6)
Tensor relu6(const Tensor& x);

// Square of ReLU.
//   max(x, 0)²
Tensor relu_squared(const Tensor& x);

// Rounds to nearest, ties to even.
//   round(x·10ᵈ) / 10ᵈ
Tensor round(const Tensor& x, std::int64_t decimals = 0);

// Reciprocal square root; infinite at 0.
//   1 / √x
Tensor rsqrt(const Tensor& x);

// Exponential linear unit with self-normalising constants.
//   1.0507·(x > 0 ? x : 1.6733·(eˣ − 1))
Tensor selu(const Tensor& x);

// Sign; the same as sign for real numbers.
//   −1, 0 or 1
Tensor sgn(const Tensor& x);

// Logistic function.
//   1 / (1 + e⁻ˣ)
Tensor sigmoid(const Tensor& x);

// Logistic function; the same as sigmoid.
//   1 / (1 + e⁻ˣ)
Tensor sigmoid_accurate(const Tensor& x);

// Sign; NaN gives NaN.
//   −1, 0 or 1
Tensor sign(const Tensor& x);

// True where the sign bit is set, including for -0.0.
//   sign bit of x
Tensor signbit(const Tensor& x);

// Sigmoid linear unit.
//   x·sigmoid(x)
Tensor silu(const Tensor& x);

// Sine of an angle in radians.
//   sin x
Tensor sin(const Tensor& x);

// Normalised sinc: 1 at 0 and 0 at every other integer.
//   sin(πx) / (πx)
Tensor sinc(const Tensor& x);

// Hyperbolic sine.
//   (eˣ − e⁻ˣ) / 2
Tensor sinh(const Tensor& x);

// Smooth ReLU; x itself where beta·x exceeds the threshold.
//   ln(1 + e^(beta·x)) / beta
Tensor softplus(const Tensor& x, Scalar beta = 1, Scalar threshold = 20);

// Shrinks values towards 0; small values become 0.
//   sign(x)·max(|x| − lambda, 0)
Tensor softshrink(const Tensor& x, Scalar lambda = 0.5);

// Smooth function from -1 to 1 that approaches its limits slowly.
//   x / (1 + |x|)
Tensor softsign(const Tensor& x);

// Square root; NaN below 0.
//   √x
Tensor sqrt(const Tensor& x);

// Square. Integers wrap around.
//   x²
Tensor square(const Tensor& x);

// The same as silu.
//   x·sigmoid(x)
Tensor swish(const Tensor& x);

// Tangent of an angle in radians.
//   tan x
Tensor tan(const Tensor& x);

// Hyperbolic tangent.
//   sinh x / cosh x
Tensor tanh(const Tensor& x);

// x minus tanh x, accurate near 0.
//   x − tanh x
Tensor tanhshrink(const Tensor& x);

// Replaces values that do not exceed a threshold.
//   x > threshold ? x : value
Tensor threshold(const Tensor& x, Scalar threshold = 0, Scalar value = 0);

// Lower triangle of the last two axes.
//   x_ij where j <= i + diagonal, else 0
Tensor tril(const Tensor& x, std::int64_t diagonal = 0);

// Upper triangle of the last two axes.
//   x_ij where j >= i + diagonal, else 0
Tensor triu(const Tensor& x, std::int64_t diagonal = 0);

// Rounds towards zero.
//   trunc(x)
Tensor trunc(const Tensor& x);

}  // namespace tenon
