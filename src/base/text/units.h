// Human-readable quantities: three significant digits and a unit.
#pragma once

#include <string>

namespace tenon {

std::string format_seconds(double seconds);  // "812 ns", "1.23 ms"
std::string format_bytes(double bytes);      // "512 B", "1.50 MiB"
// "$0", "$12.50", "$0.0042": two decimals, for small sums two significant digits, never an exponent.
std::string format_dollars(double dollars);
// A count per second with a decimal prefix: format_rate(2.5e9, "B/s") is "2.50 GB/s".
std::string format_rate(double per_second, const char* unit);

}  // namespace tenon
