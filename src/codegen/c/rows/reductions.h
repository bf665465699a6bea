// Reductions of a row within a pass, an element at a time.
#pragma once

#include "codegen/c/rows/text.h"

namespace tenon::emit {

// What the reduction |id| adds to a pass: after it, every work-item of the row has the result in the reduction's variable.
void add_reduction(RowsText& text, NodeId id, PassText& pass);

}  // namespace tenon::emit
