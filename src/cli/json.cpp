#include "cli/json.h"

#include "tenon/expression.h"

namespace tenon::cli {

std::string document(int schema, const WriteMembers& members) {
  std::string text;
  JsonWriter json(text);
  json.begin_object();
  json.member("schema", schema);
  members(json);
  json.end_object();
  return text;
}

void print_document(std::ostream& out, int schema, const WriteMembers& members) {
  out << indented(document(schema, members)) << '\n';
}

void write_error(JsonWriter& json, const Error& error) {
  json.key("error").begin_object();
  json.member("code", to_string(error.code()));
  json.member("message", error.what());
  json.member("hint", error.hint());
  if (const auto* place = dynamic_cast<const ExpressionError*>(&error)) {
    json.member("line", place->place().line);
    json.member("column", place->place().column);
    json.member("length", place->place().length);
  }
  json.end_object();
}

}  // namespace tenon::cli
