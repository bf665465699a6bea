#include "model/generate/jinja/builtins.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <ctime>
#include <limits>
#include <optional>

#include "base/text/printable.h"
#include "model/generate/jinja/syntax.h"
#include "model/generate/jinja/text_functions.h"
#include "tenon/error.h"

namespace tenon::jinja {
namespace {

constexpr std::int64_t kLongestRange = 100'000;
constexpr std::uint32_t kDeepestMap = 16;

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; }

[[noreturn]] void unknown(const Work& work, std::string_view what, const std::string& name) {
  throw Error(ErrorCode::unimplemented,
              fmt::format("the chat template, line {}: the {} '{}' is not supported", work.line, what, printable(name)));
}

// "a.b" of a value, as map(attribute=...) and selectattr take it.
Value attribute_of(Work& work, Value value, const std::string& path) {
  work.charge(16 + path.size());
  for (std::size_t begin = 0; begin <= path.size();) {
    const std::size_t end = std::min(path.find('.', begin), path.size());
    const Map* map = value.map();
    const Value* found = map ? find(work, *map, path.substr(begin, end - begin)) : nullptr;
    if (!found) return Undefined{path};
    value = Value(*found);  // a copy, since |found| is in |value|
    begin = end + 1;
  }
  return value;
}

// select, reject, selectattr, rejectattr: what a test, or truth, keeps.
List chosen(Work& work, const Value& value, const Arguments& arguments, bool by_attribute, bool keeps) {
  const std::size_t first = by_attribute ? 1 : 0;
  const bool has_test = arguments.values.size() > first;
  Arguments rest;
  if (has_test) rest.values.assign(arguments.values.begin() + static_cast<std::ptrdiff_t>(first) + 1, arguments.values.end());
  List out;
  if (!value.is_true()) return out;  // none, too
  for (const Value& each : elements_of(work, value)) {
    Value subject = each;
    if (by_attribute) subject = attribute_of(work, each, needed_text(work, arguments.get(0, "attribute"), "selectattr").bytes());
    bool holds = subject.is_true();
    if (has_test) holds = apply_test(work, needed_text(work, arguments.values[first], "select").bytes(), subject, rest);
    if (holds == keeps) out.push_back(each);
  }
  return out;
}

List mapped(Work& work, const Value& value, const Arguments& arguments) {
  List out;
  if (!value.is_true()) return out;
  // map(filter='map') calls itself with the same arguments.
  if (++work.maps > kDeepestMap)
    throw Error(ErrorCode::resource_exhausted, fmt::format("the chat template, line {}: it is nested too deeply", work.line));
  const Value attribute = arguments.get(9, "attribute"), otherwise = arguments.get(9, "default");
  Arguments rest;
  rest.values.assign(arguments.values.begin() + std::min<std::ptrdiff_t>(1, std::ssize(arguments.values)),
                     arguments.values.end());
  rest.keywords = arguments.keywords;
  for (const Value& each : elements_of(work, value)) {
    Value made = attribute.text() ? attribute_of(work, each, attribute.text()->bytes())
                                  : apply_filter(work, needed_text(work, arguments.get(0, "filter"), "map").bytes(), each, rest);
    if (attribute.text() && made.is_undefined() && !otherwise.is_undefined()) made = otherwise;
    if (const auto* map = made.get<MapValue>(); map && map->is_namespace)
      fail_at(work.line, "a namespace cannot be kept in another value");
    out.push_back(std::move(made));
  }
  --work.maps;
  return out;
}

List sorted(Work& work, const List& list, const Arguments& arguments) {
  const Value attribute = arguments.get(2, "attribute");
  const bool is_reversed = arguments.get(0, "reverse").is_true(), keeps_case = arguments.get(1, "case_sensitive").is_true();
  const auto key = [&](const Value& value) {
    Value out = attribute.text() ? attribute_of(work, value, attribute.text()->bytes()) : value;
    work.charge(out.extent().bytes);
    if (out.text() && !keeps_case) return Value(out.text()->changed([](char c, std::size_t) { return lower(c); }));
    return out;
  };
  // By insertion: such lists are short, and this is little code.
  List out;
  for (const Value& each : list) {
    std::size_t place = out.size();
    for (; place > 0; --place) {
      work.charge(64);
      const int order = compare(work, key(each), key(out[place - 1]));
      if (is_reversed ? order <= 0 : order >= 0) break;
    }
    out.insert(out.begin() + static_cast<std::ptrdiff_t>(place), each);
  }
  return out;
}

List pairs_of(Work& work, const Map& map) {
  work.charge(64 * map.size());
  List out;
  for (const auto& [key, value] : map) out.emplace_back(List{key, value});
  return out;
}

std::int64_t length_of(const Work& work, const Value& value) {
  if (value.text()) return std::ssize(characters(value.text()->bytes())) - 1;
  if (value.list()) return std::ssize(*value.list());
  if (value.map()) return std::ssize(*value.map());
  if (value.is_undefined()) return 0;
  fail_at(work.line, fmt::format("{} has no length", value.kind()));
}

std::int64_t magnitude(const Work& work, const Value& value) {
  const std::int64_t integer = value.is_number() ? integer_or(work, value, 0) : 0;
  if (integer == std::numeric_limits<std::int64_t>::min()) fail_at(work.line, "a number is too large");
  return std::abs(integer);
}

Value to_number(const Value& value, bool is_integer) {
  double number = value.number();
  if (const Text* text = value.text()) {
    const std::string bytes = without_spaces(*text).bytes();
    char* end = nullptr;
    number = std::strtod(bytes.c_str(), &end);
    if (bytes.empty() || end != bytes.c_str() + bytes.size()) number = 0;
  }
  if (!is_integer) return number;
  return std::abs(number) <= 9e15 ? static_cast<std::int64_t>(number) : std::int64_t{0};
}

Text now_as(Work& work, const std::string& format) {
  if (format.size() > 200) fail_at(work.line, "the format of a time is too long");
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  localtime_r(&now, &parts);
  std::array<char, 4096> text{};
  return Text(std::string(text.data(), std::strftime(text.data(), text.size(), format.c_str(), &parts)));
}

}  // namespace

Value Arguments::get(std::size_t place, std::string_view keyword) const {
  if (place < values.size()) return values[place];
  for (const auto& [name, value] : keywords)
    if (name == keyword) return value;
  return {};
}

void Work::charge(std::uint64_t bytes) {
  if (bytes > left_)
    throw Error(ErrorCode::resource_exhausted, fmt::format("the chat template, line {}: it does more than is allowed", line));
  left_ -= bytes;
}

Text charged_text(Work& work, const Value& value) {
  work.charge(value.extent().bytes);
  return to_text(value);
}

const Value* find(Work& work, const Map& map, std::string_view key) {
  for (const auto& [name, value] : map) {
    work.charge(name.size() == key.size() ? 1 + key.size() : 1);
    if (name.bytes() == key) return &value;
  }
  return nullptr;
}

List elements_of(Work& work, const Value& value) {
  if (const List* list = value.list()) {
    work.charge(16 * list->size());
    return *list;
  }
  List out;
  if (const Map* map = value.map()) {
    work.charge(16 * map->size());
    for (const auto& [key, each] : *map) out.emplace_back(key);
  } else if (const Text* text = value.text()) {
    const std::vector<std::size_t> places = characters(text->bytes());
    work.charge(64 * places.size());
    for (std::size_t i = 0; i + 1 < places.size(); ++i) out.emplace_back(text->part(places[i], places[i + 1] - places[i]));
  } else if (!value.is_undefined()) {
    fail_at(work.line, fmt::format("{} has no elements", value.kind()));
  }
  return out;
}

bool contains(Work& work, const Value& container, const Value& value) {
  if (const Text* text = container.text())
    return find(work, text->bytes(), needed_text(work, value, "in").bytes()) != std::string::npos;
  if (const Map* map = container.map()) return value.text() && find(work, *map, value.text()->bytes());
  const List list = elements_of(work, container);
  return std::any_of(list.begin(), list.end(), [&](const Value& each) {
    work.charge(std::min(each.extent().bytes, value.extent().bytes));
    return equal(each, value);
  });
}

int compare(Work& work, const Value& a, const Value& b) {
  if (a.is_number() && b.is_number()) return a.number() < b.number() ? -1 : a.number() > b.number();
  if (a.text() && b.text()) {
    const int order = a.text()->bytes().compare(b.text()->bytes());
    return order < 0 ? -1 : order > 0;
  }
  fail_at(work.line, fmt::format("{} and {} have no order", a.kind(), b.kind()));
}

Value item_of(Work& work, const Value& object, const Value& key) {
  if (const auto* missing = object.get<Undefined>())
    fail_at(work.line, fmt::format("'{}' is undefined and has no elements", printable(missing->name)));
  if (const Map* map = object.map()) {
    const Value* found = key.text() ? find(work, *map, key.text()->bytes()) : nullptr;
    return found ? *found : Value(Undefined{charged_text(work, key).bytes()});
  }
  const auto* index = key.get<std::int64_t>();
  if (!index || (!object.text() && !object.list())) return Undefined{charged_text(work, key).bytes()};
  if (object.text()) work.charge(object.text()->size());
  const std::int64_t n = length_of(work, object), i = *index < 0 ? *index + n : *index;
  if (i < 0 || i >= n) return Undefined{fmt::format("element {}", *index)};
  if (const List* list = object.list()) return (*list)[static_cast<std::size_t>(i)];
  const std::vector<std::size_t> places = characters(object.text()->bytes());
  const auto at = static_cast<std::size_t>(i);
  return object.text()->part(places[at], places[at + 1] - places[at]);
}

Value slice_of(Work& work, const Value& object, const Value& begin, const Value& end, const Value& step) {
  if (!object.text() && !object.list()) fail_at(work.line, fmt::format("{} has no parts", object.kind()));
  const List all = elements_of(work, object);
  const std::int64_t n = std::ssize(all), by = integer_or(work, step, 1);
  if (by == 0) fail_at(work.line, "a slice with step 0");
  const auto place = [&](const Value& value, std::int64_t otherwise) {
    if (value.is_none() || value.is_undefined()) return otherwise;
    const std::int64_t given = std::clamp<std::int64_t>(integer_or(work, value, 0), -n - 1, n), i = given < 0 ? given + n : given;
    return std::clamp<std::int64_t>(i, by > 0 ? 0 : -1, by > 0 ? n : n - 1);
  };
  const std::int64_t first = place(begin, by > 0 ? 0 : n - 1), last = place(end, by > 0 ? n : -1);
  List out;
  for (std::int64_t i = first; by > 0 ? i < last : i > last; i += std::clamp(by, -n - 1, n + 1))
    out.push_back(all[static_cast<std::size_t>(i)]);
  if (object.list()) return out;
  return joined(work, out, {});
}

Value apply_filter(Work& work, const std::string& name, const Value& value, const Arguments& arguments) {
  const auto get = [&](std::size_t place, std::string_view keyword) { return arguments.get(place, keyword); };
  if (name == "default" || name == "d") {
    const bool is_missing = value.is_undefined() || (get(1, "boolean").is_true() && !value.is_true());
    if (!is_missing) return value;
    const Value otherwise = get(0, "default_value");
    return otherwise.is_undefined() ? Value::text("") : otherwise;
  }
  if (name == "tojson") {
    const Value indent = get(9, "indent").is_undefined() ? get(0, "indent") : get(9, "indent");
    const std::int64_t width = std::clamp<std::int64_t>(integer_or(work, indent, -1), -1, 16);
    // Each element can begin a line, indented by as much as it is deep.
    const Extent extent = value.extent();
    const std::uint64_t each = 1 + static_cast<std::uint64_t>(std::max<std::int64_t>(width, 0)) * extent.depth;
    constexpr std::uint64_t most = std::numeric_limits<std::uint64_t>::max();
    work.charge(extent.bytes > most / each ? most : extent.bytes * each);
    return to_json(value, static_cast<int>(width));
  }
  if (name == "length" || name == "count") return length_of(work, value);
  if (name == "int" || name == "float") return to_number(value, name == "int");
  if (name == "abs") return value.get<double>() ? Value(std::abs(value.number())) : Value(magnitude(work, value));
  if (name == "items") return value.map() ? pairs_of(work, *value.map()) : List{};
  if (name == "list") return elements_of(work, value);
  if (name == "select" || name == "reject") return chosen(work, value, arguments, false, name == "select");
  if (name == "selectattr" || name == "rejectattr") return chosen(work, value, arguments, true, name == "selectattr");
  if (name == "map") return mapped(work, value, arguments);
  if (name == "join") {
    List list = elements_of(work, value);
    const Value attribute = get(1, "attribute");
    if (attribute.text())
      for (Value& each : list) each = attribute_of(work, each, attribute.text()->bytes());
    return joined(work, list, charged_text(work, get(0, "d")));
  }
  if (name == "dictsort" && value.map()) {
    List keys = sorted(work, elements_of(work, value), {}), out;
    for (const Value& key : keys) out.emplace_back(List{key, *find(work, *value.map(), key.text()->bytes())});
    return out;
  }
  if (name == "first" || name == "last" || name == "reverse" || name == "sort" || name == "unique" || name == "min" ||
      name == "max" || name == "sum") {
    List list = elements_of(work, value);
    if (name == "first" || name == "last") {
      if (list.empty()) return Undefined{name};
      return name == "first" ? list.front() : list.back();
    }
    if (name == "sort") return sorted(work, list, arguments);
    if (name == "reverse") {
      std::reverse(list.begin(), list.end());
      return value.text() ? Value(joined(work, list, {})) : Value(std::move(list));
    }
    if (name == "unique") {
      List out;
      for (const Value& each : list)
        if (!contains(work, out, each)) out.push_back(each);
      return out;
    }
    if (name == "sum") {
      double sum = 0;
      bool is_real = false;
      for (const Value& each : list) {
        sum += each.number();
        is_real = is_real || each.get<double>();
      }
      return is_real || std::abs(sum) > 9e15 ? Value(sum) : Value(static_cast<std::int64_t>(sum));
    }
    list = sorted(work, list, {});
    if (list.empty()) return Undefined{name};
    return name == "min" ? list.front() : list.back();
  }
  if (std::optional<Value> made = text_filter(work, name, to_text(value), arguments)) return *std::move(made);
  unknown(work, "filter", name);
}

bool apply_test(Work& work, const std::string& name, const Value& value, const Arguments& arguments) {
  const Value other = arguments.get(0, "other");
  if (name == "defined") return !value.is_undefined();
  if (name == "undefined") return value.is_undefined();
  if (name == "none") return value.is_none();
  if (name == "string") return value.text() != nullptr;
  if (name == "mapping") return value.map() != nullptr;
  if (name == "iterable") return value.text() || value.list() || value.map() || value.is_undefined();
  if (name == "sequence") return value.text() || value.list() || value.map() || value.is_undefined();
  if (name == "number") return value.is_number();
  if (name == "integer") return value.get<std::int64_t>() != nullptr;
  if (name == "float") return value.get<double>() != nullptr;
  if (name == "boolean") return value.get<bool>() != nullptr;
  if (name == "true" || name == "false") return value.get<bool>() && value.is_true() == (name == "true");
  if (name == "callable") return value.get<Function>() || value.get<Macro>();
  if (name == "odd" || name == "even") return (integer_or(work, value, 0) % 2 != 0) == (name == "odd");
  if (name == "divisibleby") {
    const std::int64_t by = integer_or(work, arguments.get(0, "num"), 0);
    if (by == 0) fail_at(work.line, "a division by zero");
    return by == -1 || integer_or(work, value, 0) % by == 0;
  }
  if (name == "upper" || name == "lower") {
    const Text text = charged_text(work, value);
    const std::optional<Value> changed = text_filter(work, name, text, {});
    return changed && equal(*changed, text);
  }
  work.charge(value.extent().bytes);
  work.charge(other.extent().bytes);
  if (name == "equalto" || name == "eq" || name == "sameas") return equal(value, other);
  if (name == "ne") return !equal(value, other);
  if (name == "in") return contains(work, other, value);
  if (name == "lt" || name == "lessthan") return compare(work, value, other) < 0;
  if (name == "gt" || name == "greaterthan") return compare(work, value, other) > 0;
  if (name == "le") return compare(work, value, other) <= 0;
  if (name == "ge") return compare(work, value, other) >= 0;
  unknown(work, "test", name);
}

bool is_function(std::string_view name) {
  return name == "namespace" || name == "range" || name == "dict" || name == "raise_exception" || name == "strftime_now";
}

Value call_function(Work& work, const std::string& name, const Arguments& arguments) {
  if (name == "raise_exception")
    throw Error(ErrorCode::invalid_argument, fmt::format("the model's chat template refuses these messages: {}",
                                                         printable(charged_text(work, arguments.get(0, "message")).bytes())));
  if (name == "strftime_now") return now_as(work, needed_text(work, arguments.get(0, "format"), name).bytes());
  if (name == "range") {
    const bool has_begin = arguments.values.size() > 1;
    const std::int64_t begin = has_begin ? integer_or(work, arguments.values[0], 0) : 0,
                       end = integer_or(work, arguments.get(has_begin ? 1 : 0, "stop"), 0),
                       step = integer_or(work, arguments.get(2, "step"), 1);
    if (step == 0) fail_at(work.line, "a range with step 0");
    if (std::abs(static_cast<double>(end) - static_cast<double>(begin)) > kLongestRange)
      fail_at(work.line, "a range is too long");
    List out;
    const std::int64_t by = std::clamp(step, -kLongestRange - 1, kLongestRange + 1);
    // From 0, since |begin| may be close to the largest integer.
    for (std::int64_t i = 0; by > 0 ? i < end - begin : i > end - begin; i += by) {
      work.charge(16);
      out.emplace_back(begin + i);
    }
    return out;
  }
  Map map;
  const Value given = arguments.get(0, {});
  if (given.map()) {
    work.charge(32 * given.map()->size());
    map = *given.map();
  }
  for (const auto& [key, value] : arguments.keywords) map.emplace_back(Text(key), value);
  if (name == "dict") return map;
  return MapValue{std::make_shared<Map>(std::move(map)), {}, true};
}

Value call_method(Work& work, const Value& object, const std::string& name, const Arguments& arguments) {
  if (const Map* map = object.map()) {
    if (name == "items") return pairs_of(work, *map);
    if (name == "keys") return elements_of(work, object);
    if (name == "values") {
      work.charge(16 * map->size());
      List out;
      for (const auto& [key, value] : *map) out.push_back(value);
      return out;
    }
    if (name == "get") {
      const Value key = arguments.get(0, "key");
      const Value* found = key.text() ? find(work, *map, key.text()->bytes()) : nullptr;
      if (found) return *found;
      return arguments.values.size() > 1 ? arguments.values[1] : Value(None{});
    }
  }
  if (const Text* text = object.text())
    if (std::optional<Value> made = text_method(work, *text, name, arguments)) return *std::move(made);
  const auto is_sought = [&, sought = arguments.get(0, {})](const Value& each) {
    work.charge(std::min(each.extent().bytes, sought.extent().bytes));
    return equal(each, sought);
  };
  if (object.list() && name == "index") {
    for (std::size_t i = 0; i < object.list()->size(); ++i)
      if (is_sought((*object.list())[i])) return static_cast<std::int64_t>(i);
    fail_at(work.line, "'index' of what is not in the list");
  }
  if (object.list() && name == "count")
    return static_cast<std::int64_t>(std::count_if(object.list()->begin(), object.list()->end(), is_sought));
  if (object.is_none()) fail_at(work.line, fmt::format("none has no '{}'", printable(name)));
  unknown(work, "method", name);
}

}  // namespace tenon::jinja
