#include <fmt/format.h>
#include <fmt/ranges.h>

#include "tenon/error.h"
#include "tenon/ops.h"

namespace tenon {

std::string_view name(ParameterType type) noexcept {
  constexpr std::string_view names[] = {"number", "integer", "boolean", "integers", "dtype", "text"};
  return names[static_cast<int>(type)];
}

OpCall::OpCall(Graph& graph, const OpInfo& op, std::span<const NodeId> inputs, std::vector<ParameterValue> values)
    : graph_(graph),
      op_(op),
      inputs_(inputs),
      values_(std::move(values)) {}

const ParameterValue& OpCall::value(std::string_view name, ParameterType type) const {
  for (std::size_t i = 0; i < op_.parameters.size(); ++i) {
    const Parameter& parameter = op_.parameters[i];
    if (parameter.name != name) continue;
    const bool fits = parameter.type == type || (parameter.type == ParameterType::number && type == ParameterType::integer);
    if (!fits)
      throw Error(ErrorCode::internal, fmt::format("{} reads its parameter '{}' ({}) as {}", op_.name, name,
                                                   tenon::name(parameter.type), tenon::name(type)));
    if (std::holds_alternative<std::monostate>(values_[i]))
      throw Error(ErrorCode::internal, fmt::format("{} reads its parameter '{}', which was not given", op_.name, name));
    return values_[i];
  }
  throw Error(ErrorCode::internal, fmt::format("{} reads a parameter '{}' that it does not declare", op_.name, name));
}

namespace {

// A number may be given as an integer.
double as_number(const ParameterValue& value) {
  if (const auto* whole = std::get_if<std::int64_t>(&value)) return static_cast<double>(*whole);
  return std::get<double>(value);
}

}  // namespace

double OpCall::number(std::string_view name) const { return as_number(value(name, ParameterType::number)); }
std::int64_t OpCall::integer(std::string_view name) const {
  const ParameterValue& given = value(name, ParameterType::integer);
  if (const auto* real = std::get_if<double>(&given)) return *real >= 0x1p63 ? INT64_MAX : static_cast<std::int64_t>(*real);
  return std::get<std::int64_t>(given);
}
bool OpCall::boolean(std::string_view name) const { return std::get<bool>(value(name, ParameterType::boolean)); }
const std::string& OpCall::text(std::string_view name) const { return std::get<std::string>(value(name, ParameterType::text)); }
DType OpCall::dtype(std::string_view name) const {
  const std::string& text = std::get<std::string>(value(name, ParameterType::dtype));
  const std::optional<DType> parsed = parse_dtype(text);
  if (!parsed) fail(fmt::format("'{}' is not a dtype", text));
  return *parsed;
}
std::vector<std::int64_t> OpCall::integers(std::string_view name) const {
  return std::get<std::vector<std::int64_t>>(value(name, ParameterType::integers));
}

bool OpCall::given(std::string_view name) const {
  for (std::size_t i = 0; i < op_.parameters.size(); ++i)
    if (op_.parameters[i].name == name) return !std::holds_alternative<std::monostate>(values_[i]);
  throw Error(ErrorCode::internal, fmt::format("{} asks for a parameter '{}' that it does not declare", op_.name, name));
}

int OpCall::axis(std::string_view name, int rank) const {
  const std::int64_t axis = integer(name);
  if (axis < -rank || axis >= rank)
    throw Error(ErrorCode::out_of_range,
                fmt::format("{}: axis {} is out of range for a tensor of rank {}", op_.name, axis, rank));
  return normalize_axis(axis, rank);
}

AxisSet OpCall::axes(std::string_view name, int rank) const {
  if (!given(name)) return static_cast<AxisSet>((1U << rank) - 1U);
  unsigned set = 0;
  for (std::int64_t axis : integers(name)) {
    if (axis < -rank || axis >= rank)
      throw Error(ErrorCode::out_of_range,
                  fmt::format("{}: axis {} is out of range for a tensor of rank {}", op_.name, axis, rank));
    const unsigned bit = 1U << normalize_axis(axis, rank);
    if (set & bit) fail(fmt::format("axis {} is given twice", axis));
    set |= bit;
  }
  return static_cast<AxisSet>(set);
}

void OpCall::fail(const std::string& message, const std::string& hint) const {
  std::vector<std::string> shapes;
  for (NodeId id : inputs_) shapes.push_back(to_string(graph_[id].shape));
  std::string text = fmt::format("{}: {}", op_.name, message);
  if (!shapes.empty()) text += fmt::format(" (input{} {})", shapes.size() == 1 ? "" : "s", fmt::join(shapes, ", "));
  throw Error(ErrorCode::invalid_argument, text, hint);
}

}  // namespace tenon
