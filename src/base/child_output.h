// Runs a small program and gives what it printed. For asking a maker's tool, nothing else.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

namespace tenon {

// What |command| (program, looked for in PATH, and arguments) wrote to its standard output; its errors go nowhere. Nothing when
// it cannot be started, fails, prints more than a megabyte or takes longer than |limit|; it is then killed. Blocks until it has
// ended.
std::optional<std::string> child_output(const std::vector<std::string>& command, std::chrono::milliseconds limit);

}  // namespace tenon
