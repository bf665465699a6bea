// Reports of a conformance run: the support matrix and the page docs/conformance.md.
#pragma once

#include <map>
#include <string>
#include <utility>

#include "conformance/runner.h"

namespace tenon::conformance {

using Results = std::map<std::pair<std::string, DType>, Verdict>;  // by op name

// One line per op, one column per dtype: "." pass, "F" fail, "-" unsupported, "?" unavailable, blank: not accepted.
std::string matrix_text(const Results& results);
// Failures, reasons for unsupported ops, and counts.
std::string summary_text(const Results& results);
// The first part of docs/conformance.md: the rules, and a limit for every primitive.
std::string limits_markdown();
// All of docs/conformance.md: the above, and the matrix with the largest errors seen.
std::string markdown_text(const Results& results, std::string_view device);

}  // namespace tenon::conformance
