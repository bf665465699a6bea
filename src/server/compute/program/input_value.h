// One input of a request: {"value": ...}, {"generator": ...}, {"upload": ...} or {"expression": ...} -> an array or a literal.
#pragma once

#include <boost/json.hpp>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "server/compute/program/compute_request.h"

namespace tenon::server {

struct InputValue {
  HostArray array;
  std::optional<double> given;
  // A scalar that takes the type of what it meets, as a number in an expression does: no dtype was asked for.
  bool is_literal = false, is_integer_literal = false;
  bool is_repeatable = true;
  std::shared_ptr<const MemoryGate::Share> upload_memory;  // of an upload that is used where it is
};

// |fallback| is the dtype where the input names none; |memory| counts what is taken for the array. Throws Error naming |where|.
InputValue read_input(const boost::json::value& value, const std::string& where, DType fallback, const ProgramReader& reader,
                      MemoryTally& memory);

}  // namespace tenon::server
