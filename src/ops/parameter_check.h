// A parameter's value as its op wants it: converted where that loses nothing, and within its bounds.
#pragma once

#include "tenon/ops.h"

namespace tenon {

// |value| as |parameter|'s type. Throws invalid_argument naming the op, the parameter and what it takes.
ParameterValue checked_parameter(const OpInfo& op, const Parameter& parameter, const ParameterValue& value);

}  // namespace tenon
