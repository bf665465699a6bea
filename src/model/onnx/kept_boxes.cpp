#include "model/onnx/kept_boxes.h"

#include "base/system/sanitizers.h"

namespace tenon::onnx {
namespace {

constexpr std::size_t kBlock = 16, kFields = 5;

#if defined(__x86_64__) && !TENON_THREAD_SANITIZER
#define TENON_BOX_CLONES [[gnu::target_clones("default", "arch=x86-64-v3", "arch=x86-64-v4")]]
#else
#define TENON_BOX_CLONES
#endif

// Most pairs have nothing in common, so a block is compared as a whole and without branches.
TENON_BOX_CLONES bool overlaps_block(const double* fields, const Box& box, double limit) {
  const double *y1 = fields, *x1 = y1 + kBlock, *y2 = x1 + kBlock, *x2 = y2 + kBlock, *area = x2 + kBlock;
  const double top = box.y1, left = box.x1, bottom = box.y2, right = box.x2, own = box.area;
  int found = 0;
  for (std::size_t i = 0; i < kBlock; ++i) {
    const double low = y2[i] < bottom ? y2[i] : bottom, high = y1[i] > top ? y1[i] : top;
    const double end = x2[i] < right ? x2[i] : right, begin = x1[i] > left ? x1[i] : left;
    const double height = low - high > 0 ? low - high : 0, width = end - begin > 0 ? end - begin : 0;
    const double joint = height * width, all = own + area[i] - joint;
    found |= static_cast<int>(all > 0) & static_cast<int>(joint > limit * all);
  }
  return found != 0;
}

}  // namespace

void KeptBoxes::add(const Box& box) {
  const std::size_t place = count_ % kBlock;
  // Places that are still free have what no box has anything in common with.
  if (place == 0) {
    fields_.resize(fields_.size() + kBlock * kFields, 0);
    std::fill_n(fields_.end() - static_cast<std::ptrdiff_t>(kBlock), kBlock, 1.0);
  }
  double* const fields = fields_.data() + count_ / kBlock * kBlock * kFields + place;
  const double values[kFields] = {box.y1, box.x1, box.y2, box.x2, box.area};
  for (std::size_t i = 0; i < kFields; ++i) fields[i * kBlock] = values[i];
  ++count_;
}

bool KeptBoxes::overlap(const Box& box) const {
  if (limit_ < 0) return count_ > 0;  // any share is more
  for (std::size_t i = 0; i < fields_.size(); i += kBlock * kFields)
    if (overlaps_block(fields_.data() + i, box, limit_)) return true;
  return false;
}

}  // namespace tenon::onnx
