#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <optional>

#include "ops/build.h"
#include "ops/parameters.h"
#include "ops/register.h"

namespace tenon {
namespace {

using namespace build;

// A letter, or for the axes under "..." a number from kEllipsis up, counted from the last axis.
using Label = int;
using Labels = std::vector<Label>;
constexpr Label kEllipsis = 1000;
// Choosing the order of products takes time cubic in the operands: milliseconds for this many.
constexpr std::size_t kMaxOperands = 128;

bool contains(const Labels& labels, Label label) { return std::find(labels.begin(), labels.end(), label) != labels.end(); }

// A tensor whose axes have names, all different.
struct Operand {
  Expr x;
  Labels labels;

  std::int64_t extent(Label label) const {
    return x.extent(static_cast<int>(std::find(labels.begin(), labels.end(), label) - labels.begin()));
  }
};

class Einsum {
 public:
  explicit Einsum(const OpCall& call) : call_(call) {
    parse();
    while (operands_.size() > 1) contract_cheapest_pair();
  }

  Expr result() const {
    Operand last = operands_[0];
    sum_out(last, output_);
    last = arranged(last, output_);
    return last.x;
  }

 private:
  [[noreturn]] void fail(const std::string& message, const std::string& hint = {}) const {
    call_.fail(fmt::format("\"{}\": {}", call_.text("equation"), message), hint);
  }

  void parse() {
    std::string text;
    for (char c : call_.text("equation"))
      if (c != ' ') text += c;
    const std::size_t arrow = text.find("->");
    std::vector<std::string> terms(1);
    for (char c : text.substr(0, arrow)) {
      if (c == ',')
        terms.emplace_back();
      else
        terms.back() += c;
    }
    if (terms.size() != call_.inputs().size())
      fail(fmt::format("{} terms, but {} operands", terms.size(), call_.inputs().size()), "separate the terms with commas");
    if (terms.size() > kMaxOperands)
      fail(fmt::format("{} operands are more than einsum's limit of {}", terms.size(), kMaxOperands),
           "split the equation into several calls");

    std::map<Label, int> uses;
    int ellipsis = 0;
    for (std::size_t i = 0; i < terms.size(); ++i) {
      const Expr x = input(call_, i);
      const Labels labels = parse_term(terms[i], x.rank());
      for (Label label : labels) {
        ++uses[label];
        if (label >= kEllipsis) ellipsis = std::max(ellipsis, label - kEllipsis + 1);
      }
      operands_.push_back(without_repeats({x, labels}));
    }
    output_ = arrow == std::string::npos ? implied_output(uses, ellipsis) : parse_term(text.substr(arrow + 2), -1, ellipsis);
    for (std::size_t i = 0; i < output_.size(); ++i) {
      if (!uses.contains(output_[i]))
        fail(fmt::format("'{}' of the result does not appear in any operand", static_cast<char>(output_[i])));
      if (std::count(output_.begin(), output_.end(), output_[i]) > 1)
        fail(fmt::format("'{}' appears twice in the result", static_cast<char>(output_[i])));
    }
    for (const Operand& operand : operands_)
      for (Label label : operand.labels) record_extent(label, operand.extent(label));
  }

  // |rank| -1: the result, whose "..." stands for |ellipsis| axes.
  Labels parse_term(const std::string& term, int rank, int ellipsis = 0) const {
    Labels labels;
    const std::size_t dots = term.find("...");
    const int letters = static_cast<int>(term.size()) - (dots == std::string::npos ? 0 : 3);
    if (rank >= 0) ellipsis = rank - letters;
    if (rank >= 0 && (ellipsis < 0 || (dots == std::string::npos && ellipsis != 0)))
      fail(fmt::format("'{}' names {} axes, but the operand has {}", term, letters, rank));
    for (std::size_t i = 0; i < term.size(); ++i) {
      if (i == dots) {
        for (int k = ellipsis - 1; k >= 0; --k) labels.push_back(kEllipsis + k);
        i += 2;
      } else if (std::isalpha(static_cast<unsigned char>(term[i]))) {
        labels.push_back(term[i]);
      } else {
        fail(fmt::format("'{}' is not a letter", term[i]), "write e.g. \"ij,jk->ik\"");
      }
    }
    return labels;
  }

  // Without "->": the axes under "...", then every letter that appears once, in alphabetical order.
  static Labels implied_output(const std::map<Label, int>& uses, int ellipsis) {
    Labels labels;
    for (int k = ellipsis - 1; k >= 0; --k) labels.push_back(kEllipsis + k);
    for (const auto& [label, count] : uses)
      if (label < kEllipsis && count == 1) labels.push_back(label);
    return labels;
  }

  void record_extent(Label label, std::int64_t extent) {
    const auto [known, is_new] = extents_.try_emplace(label, extent);
    if (is_new || known->second == extent || extent == 1) return;
    if (known->second != 1)
      fail(fmt::format("axis '{}' has {} elements in one operand and {} in another",
                       label >= kEllipsis ? "..." : std::string(1, static_cast<char>(label)), known->second, extent));
    known->second = extent;
  }

  // A letter that appears twice in one term means the diagonal of those axes.
  Operand without_repeats(Operand operand) const {
    for (std::size_t i = 0; i < operand.labels.size(); ++i) {
      const auto again =
          std::find(operand.labels.begin() + static_cast<std::ptrdiff_t>(i) + 1, operand.labels.end(), operand.labels[i]);
      if (again == operand.labels.end()) continue;
      const int first = static_cast<int>(i), second = static_cast<int>(again - operand.labels.begin());
      if (operand.x.extent(first) != operand.x.extent(second))
        fail(fmt::format("the axes of '{}' have {} and {} elements", static_cast<char>(operand.labels[i]),
                         operand.x.extent(first), operand.x.extent(second)));
      std::vector<int> order;
      Labels labels;
      for (int axis = 0; axis < operand.x.rank(); ++axis)
        if (axis != first && axis != second) {
          order.push_back(axis);
          labels.push_back(operand.labels[static_cast<std::size_t>(axis)]);
        }
      labels.push_back(operand.labels[i]);
      order.push_back(first);
      order.push_back(second);
      return without_repeats({diagonal(transpose(operand.x, order), 0), labels});
    }
    return operand;
  }

  static void sum_out(Operand& operand, const Labels& needed) {
    AxisSet axes = 0;
    Labels kept;
    for (std::size_t i = 0; i < operand.labels.size(); ++i) {
      if (contains(needed, operand.labels[i]))
        kept.push_back(operand.labels[i]);
      else
        axes = static_cast<AxisSet>(axes | one_axis(static_cast<int>(i)));
    }
    if (axes == 0) return;
    // Sums of small integers widen to 64 bits; the result keeps the type a product would have.
    const DType dtype = operand.x.dtype();
    operand.x = cast(squeeze(sum_keep(operand.x, axes), axes), dtype);
    operand.labels = kept;
  }

  // Axes in the order of |labels|, all of which the operand has.
  static Operand arranged(const Operand& operand, const Labels& labels) {
    std::vector<int> order;
    for (Label label : labels)
      order.push_back(static_cast<int>(std::find(operand.labels.begin(), operand.labels.end(), label) - operand.labels.begin()));
    return {transpose(operand.x, order), labels};
  }

  Labels needed_without(std::size_t i, std::size_t j) const {
    Labels needed = output_;
    for (std::size_t k = 0; k < operands_.size(); ++k)
      if (k != i && k != j) needed.insert(needed.end(), operands_[k].labels.begin(), operands_[k].labels.end());
    return needed;
  }

  std::int64_t product_of(const Labels& labels) const {
    std::int64_t product = 1;
    for (Label label : labels) product *= extents_.at(label);
    return product;
  }

  // How many of the operands and the result have each label.
  std::map<Label, int> count_uses() const {
    std::map<Label, int> uses;
    for (Label label : output_) ++uses[label];
    for (const Operand& operand : operands_)
      for (Label label : operand.labels) ++uses[label];
    return uses;
  }

  // Elements of the pair's product, as a double: an outer product may exceed what a Shape can hold.
  double result_size(const Labels& a, const Labels& b, const std::map<Label, int>& uses) const {
    double size = 1;
    for (Label label : a)
      if (uses.at(label) > 1 + contains(b, label)) size *= static_cast<double>(extents_.at(label));
    for (Label label : b)
      if (!contains(a, label) && uses.at(label) > 1) size *= static_cast<double>(extents_.at(label));
    return size;
  }

  void contract_cheapest_pair() {
    const std::map<Label, int> uses = count_uses();
    std::size_t a = 0, b = 1;
    double best = result_size(operands_[a].labels, operands_[b].labels, uses);
    for (std::size_t i = 0; i < operands_.size(); ++i)
      for (std::size_t j = i + 1; j < operands_.size(); ++j)
        if (const double size = result_size(operands_[i].labels, operands_[j].labels, uses); size < best) {
          best = size;
          a = i;
          b = j;
        }
    const Operand product = contract(a, b);
    operands_.erase(operands_.begin() + static_cast<std::ptrdiff_t>(b));
    operands_[a] = product;
  }

  // Broadcasts axes of extent 1 that are longer in another operand, and brings the axes into the order given.
  Expr stretched(const Operand& operand, const Labels& labels) const {
    const Expr x = arranged(operand, labels).x;
    Dims extents;
    for (Label label : labels) extents.push_back(extents_.at(label));
    return broadcast(x, Shape(extents));
  }

  Operand contract(std::size_t i, std::size_t j) const {
    Operand a = operands_[i], b = operands_[j];
    const Labels needed = needed_without(i, j);
    Labels keep_a = needed, keep_b = needed;
    keep_a.insert(keep_a.end(), b.labels.begin(), b.labels.end());
    keep_b.insert(keep_b.end(), a.labels.begin(), a.labels.end());
    sum_out(a, keep_a);
    sum_out(b, keep_b);

    Labels batch, inner, rows, cols;
    for (Label label : a.labels) {
      if (!contains(b.labels, label))
        rows.push_back(label);
      else
        (contains(needed, label) ? batch : inner).push_back(label);
    }
    for (Label label : b.labels)
      if (!contains(a.labels, label)) cols.push_back(label);

    const auto join = [](Labels x, const Labels& y, const Labels& z) {
      x.insert(x.end(), y.begin(), y.end());
      x.insert(x.end(), z.begin(), z.end());
      return x;
    };
    // Broadcast first: that refuses what is too large, so that the products below cannot overflow.
    const Expr wide_a = stretched(a, join(batch, rows, inner)), wide_b = stretched(b, join(batch, inner, cols));
    const std::int64_t n = product_of(batch), m = product_of(rows), k = product_of(inner), p = product_of(cols);
    const Expr left = reshape(wide_a, Shape{n, m, k}), right = reshape(wide_b, Shape{n, k, p});
    const Expr product = inner.empty() ? left * right : matmul(left, right);
    const Labels labels = join(batch, rows, cols);
    Dims extents;
    for (Label label : labels) extents.push_back(extents_.at(label));
    return {reshape(product, Shape(extents)), labels};
  }

  const OpCall& call_;
  std::vector<Operand> operands_;
  Labels output_;
  std::map<Label, std::int64_t> extents_;
};

std::vector<NodeId> einsum(const OpCall& call) { return {Einsum(call).result().id()}; }

std::vector<NodeId> tensordot(const OpCall& call) {
  const Expr a = input(call, 0), b = input(call, 1);
  const int n = static_cast<int>(call.integer("axes"));
  if (n > a.rank() || n > b.rank()) call.fail(fmt::format("cannot sum over {} axes", n));
  std::int64_t inner = 1, rows = 1, cols = 1;
  Dims out;
  for (int i = 0; i < n; ++i) {
    if (a.extent(a.rank() - n + i) != b.extent(i))
      call.fail(fmt::format("the last {} axes of a and the first axes of b have different extents", n));
    inner *= b.extent(i);
  }
  for (int i = 0; i < a.rank() - n; ++i) {
    rows *= a.extent(i);
    out.push_back(a.extent(i));
  }
  for (int i = n; i < b.rank(); ++i) {
    cols *= b.extent(i);
    out.push_back(b.extent(i));
  }
  return {reshape(matmul(reshape(a, Shape{rows, inner}), reshape(b, Shape{inner, cols})), Shape(out)).id()};
}

}  // namespace

void register_einsum_ops(OpList& ops) {
  Entry(ops, {.category = "linear algebra", .dtypes = number_dtypes()}, "einsum", einsum)
      .any_number_of("operands")
      .parameters({{.name = "equation",
                    .type = ParameterType::text,
                    .required = true,
                    .doc = "a letter for each axis, e.g. \"ij,jk->ik\"; \"...\" for any other axes"}})
      .formula("products, summed over the letters that are not in the result")
      .doc("Einstein summation over any number of operands: diagonals, sums, transpositions, products.")
      .example("einsum([[1, 2], [3, 4]], [[5, 6], [7, 8]], equation=\"ij,jk->ik\")");
  Entry(ops, {.category = "linear algebra", .dtypes = number_dtypes()}, "tensordot", tensordot)
      .inputs({"a", "b"})
      .parameters({{.name = "axes",
                    .type = ParameterType::integer,
                    .fallback = std::int64_t{2},
                    .min = 0.0,
                    .max = kMaxRank,
                    .doc = "how many of the last axes of a are contracted with the first axes of b"}})
      .formula("sum over the last axes of a and the first of b")
      .doc("Products summed over several axes.")
      .example("tensordot([[1, 2], [3, 4]], [[5, 6], [7, 8]], axes=1)");
}

}  // namespace tenon
