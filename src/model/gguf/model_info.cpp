#include "model/gguf/model_info.h"

#include <fmt/format.h>

#include "base/text/printable.h"

namespace tenon::gguf {
namespace {

std::string text_of(const Value& value) {
  if (const auto* text = std::get_if<std::string>(&value)) return *text;
  if (const auto* flag = std::get_if<bool>(&value)) return *flag ? "true" : "false";
  if (const auto* integer = std::get_if<std::int64_t>(&value)) return fmt::format("{}", *integer);
  if (const auto* number = std::get_if<double>(&value)) return fmt::format("{}", static_cast<float>(*number));
  const List& list = std::get<List>(value);
  return fmt::format("a list of {} {}", list.size(), list.is_text ? "texts" : "numbers");
}

}  // namespace

ModelInfo model_info(const Source& source, std::string format) {
  ModelInfo info;
  info.format = std::move(format);
  std::map<std::string, int> types;
  for (const TensorInfo& tensor : source.tensors()) {
    ++types[std::string(name(tensor.type))];
    info.parameters += tensor.elements();
    info.weight_bytes += tensor.bytes;
  }
  info.nodes = 0;
  std::string tensors;
  for (const auto& [type, count] : types) tensors += fmt::format("{}{} {}", tensors.empty() ? "" : ", ", count, type);
  info.metadata["tensors"] = tensors;
  for (const auto& [key, value] : source.metadata()) info.metadata[key] = text_of(value);
  return info;
}

}  // namespace tenon::gguf
