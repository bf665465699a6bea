// Values of 16 bits that are joined, taken or padded, and then only read rounded: by products, by outputs, or by ops that move
// them again, such as the keys and values that a step of a language model adds to its cache. They are rounded before they are
// moved, which changes no result: the values computed in this step stay in 16 bits, like those of the cache they are joined with.
#pragma once

#include "tenon/graph.h"

namespace tenon::cpu {

// |graph| is simplified; simplify the result again, which removes what rounds twice.
Graph round_moved(const Graph& graph);

}  // namespace tenon::cpu
