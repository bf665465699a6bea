// The command `tenon`: arguments in, text out, exit status back.
//
// Exit status: 0 done, 1 failure, 2 usage, 3 no such op, device or file, 4 device busy or unavailable, 5 the result differs from
// the reference. Under --json an error is one document on out; otherwise a sentence, the place and a hint on err.
#pragma once

#include <string>
#include <vector>

#include "cli/terminal/console.h"

namespace tenon::cli {

inline constexpr int kExitMismatch = 5;

// |arguments| without the program's name. Does not throw.
int run_application(std::vector<std::string> arguments, Console& console);

}  // namespace tenon::cli
