#include "model/checkpoint/onnx_writer.h"

#include <cstring>

#include "tenon/error.h"

namespace tenon::checkpoint {
namespace {

// --- The wire format: a tag, then a number or bytes with their length ---

void put_number(std::string& out, std::uint64_t value) {
  for (; value >= 0x80; value >>= 7) out += static_cast<char>(value | 0x80);
  out += static_cast<char>(value);
}
void put_integer(std::string& out, unsigned field, std::int64_t value) {
  put_number(out, field << 3);
  put_number(out, static_cast<std::uint64_t>(value));
}
void put_bytes(std::string& out, unsigned field, std::string_view bytes) {
  put_number(out, field << 3 | 2);
  put_number(out, bytes.size());
  out += bytes;
}
void put_float(std::string& out, unsigned field, float value) {
  put_number(out, field << 3 | 5);
  char bytes[4];
  std::memcpy(bytes, &value, sizeof bytes);
  out.append(bytes, sizeof bytes);
}

OnnxWriter::Element element_of(DType dtype) {
  switch (dtype) {
    case DType::f32: return OnnxWriter::Element::f32;
    case DType::f16: return OnnxWriter::Element::f16;
    case DType::bf16: return OnnxWriter::Element::bf16;
    case DType::i64: return OnnxWriter::Element::i64;
    default: throw Error(ErrorCode::unimplemented, "weights of type " + std::string(name(dtype)) + " are not supported");
  }
}

}  // namespace

std::string OnnxWriter::value(std::string_view name, Element element, std::initializer_list<std::string_view> dims) {
  std::string shape;
  for (const std::string_view dim : dims) {
    std::string one;
    put_bytes(one, 2, dim);
    put_bytes(shape, 1, one);
  }
  std::string tensor, type, out;
  put_integer(tensor, 1, static_cast<std::int64_t>(element));
  put_bytes(tensor, 2, shape);
  put_bytes(type, 1, tensor);
  put_bytes(out, 1, name);
  put_bytes(out, 2, type);
  return out;
}

void OnnxWriter::input(std::string_view name, Element element, std::initializer_list<std::string_view> dims) {
  put_bytes(inputs_, 11, value(name, element, dims));
}
void OnnxWriter::output(std::string_view name, Element element, std::initializer_list<std::string_view> dims) {
  put_bytes(outputs_, 12, value(name, element, dims));
}

void OnnxWriter::weight(std::string_view name, const HostArray& array) {
  std::string tensor;
  for (const std::int64_t extent : array.shape()) put_integer(tensor, 1, extent);
  put_integer(tensor, 2, static_cast<std::int64_t>(element_of(array.dtype())));
  put_bytes(tensor, 8, name);
  put_bytes(tensor, 9, {reinterpret_cast<const char*>(array.data()), array.bytes()});
  put_bytes(weights_, 5, tensor);
}

std::string OnnxWriter::node(std::string_view op, std::initializer_list<std::string_view> inputs, std::string output,
                             std::initializer_list<Attribute> attributes) {
  constexpr std::int64_t kFloat = 1, kInteger = 2, kText = 3, kIntegers = 7;
  std::string node;
  for (const std::string_view input : inputs) put_bytes(node, 1, input);
  put_bytes(node, 2, output);
  put_bytes(node, 3, output);
  put_bytes(node, 4, op);
  for (const Attribute& each : attributes) {
    std::string attribute;
    put_bytes(attribute, 1, each.name);
    if (each.is_number) put_float(attribute, 2, static_cast<float>(each.number));
    if (!each.text.empty()) put_bytes(attribute, 4, each.text);
    for (const std::int64_t integer : each.integers) put_integer(attribute, each.is_list ? 8 : 3, integer);
    put_integer(attribute, 20, each.is_number ? kFloat : !each.text.empty() ? kText : each.is_list ? kIntegers : kInteger);
    put_bytes(node, 5, attribute);
  }
  put_bytes(nodes_, 1, node);
  return output;
}

std::vector<std::byte> OnnxWriter::finish() const {
  std::string opset, out;
  put_integer(opset, 2, opset_);
  put_integer(out, 1, 10);  // the version of the format
  put_bytes(out, 2, "tenon");
  put_number(out, 7 << 3 | 2);
  put_number(out, nodes_.size() + weights_.size() + inputs_.size() + outputs_.size());
  for (const std::string* part : {&nodes_, &weights_, &inputs_, &outputs_}) out += *part;
  put_bytes(out, 8, opset);
  const auto bytes = std::as_bytes(std::span(out));
  return {bytes.begin(), bytes.end()};
}

}  // namespace tenon::checkpoint
