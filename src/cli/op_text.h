// The op catalogue as text and JSON. Everything is read from the registry; nothing here knows an op.
#pragma once

#include <boost/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "cli/terminal/console.h"
#include "tenon/ops.h"

namespace tenon::cli {

// |text| broken at spaces into lines of at most |width|; lines after the first begin with |indent| spaces. A word longer than a
// line stays whole.
std::string wrap(std::string_view text, int width, int indent);

std::string format_value(const ParameterValue& value);  // "none", "1.5", "[0, 1]", "float32"
// "floats and integers", "bool", or the names where the set has no name.
std::string format_dtypes(const std::vector<DType>& dtypes);
std::string format_signature(const OpInfo& op);  // "clamp(x, min=none, max=none)"

std::vector<std::string> categories();        // in the order of their names
std::string op_list(const Console& console);  // all ops by category, one line each
// One op's page; |example_output| is what its example prints, empty to leave it out.
std::string op_page(const OpInfo& op, const Console& console, const std::string& example_output);
boost::json::object op_json(const OpInfo& op);

}  // namespace tenon::cli
