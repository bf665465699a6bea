// Numbers in the query of a request.
#pragma once

#include <cstdint>
#include <string_view>

#include "server/routes/routes.h"

namespace tenon::server {

// The value of the query's |name|, |fallback| if it is absent. Throws invalid_argument unless it is an integer from 0 to 2^53 -
// 1, the largest that a JSON reader keeps exact.
std::uint64_t natural_parameter(const Call& call, std::string_view name, std::uint64_t fallback);

}  // namespace tenon::server
