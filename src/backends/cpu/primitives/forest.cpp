#include "backends/cpu/primitives/forest.h"

#include <algorithm>
#include <bit>
#include <vector>

#include "backends/cpu/primitives/split.h"

namespace tenon::cpu {
namespace {

constexpr std::int64_t kTogether = 8;   // walkers; each waits for memory and comparisons while the others go on
constexpr std::int64_t kRowBlock = 64;  // rows whose features stay in a cache while the trees are read

template <ForestAttr::Test test>
bool holds(float x, float value) {
  switch (test) {
    case ForestAttr::Test::leq: return x <= value;
    case ForestAttr::Test::lt: return x < value;
    case ForestAttr::Test::gte: return x >= value;
    default: return x > value;
  }
}

// Leads |Count| rows through a tree: |place| is where each is.
template <ForestAttr::Test test, int Count>
void walk(const ForestNode* nodes, const float* const* rows, std::int64_t depth, std::int32_t* place) {
  for (std::int64_t level = 0; level < depth; ++level) {
    std::int32_t are_leaves = 2;
    for (int i = 0; i < Count; ++i) {
      const ForestNode& node = nodes[place[i]];
      const float x = rows[i][node.feature];
      const std::int32_t stays = node.stays & (x != x ? 3 : 2);
      place[i] = node.child + ((holds<test>(x, node.value) || stays != 0) ? 0 : 1);
      are_leaves &= node.stays;
    }
    if (are_leaves != 0) return;
  }
}

struct Forest {
  const ForestOperands& operands;
  const ForestAttr& attr;
  std::int64_t features, targets, trees;

  std::int32_t root(std::int64_t tree) const {
    const std::int64_t place = static_cast<const std::int64_t*>(operands.roots.data)[tree];
    return static_cast<std::int32_t>(std::clamp<std::int64_t>(place, 0, operands.node_count - 1));
  }
  // The weights of a leaf of |tree|.
  void add(std::int64_t tree, std::int32_t leaf, double* sums) const {
    if (attr.one_target_per_tree) {
      const std::int64_t target = static_cast<const std::int64_t*>(operands.weights.data)[tree];
      sums[std::clamp<std::int64_t>(target, 0, targets - 1)] += static_cast<double>(operands.nodes[leaf].value);
      return;
    }
    const float* const weights = static_cast<const float*>(operands.weights.data) + leaf * targets;
    for (std::int64_t t = 0; t < targets; ++t) sums[t] += static_cast<double>(weights[t]);
  }

  template <ForestAttr::Test test>
  void run(std::int64_t begin, std::int64_t end, double* sums) const {
    const float* const x = static_cast<const float*>(operands.x.data);
    const float* rows[kTogether];
    std::int32_t place[kTogether];
    std::int64_t row = begin;
    for (; row + kTogether <= end; row += kTogether) {
      for (std::int64_t i = 0; i < kTogether; ++i) rows[i] = x + (row + i) * features;
      run_together<test>(rows, place, sums + (row - begin) * targets);
    }
    // Few rows: several trees at a time.
    for (; row < end; ++row) {
      std::fill_n(rows, kTogether, x + row * features);
      double* const own = sums + (row - begin) * targets;
      std::int64_t tree = 0;
      for (; tree + kTogether <= trees; tree += kTogether) {
        for (std::int64_t i = 0; i < kTogether; ++i) place[i] = root(tree + i);
        walk<test, kTogether>(operands.nodes, rows, attr.depth, place);
        for (std::int64_t i = 0; i < kTogether; ++i) add(tree + i, place[i], own);
      }
      for (; tree < trees; ++tree) {
        place[0] = root(tree);
        walk<test, 1>(operands.nodes, rows, attr.depth, place);
        add(tree, place[0], own);
      }
    }
  }

 private:
  template <ForestAttr::Test test>
  void run_together(const float* const* rows, std::int32_t* place, double* sums) const {
    for (std::int64_t tree = 0; tree < trees; ++tree) {
      std::fill_n(place, kTogether, root(tree));
      walk<test, kTogether>(operands.nodes, rows, attr.depth, place);
      for (std::int64_t i = 0; i < kTogether; ++i) add(tree, place[i], sums + i * targets);
    }
  }
};

}  // namespace

void pack_forest(const std::int32_t* nodes, std::int64_t count, std::int64_t features, ForestNode* packed) {
  const auto inside = [](std::int32_t i, std::int64_t n) {
    return static_cast<std::int32_t>(std::clamp<std::int64_t>(i, 0, n - 1));
  };
  for (std::int64_t i = 0; i < count; ++i, nodes += 4) {
    const bool is_leaf = nodes[0] == i;
    // A node has two children.
    const std::int32_t child = is_leaf ? static_cast<std::int32_t>(i) : inside(nodes[0], std::max<std::int64_t>(1, count - 1));
    const bool stays = is_leaf || count == 1;
    packed[i] = {std::bit_cast<float>(nodes[3]), child, inside(nodes[1], features), (stays ? 2 : 0) | (nodes[2] != 0 ? 1 : 0)};
  }
}

void forest(ThreadPool& pool, const ForestOperands& operands, const ForestAttr& attr, const Target& out) {
  const std::int64_t rows = out.shape[0];
  const Forest all{operands, attr, operands.x.shape[1], out.shape[1], operands.roots.shape[0]};
  const std::int64_t most =
      pool.threads() == 1 ? kRowBlock : std::clamp<std::int64_t>((rows + pool.threads() - 1) / pool.threads(), 1, kRowBlock);
  const std::int64_t blocks = (rows + most - 1) / most;
  float* const to = static_cast<float*>(out.data);
  pool.for_each(blocks, [&](std::int64_t block, int) {
    check_stop();
    const Range range = part_of(rows, blocks, block);
    thread_local std::vector<double> sums;  // keeps its memory
    sums.assign(static_cast<std::size_t>((range.end - range.begin) * all.targets), 0.0);
    switch (attr.test) {
      case ForestAttr::Test::leq: all.run<ForestAttr::Test::leq>(range.begin, range.end, sums.data()); break;
      case ForestAttr::Test::lt: all.run<ForestAttr::Test::lt>(range.begin, range.end, sums.data()); break;
      case ForestAttr::Test::gte: all.run<ForestAttr::Test::gte>(range.begin, range.end, sums.data()); break;
      case ForestAttr::Test::gt: all.run<ForestAttr::Test::gt>(range.begin, range.end, sums.data()); break;
    }
    for (std::size_t i = 0; i < sums.size(); ++i)
      to[range.begin * all.targets + static_cast<std::int64_t>(i)] = static_cast<float>(sums[i]);
  });
}

}  // namespace tenon::cpu
