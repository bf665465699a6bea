// ChildProcess: runs a program to its end in the place of this one.
//
// Signals sent to this process go on to the child; those of a terminal reach both by themselves. When the child is stopped, this
// process stops too, and they continue together. If this process is killed, the child is killed with it. Standard input, output
// and error are shared.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace tenon::cli {

struct ChildOutcome {
  int exit_status = 0;      // of the child; 128 + the signal that ended it
  bool was_killed = false;  // ended by a signal
};

// |command|: the program, looked for in PATH, and its arguments; |variables| are added to its environment. Blocks until it ends.
// Throws not_found or permission_denied when it cannot be started. To be called from the main thread while no other thread forks.
ChildOutcome run_child(const std::vector<std::string>& command,
                       const std::vector<std::pair<std::string, std::string>>& variables);

}  // namespace tenon::cli
