#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "model/onnx/converters/classical/scores.h"

namespace tenon::onnx {
namespace {

using namespace build;

Expr matrix(const NodeContext& node, std::int64_t rows, std::int64_t columns, const std::vector<float>& values, DType dtype) {
  return cast(node.constant(HostArray::from<float>(Shape{rows, columns}, values)), dtype);
}

// The kernel of each row of |x| with each row of |vectors|.
Expr kernel(const NodeContext& node, Expr x, Expr vectors) {
  const std::string type = node.text("kernel_type", "LINEAR");
  std::vector<float> parameters = node.numbers("kernel_params");
  parameters.resize(3, 0);
  const double gamma = parameters[0], added = parameters[1], degree = parameters[2];
  if (type == "RBF") {
    // |x - v|^2 term by term: the difference of large squares would lose what is small.
    const Expr difference = unsqueeze(x, 1) - unsqueeze(vectors, 0);
    return exp(squeeze(sum_keep(square(difference), one_axis(2)), one_axis(2)) * -gamma);
  }
  const Expr product = matmul(x, vectors, {.transpose_b = true});
  if (type == "LINEAR") return product;
  if (type == "POLY") return build::pow(product * gamma + added, degree);
  if (type == "SIGMOID") return node.apply("tanh", {product * gamma + added});
  node.refuse("the kernel " + type);
}

Results svm_regressor(const NodeContext& node) {
  const Expr x = features(node);
  const std::vector<float> coefficients = node.numbers("coefficients"), vectors = node.numbers("support_vectors"),
                           rho = node.numbers("rho");
  const std::int64_t count = node.integer("n_supports", 0), width = x.extent(1), terms = count > 0 ? count : width;
  if (static_cast<std::int64_t>(coefficients.size()) != terms || rho.empty() ||
      (count > 0 && static_cast<std::int64_t>(vectors.size()) != count * width))
    node.fail(fmt::format("{} coefficients and {} numbers of support vectors for {} features", coefficients.size(),
                          vectors.size(), width));
  const Expr k = count > 0 ? kernel(node, x, matrix(node, count, width, vectors, x.dtype())) : x;
  const Expr y = matmul(k, matrix(node, terms, 1, coefficients, x.dtype())) + static_cast<double>(rho[0]);
  if (node.integer("one_class", 0) == 0) return {cast(transformed(node, y), DType::f32)};
  const Expr is_inside = cast(y > same(y, 0), DType::f32);
  return {is_inside * 2.0 - 1.0};
}

// The probabilities of the classes from those of their pairs, by the second method of Wu, Lin and Weng (2004). |r| has the
// probability of i against j at [i][j]. The iteration stops at a fixed error, so its result is part of the definition.
std::vector<double> coupled(const std::vector<double>& r, std::size_t classes) {
  std::vector<double> p(classes, 1 / static_cast<double>(classes)), q(classes * classes, 0), qp(classes, 0);
  for (std::size_t t = 0; t < classes; ++t)
    for (std::size_t j = 0; j < classes; ++j) {
      if (j == t) continue;
      q[t * classes + t] += r[j * classes + t] * r[j * classes + t];
      q[t * classes + j] = -r[j * classes + t] * r[t * classes + j];
    }
  const double enough = 0.005 / static_cast<double>(classes);
  for (std::size_t round = 0; round < std::max<std::size_t>(100, classes); ++round) {
    double all = 0, error = 0;
    for (std::size_t t = 0; t < classes; ++t) {
      qp[t] = 0;
      for (std::size_t j = 0; j < classes; ++j) qp[t] += q[t * classes + j] * p[j];
      all += p[t] * qp[t];
    }
    for (std::size_t t = 0; t < classes; ++t) error = std::max(error, std::abs(qp[t] - all));
    if (error < enough) break;
    for (std::size_t t = 0; t < classes; ++t) {
      const double own = q[t * classes + t], change = (all - qp[t]) / own;
      p[t] += change;
      all = (all + change * (change * own + 2 * qp[t])) / (1 + change) / (1 + change);
      for (std::size_t j = 0; j < classes; ++j) {
        qp[j] = (qp[j] + change * q[t * classes + j]) / (1 + change);
        p[j] /= 1 + change;
      }
    }
  }
  return p;
}

Results svm_classifier(const NodeContext& node) {
  const Expr x = features(node);
  const Labels labels(node, "classlabels_ints");
  const std::vector<float> coefficients = node.numbers("coefficients"), rho = node.numbers("rho"), a = node.numbers("prob_a"),
                           b = node.numbers("prob_b");
  const std::vector<std::int64_t> counts = node.integers("vectors_per_class");
  const std::int64_t width = x.extent(1), rows = x.extent(0),
                     classes = counts.empty() ? labels.count() : static_cast<std::int64_t>(counts.size());
  if (classes < 2 || labels.count() != classes || rho.empty())
    node.fail(fmt::format("{} labels for {} classes", labels.count(), classes));
  if (counts.empty()) {  // a row of coefficients for each class
    if (static_cast<std::int64_t>(coefficients.size()) != classes * width) node.fail("coefficients do not fit the features");
    const Expr scores =
        matmul(x, matrix(node, classes, width, coefficients, x.dtype()), {.transpose_b = true}) + static_cast<double>(rho[0]);
    return {labels.best(scores), cast(transformed(node, scores), DType::f32)};
  }
  std::int64_t total = 0;
  for (const std::int64_t count : counts) {
    if (count < 0 || count > 1 << 30) node.fail("vectors_per_class is out of range");
    total += count;
  }
  // Each vector has a coefficient for every other class, so the file bounds |total| and its products with |classes|.
  if (total > static_cast<std::int64_t>(coefficients.size()))
    node.fail(fmt::format("{} coefficients for {} vectors", coefficients.size(), total));
  const std::vector<float> vectors = node.numbers("support_vectors");
  const std::int64_t pairs = classes * (classes - 1) / 2;
  if (static_cast<std::int64_t>(vectors.size()) != total * width ||
      static_cast<std::int64_t>(coefficients.size()) != (classes - 1) * total || static_cast<std::int64_t>(rho.size()) != pairs)
    node.fail(
        fmt::format("{} coefficients and {} rho for {} vectors and {} classes", coefficients.size(), rho.size(), total, classes));
  // The tables below have a row for each pair; they are far larger than the file if there are many classes.
  constexpr std::int64_t kMostWeights = 1 << 27;
  if (pairs > kMostWeights / std::max({total, classes, std::int64_t{1}}))
    node.refuse(fmt::format("{} classes and {} vectors", classes, total));
  // Pair (i, j) adds vectors of class i with row j - 1 of the coefficients and those of class j with row i.
  std::vector<float> weights(static_cast<std::size_t>(pairs * total), 0);
  std::vector<std::int64_t> first_of_pair, second_of_pair;
  std::vector<std::int64_t> starts{0};
  for (const std::int64_t count : counts) starts.push_back(starts.back() + count);
  const auto at = [](std::int64_t i) { return static_cast<std::size_t>(i); };
  for (std::int64_t i = 0; i < classes; ++i)
    for (std::int64_t j = i + 1; j < classes; ++j) {
      const auto pair = static_cast<std::int64_t>(first_of_pair.size());
      for (std::int64_t v = starts[at(i)]; v < starts[at(i + 1)]; ++v)
        weights[at(pair * total + v)] = coefficients[at((j - 1) * total + v)];
      for (std::int64_t v = starts[at(j)]; v < starts[at(j + 1)]; ++v)
        weights[at(pair * total + v)] = coefficients[at(i * total + v)];
      first_of_pair.push_back(i);
      second_of_pair.push_back(j);
    }
  const Expr k = kernel(node, x, matrix(node, total, width, vectors, x.dtype()));
  const Expr sums = matmul(k, matrix(node, pairs, total, weights, x.dtype()), {.transpose_b = true}) +
                    node.constant(HostArray::from<float>(Shape{pairs}, rho));
  // Each pair votes for one of its classes.
  std::vector<float> yes(at(pairs * classes), 0), no = yes;
  for (std::size_t pair = 0; pair < first_of_pair.size(); ++pair) {
    yes[pair * at(classes) + at(first_of_pair[pair])] = 1;
    no[pair * at(classes) + at(second_of_pair[pair])] = 1;
  }
  const Expr is_first = cast(sums > same(sums, 0), DType::f32);
  const Expr votes = matmul(is_first, matrix(node, pairs, classes, yes, DType::f32)) +
                     matmul(1.0 - is_first, matrix(node, pairs, classes, no, DType::f32));
  const Result label = labels.best(votes);
  if (a.empty()) {
    if (classes > 2) return {label, cast(transformed(node, sums), DType::f32)};
    const Expr both[] = {-sums, sums};
    return {label, cast(transformed(node, concat(both, 1)), DType::f32)};
  }
  if (a.size() != at(pairs) || b.size() != at(pairs)) node.fail("prob_a and prob_b need a number for each pair of classes");
  const HostArray known = node.host(computed(sums));
  const std::vector<double> sum = known.to_doubles();
  std::vector<float> out;
  for (std::int64_t row = 0; row < rows; ++row) {
    std::vector<double> r(at(classes * classes), 0);
    for (std::size_t pair = 0; pair < a.size(); ++pair) {
      const double z = sum[at(row * pairs) + pair] * static_cast<double>(a[pair]) + static_cast<double>(b[pair]);
      const double p = std::clamp(1 / (1 + std::exp(z)), 1e-7, 1 - 1e-7);
      r[at(first_of_pair[pair] * classes + second_of_pair[pair])] = p;
      r[at(second_of_pair[pair] * classes + first_of_pair[pair])] = 1 - p;
    }
    for (const double p : coupled(r, at(classes))) out.push_back(static_cast<float>(p));
  }
  return {label, transformed(node, node.constant(HostArray::from<float>(Shape{rows, classes}, out)))};
}

}  // namespace

void add_support_vectors(ConverterTable& table) {
  table.add("ai.onnx.ml.SVMRegressor", svm_regressor);
  table.add("ai.onnx.ml.SVMClassifier", svm_classifier);
}

}  // namespace tenon::onnx
