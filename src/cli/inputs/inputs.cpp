#include "cli/inputs/inputs.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <ctime>

#include "array/io/number_text.h"
#include "expression/input_names.h"
#include "ops/names.h"
#include "tenon/array/io.h"
#include "tenon/error.h"
#include "tenon/manager.h"

namespace tenon::cli {
namespace {

[[noreturn]] void invalid(const std::string& message, const std::string& hint = {}) {
  throw Error(ErrorCode::invalid_argument, message, hint);
}

HostArray load_tensor(const std::string& path, std::string_view tensor) {
  const ArrayFile file = load_arrays(path);
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

// FILE, or FILE.npz:TENSOR.
HostArray load(std::string_view place) {
  for (const std::string_view extension : {".safetensors:", ".npz:"})
    if (const std::size_t at = place.find(extension); at != std::string_view::npos) {
      const std::size_t end = at + extension.size();
      return load_tensor(std::string(place.substr(0, end - 1)), place.substr(end));
    }
  return load_tensor(std::string(place), {});
}

HostArray evaluate(std::string_view source, std::optional<DType> dtype) {
  ExpressionOptions options;
  if (dtype && is_float(*dtype)) options.default_float = *dtype;
  if (const std::optional<HostArray> pasted = parse_pasted(source, options.default_float))
    return dtype && pasted->dtype() != DType::boolean ? pasted->cast(*dtype) : *pasted;
  const Graph graph = parse_expression(source, {}, options);
  if (graph.outputs().size() != 1) invalid(fmt::format("expected one value, but got {}", graph.outputs().size()));
  const Node& result = graph[graph.outputs()[0]];
  const HostArray array = result.prim == Prim::constant ? result.as<ConstantAttr>().value
                                                        : process_manager().run(graph, {}, {.device = "cpu"}).outputs[0];
  return dtype && array.dtype() != DType::boolean ? array.cast(*dtype) : array;
}

}  // namespace

std::vector<Input> parse_inputs(std::span<const std::string> arguments, std::optional<DType> dtype,
                                std::span<const std::string> names) {
  std::vector<Input> inputs;
  for (const std::string& argument : arguments) {
    std::size_t equals = argument.find('=');
    bool is_known = false;
    for (const std::string& known : names)
      if (argument.starts_with(known + "=") && (!is_known || known.size() > equals)) {
        equals = known.size();
        is_known = true;
      }
    const std::string name = argument.substr(0, equals);
    if (equals == std::string::npos || !(is_known || is_identifier(name)))
      invalid(fmt::format("'{}' is not an input", argument),
              "write inputs as name=VALUE or name=@FILE (.npy, .npz, .safetensors or CSV)");
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
  for (const Input& input : inputs) require_used(input.name, read);
  ExpressionOptions options;
  if (dtype && is_float(*dtype)) options.default_float = *dtype;
  std::vector<NamedType> types;
  for (const Input& input : inputs) types.push_back({input.name, input.array.dtype(), input.array.shape()});
  return parse_expression(source, types, options);
}

std::vector<HostArray> inputs_of(const Program& program, std::span<const std::string> arguments) {
  const Graph& graph = program.graph();
  const std::size_t count = graph.inputs().size() - program.captured().size();
  std::vector<std::string> names;
  for (std::size_t i = 0; i < count; ++i) names.push_back(graph[graph.inputs()[i]].as<InputAttr>().name);
  std::vector<std::optional<HostArray>> values(count);
  for (const std::string& argument : arguments) {
    const std::string given = argument.substr(0, argument.find('='));
    const auto known = std::find(names.begin(), names.end(), given);
    if (known == names.end() && is_identifier(given))
      throw Error(ErrorCode::not_found, fmt::format("the program has no input '{}'", given),
                  fmt::format("its inputs: {}", fmt::join(names, ", ")));
    const auto i = static_cast<std::size_t>(known - names.begin());
    std::vector<Input> one =
        parse_inputs({&argument, 1}, i < count ? std::optional(graph[graph.inputs()[i]].dtype) : std::nullopt);
    if (values[i]) invalid(fmt::format("input '{}' is given twice", given));
    values[i] = std::move(one[0].array);
  }
  std::vector<HostArray> arrays;
  for (std::size_t i = 0; i < count; ++i) {
    const Node& wanted = graph[graph.inputs()[i]];
    const std::string type = fmt::format("{} {}", name(wanted.dtype), to_string(wanted.shape));
    if (!values[i])
      invalid(fmt::format("the program's input '{}' ({}) is missing", names[i], type),
              fmt::format("write {}=VALUE or {}=@FILE", names[i], names[i]));
    if (values[i]->dtype() != wanted.dtype || values[i]->shape() != wanted.shape)
      invalid(fmt::format("input '{}' is {} {}, but the program was recorded for {}", names[i], name(values[i]->dtype()),
                          to_string(values[i]->shape()), type));
    arrays.push_back(std::move(*values[i]));
  }
  for (const Tensor& captured : program.captured()) arrays.push_back(captured.to_host());
  return arrays;
}

std::vector<HostArray> arrays_of(std::span<const Input> inputs) {
  std::vector<HostArray> arrays;
  for (const Input& input : inputs) arrays.push_back(input.array);
  return arrays;
}

std::chrono::system_clock::time_point parse_since(std::string_view text, std::chrono::system_clock::time_point now) {
  constexpr std::pair<char, double> units[] = {{'s', 1}, {'m', 60}, {'h', 3600}, {'d', 86400}, {'w', 7 * 86400}};
  double amount = 0;
  const char* const end = text.data() + text.size();
  const auto read = std::from_chars(text.data(), end, amount);
  if (read.ec == std::errc() && read.ptr + 1 == end && amount >= 0 && amount < 1e6)
    for (const auto& [letter, seconds] : units)
      if (*read.ptr == letter)
        return now -
               std::chrono::duration_cast<std::chrono::system_clock::duration>(std::chrono::duration<double>(amount * seconds));
  const std::string date(text);
  for (const char* format : {"%Y-%m-%d", "%Y-%m-%dT%H:%M", "%Y-%m-%d %H:%M"}) {
    std::tm parts{};
    const char* rest = strptime(date.c_str(), format, &parts);
    if (rest == nullptr || *rest != '\0') continue;
    parts.tm_isdst = -1;
    const int day = parts.tm_mday;
    const std::time_t time = std::mktime(&parts);
    // The 31st of February becomes a day of March.
    if (time != -1 && parts.tm_mday == day) return std::chrono::system_clock::from_time_t(time);
  }
  throw Error(ErrorCode::invalid_argument, fmt::format("'{}' is not a time in the past", text),
              "write 30m, 12h, 7d or 4w, or a date such as 2026-11-01");
}

}  // namespace tenon::cli
