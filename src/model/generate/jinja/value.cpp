#include "model/generate/jinja/value.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

namespace tenon::jinja {
namespace {

std::string float_text(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  std::string text = fmt::format("{}", value);
  if (text.find_first_of(".en") == std::string::npos) text += ".0";
  return text;
}

// A text in quotes, with what must be escaped: in JSON, or as Python's repr() writes it.
Text quoted(const Text& text, bool is_json) {
  const bool has_single = text.bytes().find('\'') != std::string::npos && text.bytes().find('"') == std::string::npos;
  const char quote = is_json || has_single ? '"' : '\'';
  Text out;
  out += std::string_view(&quote, 1);
  std::size_t begin = 0;
  const auto escape = [&](std::size_t i, const std::string& with) {
    out += text.part(begin, i - begin);
    out += Text(with, text.is_content(i));
    begin = i + 1;
  };
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text.bytes()[i];
    switch (c) {
      case '\\': escape(i, "\\\\"); break;
      case '\n': escape(i, "\\n"); break;
      case '\r': escape(i, "\\r"); break;
      case '\t': escape(i, "\\t"); break;
      default:
        if (c == quote)
          escape(i, std::string("\\") + c);
        else if (is_json && c == '\b')
          escape(i, "\\b");
        else if (is_json && c == '\f')
          escape(i, "\\f");
        else if (static_cast<unsigned char>(c) < 32)
          escape(i, fmt::format(fmt::runtime(is_json ? "\\u{:04x}" : "\\x{:02x}"), c));
    }
  }
  out += text.part(begin);
  out += std::string_view(&quote, 1);
  return out;
}

// Writes nested values as JSON or as Python's repr().
class Writer {
 public:
  Writer(bool is_json, int indent) : is_json_(is_json), indent_(indent) {}

  Text run(const Value& value) {
    add(value, 0);
    return std::move(out_);
  }

 private:
  void line(int depth) {
    if (indent_ >= 0) out_ += "\n" + std::string(static_cast<std::size_t>(indent_ * depth), ' ');
  }
  void separate() { out_ += indent_ >= 0 ? "," : ", "; }

  void add(const Value& value, int depth) {
    if (const Text* text = value.text()) {
      out_ += quoted(*text, is_json_);
    } else if (const List* list = value.list()) {
      out_ += "[";
      for (std::size_t i = 0; i < list->size(); ++i) {
        if (i > 0) separate();
        line(depth + 1);
        add((*list)[i], depth + 1);
      }
      if (!list->empty()) line(depth);
      out_ += "]";
    } else if (const Map* map = value.map()) {
      out_ += "{";
      for (std::size_t i = 0; i < map->size(); ++i) {
        if (i > 0) separate();
        line(depth + 1);
        out_ += quoted((*map)[i].first, is_json_);
        out_ += ": ";
        add((*map)[i].second, depth + 1);
      }
      if (!map->empty()) line(depth);
      out_ += "}";
    } else if (is_json_ && value.get<bool>()) {
      out_ += value.is_true() ? "true" : "false";
    } else if (is_json_ && (value.is_none() || value.is_undefined())) {
      out_ += "null";
    } else {
      out_ += to_text(value);
    }
  }

  const bool is_json_;
  const int indent_;
  Text out_;
};

}  // namespace

Text::Text() = default;
Text::Text(std::string bytes, bool is_content) {
  std::string marks(bytes.size(), is_content ? '\1' : '\0');
  data_ = std::make_shared<Data>(Data{std::move(bytes), std::move(marks)});
}
Text::Text(const Text&) = default;
Text::Text(Text&&) noexcept = default;
Text& Text::operator=(const Text&) = default;
Text& Text::operator=(Text&&) noexcept = default;
Text::~Text() = default;

const Text::Data& Text::data() const noexcept {
  static const Data empty;
  return data_ ? *data_ : empty;
}
Text::Data& Text::own() {
  // A count of 1 cannot grow meanwhile: only this text could be copied, and it is being changed.
  if (!data_ || data_.use_count() > 1) data_ = std::make_shared<Data>(data());
  return *data_;
}

Text Text::part(std::size_t first, std::size_t count) const {
  if (first == 0 && count >= size()) return *this;
  if (count == 0) return {};
  Text out;
  out.data_ = std::make_shared<Data>(Data{data().bytes.substr(first, count), data().marks.substr(first, count)});
  return out;
}
Text& Text::operator+=(const Text& other) {
  if (other.empty()) return *this;
  if (empty()) return *this = other;
  const std::shared_ptr<const Data> added = other.data_;  // stays as it is if |other| is this text
  Data& data = own();
  data.bytes += added->bytes;
  data.marks += added->marks;
  return *this;
}
Text& Text::operator+=(std::string_view of_the_template) {
  Data& data = own();
  data.bytes += of_the_template;
  data.marks.append(of_the_template.size(), '\0');
  return *this;
}
Text Text::changed(const std::function<char(char, std::size_t)>& change) const {
  Text out = *this;
  std::string& bytes = out.own().bytes;
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = change(bytes[i], i);
  return out;
}

Value::Value() = default;
Value::Value(const Value&) = default;
Value::Value(Value&&) noexcept = default;
Value& Value::operator=(const Value&) = default;
Value& Value::operator=(Value&&) noexcept = default;
Value::~Value() = default;
Value::Value(bool value) : held(value) {}
Value::Value(std::int64_t value) : held(value) {}
Value::Value(double value) : held(value) {}
Value::Value(Text value) : held(std::move(value)) {}
Value::Value(Undefined value) : held(std::move(value)) {}
Value::Value(None value) : held(value) {}
Value::Value(MapValue value) : held(std::move(value)) {}
Value::Value(Function value) : held(std::move(value)) {}
Value::Value(Macro value) : held(value) {}
Value Value::text(std::string_view of_the_template) { return Text(std::string(of_the_template)); }

void Extent::hold(std::uint64_t key_bytes, const Extent& value) {
  constexpr std::uint64_t most = std::numeric_limits<std::uint64_t>::max();
  for (const std::uint64_t each : {key_bytes, value.bytes}) bytes = each > most - bytes ? most : bytes + each;
  depth = std::max(depth, value.depth + 1);
}

static Extent extent_of(const Map& entries) {
  Extent extent;
  for (const auto& [key, value] : entries) extent.hold(key.size(), value.extent());
  return extent;
}

Extent Value::extent() const {
  if (const Text* held_text = text()) return {1 + held_text->size(), 1};
  if (const auto* held_list = get<ListValue>()) return held_list->extent;
  // A namespace changes after it is made.
  if (const auto* held_map = get<MapValue>()) return held_map->is_namespace ? extent_of(*held_map->entries) : held_map->extent;
  return {};
}

Value::Value(List values) {
  Extent extent;
  for (const Value& each : values) extent.hold(0, each.extent());
  held = ListValue{std::make_shared<const List>(std::move(values)), extent};
}

Value::Value(Map entries) {
  const Extent extent = extent_of(entries);
  held = MapValue{std::make_shared<Map>(std::move(entries)), extent, false};
}

bool Value::is_true() const {
  if (const bool* flag = get<bool>()) return *flag;
  if (is_number()) return number() != 0;
  if (const Text* held_text = text()) return !held_text->empty();
  if (const List* held_list = list()) return !held_list->empty();
  if (const auto* held_map = get<MapValue>()) return held_map->is_namespace || !held_map->entries->empty();
  return !is_undefined() && !is_none();
}

double Value::number() const {
  if (const bool* flag = get<bool>()) return *flag ? 1 : 0;
  if (const auto* integer = get<std::int64_t>()) return static_cast<double>(*integer);
  const double* real = get<double>();
  return real ? *real : 0;
}

std::string_view Value::kind() const {
  constexpr std::string_view names[] = {"undefined", "none",   "a bool", "an integer", "a float",
                                        "a text",    "a list", "a map",  "a function", "a macro"};
  return names[held.index()];
}

bool equal(const Value& a, const Value& b) {
  if (a.is_number() && b.is_number()) return a.number() == b.number();
  if (a.text() && b.text()) return a.text()->bytes() == b.text()->bytes();
  if (a.list() && b.list()) return std::equal(a.list()->begin(), a.list()->end(), b.list()->begin(), b.list()->end(), equal);
  if (a.map() && b.map()) {
    if (a.map()->size() != b.map()->size()) return false;
    // An index, since who compares is charged for the entries, not for their product. It keeps the first of equal keys, as
    // lookups do.
    std::map<std::string_view, const Value*> others;
    for (const auto& [key, value] : *b.map()) others.emplace(key.bytes(), &value);
    return std::all_of(a.map()->begin(), a.map()->end(), [&](const auto& entry) {
      const auto other = others.find(entry.first.bytes());
      return other != others.end() && equal(entry.second, *other->second);
    });
  }
  return (a.is_none() && b.is_none()) || (a.is_undefined() && b.is_undefined());
}

Text to_text(const Value& value) {
  if (const Text* text = value.text()) return *text;
  if (const bool* flag = value.get<bool>()) return Text(*flag ? "True" : "False");
  if (const auto* integer = value.get<std::int64_t>()) return Text(fmt::format("{}", *integer));
  if (const double* real = value.get<double>()) return Text(float_text(*real));
  if (value.is_none()) return Text("None");
  if (value.list() || value.map()) return Writer(false, -1).run(value);
  return {};
}

Text to_json(const Value& value, int indent) { return Writer(true, indent).run(value); }

std::vector<std::size_t> characters(const std::string& text) {
  const auto begins = [&](std::size_t i) { return (static_cast<unsigned char>(text[i]) & 0xc0) != 0x80 || i == 0; };
  std::size_t count = 1;
  for (std::size_t i = 0; i < text.size(); ++i) count += begins(i);
  std::vector<std::size_t> out;
  out.reserve(count);  // eight bytes for each of a long text: growing would take twice as much
  for (std::size_t i = 0; i < text.size(); ++i)
    if (begins(i)) out.push_back(i);
  out.push_back(text.size());
  return out;
}

}  // namespace tenon::jinja
