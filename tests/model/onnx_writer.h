// Writes ONNX files for tests: messages in the wire format, field by field.
//
//   Message graph = graph_of({node("Relu", {"x"}, {"y"})}, {value("x", 1, {2})}, {value("y", 1, {2})});
//   Model model = Model::parse(bytes(model_of(graph)));
#pragma once

#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tenon::onnx_writer {

class Message {
 public:
  Message& integer(int field, std::int64_t value) {
    varint(static_cast<std::uint64_t>(field) << 3);
    varint(static_cast<std::uint64_t>(value));
    return *this;
  }
  Message& real(int field, float value) {
    varint(static_cast<std::uint64_t>(field) << 3 | 5);
    text_.append(reinterpret_cast<const char*>(&value), 4);
    return *this;
  }
  Message& text(int field, std::string_view value) {
    varint(static_cast<std::uint64_t>(field) << 3 | 2);
    varint(value.size());
    text_ += value;
    return *this;
  }
  Message& message(int field, const Message& value) { return text(field, value.text_); }
  const std::string& str() const { return text_; }

 private:
  void varint(std::uint64_t value) {
    for (; value >= 0x80; value >>= 7) text_ += static_cast<char>((value & 0x7f) | 0x80);
    text_ += static_cast<char>(value);
  }
  std::string text_;
};

inline std::span<const std::byte> bytes(const Message& message) { return std::as_bytes(std::span(message.str())); }

// A dim of -1 is any extent, named "n".
inline Message value(std::string_view name, int type, std::vector<std::int64_t> dims) {
  Message shape;
  for (const std::int64_t dim : dims) shape.message(1, dim < 0 ? Message().text(2, "n") : Message().integer(1, dim));
  return Message().text(1, name).message(2, Message().message(1, Message().integer(1, type).message(2, shape)));
}

template <class T>
Message tensor(std::string_view name, int type, std::vector<std::int64_t> dims, const std::vector<T>& elements) {
  Message out;
  for (const std::int64_t dim : dims) out.integer(1, dim);
  return out.integer(2, type).text(8, name).text(
      9, std::string_view(reinterpret_cast<const char*>(elements.data()), elements.size() * sizeof(T)));
}

inline Message attribute(std::string_view name, std::int64_t value) {
  return Message().text(1, name).integer(3, value).integer(20, 2);
}
inline Message attribute(std::string_view name, const Message& graph) {
  return Message().text(1, name).message(6, graph).integer(20, 5);
}

inline Message node(std::string_view op, std::vector<std::string> inputs, std::vector<std::string> outputs,
                    std::vector<Message> attributes = {}, std::string_view name = {}) {
  Message out;
  for (const std::string& each : inputs) out.text(1, each);
  for (const std::string& each : outputs) out.text(2, each);
  if (!name.empty()) out.text(3, name);
  out.text(4, op);
  for (const Message& each : attributes) out.message(5, each);
  return out;
}

inline Message graph_of(std::vector<Message> nodes, std::vector<Message> inputs, std::vector<Message> outputs,
                        std::vector<Message> initializers = {}) {
  Message out;
  for (const Message& each : nodes) out.message(1, each);
  out.text(2, "g");
  for (const Message& each : initializers) out.message(5, each);
  for (const Message& each : inputs) out.message(11, each);
  for (const Message& each : outputs) out.message(12, each);
  return out;
}

inline Message model_of(const Message& graph, std::int64_t opset = 17) {
  return Message().integer(1, 8).text(2, "test").message(7, graph).message(8, Message().text(1, "").integer(2, opset));
}

}  // namespace tenon::onnx_writer
