// Ops of the catalogue as JSON and as text. Everything is read from the registry; nothing here knows an op.
#pragma once

#include <string>
#include <vector>

#include "base/text/json_writer.h"
#include "present/text.h"
#include "tenon/ops.h"

namespace tenon::present {

// {"name", "aliases", "category", "min_inputs", "max_inputs", "input_names", "dtypes", "parameters", "formula", "doc",
// "example"}; "max_inputs" is -1 for any number.
void write_operation(JsonWriter& json, const OpInfo& op);
// The member "parameters" of that: [{"name", "type", "default", "required", "min", "max", "range", "choices", "doc"}];
// "range" is range_text(), or null.
void write_parameters(JsonWriter& json, const OpInfo& op);
void write_parameter_value(JsonWriter& json, const ParameterValue& value);

// The bounds of a number in words: "at least 0", "more than 0", "0 to 1"; "" if no sensible value lies outside them.
std::string range_text(const Parameter& parameter);
std::string format_value(const ParameterValue& value);  // "none", "1.5", "[0, 1]", "float32"
// "floats and integers", "bool", or the names where the set has no name.
std::string format_dtypes(const std::vector<DType>& dtypes);
std::string format_signature(const OpInfo& op);  // "clamp(x, min=none, max=none)"

std::vector<std::string> categories();        // in the order of their names
std::string op_list(const TextStyle& style);  // all ops by category, one line each
// One op's page; |example_output| is what its example prints, empty to leave it out.
std::string op_page(const OpInfo& op, const TextStyle& style, const std::string& example_output);

}  // namespace tenon::present
