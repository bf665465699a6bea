// Values of a chat template: what Jinja's expressions compute, and texts that know which of their bytes came from a message.
//
// Lifetime: values; lists and maps are shared, and only namespaces change after they are made.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace tenon::jinja {

// A text, byte by byte of the template itself or of a message. Parts and concatenations keep it. Copies share their bytes: a
// template can put one long text into a list a thousand times.
class Text {
 public:
  Text();
  explicit Text(std::string bytes, bool is_content = false);
  Text(const Text&);
  Text(Text&&) noexcept;
  Text& operator=(const Text&);
  Text& operator=(Text&&) noexcept;
  ~Text();

  const std::string& bytes() const noexcept { return data().bytes; }
  bool is_content(std::size_t i) const { return data().marks[i] != '\0'; }
  std::size_t size() const noexcept { return data().bytes.size(); }
  bool empty() const noexcept { return data().bytes.empty(); }

  Text part(std::size_t first, std::size_t count = std::string::npos) const;
  Text& operator+=(const Text& other);
  Text& operator+=(std::string_view of_the_template);
  // Changes single bytes; |change| gives one for one.
  Text changed(const std::function<char(char, std::size_t)>& change) const;

 private:
  struct Data {
    std::string bytes, marks;
  };
  const Data& data() const noexcept;
  Data& own();  // copies what others share

  std::shared_ptr<Data> data_;  // none: empty
};

struct Value;
using List = std::vector<Value>;
using Map = std::vector<std::pair<Text, Value>>;  // in the order of insertion
struct Node;

struct Undefined {
  explicit Undefined(std::string_view what = {}) : name(what.substr(0, 200)) {}
  std::string name;  // what was not there, for messages; cut, since a key can be as long as a template makes it
};
struct None {};
// How large a value is, all that it holds included: bounds what walks through it. A list may hold one value many times.
struct Extent {
  std::uint64_t bytes = 1;  // saturates: [x, x] doubles it
  std::uint32_t depth = 1;

  void hold(std::uint64_t key_bytes, const Extent& value);
};
struct ListValue {
  std::shared_ptr<const List> values;
  Extent extent;
};
struct MapValue {
  std::shared_ptr<Map> entries;
  Extent extent;
  bool is_namespace = false;
};
struct Function {
  std::string name;
};
struct Macro {
  const Node* node = nullptr;
};

struct Value {
  std::variant<Undefined, None, bool, std::int64_t, double, Text, ListValue, MapValue, Function, Macro> held;

  // Defined once and not inline: they are everywhere, and how fast they are does not matter.
  Value();
  Value(const Value&);
  Value(Value&&) noexcept;
  Value& operator=(const Value&);
  Value& operator=(Value&&) noexcept;
  ~Value();
  Value(bool value);
  Value(std::int64_t value);
  Value(double value);
  Value(Text value);
  Value(List values);
  Value(Map entries);
  Value(Undefined value);
  Value(None value);
  Value(MapValue value);
  Value(Function value);
  Value(Macro value);
  Value(const char*) = delete;  // would be a bool
  static Value text(std::string_view of_the_template);

  template <class T>
  const T* get() const {
    return std::get_if<T>(&held);
  }
  const Text* text() const { return get<Text>(); }
  const List* list() const {
    const auto* list = get<ListValue>();
    return list ? list->values.get() : nullptr;
  }
  const Map* map() const {
    const auto* map = get<MapValue>();
    return map ? map->entries.get() : nullptr;
  }
  bool is_undefined() const { return get<Undefined>() != nullptr; }
  bool is_none() const { return get<None>() != nullptr; }
  bool is_true() const;
  // Of bools, integers and floats.
  bool is_number() const { return get<bool>() || get<std::int64_t>() || get<double>(); }
  double number() const;
  Extent extent() const;
  std::string_view kind() const;  // "a text", for messages
};

bool equal(const Value& a, const Value& b);
// As Python's str() and json.dumps() write it; |indent| < 0: on one line.
Text to_text(const Value& value);
Text to_json(const Value& value, int indent = -1);

// The characters of a text: where each begins, and the end.
std::vector<std::size_t> characters(const std::string& text);

}  // namespace tenon::jinja
