// The JSON documents of the command: one object with a schema number, which grows when members change their meaning or go.
//
//   print_document(out, 2, [&](JsonWriter& json) { json.list("ids", ids); });
#pragma once

#include <functional>
#include <ostream>
#include <string>

#include "base/text/json_writer.h"
#include "tenon/error.h"

namespace tenon::cli {

using WriteMembers = std::function<void(JsonWriter&)>;

// {"schema":2,...} on one line, without a newline.
std::string document(int schema, const WriteMembers& members);
// The same indented for people.
void print_document(std::ostream& out, int schema, const WriteMembers& members);

// The members of {"schema": 1, "error": {"code", "message", "hint"}}; an error in an expression also has line, column and length.
void write_error(JsonWriter& json, const Error& error);

}  // namespace tenon::cli
