// tenon model compare: whether a model gives the same results on several devices, or those that another program recorded.
#pragma once

#include <string>
#include <vector>

#include "cli/commands/commands.h"

namespace tenon::cli {

struct CompareArguments {
  std::string file, reference;
  std::vector<std::string> devices, inputs, extents;
  double tolerance = 1e-4;
};

// Prints the largest difference of every output. kExitMismatch if one is beyond the tolerance.
int compare_model(const CompareArguments& arguments, const Session& session);

}  // namespace tenon::cli
