#include "model/tokenizer/fields.h"

#include <fmt/format.h>

#include "base/text/printable.h"
#include "tenon/error.h"

namespace tenon::tokenizer {
namespace {

const boost::json::object& object_of(const boost::json::value& value, const std::string& where) {
  if (!value.is_object()) throw Error(ErrorCode::invalid_argument, fmt::format("tokenizer: {} is not an object", where));
  return value.get_object();
}

}  // namespace

std::string string_of(const boost::json::value& value, const std::string& where) {
  if (!value.is_string()) throw Error(ErrorCode::invalid_argument, fmt::format("tokenizer: {} is not a string", where));
  return std::string(value.get_string());
}

Fields::Fields(const boost::json::value& value, std::string where) : object_(object_of(value, where)), where_(std::move(where)) {}

void Fields::fail(const std::string& problem) const {
  throw Error(ErrorCode::invalid_argument, fmt::format("tokenizer: {}: {}", where_, problem));
}
void Fields::refuse(const std::string& what) const {
  throw Error(ErrorCode::unimplemented, fmt::format("tokenizer: {}: {} is not supported", where_, printable(what)));
}

const boost::json::value* Fields::find(std::string_view name) const {
  const boost::json::value* found = object_.if_contains(name);
  return found && !found->is_null() ? found : nullptr;
}

bool Fields::has(std::string_view name) const { return find(name) != nullptr; }

const boost::json::value& Fields::value(std::string_view name) const {
  const boost::json::value* found = find(name);
  if (!found) fail(fmt::format("'{}' is missing", name));
  return *found;
}

std::string Fields::text(std::string_view name) const { return string_of(value(name), fmt::format("{}.{}", where_, name)); }
std::string Fields::text(std::string_view name, std::string_view fallback) const {
  return has(name) ? text(name) : std::string(fallback);
}

bool Fields::boolean(std::string_view name, bool fallback) const {
  const boost::json::value* found = find(name);
  if (!found) return fallback;
  if (!found->is_bool()) fail(fmt::format("'{}' is neither true nor false", name));
  return found->get_bool();
}

std::int64_t Fields::integer(std::string_view name, std::int64_t fallback) const {
  const boost::json::value* found = find(name);
  if (!found) return fallback;
  if (!found->is_int64()) fail(fmt::format("'{}' is not an integer", name));
  return found->get_int64();
}

const boost::json::object& Fields::object(std::string_view name) const {
  return object_of(value(name), fmt::format("{}.{}", where_, name));
}

const boost::json::array& Fields::array(std::string_view name) const {
  const boost::json::value& found = value(name);
  if (!found.is_array()) fail(fmt::format("'{}' is not a list", name));
  return found.get_array();
}

Fields Fields::fields(std::string_view name) const { return {value(name), fmt::format("{}.{}", where_, name)}; }

}  // namespace tenon::tokenizer
