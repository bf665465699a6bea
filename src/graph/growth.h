// GraphWatch: hears of every graph that this thread builds as it grows, so that its memory can be counted before it is taken.
//
// A short text can describe a graph of Graph::kMaxNodes nodes. |on_growth| is called with the number of nodes before each block
// of kStep further ones; what it throws leaves the function that adds the node. Lifetime: until destroyed, in the thread that
// made it; watches nest. Thread safety: each thread has its own.
//
//   const GraphWatch watch([&](NodeId nodes) { share.grow_to(nodes * kNodeBytes); });
#pragma once

#include <functional>

#include "tenon/graph.h"

namespace tenon {

class GraphWatch {
 public:
  static constexpr NodeId kStep = 256;
  using OnGrowth = std::function<void(NodeId nodes)>;

  explicit GraphWatch(OnGrowth on_growth);
  ~GraphWatch();
  GraphWatch(const GraphWatch&) = delete;
  GraphWatch& operator=(const GraphWatch&) = delete;

  // For Graph: |nodes| is a multiple of kStep.
  static void grows(NodeId nodes);

 private:
  OnGrowth on_growth_;
  GraphWatch* outer_;
};

}  // namespace tenon
