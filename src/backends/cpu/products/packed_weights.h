// PackedWeights: copies of a buffer's contents in the order in which products
// read them, kept with the buffer.
//
// Lifetime: a copy lives as long as the buffer has the same contents, or as
// long as somebody holds it. Thread safety: all calls may run concurrently.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>

#include "base/threads/fork_section.h"

namespace tenon::cpu {

class PackedWeights {
 public:
  // What a copy depends on besides the contents: the kind of packing, shapes,
  // strides.
  using Key = std::array<std::int64_t, 8>;

  // The copy for |key|, of |elements| floats, made by |make| when it is asked
  // for the |uses|-th time; nullptr before. |make| may return false: then there
  // is none, now and later.
  std::shared_ptr<const float> get(const Key& key, int uses, std::int64_t elements, const std::function<bool(float*)>& make);
  // The contents have changed.
  void clear();

 private:
  struct Entry {
    int uses = 0;
    bool is_refused = false;
    std::shared_ptr<const float> copy;
  };
  SectionMutex mutex_;
  std::map<Key, Entry> entries_;
};

}  // namespace tenon::cpu
