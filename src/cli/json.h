// The JSON documents of the command: tensors as nested lists, and text that people can read too.
#pragma once

#include <boost/json.hpp>
#include <exception>
#include <string>

#include "tenon/array.h"
#include "tenon/device.h"
#include "tenon/error.h"

namespace tenon::cli {

// Nested lists in the array's shape; a scalar is one value. Integers are exact; floats are the shortest numbers that give back
// the same element; NaN and infinities are "NaN", "Infinity", "-Infinity".
boost::json::value to_json(const HostArray& array);
// What one must know of a device that computed something.
boost::json::object to_json(const DeviceInfo& device);
// Everything known of a device; null where nothing is.
boost::json::object to_full_json(const DeviceInfo& device);
// {"schema": 1, "error": {"code", "message", "hint"}}; an error in an expression also has line, column and length.
boost::json::object error_document(const Error& error);

// Indented; lists without objects inside stay on one line. Ends with a newline.
std::string to_text(const boost::json::value& document);

}  // namespace tenon::cli
