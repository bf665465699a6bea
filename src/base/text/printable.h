// Text that somebody else wrote, made safe for terminals, logs and JSON.
#pragma once

#include <string>
#include <string_view>

namespace tenon {

// Control characters (C0, DEL, C1) and bytes that are not well-formed UTF-8 become '?'.
std::string printable(std::string_view text);

}  // namespace tenon
