// tenon_onnx_cases [--device D] [--list] [--at-least N] FOLDER...: runs the cases of ONNX's own test sets and counts.
//
// A case is a folder with model.onnx and test_data_set_N/{input_i,output_i}.pb. It passes if every output has the expected type,
// shape and values (ONNX's own tolerance: 1e-3 relative, 1e-7 absolute). Every case counts; what is refused has not passed.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>

#include "model/onnx/session.h"
#include "model/onnx/tensor_data.h"
#include "tenon/error.h"
#include "tenon/model.h"

namespace tenon::onnx {
namespace {

namespace fs = std::filesystem;

std::vector<std::byte> read(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  const std::span<const std::byte> bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

RunValue run_value(const ValueProto& proto) {
  RunValue value;
  if (proto.kind != TypeProto::Kind::tensor) {
    value.kind = proto.kind == TypeProto::Kind::sequence ? Value::Kind::sequence : Value::Kind::optional;
    for (const ValueProto& item : proto.items) value.items.push_back(run_value(item));
    return value;
  }
  value.kind = Value::Kind::tensor;
  if (proto.tensor.type == ElementType::string) {
    value.type = ElementType::string;
    value.shape = shape_of(proto.tensor);
    value.strings = std::make_shared<std::vector<std::string>>(proto.tensor.strings.begin(), proto.tensor.strings.end());
    return value;
  }
  return RunValue::from(array_of(proto.tensor, {}), proto.tensor.type);
}

std::string differs(const RunValue& got, const RunValue& wanted, double relative, double absolute) {
  if (got.kind != wanted.kind) {
    // A test may store what an optional contains.
    if (got.kind == Value::Kind::optional && got.items.size() == 1) return differs(got.items[0], wanted, relative, absolute);
    if (wanted.kind == Value::Kind::optional && wanted.items.size() == 1)
      return differs(got, wanted.items[0], relative, absolute);
    return "another kind of value";
  }
  if (got.kind != Value::Kind::tensor) {
    if (got.items.size() != wanted.items.size())
      return fmt::format("{} items, expected {}", got.items.size(), wanted.items.size());
    for (std::size_t i = 0; i < got.items.size(); ++i)
      if (std::string each = differs(got.items[i], wanted.items[i], relative, absolute); !each.empty()) return each;
    return {};
  }
  if (got.type != wanted.type) return fmt::format("type {}, expected {}", name(got.type), name(wanted.type));
  if (got.shape != wanted.shape) return fmt::format("shape {}, expected {}", to_string(got.shape), to_string(wanted.shape));
  if (got.strings || wanted.strings)
    return got.strings && wanted.strings && *got.strings == *wanted.strings ? "" : "other strings";
  const HostArray a = got.tensor->to_host(), b = wanted.tensor->to_host();
  if (a.dtype() == DType::i64 || a.dtype() == DType::u64)
    return std::equal(a.data(), a.data() + a.bytes(), b.data()) ? "" : "other integers";
  if (got.type == ElementType::bf16) relative = std::max(relative, 0x1p-6);
  const std::vector<double> x = a.to_doubles(), y = b.to_doubles();
  double worst = 0;
  std::size_t place = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (std::isnan(x[i]) && std::isnan(y[i])) continue;
    if (x[i] == y[i]) continue;
    const double error = std::abs(x[i] - y[i]);
    if (error <= absolute + relative * std::abs(y[i])) continue;
    const double size = std::isfinite(error) ? error : INFINITY;
    if (worst == 0 || size > worst) {
      worst = size;
      place = i;
    }
  }
  return worst == 0 ? "" : fmt::format("element {} is {}, expected {}", place, x[place], y[place]);
}

std::string run_set(Session& session, const fs::path& folder, DeviceManager& manager, const std::string& device) {
  const ModelProto& proto = session.model().proto;
  std::map<std::string, RunValue, std::less<>> inputs;
  std::vector<std::vector<std::byte>> files;
  std::size_t place = 0;
  for (std::size_t i = 0; i < proto.graph.inputs.size(); ++i) {
    const fs::path file = folder / fmt::format("input_{}.pb", place++);
    if (!fs::exists(file)) continue;
    files.push_back(read(file));
    if (files.back().empty() && proto.graph.inputs[i].type.kind == TypeProto::Kind::tensor) continue;
    inputs.emplace(std::string(proto.graph.inputs[i].name), run_value(parse_value(files.back(), proto.graph.inputs[i].type)));
  }
  RunOptions options;
  options.device = device;
  const SessionResult result = session.run(manager, inputs, options);
  for (std::size_t i = 0; i < proto.graph.outputs.size(); ++i) {
    const fs::path file = folder / fmt::format("output_{}.pb", i);
    if (!fs::exists(file)) return fmt::format("{} is missing", file.filename().string());
    files.push_back(read(file));
    if (std::string problem =
            differs(result.outputs.at(i), run_value(parse_value(files.back(), proto.graph.outputs[i].type)), 1e-3, 1e-7);
        !problem.empty())
      return fmt::format("output {}: {}", proto.graph.outputs[i].name, problem);
  }
  return {};
}

// "" if the case passes.
std::string run_case(const fs::path& folder, DeviceManager& manager, const std::string& device) {
  try {
    auto model = std::make_shared<LoadedModel>(folder / "model.onnx");
    check_supported(model->proto);
    Session session(model, ModelOptions().program_bytes);
    int sets = 0;
    for (; fs::exists(folder / fmt::format("test_data_set_{}", sets)); ++sets)
      if (std::string problem = run_set(session, folder / fmt::format("test_data_set_{}", sets), manager, device);
          !problem.empty())
        return problem;
    return sets > 0 ? "" : "no data";
  } catch (const Error& error) {
    return fmt::format("{}: {}", to_string(error.code()), error.what());
  } catch (const std::exception& error) {
    return fmt::format("exception: {}", error.what());
  }
}

int main_of(std::span<char*> arguments) {
  std::string device = "cpu", only;
  int at_least = 0;
  bool lists = false;
  std::vector<fs::path> folders;
  for (std::size_t i = 1; i < arguments.size(); ++i) {
    const std::string_view argument = arguments[i];
    const auto next = [&] { return i + 1 < arguments.size() ? std::string(arguments[++i]) : std::string(); };
    if (argument == "--device")
      device = next();
    else if (argument == "--at-least")
      at_least = std::stoi(next());
    else if (argument == "--only")
      only = next();
    else if (argument == "--list")
      lists = true;
    else
      folders.emplace_back(argument);
  }
  DeviceManager manager;
  int passed = 0, total = 0;
  for (const fs::path& folder : folders) {
    std::vector<fs::path> cases;
    for (const auto& entry : fs::directory_iterator(folder))
      if (fs::exists(entry.path() / "model.onnx") &&
          (only.empty() || entry.path().filename().string().find(only) != std::string::npos))
        cases.push_back(entry.path());
    std::sort(cases.begin(), cases.end());
    int here = 0;
    for (const fs::path& each : cases) {
      const std::string problem = run_case(each, manager, device);
      here += problem.empty() ? 1 : 0;
      if (lists && !problem.empty()) fmt::print("{}: {}\n", each.filename().string(), problem);
    }
    fmt::print("{}: {} of {} passed on {}\n", folder.string(), here, cases.size(), device);
    passed += here;
    total += static_cast<int>(cases.size());
  }
  fmt::print("{} of {} passed\n", passed, total);
  return passed >= at_least ? 0 : 1;
}

}  // namespace
}  // namespace tenon::onnx

int main(int argc, char** argv) { return tenon::onnx::main_of({argv, static_cast<std::size_t>(argc)}); }
