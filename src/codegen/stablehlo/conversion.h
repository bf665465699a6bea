// The casts of the graph (docs/dtypes.md), as StableHLO.
//
// Terms hold values in the dtype they are computed in: f32 for f16, bf16 and the block formats. A cast to one of these rounds,
// and the result is f32 again.
#pragma once

#include "codegen/stablehlo/writer.h"

namespace tenon::stablehlo {

// |x|, a value of dtype |from|, as a value of dtype |to|.
Term cast(const Term& x, DType from, DType to);

// A value as it leaves the program: rounded to |to|, in which it is stored; block formats stay f32.
Term stored(const Term& x, DType to);

// Floats as integers of the same order; -0 is 0, and NaN the largest or the smallest of all. Integers as they are, bool as u8.
Term ordered_key(const Term& x, bool nan_is_largest);

// The value as bool is stored: anything but zero is true.
Term to_boolean(const Term& x);

}  // namespace tenon::stablehlo
