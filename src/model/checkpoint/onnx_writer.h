// OnnxWriter: an ONNX model written field by field, so that a checkpoint becomes a graph that the importer knows.
//
//   OnnxWriter model(23);
//   model.input("x", {"batch", "length"}, kInt64);
//   model.weight("table", array);
//   model.node("Gather", {"table", "x"}, {"y"});
//   std::vector<std::byte> file = model.finish();
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "tenon/array.h"

namespace tenon::checkpoint {

class OnnxWriter {
 public:
  enum class Element : std::uint8_t { f32 = 1, i64 = 7, boolean = 9, f16 = 10, bf16 = 16 };
  struct Attribute {
    Attribute(std::string_view wanted, double value) : name(wanted), number(value), is_number(true) {}
    Attribute(std::string_view wanted, std::int64_t value) : name(wanted), integers{value} {}
    Attribute(std::string_view wanted, std::vector<std::int64_t> values)
        : name(wanted),
          integers(std::move(values)),
          is_list(true) {}
    Attribute(std::string_view wanted, std::string_view value) : name(wanted), text(value) {}
    std::string name, text;  // |text|: one that is a text
    double number = 0;
    std::vector<std::int64_t> integers;
    bool is_number = false, is_list = false;
  };

  explicit OnnxWriter(std::int64_t opset) : opset_(opset) {}

  void input(std::string_view name, Element element, std::initializer_list<std::string_view> dims);
  void output(std::string_view name, Element element, std::initializer_list<std::string_view> dims);
  // f32, f16, bf16 or i64.
  void weight(std::string_view name, const HostArray& array);
  // Returns the output's name.
  std::string node(std::string_view op, std::initializer_list<std::string_view> inputs, std::string output,
                   std::initializer_list<Attribute> attributes = {});
  std::vector<std::byte> finish() const;

 private:
  static std::string value(std::string_view name, Element element, std::initializer_list<std::string_view> dims);
  const std::int64_t opset_;
  std::string nodes_, weights_, inputs_, outputs_;  // fields of GraphProto
};

}  // namespace tenon::checkpoint
