// The boxes that a suppression of overlapping boxes has kept so far: a candidate is compared with all of them.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

namespace tenon::onnx {

struct Box {
  double y1, x1, y2, x2;
  double area = std::max(y2 - y1, 0.0) * std::max(x2 - x1, 0.0);
};

class KeptBoxes {
 public:
  // |limit|: of the share that two boxes have in common of what they cover together.
  explicit KeptBoxes(double limit) : limit_(limit) {}

  std::size_t count() const { return count_; }
  void add(const Box& box);
  // Whether |box| and one of these have more than the limit in common.
  bool overlap(const Box& box) const;

 private:
  const double limit_;
  std::size_t count_ = 0;
  std::vector<double> fields_;  // blocks of boxes: y1 of each, x1 of each, and so on
};

}  // namespace tenon::onnx
