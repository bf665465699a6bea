#include "server/http/body/json_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "ops/names.h"
#include "tenon/error.h"

namespace tenon::server {

namespace json = boost::json;

namespace {

// Of a whole number, written in whatever way, that 64 bits with a sign hold.
std::optional<std::int64_t> as_integer(const json::value& value) {
  if (value.is_int64()) return value.get_int64();
  // What is left of JSON's integers is above 2^63.
  if (!value.is_double()) return std::nullopt;
  const double number = value.get_double();
  constexpr double kEnd = 9223372036854775808.0;
  if (!(number >= -kEnd && number < kEnd) || number != std::floor(number)) return std::nullopt;
  return static_cast<std::int64_t>(number);
}

}  // namespace

json::object parse_object(std::string_view text) {
  json::error_code error;
  json::stream_parser parser({}, {.max_depth = 24});
  const std::size_t used = parser.write_some(text.data(), text.size(), error);
  if (!error) parser.finish(error);
  if (error == json::error::too_deep) throw Error(ErrorCode::invalid_argument, "the JSON is nested deeper than 24 levels");
  if (error || used != text.size())
    throw Error(ErrorCode::invalid_argument, fmt::format("the body is not JSON: {} at byte {}",
                                                         error ? error.message() : "unexpected data after the end", used));
  json::value document = parser.release();
  if (!document.is_object()) throw Error(ErrorCode::invalid_argument, "the body must be a JSON object");
  return std::move(document.get_object());
}

std::optional<double> as_number(const json::value& value) {
  if (value.is_double()) return value.get_double();
  if (value.is_int64()) return static_cast<double>(value.get_int64());
  if (value.is_uint64()) return static_cast<double>(value.get_uint64());
  if (value.is_bool()) return value.get_bool() ? 1.0 : 0.0;
  if (!value.is_string()) return std::nullopt;
  const std::string_view text = value.get_string();
  if (text == "NaN" || text == "nan") return NAN;
  if (text == "Infinity" || text == "inf") return INFINITY;
  if (text == "-Infinity" || text == "-inf") return -INFINITY;
  return std::nullopt;
}

void Members::fail(const std::string& message, const std::string& hint) const {
  throw Error(ErrorCode::invalid_argument, where_.empty() ? message : where_ + ": " + message, hint);
}

const json::value* Members::find(std::string_view name) {
  if (std::find(known_.begin(), known_.end(), name) == known_.end()) known_.emplace_back(name);
  const json::value* value = object_.if_contains(name);
  return value == nullptr || value->is_null() ? nullptr : value;
}

std::optional<std::string> Members::text(std::string_view name) {
  const json::value* value = find(name);
  if (value == nullptr) return std::nullopt;
  if (!value->is_string()) fail(fmt::format("'{}' must be a string", name));
  return std::string(value->get_string());
}

std::optional<bool> Members::boolean(std::string_view name) {
  const json::value* value = find(name);
  if (value == nullptr) return std::nullopt;
  if (!value->is_bool()) fail(fmt::format("'{}' must be true or false", name));
  return value->get_bool();
}

std::optional<double> Members::number(std::string_view name) {
  const json::value* value = find(name);
  if (value == nullptr) return std::nullopt;
  const std::optional<double> number = value->is_bool() ? std::nullopt : as_number(*value);
  if (!number) fail(fmt::format("'{}' must be a number", name));
  return number;
}

std::optional<std::int64_t> Members::integer(std::string_view name, std::int64_t min, std::int64_t max) {
  const json::value* value = find(name);
  if (value == nullptr) return std::nullopt;
  const std::optional<std::int64_t> number = as_integer(*value);
  if (!number || *number < min || *number > max) fail(fmt::format("'{}' must be an integer from {} to {}", name, min, max));
  return number;
}

std::optional<std::uint64_t> Members::natural(std::string_view name) {
  const json::value* value = find(name);
  if (value == nullptr) return std::nullopt;
  if (value->is_uint64()) return value->get_uint64();
  if (!value->is_int64() || value->get_int64() < 0) fail(fmt::format("'{}' must be an integer of at least 0", name));
  return static_cast<std::uint64_t>(value->get_int64());
}

std::optional<DType> Members::dtype(std::string_view name) {
  const std::optional<std::string> wanted = text(name);
  if (!wanted) return std::nullopt;
  try {
    return dtype_named(*wanted);
  } catch (const Error& error) {
    fail(error.what(), error.hint());
  }
}

std::optional<Shape> Members::shape(std::string_view name) {
  const json::value* value = find(name);
  if (value == nullptr) return std::nullopt;
  const std::string must = fmt::format("'{}' must be a list of extents such as [2, 3], or the string \"2,3\"", name);
  std::vector<std::int64_t> extents;
  if (value->is_array()) {
    for (const json::value& extent : value->get_array()) {
      if (!extent.is_int64()) fail(must);
      extents.push_back(extent.get_int64());
    }
  } else if (value->is_string()) {
    std::string_view rest = value->get_string();
    const auto trim = [](std::string_view& text) {
      while (!text.empty() && (text.front() == ' ' || text.front() == '[' || text.front() == '(')) text.remove_prefix(1);
      while (!text.empty() && (text.back() == ' ' || text.back() == ']' || text.back() == ')')) text.remove_suffix(1);
    };
    for (trim(rest); !rest.empty();) {
      const std::size_t comma = rest.find(',');
      std::string_view item = rest.substr(0, comma);
      rest = comma == std::string_view::npos ? std::string_view() : rest.substr(comma + 1);
      trim(item);
      if (item.empty() && rest.empty() && !extents.empty()) break;  // "(3,)"
      std::int64_t extent = 0;
      const auto [end, failure] = std::from_chars(item.data(), item.data() + item.size(), extent);
      if (failure != std::errc() || end != item.data() + item.size()) fail(must);
      extents.push_back(extent);
    }
  } else {
    fail(must);
  }
  try {
    return Shape(extents);
  } catch (const Error& error) {
    throw Error(error.code(), where_.empty() ? std::string(error.what()) : fmt::format("{}: {}", where_, error.what()),
                error.hint());
  }
}

void Members::done() {
  for (const auto& member : object_) {
    const std::string_view key = member.key();
    if (std::find(known_.begin(), known_.end(), key) != known_.end()) continue;
    const std::string near = nearest(key, known_);
    fail(fmt::format("unknown member '{}'", key.substr(0, 64)),
         near.empty() ? "docs/http.md lists the members" : fmt::format("did you mean '{}'?", near));
  }
}

}  // namespace tenon::server
