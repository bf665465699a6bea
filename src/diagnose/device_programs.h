// Five computations that tell whether a device works: small ones first, each checked against what must come out.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tenon/diagnostics.h"

namespace tenon {

enum class Severity { critical, important, optional };

struct Diagnostic {
  std::string id;
  Severity severity = Severity::critical;
  std::string title;
  std::string program;  // an expression; its results must all be finite, and the first must be |expected| within |tolerance|
  double expected = 0;
  double tolerance = 0;
};

// Basic computation and a small network (critical), a product of 1024 x 1024 and attention with noise (important), 128 MiB of
// memory (optional).
const std::vector<Diagnostic>& device_diagnostics();

// Runs |diagnostics| on |device| in their order. What throws has failed. A critical one that fails ends the row; an optional one
// that fails is a warning. |how| has the token and who is told of progress; throws cancelled.
// |on_check| gets each check when it is done.
std::vector<Check> diagnose(const std::string& device, DeviceManager& manager,
                            const std::vector<Diagnostic>& diagnostics = device_diagnostics(), const RunOptions& how = {},
                            const std::function<void(const Check&)>& on_check = {});

}  // namespace tenon
