// Which values of a program are stored with their channels in blocks of 16 (conv_blocked.h), as a rewrite of its graph.
//
// A blocked value [n, c, h, w] is a node of the shape [n, c / 16, h, w, 16]. Elementwise ops, pooling, sums over places and
// joining channels are the same nodes on that shape; transposes are inserted where a value is needed in the other form.
#pragma once

#include <map>

#include "backends/cpu/products/absorb_epilogues.h"
#include "backends/cpu/products/convolution/conv_blocked.h"

namespace tenon::cpu {

struct BlockedGraph {
  FusedGraph fused;
  std::map<NodeId, BlockedConv> convs;  // by node, a conv whose result is blocked
};

// Only convolutions that exchange values with another one are worth it: a single one would transpose its input and its result.
BlockedGraph block_channels(FusedGraph fused);

}  // namespace tenon::cpu
