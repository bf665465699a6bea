// The casts of the graph (docs/dtypes.md) in StableHLO.
//
// Terms have values in their compute dtype: f32 for f16, bf16 and the block formats. A cast to one of these rounds, and the
// result is f32 again.
#pragma once

#include "codegen/stablehlo/writer.h"

namespace tenon::stablehlo {

// Casts |x|, a value of dtype |from|, to dtype |to|.
Term cast(const Term& x, DType from, DType to);

// Rounds a value that leaves the program to |to|, in which it is stored; block formats stay f32.
Term stored(const Term& x, DType to);

// Maps floats to integers of the same order; -0 maps to 0, NaN to the largest or smallest. Integers are unchanged, bool is u8.
Term ordered_key(const Term& x, bool nan_is_largest);

// Converts a value to bool: everything except zero is true.
Term to_boolean(const Term& x);

}  // namespace tenon::stablehlo
