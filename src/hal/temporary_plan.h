// TemporaryPlan: the layout of a program's intermediate values in one block of memory.
//
// Temporaries with disjoint lifetimes (from the first to the last step that uses them) share memory.
#pragma once

#include <algorithm>
#include <cstddef>
#include <map>
#include <vector>

namespace tenon {

class TemporaryPlan {
 public:
  explicit TemporaryPlan(std::size_t alignment = 64) : alignment_(alignment) {}

  void add(int location, std::size_t bytes, int step) {
    index_[location] = temporaries_.size();
    temporaries_.push_back({location, (bytes + alignment_ - 1) / alignment_ * alignment_, step, step, 0});
  }

  // Locations that are not temporaries are ignored.
  void touch(int location, int step) {
    if (const auto found = index_.find(location); found != index_.end()) temporaries_[found->second].last = step;
  }

  // Calls tell(location, offset) for each, aligned, and returns the total size. First fit, largest first.
  template <class Tell>
  std::size_t place(Tell tell) {
    std::vector<Temporary*> order;
    for (Temporary& t : temporaries_) order.push_back(&t);
    std::sort(order.begin(), order.end(), [](const Temporary* a, const Temporary* b) {
      return a->bytes != b->bytes ? a->bytes > b->bytes : a->location < b->location;
    });
    std::size_t total = 0;
    for (std::size_t i = 0; i < order.size(); ++i) {
      Temporary& t = *order[i];
      std::vector<std::pair<std::size_t, std::size_t>> taken;
      for (std::size_t p = 0; p < i; ++p)
        if (order[p]->first <= t.last && t.first <= order[p]->last)
          taken.push_back({order[p]->offset, order[p]->offset + order[p]->bytes});
      std::sort(taken.begin(), taken.end());
      for (const auto& [begin, end] : taken) {
        if (t.offset + t.bytes <= begin) break;
        t.offset = std::max(t.offset, end);
      }
      total = std::max(total, t.offset + t.bytes);
      tell(t.location, t.offset);
    }
    return total;
  }

 private:
  struct Temporary {
    int location = -1;
    std::size_t bytes = 0;
    int first = 0, last = 0;
    std::size_t offset = 0;
  };
  std::size_t alignment_;
  std::vector<Temporary> temporaries_;
  std::map<int, std::size_t> index_;  // location -> temporary
};

}  // namespace tenon
