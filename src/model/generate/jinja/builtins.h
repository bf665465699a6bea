// The filters, tests, functions and methods of templates that need nothing but their arguments.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "model/generate/jinja/value.h"

namespace tenon::jinja {

struct Arguments {
  std::vector<Value> values;
  std::vector<std::pair<std::string, Value>> keywords;

  // By place or by name; undefined if it is neither.
  Value get(std::size_t place, std::string_view keyword) const;
};

// Where an error is, and what is charged for work.
class Work {
 public:
  explicit Work(std::uint64_t budget) : left_(budget) {}
  // Throws resource_exhausted when all is spent.
  void charge(std::uint64_t bytes);
  std::uint32_t line = 0;
  std::uint32_t maps = 0;  // map filters within each other

 private:
  std::uint64_t left_;
};

// Throw unimplemented for a name that is not known, invalid_argument for arguments that do not fit.
Value apply_filter(Work& work, const std::string& name, const Value& value, const Arguments& arguments);
bool apply_test(Work& work, const std::string& name, const Value& value, const Arguments& arguments);
Value call_function(Work& work, const std::string& name, const Arguments& arguments);
Value call_method(Work& work, const Value& object, const std::string& name, const Arguments& arguments);
bool is_function(std::string_view name);

// As to_text(), charged before: a value that holds one other many times can be far longer than the memory it takes.
Text charged_text(Work& work, const Value& value);
// nullptr if there is none.
const Value* find(Work& work, const Map& map, std::string_view key);

// What a loop goes through: elements of a list, keys of a map, characters of a text, nothing of what is undefined.
List elements_of(Work& work, const Value& value);
bool contains(Work& work, const Value& container, const Value& value);
// -1, 0, 1. Throws for values that have no order.
int compare(Work& work, const Value& a, const Value& b);
// Python's a[i] for texts and lists, a[key] for maps; undefined if it is not there.
Value item_of(Work& work, const Value& object, const Value& key);
Value slice_of(Work& work, const Value& object, const Value& begin, const Value& end, const Value& step);

}  // namespace tenon::jinja
