// Reading JSON requests: what is not as promised is refused with a sentence that names the place.
#pragma once

#include <boost/json.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tenon/array/dtype.h"
#include "tenon/array/shape.h"

namespace tenon::server {

// The document, an object. Throws Error invalid_argument with the offset of a mistake.
boost::json::object parse_object(std::string_view text);

// The members of one object, each asked for by name; what nobody asked for is refused at the end.
class Members {
 public:
  // |where| begins the messages: "input 'a'", "" for the request itself.
  Members(const boost::json::object& object, std::string where) : object_(object), where_(std::move(where)) {}

  // nullptr for a member that is missing or null.
  const boost::json::value* find(std::string_view name);
  bool has(std::string_view name) { return find(name) != nullptr; }

  std::optional<std::string> text(std::string_view name);
  std::optional<bool> boolean(std::string_view name);
  std::optional<double> number(std::string_view name);
  std::optional<std::int64_t> integer(std::string_view name, std::int64_t min, std::int64_t max);
  std::optional<std::uint64_t> natural(std::string_view name);
  std::optional<DType> dtype(std::string_view name);
  std::optional<Shape> shape(std::string_view name);

  // Throws invalid_argument for the first member that was never asked for, with the nearest name.
  void done();
  [[noreturn]] void fail(const std::string& message, const std::string& hint = {}) const;

 private:
  const boost::json::object& object_;
  std::string where_;
  std::vector<std::string> known_;
};

// A number, or one of the strings JSON lacks numbers for.
std::optional<double> as_number(const boost::json::value& value);

}  // namespace tenon::server
