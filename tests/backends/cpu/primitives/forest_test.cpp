#include "backends/cpu/primitives/forest.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <random>

#include "backends/cpu/plain.h"

namespace tenon::cpu {
namespace {

struct Trees {
  std::vector<std::int32_t> nodes;  // [n, 4]
  std::vector<std::int64_t> roots;

  std::int64_t count() const { return static_cast<std::int64_t>(nodes.size()) / 4; }
};

// Trees of different depths over |features|; leaves carry a weight.
Trees random_trees(std::int64_t trees, std::int64_t features, std::int64_t depth, std::mt19937& random) {
  Trees out;
  const auto number = [&] { return std::normal_distribution<float>()(random); };
  for (std::int64_t tree = 0; tree < trees; ++tree) {
    struct Open {
      std::size_t place;
      std::int64_t left;
    };
    const auto add = [&] {
      out.nodes.resize(out.nodes.size() + 4);
      return out.nodes.size() / 4 - 1;
    };
    std::vector<Open> open{{add(), 1 + static_cast<std::int64_t>(random() % static_cast<unsigned>(depth))}};
    out.roots.push_back(static_cast<std::int64_t>(open[0].place));
    while (!open.empty()) {
      const Open here = open.back();
      open.pop_back();
      std::int32_t child = static_cast<std::int32_t>(here.place);
      if (here.left > 0 && random() % 8 != 0) {
        child = static_cast<std::int32_t>(add());
        open.push_back({static_cast<std::size_t>(child), here.left - 1});
        open.push_back({add(), here.left - 1});
      }
      std::int32_t* const node = out.nodes.data() + 4 * here.place;
      node[0] = child;
      node[1] = static_cast<std::int32_t>(random() % static_cast<unsigned>(features));
      node[2] = static_cast<std::int32_t>(random() % 2);
      node[3] = std::bit_cast<std::int32_t>(number());
    }
  }
  return out;
}

bool holds(ForestAttr::Test test, float x, float value) {
  switch (test) {
    case ForestAttr::Test::leq: return x <= value;
    case ForestAttr::Test::lt: return x < value;
    case ForestAttr::Test::gte: return x >= value;
    default: return x > value;
  }
}

std::int32_t leaf_of(const Trees& trees, const float* row, std::int64_t root, ForestAttr::Test test) {
  auto place = static_cast<std::int32_t>(root);
  for (;;) {
    const std::int32_t* const node = trees.nodes.data() + 4 * static_cast<std::size_t>(place);
    if (node[0] == place) return place;
    const float x = row[node[1]];
    place = node[0] + ((std::isnan(x) ? node[2] != 0 : holds(test, x, std::bit_cast<float>(node[3]))) ? 0 : 1);
  }
}

std::vector<float> run(ThreadPool& pool, const Trees& trees, const std::vector<float>& x, const Shape& shape,
                       const std::vector<float>& weights, const std::vector<std::int64_t>& columns, std::int64_t targets,
                       const ForestAttr& attr) {
  std::vector<ForestNode> packed(static_cast<std::size_t>(trees.count()));
  pack_forest(trees.nodes.data(), trees.count(), shape[1], packed.data());
  const auto tree_count = static_cast<std::int64_t>(trees.roots.size());
  ForestOperands operands{plain::view(x, shape), packed.data(), trees.count(), plain::view(trees.roots, Shape{tree_count}), {}};
  operands.weights =
      attr.one_target_per_tree ? plain::view(columns, Shape{tree_count}) : plain::view(weights, Shape{trees.count(), targets});
  std::vector<float> y;
  forest(pool, operands, attr, plain::target(y, Shape{shape[0], targets}));
  return y;
}

TEST(Forest, EqualsTheWayOfEachRowThroughEachTree) {
  std::mt19937 random(1);
  for (const std::int64_t rows : {1, 3, 8, 21, 150})
    for (const std::int64_t trees_count : {1, 9, 20})
      for (int test = 0; test < 4; ++test)
        for (const bool one_target : {false, true}) {
          constexpr std::int64_t kFeatures = 5, kTargets = 3;
          const Trees trees = random_trees(trees_count, kFeatures, 7, random);
          std::vector<float> x(static_cast<std::size_t>(rows * kFeatures)),
              weights(static_cast<std::size_t>(trees.count() * kTargets));
          for (float& each : x) each = random() % 9 == 0 ? NAN : std::normal_distribution<float>()(random);
          for (float& each : weights) each = std::normal_distribution<float>()(random);
          std::vector<std::int64_t> columns;
          for (std::int64_t i = 0; i < trees_count; ++i) columns.push_back(i % kTargets);
          const ForestAttr attr{static_cast<ForestAttr::Test>(test), 7, one_target};
          std::vector<double> expected(static_cast<std::size_t>(rows * kTargets), 0);
          for (std::int64_t row = 0; row < rows; ++row)
            for (std::size_t tree = 0; tree < trees.roots.size(); ++tree) {
              const std::int32_t leaf = leaf_of(trees, x.data() + row * kFeatures, trees.roots[tree], attr.test);
              for (std::int64_t t = 0; t < kTargets; ++t)
                if (!one_target)
                  expected[static_cast<std::size_t>(row * kTargets + t)] +=
                      weights[static_cast<std::size_t>(leaf * kTargets + t)];
                else if (columns[tree] == t)
                  expected[static_cast<std::size_t>(row * kTargets + t)] +=
                      std::bit_cast<float>(trees.nodes[4 * static_cast<std::size_t>(leaf) + 3]);
            }
          plain::with_pools([&](ThreadPool& pool) {
            const std::vector<float> y = run(pool, trees, x, Shape{rows, kFeatures}, weights, columns, kTargets, attr);
            for (std::size_t i = 0; i < y.size(); ++i)
              ASSERT_NEAR(y[i], expected[i], 1e-5) << rows << " " << trees_count << " " << i;
          });
        }
}

// Tables come from whoever sends a program: whatever they say, only what is there is read, and the walk ends.
TEST(Forest, PlacesThatDoNotExistStandForTheNearest) {
  std::mt19937 random(2);
  ThreadPool pool(1);
  for (int round = 0; round < 200; ++round) {
    Trees trees;
    const std::size_t count = 1 + random() % 6;
    for (std::size_t i = 0; i < 4 * count; ++i) {
      const std::int32_t extremes[] = {std::numeric_limits<std::int32_t>::min(), -1, 0, 1, 5,
                                       std::numeric_limits<std::int32_t>::max()};
      trees.nodes.push_back(extremes[random() % 6]);
    }
    trees.roots = {std::numeric_limits<std::int64_t>::min(), -1, 0, 7, std::numeric_limits<std::int64_t>::max()};
    const std::vector<std::int64_t> columns{-5, 0, 1, 2, std::numeric_limits<std::int64_t>::max()};
    const std::vector<float> x(9 * 2, 0.5f), weights(count * 2, 1.0f);
    EXPECT_EQ(run(pool, trees, x, Shape{9, 2}, weights, columns, 2, {ForestAttr::Test::leq, 20, true}).size(), 18u);
    const std::vector<float> y = run(pool, trees, x, Shape{9, 2}, weights, columns, 2, {ForestAttr::Test::gt, 20, false});
    for (const float each : y) EXPECT_EQ(each, 5.0f);
  }
}

}  // namespace
}  // namespace tenon::cpu
