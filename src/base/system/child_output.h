// Runs a small program and returns its output. Used only to query vendors' tools.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

namespace tenon {

// The standard output of |command| (a program, looked up in PATH, and its arguments); its standard error is discarded. nullopt if
// it cannot be started, fails, prints more than 32 MB or takes longer than |limit|, after which it is killed. Blocks until
// the program ends.
std::optional<std::string> child_output(const std::vector<std::string>& command, std::chrono::milliseconds limit);

}  // namespace tenon
