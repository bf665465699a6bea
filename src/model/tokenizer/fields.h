// Fields: the members of a JSON object, read with errors that say where.
#pragma once

#include <boost/json.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace tenon::tokenizer {

class Fields {
 public:
  // |where|: "normalizer", "pre_tokenizer.pretokenizers[1]".
  Fields(const boost::json::value& value, std::string where);

  const std::string& where() const noexcept { return where_; }
  bool has(std::string_view name) const;  // and is not null
  std::string text(std::string_view name) const;
  std::string text(std::string_view name, std::string_view fallback) const;
  bool boolean(std::string_view name, bool fallback) const;
  std::int64_t integer(std::string_view name, std::int64_t fallback) const;
  const boost::json::object& object(std::string_view name) const;
  const boost::json::array& array(std::string_view name) const;
  Fields fields(std::string_view name) const;
  const boost::json::value& value(std::string_view name) const;
  const boost::json::object& all() const noexcept { return object_; }

  [[noreturn]] void fail(const std::string& problem) const;  // invalid_argument
  [[noreturn]] void refuse(const std::string& what) const;   // unimplemented

 private:
  const boost::json::value* find(std::string_view name) const;
  const boost::json::object& object_;
  std::string where_;
};

std::string string_of(const boost::json::value& value, const std::string& where);

}  // namespace tenon::tokenizer
