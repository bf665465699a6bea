#include "model/onnx/kept_boxes.h"

#include <gtest/gtest.h>

#include <random>

namespace tenon::onnx {
namespace {

bool overlap(const Box& a, const Box& b, double limit) {
  const double joint =
      std::max(std::min(a.y2, b.y2) - std::max(a.y1, b.y1), 0.0) * std::max(std::min(a.x2, b.x2) - std::max(a.x1, b.x1), 0.0);
  const double all = a.area + b.area - joint;
  return all > 0 ? joint > limit * all : limit < 0;
}

TEST(KeptBoxes, AreComparedOneByOne) {
  std::mt19937 random(3);
  const auto number = [&] { return static_cast<double>(random() % 40) / 8 - 2; };
  for (const double limit : {-0.5, 0.0, 0.2, 0.5, 1.0}) {
    KeptBoxes kept(limit);
    std::vector<Box> plain;
    for (int i = 0; i < 300; ++i) {
      const double y = number(), x = number();
      const Box box{y, x, y + std::max(0.0, number()), x + std::max(0.0, number())};  // some are empty
      const bool expected = std::ranges::any_of(plain, [&](const Box& each) { return overlap(box, each, limit); });
      ASSERT_EQ(kept.overlap(box), expected) << limit << " " << i;
      if (expected && i % 3 != 0) continue;
      kept.add(box);
      plain.push_back(box);
      ASSERT_EQ(kept.count(), plain.size());
    }
  }
}

}  // namespace
}  // namespace tenon::onnx
