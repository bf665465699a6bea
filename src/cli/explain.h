// A routing decision, as people and programs read it: each device with what it would take, and why one was chosen.
#pragma once

#include <boost/json.hpp>
#include <string>

#include "cli/terminal/console.h"
#include "tenon/routing.h"

namespace tenon::cli {

// A table and the reason below; ends with a newline.
std::string explanation(const Decision& decision, const Console& console);
// {"device", "reason", "warning", "candidates": [{"id", "queue_seconds", ..., "total_seconds", "dollars", "eligible", "remark"}]}
boost::json::object explanation_json(const Decision& decision);

}  // namespace tenon::cli
