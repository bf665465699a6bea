// Checks the value of a parameter against its bounds and converts it to the declared type if that is lossless.
#pragma once

#include "tenon/ops.h"

namespace tenon {

// |value| converted to |parameter|'s type. Throws invalid_argument naming the op, the parameter and what it accepts.
ParameterValue checked_parameter(const OpInfo& op, const Parameter& parameter, const ParameterValue& value);

}  // namespace tenon
