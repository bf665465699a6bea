#include "cli/commands/model_compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/text/printable.h"
#include "cli/application.h"
#include "cli/inputs/model_inputs.h"
#include "cli/json.h"
#include "tenon/array/io.h"
#include "tenon/error.h"

namespace tenon::cli {
namespace {

constexpr std::string_view kInput = "input.", kOutput = "output.";

struct Difference {
  std::string output, device;
  DType dtype = DType::f32;
  Shape shape;
  double largest = 0;          // of the differences
  double relative = 0;         // the same over the largest element that was expected
  std::int64_t different = 0;  // elements; of integers and bools, which have no tolerance
  std::string problem;         // a shape or dtype that differs, or a NaN
};

Difference difference_of(const HostArray& got, const HostArray& wanted) {
  Difference out{.dtype = got.dtype(), .shape = got.shape()};
  if (got.dtype() != wanted.dtype() || got.shape() != wanted.shape()) {
    out.problem = fmt::format("expected {} {}", name(wanted.dtype()), to_string(wanted.shape()));
    return out;
  }
  const std::vector<double> a = got.to_doubles(), b = wanted.to_doubles();
  double peak = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (std::isfinite(b[i])) peak = std::max(peak, std::abs(b[i]));
    if (a[i] == b[i] || (std::isnan(a[i]) && std::isnan(b[i]))) continue;
    ++out.different;
    const double error = std::abs(a[i] - b[i]);
    if (!std::isfinite(error)) out.problem = fmt::format("element {} is {}, expected {}", i, a[i], b[i]);
    if (error > out.largest) out.largest = error;
  }
  out.relative = out.largest == 0 ? 0 : out.largest / (peak > 0 ? peak : 1);
  return out;
}

bool is_equal_enough(const Difference& each, double tolerance) {
  if (!each.problem.empty()) return false;
  return is_float(each.dtype) ? each.relative <= tolerance : each.different == 0;
}

using Arrays = std::map<std::string, HostArray, std::less<>>;

Arrays run(const Model& model, const Model::Tensors& inputs, const std::string& device) {
  RunOptions options;
  options.device = device;
  Arrays arrays;
  for (const auto& [name, tensor] : model(inputs, options)) arrays.emplace(name, tensor.to_host());
  return arrays;
}

// "input.NAME" and "output.NAME" in one file.
void read_reference(const std::string& path, Model::Tensors& inputs, Arrays& outputs) {
  for (const auto& [name, array] : load_arrays(path).arrays) {
    if (name.starts_with(kInput))
      inputs.insert_or_assign(name.substr(kInput.size()), Tensor(array));
    else if (name.starts_with(kOutput))
      outputs.emplace(name.substr(kOutput.size()), array);
    else
      throw Error(ErrorCode::invalid_argument, fmt::format("'{}': the tensor '{}' is neither input nor output", path, name),
                  "name tensors input.NAME and output.NAME");
  }
  if (outputs.empty())
    throw Error(ErrorCode::invalid_argument, fmt::format("'{}' has no output to compare with", path),
                "name tensors input.NAME and output.NAME");
}

std::string text_of(const Difference& each) {
  if (!each.problem.empty()) return each.problem;
  if (!is_float(each.dtype)) return each.different == 0 ? "equal" : fmt::format("{} elements differ", each.different);
  return each.largest == 0 ? "equal" : fmt::format("{:.1e} of the largest element", each.relative);
}

void print(const std::vector<Difference>& all, const CompareArguments& arguments, const Session& session) {
  std::ostream& out = session.console.out;
  if (session.json) {
    print_document(out, 1, [&](JsonWriter& json) {
      json.member("tolerance", arguments.tolerance);
      json.key("outputs").begin_array();
      for (const Difference& each : all) {
        json.begin_object();
        json.member("name", each.output);
        json.member("device", each.device);
        json.member("dtype", std::string(name(each.dtype)));
        json.member("largest_difference", each.largest);
        json.member("relative_difference", each.relative);
        json.member("different_elements", each.different);
        json.member("agrees", is_equal_enough(each, arguments.tolerance));
        if (!each.problem.empty()) json.member("problem", each.problem);
        json.end_object();
      }
      json.end_array();
    });
    return;
  }
  for (const Difference& each : all)
    out << fmt::format("{}  {}: {} {}: {}{}\n", each.device, printable(each.output), name(each.dtype), to_string(each.shape),
                       text_of(each), is_equal_enough(each, arguments.tolerance) ? "" : "  (too large)");
}

}  // namespace

int compare_model(const CompareArguments& arguments, const Session& session) {
  std::vector<std::string> devices = arguments.devices;
  if (devices.empty()) devices = {"cpu"};
  if (arguments.reference.empty() && devices.size() < 2)
    throw Error(ErrorCode::invalid_argument, "there is nothing to compare with",
                "name two devices, --device cpu --device gpu, or give --reference FILE");
  const Model model = Model::load(arguments.file);
  Model::Tensors inputs = given_inputs(arguments.inputs, model.info());
  Arrays wanted;
  if (!arguments.reference.empty()) read_reference(arguments.reference, inputs, wanted);
  make_up_inputs(arguments.extents, model.info(), inputs);
  auto first = devices.begin();
  if (wanted.empty()) wanted = run(model, inputs, *first++);
  std::vector<Difference> all;
  for (; first != devices.end(); ++first) {
    const Arrays got = run(model, inputs, *first);
    for (const auto& [name, array] : wanted) {
      const auto found = got.find(name);
      if (found == got.end())
        throw Error(ErrorCode::invalid_argument, fmt::format("the model has no output '{}'", printable(name)));
      all.push_back(difference_of(found->second, array));
      all.back().output = name;
      all.back().device = *first;
    }
  }
  print(all, arguments, session);
  const bool agrees = std::ranges::all_of(all, [&](const Difference& d) { return is_equal_enough(d, arguments.tolerance); });
  return agrees ? 0 : kExitMismatch;
}

}  // namespace tenon::cli
