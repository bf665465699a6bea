#include "cli/inputs/model_inputs.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <charconv>
#include <optional>
#include <set>

#include "base/text/printable.h"
#include "cli/inputs/inputs.h"
#include "tenon/error.h"
#include "tenon/tensor/functions.h"

namespace tenon::cli {
namespace {

std::vector<std::string> names_of(const ModelInfo& info) {
  std::vector<std::string> names;
  for (const ModelValue& value : info.inputs) names.push_back(value.name);
  return names;
}

Tensor fitted(const Input& input, const ModelInfo& info) {
  for (const ModelValue& value : info.inputs) {
    if (value.name != input.name || !value.dtype || *value.dtype == input.array.dtype()) continue;
    if (is_float(*value.dtype) || (is_integer(*value.dtype) && is_integer(input.array.dtype())) || *value.dtype == DType::boolean)
      return input.array.cast(*value.dtype);
  }
  return input.array;
}

std::string place_name(const std::string& input, std::size_t axis) { return fmt::format("{}[{}]", input, axis); }

// The extents that the user gave, by name or by place; remembers which were used.
class Extents {
 public:
  explicit Extents(std::span<const std::string> arguments) {
    for (const std::string& each : arguments) {
      const std::size_t mark = each.rfind('=');
      std::int64_t extent = 0;
      if (mark != std::string::npos) std::from_chars(each.data() + mark + 1, each.data() + each.size(), extent);
      if (extent <= 0)
        throw Error(ErrorCode::invalid_argument, fmt::format("--extent {} is not NAME=NUMBER", each),
                    "write batch=8, or x[0]=8 for axis 0 of the input x");
      given_[each.substr(0, mark)] = extent;
    }
  }

  std::optional<std::int64_t> find(const std::string& name) {
    const auto found = given_.find(name);
    if (found == given_.end()) return std::nullopt;
    used_.insert(name);
    return found->second;
  }

  void require_used(const ModelInfo& info) const {
    std::set<std::string> known;
    for (const ModelValue& value : info.inputs)
      for (std::size_t axis = 0; axis < value.shape.size(); ++axis)
        if (!value.shape[axis].extent)
          known.insert(value.shape[axis].name.empty() ? place_name(value.name, axis) : value.shape[axis].name);
    for (const auto& [name, extent] : given_)
      if (!used_.contains(name))
        throw Error(ErrorCode::invalid_argument, fmt::format("no made-up input has the extent '{}'", printable(name)),
                    known.empty() ? "all extents of this model are fixed"
                                  : printable(fmt::format("its free extents are: {}", fmt::join(known, ", "))));
  }

 private:
  std::map<std::string, std::int64_t> given_;
  std::set<std::string> used_;
};

}  // namespace

Model::Tensors given_inputs(std::span<const std::string> arguments, const ModelInfo& info) {
  Model::Tensors inputs;
  for (const Input& input : parse_inputs(arguments, std::nullopt, names_of(info)))
    inputs.emplace(input.name, fitted(input, info));
  return inputs;
}

void make_up_inputs(std::span<const std::string> arguments, const ModelInfo& info, Model::Tensors& inputs) {
  Extents extents(arguments);
  std::map<std::string, std::int64_t> named;  // by the inputs that are there
  for (const ModelValue& value : info.inputs) {
    const auto given = inputs.find(value.name);
    if (given == inputs.end() || given->second.shape().rank() != static_cast<int>(value.shape.size())) continue;
    for (std::size_t axis = 0; axis < value.shape.size(); ++axis)
      if (!value.shape[axis].name.empty()) named[value.shape[axis].name] = given->second.shape()[static_cast<int>(axis)];
  }
  for (const ModelValue& value : info.inputs) {
    if (value.is_optional || inputs.contains(value.name)) continue;
    if (!value.dtype) throw Error(ErrorCode::unimplemented, fmt::format("the input {} cannot be made up", to_string(value)));
    std::vector<std::int64_t> dims;
    for (std::size_t axis = 0; axis < value.shape.size(); ++axis) {
      const ModelValue::Extent& each = value.shape[axis];
      std::int64_t extent = each.extent.value_or(1);
      if (const auto known = named.find(each.name); known != named.end()) extent = known->second;
      if (!each.extent) {
        if (const auto by_name = each.name.empty() ? std::nullopt : extents.find(each.name)) extent = *by_name;
        if (const auto by_place = extents.find(place_name(value.name, axis))) extent = *by_place;
      }
      dims.push_back(extent);
    }
    const Shape shape{std::span<const std::int64_t>(dims)};
    const Tensor made =
        is_float(*value.dtype) ? randn(shape).cast(*value.dtype) : Tensor(HostArray::full(*value.dtype, shape, 1));
    inputs.emplace(value.name, made.eval());
  }
  extents.require_used(info);
}

}  // namespace tenon::cli
