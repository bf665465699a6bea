#include "cli/inputs.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>

#include "ops/names.h"
#include "tenon/error.h"
#include "tenon/io.h"
#include "tenon/manager.h"

namespace tenon::cli {
namespace {

[[noreturn]] void invalid(const std::string& message, const std::string& hint = {}) {
  throw Error(ErrorCode::invalid_argument, message, hint);
}

bool is_identifier(std::string_view text) {
  const auto letter = [](char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0 || c == '_'; };
  return !text.empty() && letter(text[0]) &&
         std::all_of(text.begin(), text.end(), [&](char c) { return letter(c) || std::isdigit(static_cast<unsigned char>(c)); });
}

HostArray load_tensor(const std::string& path, std::string_view tensor) {
  const ArrayFile file = load_safetensors(path);
  std::vector<std::string> names;
  for (const auto& entry : file.arrays) names.push_back(entry.first);
  if (tensor.empty()) {
    if (file.arrays.size() == 1) return file.arrays.begin()->second;
    invalid(fmt::format("{} contains {} tensors", path, names.size()),
            names.empty() ? "" : fmt::format("select one, e.g. @{}:{}", path, names[0]));
  }
  if (const auto found = file.arrays.find(tensor); found != file.arrays.end()) return found->second;
  const std::string near = nearest(tensor, names);
  throw Error(ErrorCode::not_found, fmt::format("{} has no tensor '{}'", path, tensor),
              near.empty() ? fmt::format("its tensors: {}", fmt::join(names, ", ")) : fmt::format("did you mean '{}'?", near));
}

HostArray load(std::string_view place) {
  constexpr std::string_view extension = ".safetensors";
  const std::size_t at = place.find(extension);
  if (at != std::string_view::npos) {
    const std::size_t end = at + extension.size();
    if (end == place.size()) return load_tensor(std::string(place), {});
    if (place[end] == ':') return load_tensor(std::string(place.substr(0, end)), place.substr(end + 1));
  }
  if (place.ends_with(".npy")) return load_npy(std::string(place));
  invalid(fmt::format("'{}' is neither a .npy nor a .safetensors file", place));
}

HostArray evaluate(std::string_view source, std::optional<DType> dtype) {
  ExpressionOptions options;
  if (dtype && is_float(*dtype)) options.default_float = *dtype;
  const Graph graph = parse_expression(source, {}, options);
  if (graph.outputs().size() != 1) invalid(fmt::format("expected one value, but got {}", graph.outputs().size()));
  const Node& result = graph[graph.outputs()[0]];
  const HostArray array = result.prim == Prim::constant ? result.as<ConstantAttr>().value
                                                        : process_manager().run(graph, {}, {.device = "cpu"}).outputs[0];
  return dtype && array.dtype() != DType::boolean ? array.cast(*dtype) : array;
}

}  // namespace

std::vector<Input> parse_inputs(std::span<const std::string> arguments, std::optional<DType> dtype) {
  std::vector<Input> inputs;
  for (const std::string& argument : arguments) {
    const std::size_t equals = argument.find('=');
    const std::string name = argument.substr(0, equals);
    if (equals == std::string::npos || !is_identifier(name))
      invalid(fmt::format("'{}' is not an input", argument), "write inputs as name=VALUE or name=@file.npy");
    if (std::any_of(inputs.begin(), inputs.end(), [&](const Input& i) { return i.name == name; }))
      invalid(fmt::format("input '{}' is given twice", name));
    const std::string_view value = std::string_view(argument).substr(equals + 1);
    try {
      inputs.push_back({name, value.starts_with('@') ? load(value.substr(1)) : evaluate(value, dtype)});
    } catch (const ExpressionError& error) {
      throw ExpressionError(error.code(), fmt::format("input '{}': {}", name, error.message()), error.hint(), error.place());
    } catch (const Error& error) {
      throw Error(error.code(), fmt::format("input '{}': {}", name, error.what()), error.hint());
    }
  }
  return inputs;
}

Graph parse_program(std::string_view source, std::span<const Input> inputs, std::optional<DType> dtype) {
  const std::vector<std::string> read = free_names(source);
  for (const Input& input : inputs) {
    // A constant's or dtype's name is not among the free names, though an input may take its place.
    if (input.name == "e" || input.name == "pi" || parse_dtype(input.name)) continue;
    if (std::find(read.begin(), read.end(), input.name) != read.end()) continue;
    const std::string near = nearest(input.name, read);
    invalid(fmt::format("the expression does not use input '{}'", input.name),
            near.empty() ? "" : fmt::format("did you mean '{}'?", near));
  }
  ExpressionOptions options;
  if (dtype && is_float(*dtype)) options.default_float = *dtype;
  std::vector<NamedType> types;
  for (const Input& input : inputs) types.push_back({input.name, input.array.dtype(), input.array.shape()});
  return parse_expression(source, types, options);
}

std::vector<HostArray> arrays_of(std::span<const Input> inputs) {
  std::vector<HostArray> arrays;
  for (const Input& input : inputs) arrays.push_back(input.array);
  return arrays;
}

DType parse_dtype_option(std::string_view text) {
  if (const auto dtype = parse_dtype(text)) return *dtype;
  std::vector<std::string> names;
  for (const DType dtype : all_dtypes()) names.emplace_back(name(dtype));
  const std::string near = nearest(text, names);
  invalid(fmt::format("unknown dtype '{}'", text),
          near.empty() ? fmt::format("dtypes: {}", fmt::join(names, ", ")) : fmt::format("did you mean '{}'?", near));
}

}  // namespace tenon::cli
