#include "model/onnx/convert.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "base/text/printable.h"
#include "model/onnx/import/weights.h"
#include "tenon/error.h"

namespace tenon::onnx {
namespace {

constexpr std::int64_t kLeastElements = 1024;
constexpr std::size_t kLargestModel = 0x7fffffff;  // of the format

[[noreturn]] void damaged() { throw Error(ErrorCode::invalid_argument, "the model ends within a field"); }

std::uint64_t varint(Bytes& from) {
  std::uint64_t value = 0;
  for (int shift = 0; shift < 64; shift += 7) {
    if (from.empty()) damaged();
    const auto byte = static_cast<std::uint64_t>(from[0]);
    from = from.subspan(1);
    value |= (byte & 0x7f) << shift;
    if (byte < 0x80) return value;
  }
  damaged();
}

// Calls f(field, whole, payload) for every field of a message; |payload| is empty for numbers.
template <class F>
void each_field(Bytes message, F f) {
  while (!message.empty()) {
    Bytes rest = message;
    const std::uint64_t tag = varint(rest);
    Bytes payload;
    switch (tag & 7) {
      case 0: varint(rest); break;
      case 1:
      case 5: {
        const std::size_t size = (tag & 7) == 1 ? 8 : 4;
        if (rest.size() < size) damaged();
        rest = rest.subspan(size);
        break;
      }
      case 2: {
        const std::uint64_t size = varint(rest);
        if (size > rest.size()) damaged();
        payload = rest.first(static_cast<std::size_t>(size));
        rest = rest.subspan(static_cast<std::size_t>(size));
        break;
      }
      default: damaged();
    }
    f(static_cast<int>(tag >> 3), message.first(message.size() - rest.size()), payload);
    message = rest;
  }
}

class Message {
 public:
  Message& number(int field, std::int64_t value) {
    put(static_cast<std::uint64_t>(field) << 3);
    put(static_cast<std::uint64_t>(value));
    return *this;
  }
  Message& text(int field, std::string_view value) {
    put(static_cast<std::uint64_t>(field) << 3 | 2);
    put(value.size());
    bytes_ += value;
    return *this;
  }
  Message& copy(Bytes field) {
    bytes_.append(reinterpret_cast<const char*>(field.data()), field.size());
    return *this;
  }
  std::string& bytes() { return bytes_; }

 private:
  void put(std::uint64_t value) {
    for (; value >= 0x80; value >>= 7) bytes_ += static_cast<char>((value & 0x7f) | 0x80);
    bytes_ += static_cast<char>(value);
  }
  std::string bytes_;
};

class Writer {
 public:
  Writer(const ModelProto& model, const ExternalData& external, DType to) : model_(model), external_(external), to_(to) {
    // An initializer that is an input, too, is a default that a caller may replace.
    for (const ValueInfoProto& input : model.graph.inputs) inputs_.insert(input.name);
  }

  std::string graph(Bytes bytes) {
    Message others;
    std::size_t node = 0, initializer = 0;
    each_field(bytes, [&](int field, Bytes whole, Bytes) {
      if (field == 1) {
        const NodeProto& proto = model_.graph.nodes.at(node++);
        if (const TensorProto* tensor = constant_of(proto); tensor && is_large(*tensor))
          return convert(*tensor, proto.outputs[0]);
      } else if (field == 5) {
        const TensorProto& tensor = model_.graph.initializers.at(initializer++);
        if (is_large(tensor) && !inputs_.contains(tensor.name)) return convert(tensor, tensor.name);
      }
      others.copy(whole);
    });
    // The casts first: whoever reads a weight comes after the node that makes it.
    return casts_.bytes() + others.bytes() + tensors_.bytes();
  }

  int count() const { return count_; }

 private:
  static bool is_large(const TensorProto& tensor) {
    return tensor.type == ElementType::f32 && shape_of(tensor).elements() >= kLeastElements;
  }
  static const TensorProto* constant_of(const NodeProto& node) {
    if (node.op != "Constant" || !node.domain.empty() || node.outputs.size() != 1) return nullptr;
    for (const AttributeProto& attribute : node.attributes)
      if (attribute.name == "value" && attribute.tensor) return attribute.tensor.get();
    return nullptr;
  }

  void convert(const TensorProto& tensor, std::string_view name) {
    const HostArray array = array_of(tensor, external_);
    const HostArray small = array.cast(to_);
    if (to_ == DType::f16)
      for (const float value : array.view<float>())
        if (std::isfinite(value) && std::abs(value) >= 65520.0f)
          throw Error(ErrorCode::invalid_argument,
                      fmt::format("the weight '{}' has {}, which float16 cannot hold", printable(name), value),
                      "convert to bfloat16");
    const std::string stored = fmt::format("{}/{}", name, to_ == DType::f16 ? "float16" : "bfloat16");
    Message out;
    for (const std::int64_t dim : tensor.dims) out.number(1, dim);
    out.number(2, static_cast<std::int64_t>(to_ == DType::f16 ? ElementType::f16 : ElementType::bf16));
    out.text(8, stored).text(9, {reinterpret_cast<const char*>(small.data()), small.bytes()});
    tensors_.text(5, out.bytes());
    Message attribute, cast;
    attribute.text(1, "to").number(3, static_cast<std::int64_t>(ElementType::f32)).number(20, 2);
    cast.text(1, stored).text(2, name).text(3, "Cast of " + std::string(name)).text(4, "Cast").text(5, attribute.bytes());
    casts_.text(1, cast.bytes());
    ++count_;
  }

  const ModelProto& model_;
  const ExternalData& external_;
  const DType to_;
  std::set<std::string_view> inputs_;
  Message casts_, tensors_;
  int count_ = 0;
};

}  // namespace

Converted with_small_weights(const std::filesystem::path& file, DType to) {
  if (to != DType::f16 && to != DType::bf16)
    throw Error(ErrorCode::invalid_argument, fmt::format("weights cannot be stored as {}", name(to)), "use float16 or bfloat16");
  const ModelFile model(file);
  const ModelProto proto = parse_model(model.bytes());
  const auto opset = proto.opsets.find("");
  if (to == DType::bf16 && opset != proto.opsets.end() && opset->second < 13)
    throw Error(ErrorCode::invalid_argument, fmt::format("the model has opset {}; bfloat16 came with 13", opset->second),
                "convert to float16");
  const ExternalData external(file.parent_path());
  Writer writer(proto, external, to);
  Message out;
  each_field(model.bytes(), [&](int field, Bytes whole, Bytes payload) {
    if (field == 7)
      out.text(7, writer.graph(payload));
    else
      out.copy(whole);
  });
  if (out.bytes().size() > kLargestModel)
    throw Error(ErrorCode::resource_exhausted,
                fmt::format("the model would have {} bytes; the format ends at 2 GiB", out.bytes().size()));
  return {std::move(out.bytes()), writer.count()};
}

}  // namespace tenon::onnx
