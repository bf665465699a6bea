#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <map>
#include <numeric>
#include <set>

#include "model/onnx/converters/classical/scores.h"
#include "model/onnx/model_watch.h"
#include "model/onnx/tensor_data.h"

namespace tenon::onnx {
namespace {

using namespace build;

enum class Test : std::uint8_t { leq, lt, gte, gt, eq, neq, member, leaf };

struct Weight {
  std::int64_t target;
  double value;
};

// A node of the file. Leaves have weights and no children.
struct Branch {
  Test test = Test::leaf;
  std::int64_t feature = 0;
  double value = 0;
  bool takes_missing = false;  // NaN goes the way of a test that holds
  std::int64_t yes = -1, no = -1;
  std::vector<Weight> weights;
  std::vector<double> members;
};

struct Forest {
  std::vector<Branch> nodes;
  std::vector<std::int64_t> roots;
};

constexpr std::int64_t kMostWeights = 1 << 27;  // of a table with a column for each target

// The forest for a traversal in which every row and tree makes the same steps: the two children of a node are neighbours, so a
// step is one look at a table and an addition. A leaf tests a feature that is always 0 and is its own child. That feature comes
// before those of the rows, because the tables are kept for rows of other widths. Trees are in the order of their depth, the
// deepest first, so that those that are through need not be followed.
struct Layout {
  std::vector<std::int64_t> order;  // nodes of the forest by their new places
  std::vector<std::int64_t> child, feature, roots, depths;
  std::vector<std::size_t> tree;  // of each place
};

Layout layout_of(const NodeContext& node, const Forest& forest, std::int64_t features) {
  std::vector<bool> seen(forest.nodes.size(), false);
  const auto visit = [&](std::int64_t id) {
    if (id < 0 || id >= static_cast<std::int64_t>(forest.nodes.size())) node.fail(fmt::format("there is no node {}", id));
    if (seen[static_cast<std::size_t>(id)]) node.fail(fmt::format("two ways lead to node {}", id));
    seen[static_cast<std::size_t>(id)] = true;
    return id;
  };
  // Depths first: they decide the order of the trees.
  std::vector<std::int64_t> depths;
  for (const std::int64_t root : forest.roots) {
    std::vector<std::int64_t> level{visit(root)}, next;
    std::int64_t depth = 0;
    for (;; ++depth, level.swap(next)) {
      next.clear();
      for (const std::int64_t id : level) {
        const Branch& branch = forest.nodes[static_cast<std::size_t>(id)];
        if (branch.test == Test::leaf) continue;
        if (branch.feature < 0 || branch.feature >= features)
          node.fail(fmt::format("feature {} of {}", branch.feature, features));
        next.push_back(visit(branch.yes));
        next.push_back(visit(branch.no));
      }
      if (next.empty()) break;
    }
    depths.push_back(depth);
  }
  std::vector<std::size_t> trees(forest.roots.size());
  std::iota(trees.begin(), trees.end(), 0);
  std::sort(trees.begin(), trees.end(),
            [&](std::size_t a, std::size_t b) { return depths[a] != depths[b] ? depths[a] > depths[b] : a < b; });
  Layout out;
  for (std::size_t i = 0; i < trees.size(); ++i) {
    std::size_t next = out.order.size();
    out.roots.push_back(static_cast<std::int64_t>(next));
    out.depths.push_back(depths[trees[i]]);
    out.order.push_back(forest.roots[trees[i]]);
    for (; next < out.order.size(); ++next) {
      const Branch& branch = forest.nodes[static_cast<std::size_t>(out.order[next])];
      const bool is_leaf = branch.test == Test::leaf;
      out.tree.push_back(i);
      out.feature.push_back(is_leaf ? 0 : branch.feature + 1);
      out.child.push_back(static_cast<std::int64_t>(is_leaf ? next : out.order.size()));
      if (!is_leaf) out.order.insert(out.order.end(), {branch.yes, branch.no});
    }
  }
  return out;
}

class Traversal {
 public:
  Traversal(const NodeContext& node, std::string_view attribute, const Forest& forest, Expr x)
      : node_(node),
        attribute_(attribute),
        forest_(forest),
        layout_(layout_of(node, forest, x.extent(1))),
        rows_(x.extent(0)),
        given_(x),
        x_(pad_axis(x, 1, 1, 0)),
        part_(x.dtype() == DType::f64 ? 100 : 0) {}  // a function may be called with either type

  const Layout& layout() const noexcept { return layout_; }
  std::int64_t rows() const noexcept { return rows_; }
  const Branch& at(std::size_t place) const { return forest_.nodes[static_cast<std::size_t>(layout_.order[place])]; }

  // The place of the leaf of each row in each tree, [rows, trees].
  Expr leaves() {
    const Expr child = integers(layout_.child), feature = integers(layout_.feature);
    const bool is_wide = x_.dtype() == DType::f64;
    const Expr value = table([&](const Branch& b) { return b.value; }, is_wide ? DType::f64 : DType::f32);
    std::set<Test> tests;
    bool any_missing = false;
    for (const Branch& branch : forest_.nodes) {
      if (branch.test != Test::leaf) tests.insert(branch.test);
      any_missing = any_missing || branch.takes_missing;
    }
    std::optional<Expr> test, missing;
    if (tests.size() > 1)
      test = table([](const Branch& b) { return static_cast<double>(b.test == Test::leaf ? Test::eq : b.test); }, DType::i32);
    if (any_missing) missing = table([](const Branch& b) { return b.takes_missing ? 1.0 : 0.0; }, DType::boolean);
    std::optional<Expr> members;
    if (tests.contains(Test::member)) members = member_table();
    const auto trees = static_cast<std::int64_t>(layout_.roots.size());
    Expr place = expand_to(reshape(integers(layout_.roots), Shape{1, trees}), Shape{rows_, trees});
    std::vector<Expr> done;
    std::int64_t active = trees;
    const std::int64_t deepest = layout_.depths.empty() ? 0 : layout_.depths[0];
    for (std::int64_t level = 0; level < deepest; ++level) {
      std::int64_t still = active;
      while (still > 0 && layout_.depths[static_cast<std::size_t>(still - 1)] <= level) --still;
      // Cutting the trees that are through costs a copy; it pays if there are many.
      if (active - still > active / 4) {
        done.push_back(narrow(place, 1, still, active - still));
        place = narrow(place, 1, 0, still);
        active = still;
      }
      const Expr x = gather(x_, take(feature, place, 0), 1), threshold = take(value, place, 0);
      const auto compare = [&](Test which) -> Expr {
        switch (which) {
          case Test::leq: return x <= threshold;
          case Test::lt: return x < threshold;
          case Test::gte: return x >= threshold;
          case Test::gt: return x > threshold;
          case Test::neq: return x != threshold;
          case Test::member: {
            const Expr equal = unsqueeze(x, 2) == take(*members, place, 0);
            return squeeze(any_keep(equal, one_axis(2)), one_axis(2));
          }
          default: return x == threshold;
        }
      };
      // A leaf compares 0 with 0; of the tests only lt, gt, neq and member would not hold.
      std::optional<Expr> holds;
      if (test) {
        const Expr which = take(*test, place, 0);
        holds = compare(Test::eq);
        for (const Test each : tests)
          if (each != Test::eq) holds = where(which == same(which, static_cast<double>(each)), compare(each), *holds);
      } else {
        holds = compare(*tests.begin());
        if (*tests.begin() == Test::lt || *tests.begin() == Test::gt || *tests.begin() == Test::neq ||
            *tests.begin() == Test::member) {
          const Expr here = take(child, place, 0);
          holds = where(here == place, expand_to(node_.constant(HostArray::full(DType::boolean, {}, 1)), here.shape()), *holds);
        }
      }
      if (missing) holds = where(is_nan(x), take(*missing, place, 0), *holds);
      place = take(child, place, 0) + cast(!*holds, DType::i64);
    }
    if (done.empty()) return place;
    std::vector<Expr> all{place};
    all.insert(all.end(), done.rbegin(), done.rend());
    return concat(all, 1);
  }

  // A value for each place.
  Expr table(const std::function<double(const Branch&)>& of, DType dtype) {
    std::vector<double> values;
    for (std::size_t i = 0; i < layout_.order.size(); ++i) values.push_back(of(at(i)));
    return made(Shape{static_cast<std::int64_t>(layout_.order.size())}, values, dtype);
  }
  // The tables of a region (ForestAttr) for these trees, if one can be; |leaf| is the weight of a leaf where a tree has one
  // target.
  struct Tables {
    Expr nodes, roots;
    ForestAttr attr;
  };
  std::optional<Tables> tables(const std::function<double(const Branch&)>& leaf) {
    const Test test = common_test();
    const auto same = [&](const Branch& b) { return b.test == Test::leaf || b.test == test; };
    if (given_.dtype() != DType::f32 || given_.extent(1) < 1 || rows_ == 0 || test > Test::gt ||
        layout_.order.size() >= (std::size_t{1} << 31) || !std::ranges::all_of(forest_.nodes, same))
      return std::nullopt;
    const Expr nodes = node_.in(node_.weight(attribute_, part_++, [&] {
      std::vector<std::int32_t> table;
      table.reserve(4 * layout_.order.size());
      for (std::size_t i = 0; i < layout_.order.size(); ++i) {
        const Branch& branch = at(i);
        const bool is_leaf = branch.test == Test::leaf;
        const auto value = static_cast<float>(is_leaf ? leaf(branch) : branch.value);
        table.insert(table.end(), {static_cast<std::int32_t>(layout_.child[i]),
                                   static_cast<std::int32_t>(is_leaf ? 0 : layout_.feature[i] - 1), branch.takes_missing ? 1 : 0,
                                   std::bit_cast<std::int32_t>(value)});
      }
      return HostArray::from<std::int32_t>(Shape{static_cast<std::int64_t>(layout_.order.size()), 4}, table);
    }));
    return Tables{nodes, integers(layout_.roots), {static_cast<ForestAttr::Test>(test), layout_.depths[0], false}};
  }
  // Says that |y| is the sums of the weights of the leaves; |weights| as in ForestAttr.
  void mark(const std::optional<Tables>& tables, Expr weights, Expr y) const {
    if (!tables || y.dtype() != DType::f32) return;
    ForestAttr attr = tables->attr;
    attr.one_target_per_tree = weights.dtype() == DType::i64;
    node_.graph().mark({{given_.id(), tables->nodes.id(), tables->roots.id(), weights.id()}, y.id(), attr});
  }
  Expr integers(const std::vector<std::int64_t>& values) {
    return node_.in(node_.weight(attribute_, part_++, [&] {
      return HostArray::from<std::int64_t>(Shape{static_cast<std::int64_t>(values.size())}, values);
    }));
  }
  Expr made(const Shape& shape, const std::vector<double>& values, DType dtype) {
    return node_.in(node_.weight(attribute_, part_++, [&] { return HostArray::from<double>(shape, values).cast(dtype); }));
  }

 private:
  // Of the first node that is not a leaf.
  Test common_test() const {
    for (const Branch& branch : forest_.nodes)
      if (branch.test != Test::leaf) return branch.test;
    return Test::leq;
  }

  // The members of each place in a row of their own, filled up with NaN, which nothing is equal to.
  Expr member_table() {
    std::size_t most = 1;
    for (const Branch& branch : forest_.nodes) most = std::max(most, branch.members.size());
    if (static_cast<std::int64_t>(most * layout_.order.size()) > kMostWeights) node_.refuse("sets of so many members");
    std::vector<double> values(most * layout_.order.size(), std::nan(""));
    for (std::size_t i = 0; i < layout_.order.size(); ++i)
      std::ranges::copy(at(i).members, values.begin() + static_cast<std::ptrdiff_t>(i * most));
    return made(Shape{static_cast<std::int64_t>(layout_.order.size()), static_cast<std::int64_t>(most)}, values, x_.dtype());
  }

  const NodeContext& node_;
  const std::string_view attribute_;
  const Forest& forest_;
  const Layout layout_;
  const std::int64_t rows_;
  const Expr given_;
  const Expr x_;  // given_, with a column of zeros before the others
  int part_;
};

enum class Aggregate : std::uint8_t { average, sum, min, max };

// The weights of the leaves of each row, joined over the trees: [rows, targets].
Expr joined(const NodeContext& node, Traversal& traversal, std::int64_t targets, Aggregate how, DType dtype) {
  const Layout& layout = traversal.layout();
  const auto places = static_cast<std::int64_t>(layout.order.size()), trees = static_cast<std::int64_t>(layout.roots.size());
  if (trees == 0) return expand_to(node.constant(HostArray::zeros(dtype, {})), Shape{traversal.rows(), targets});
  const bool is_sum = how == Aggregate::sum || how == Aggregate::average;
  // Boosted trees for several classes have one class each: then a leaf has one weight and the tree a column.
  std::vector<std::int64_t> column(layout.roots.size(), -1);
  bool is_single = is_sum;
  for (std::size_t i = 0; i < layout.order.size(); ++i)
    for (const Weight& weight : traversal.at(i).weights) {
      if (weight.target < 0 || weight.target >= targets) node.fail(fmt::format("target {} of {}", weight.target, targets));
      std::int64_t& here = column[layout.tree[i]];
      is_single = is_single && (here < 0 || here == weight.target);
      here = weight.target;
    }
  const auto weight_of = [](const Branch& b) {
    return std::accumulate(b.weights.begin(), b.weights.end(), 0.0, [](double sum, const Weight& w) { return sum + w.value; });
  };
  const std::optional<Traversal::Tables> tables = is_sum ? traversal.tables(weight_of) : std::nullopt;
  const Expr leaves = traversal.leaves();
  Expr y = leaves;
  if (is_single) {
    const Expr weights = traversal.table(weight_of, dtype);
    std::vector<std::int64_t> targets_of_trees = column;
    std::ranges::replace(targets_of_trees, -1, 0);
    const Expr target = traversal.integers(targets_of_trees);
    const Expr each = take(weights, leaves, 0);
    if (targets == 1) {
      y = sum_keep(each, one_axis(1));
    } else {
      if (targets > kMostWeights / trees) node.refuse(fmt::format("{} trees and {} targets", trees, targets));
      ModelWatch::tell_uses(static_cast<std::uint64_t>(trees * targets) * sizeof(double));
      std::vector<double> ones(static_cast<std::size_t>(trees * targets), 0);
      for (std::size_t i = 0; i < column.size(); ++i)
        if (column[i] >= 0) ones[i * static_cast<std::size_t>(targets) + static_cast<std::size_t>(column[i])] = 1;
      y = matmul(each, traversal.made(Shape{trees, targets}, ones, dtype));
    }
    traversal.mark(tables, target, y);
  } else {
    if (targets > kMostWeights / places) node.refuse(fmt::format("{} nodes and {} targets", places, targets));
    const double none = is_sum ? 0 : how == Aggregate::min ? INFINITY : -INFINITY;
    ModelWatch::tell_uses(static_cast<std::uint64_t>(places * targets) * sizeof(double));
    std::vector<double> values(static_cast<std::size_t>(places * targets), none);
    for (std::size_t i = 0; i < layout.order.size(); ++i)
      for (const Weight& weight : traversal.at(i).weights) {
        double& value = values[i * static_cast<std::size_t>(targets) + static_cast<std::size_t>(weight.target)];
        value = is_sum ? value + weight.value : weight.value;
      }
    const Expr weights = traversal.made(Shape{places, targets}, values, dtype);
    const Expr each = take(weights, leaves, 0);
    const Expr all = is_sum                  ? sum_keep(each, one_axis(1))
                     : how == Aggregate::min ? min_keep(each, one_axis(1))
                                             : max_keep(each, one_axis(1));
    y = squeeze(all, one_axis(1));
    if (is_sum) traversal.mark(tables, weights, y);
    if (!is_sum) y = where(is_inf(y), 0.0, y);
  }
  return how == Aggregate::average ? y / static_cast<double>(trees) : y;
}

Expr with_base(const NodeContext& node, Expr y, const std::vector<double>& base) {
  if (base.empty()) return y;
  const auto count = static_cast<std::int64_t>(base.size());
  return y + node.constant(HostArray::from<double>(count == 1 ? Shape{} : Shape{count}, base).cast(y.dtype()));
}

Test test_named(const NodeContext& node, std::string_view mode) {
  static constexpr std::pair<std::string_view, Test> tests[] = {
      {"BRANCH_LEQ", Test::leq}, {"BRANCH_LT", Test::lt},   {"BRANCH_GTE", Test::gte},       {"BRANCH_GT", Test::gt},
      {"BRANCH_EQ", Test::eq},   {"BRANCH_NEQ", Test::neq}, {"BRANCH_MEMBER", Test::member}, {"LEAF", Test::leaf}};
  for (const auto& [name, test] : tests)
    if (name == mode) return test;
  node.fail("unknown mode of a node");
}

// TreeEnsembleClassifier and TreeEnsembleRegressor name nodes by tree and number; |prefix| is that of the weights.
Forest named_forest(const NodeContext& node, const std::string& prefix) {
  const auto trees = node.integers("nodes_treeids"), ids = node.integers("nodes_nodeids"),
             yes = node.integers("nodes_truenodeids"), no = node.integers("nodes_falsenodeids"),
             missing = node.integers("nodes_missing_value_tracks_true"), feature = node.integers("nodes_featureids");
  const std::vector<std::string> modes = node.texts("nodes_modes");
  const std::vector<double> values = doubles(node, "nodes_values");
  const std::size_t count = ids.size();
  for (const std::size_t size : {trees.size(), yes.size(), no.size(), feature.size(), modes.size(), values.size()})
    if (size != count) node.fail(fmt::format("{} nodes, and {} of an attribute of theirs", count, size));
  ModelWatch::tell_uses(count * (sizeof(Branch) + 2 * sizeof(Weight) + 128));
  Forest out;
  std::map<std::pair<std::int64_t, std::int64_t>, std::int64_t> places;
  for (std::size_t i = 0; i < count; ++i) {
    if (!places.emplace(std::pair(trees[i], ids[i]), static_cast<std::int64_t>(i)).second)
      node.fail(fmt::format("node {} of tree {} is given twice", ids[i], trees[i]));
    if (i == 0 || trees[i] != trees[i - 1]) out.roots.push_back(static_cast<std::int64_t>(i));
  }
  const auto place = [&](std::int64_t tree, std::int64_t id) {
    const auto found = places.find({tree, id});
    if (found == places.end()) node.fail(fmt::format("tree {} has no node {}", tree, id));
    return found->second;
  };
  for (std::size_t i = 0; i < count; ++i) {
    Branch branch{.test = test_named(node, modes[i]), .feature = feature[i], .value = values[i]};
    branch.takes_missing = i < missing.size() && missing[i] != 0;
    if (branch.test == Test::leaf) {
      branch.value = 0;
      branch.takes_missing = false;
    } else {
      branch.yes = place(trees[i], yes[i]);
      branch.no = place(trees[i], no[i]);
    }
    out.nodes.push_back(std::move(branch));
  }
  const auto weight_trees = node.integers(prefix + "_treeids"), weight_nodes = node.integers(prefix + "_nodeids"),
             targets = node.integers(prefix + "_ids");
  const std::vector<double> weights = doubles(node, prefix + "_weights");
  if (weight_trees.size() != weights.size() || weight_nodes.size() != weights.size() || targets.size() != weights.size())
    node.fail("weights and the nodes that they belong to differ in number");
  for (std::size_t i = 0; i < weights.size(); ++i) {
    Branch& branch = out.nodes[static_cast<std::size_t>(place(weight_trees[i], weight_nodes[i]))];
    if (branch.test == Test::leaf) branch.weights.push_back({targets[i], weights[i]});
  }
  return out;
}

DType forest_dtype(const NodeContext& node) { return node.dtype(0) == DType::f64 ? DType::f64 : DType::f32; }

Aggregate aggregate_named(const NodeContext& node) {
  const std::string name = node.text("aggregate_function", "SUM");
  return name == "SUM"       ? Aggregate::sum
         : name == "AVERAGE" ? Aggregate::average
         : name == "MIN"     ? Aggregate::min
                             : Aggregate::max;
}

Results tree_regressor(const NodeContext& node) {
  const Forest forest = named_forest(node, "target");
  Traversal traversal(node, "nodes_values", forest, features(node));
  const std::int64_t targets = node.integer("n_targets", 1);
  if (targets < 1) node.fail("n_targets must be positive");
  const Expr y =
      with_base(node, joined(node, traversal, targets, aggregate_named(node), forest_dtype(node)), doubles(node, "base_values"));
  return {transformed(node, cast(y, DType::f32))};
}

Results tree_classifier(const NodeContext& node) {
  const Labels labels(node, "classlabels_int64s");
  Forest forest = named_forest(node, "class");
  std::set<std::int64_t> used;
  bool all_positive = true;
  for (const Branch& branch : forest.nodes)
    for (const Weight& weight : branch.weights) {
      used.insert(weight.target);
      all_positive = all_positive && weight.value >= 0;
    }
  const std::vector<double> base = doubles(node, "base_values");
  const std::string transform = transform_of(node);
  const bool is_binary = labels.count() == 2 && used.size() == 1;
  if (is_binary)
    for (Branch& branch : forest.nodes)
      for (Weight& weight : branch.weights) weight.target = 0;
  Traversal traversal(node, "nodes_values", forest, features(node));
  const Expr sums = cast(joined(node, traversal, is_binary ? 1 : labels.count(), Aggregate::sum, forest_dtype(node)), DType::f32);
  if (!is_binary) {
    const Expr scores = with_base(node, sums, base);
    return {labels.best(scores), transformed(node, scores)};
  }
  // One score decides between two classes; the other is what is missing to 1 or, if scores may be negative, its opposite.
  const Expr score = base.empty() ? sums : with_base(node, sums, {base.back()});
  const Expr is_second = score > same(score, all_positive ? 0.5 : 0.0);
  const Result label = labels.at(reshape(cast(is_second, DType::i64), Shape{traversal.rows()}));
  if (transform == "PROBIT") return {label, transformed(node, score)};
  const Expr plain[] = {all_positive ? 1.0 - score : -score, score};
  if (all_positive || transform != "LOGISTIC") return {label, concat(plain, 1)};
  return {label, sigmoid(concat(plain, 1))};
}

// TreeEnsemble: leaves are apart from nodes.
Results tree_ensemble(const NodeContext& node) {
  const auto tensor = [&](std::string_view name) {
    const AttributeProto* found = node.find(name);
    return found && found->tensor ? array_of(*found->tensor, {}).to_doubles() : std::vector<double>();
  };
  const auto feature = node.integers("nodes_featureids"), yes = node.integers("nodes_truenodeids"),
             no = node.integers("nodes_falsenodeids"), yes_leaf = node.integers("nodes_trueleafs"),
             no_leaf = node.integers("nodes_falseleafs"), missing = node.integers("nodes_missing_value_tracks_true"),
             targets = node.integers("leaf_targetids"), roots = node.integers("tree_roots");
  const std::vector<double> splits = tensor("nodes_splits"), modes = tensor("nodes_modes"), weights = tensor("leaf_weights"),
                            members = tensor("membership_values");
  const std::size_t count = feature.size();
  for (const std::size_t size : {yes.size(), no.size(), yes_leaf.size(), no_leaf.size(), splits.size(), modes.size()})
    if (size != count) node.fail(fmt::format("{} nodes, and {} of an attribute of theirs", count, size));
  if (targets.size() != weights.size()) node.fail("leaf_targetids and leaf_weights differ in number");
  static constexpr Test tests[] = {Test::leq, Test::lt, Test::gte, Test::gt, Test::eq, Test::neq, Test::member};
  ModelWatch::tell_uses(3 * count * (sizeof(Branch) + 2 * sizeof(Weight)));
  Forest forest;
  forest.nodes.resize(count);
  // A leaf may be reached from several nodes: each gets a copy.
  const auto child = [&](std::int64_t id, std::int64_t is_leaf) {
    if (is_leaf == 0) return id;
    if (id < 0 || id >= static_cast<std::int64_t>(weights.size())) node.fail(fmt::format("there is no leaf {}", id));
    Branch leaf;
    leaf.weights.push_back({targets[static_cast<std::size_t>(id)], weights[static_cast<std::size_t>(id)]});
    forest.nodes.push_back(std::move(leaf));
    return static_cast<std::int64_t>(forest.nodes.size()) - 1;
  };
  std::size_t next_member = 0;
  for (std::size_t i = 0; i < count; ++i) {
    Branch branch{.feature = feature[i], .value = splits[i]};
    const double mode = modes[i];
    if (!(mode >= 0 && mode <= 6)) node.fail("unknown mode of a node");
    branch.test = tests[static_cast<std::size_t>(mode)];
    branch.takes_missing = i < missing.size() && missing[i] != 0;
    if (branch.test == Test::member) {  // the sets are one after the other, a NaN after each
      for (; next_member < members.size() && !std::isnan(members[next_member]); ++next_member)
        branch.members.push_back(members[next_member]);
      ++next_member;
    }
    branch.yes = child(yes[i], yes_leaf[i]);
    branch.no = child(no[i], no_leaf[i]);
    forest.nodes[i] = std::move(branch);
  }
  forest.roots.assign(roots.begin(), roots.end());
  Traversal traversal(node, "nodes_splits", forest, features(node));
  static constexpr Aggregate kinds[] = {Aggregate::average, Aggregate::sum, Aggregate::min, Aggregate::max};
  const std::int64_t kind = node.integer("aggregate_function", 1), outputs = node.integer("n_targets", 1);
  if (kind < 0 || kind > 3 || outputs < 1) node.fail("aggregate_function or n_targets is out of range");
  return {cast(transformed(node, joined(node, traversal, outputs, kinds[kind], forest_dtype(node))), node.dtype(0))};
}

}  // namespace

void add_trees(ConverterTable& table) {
  table.add("ai.onnx.ml.TreeEnsembleRegressor", tree_regressor);
  table.add("ai.onnx.ml.TreeEnsembleClassifier", tree_classifier);
  table.add("ai.onnx.ml.TreeEnsemble", tree_ensemble);
}

}  // namespace tenon::onnx
