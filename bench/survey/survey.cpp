// Our side of the survey: times programs that are read from standard input, one a line, with tabs between the fields:
//
//   NAME  EXPRESSION  INPUT...        INPUT: name:dtype:2x3[:limit]; integers are below |limit|, floats between -1 and 1
//
// and prints an object a line: {"name": ..., "seconds": ...} or {"name": ..., "error": ...}. bench/survey/run drives it.
//
//   bench_survey DEVICE < programs        the time of one run, when many are enqueued one after the other
//   bench_survey DEVICE --compile         compiles the programs and runs none: kernels kept on disk are there for a later run
//   bench_survey --ops                    the names of the catalogue, one a line
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <iostream>
#include <map>
#include <memory>
#include <random>
#include <sstream>

#include "backends/all.h"
#include "backends/cuda/executable.h"
#include "base/text/json_writer.h"
#include "tenon/error.h"
#include "tenon/expression.h"
#include "tenon/ops.h"

namespace tenon {
namespace {

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

struct Input {
  NamedType type;
  std::int64_t limit = 0;
};

Input parse_input(const std::string& text) {
  std::stringstream fields(text);
  std::string name, dtype, extents, limit;
  std::getline(fields, name, ':');
  std::getline(fields, dtype, ':');
  std::getline(fields, extents, ':');
  std::getline(fields, limit, ':');
  Input input;
  std::vector<std::int64_t> shape;
  std::stringstream list(extents);
  for (std::string extent; std::getline(list, extent, 'x');) shape.push_back(std::stoll(extent));
  input.type = {name, parse_dtype(dtype).value(), Shape(std::span<const std::int64_t>(shape))};
  if (!limit.empty()) input.limit = std::stoll(limit);
  return input;
}

HostArray content(const Input& input, unsigned seed) {
  std::minstd_rand numbers(seed);
  const std::int64_t count = input.type.shape.elements();
  // A period that is no power of two: large tensors are filled fast and have no pattern that a cache would notice.
  const std::int64_t period = std::min<std::int64_t>(count, 1'000'003);
  if (is_float(input.type.dtype)) {
    std::vector<float> values(static_cast<std::size_t>(count));
    for (std::int64_t i = 0; i < period; ++i)
      values[static_cast<std::size_t>(i)] = static_cast<float>(numbers() % 2'000'003) / 1'000'001.5f - 1;
    for (std::int64_t i = period; i < count; ++i)
      values[static_cast<std::size_t>(i)] = values[static_cast<std::size_t>(i - period)];
    return HostArray::from<float>(input.type.shape, std::span<const float>(values)).cast(input.type.dtype);
  }
  std::vector<std::int64_t> values(static_cast<std::size_t>(count));
  for (std::int64_t& value : values) value = static_cast<std::int64_t>(numbers()) % std::max<std::int64_t>(input.limit, 1);
  return HostArray::from<std::int64_t>(input.type.shape, std::span<const std::int64_t>(values)).cast(input.type.dtype);
}

std::string json_text(std::string_view text) {
  std::string json;
  JsonWriter(json).value(text);
  return json;
}

// Inputs by their description: making a large one takes longer than using it. Between cases they are dropped when they are many.
struct Inputs {
  std::map<std::string, std::unique_ptr<Buffer>> buffers;
  std::size_t bytes = 0;

  void keep_at_most(std::size_t limit) {
    if (bytes > limit) *this = {};
  }
};

const Buffer* known_input(OpenDevice& device, Inputs& known, const Input& input, unsigned seed) {
  const std::string key = fmt::format("{} {} {} {}", name(input.type.dtype), to_string(input.type.shape), input.limit, seed);
  std::unique_ptr<Buffer>& buffer = known.buffers[key];
  if (!buffer) {
    const HostArray array = content(input, seed);
    known.bytes += array.bytes();
    buffer = device.upload(array);
  }
  return buffer.get();
}

std::unique_ptr<Executable> compiled(OpenDevice& device, const std::string& expression, const std::vector<Input>& inputs) {
  std::vector<NamedType> types;
  for (const Input& input : inputs) types.push_back(input.type);
  return device.compile(parse_expression(expression, types));
}

double seconds(OpenDevice& device, Inputs& known, const std::string& expression, const std::vector<Input>& inputs) {
  const auto program = compiled(device, expression, inputs);
  known.keep_at_most((device.info().kind == DeviceKind::cpu ? std::size_t{3} : std::size_t{24}) << 30);
  std::vector<std::unique_ptr<Buffer>> held;
  std::vector<const Buffer*> in;
  std::vector<Buffer*> out;
  for (std::size_t i = 0; i < inputs.size(); ++i)
    in.push_back(known_input(device, known, inputs[i], static_cast<unsigned>(i + 1)));
  for (const TensorType& type : program->output_types()) out.push_back(held.emplace_back(device.allocate(type)).get());
  auto* const queued = dynamic_cast<cuda::CudaExecutable*>(program.get());
  const auto batch = [&](int count) {
    const double begin = now();
    for (int i = 0; i + 1 < count; ++i) queued ? queued->enqueue(in, out) : program->run(in, out);
    program->run(in, out);
    return (now() - begin) / count;
  };
  batch(2);
  const double one = batch(1);
  const int count = static_cast<int>(std::clamp(4e-3 / one, 1.0, 200.0));
  double best = one;
  for (int round = 0; round < 4; ++round) best = std::min(best, batch(count));
  return best;
}

int run(const std::string& device_name, bool only_compiles) {
  BackendRegistry registry;
  register_all_backends(registry);
  std::unique_ptr<OpenDevice> device;
  for (const std::shared_ptr<Backend>& backend : registry.backends())
    if (!device && device_name.starts_with(backend->name()))
      for (const DeviceInfo& info : backend->devices())
        if (!device && info.id == device_name) device = backend->open(info);
  if (!device) throw Error(ErrorCode::not_found, "there is no device " + device_name);
  Inputs known;
  for (std::string line; std::getline(std::cin, line);) {
    std::stringstream fields(line);
    std::string name, expression;
    std::getline(fields, name, '\t');
    std::getline(fields, expression, '\t');
    std::string answer;
    try {
      std::vector<Input> inputs;
      for (std::string field; std::getline(fields, field, '\t');) inputs.push_back(parse_input(field));
      if (only_compiles) {
        compiled(*device, expression, inputs);
        continue;
      }
      answer = fmt::format("\"seconds\": {}", seconds(*device, known, expression, inputs));
    } catch (const std::exception& error) {
      answer = fmt::format("\"error\": {}", json_text(error.what()));
    }
    fmt::print("{{\"name\": {}, {}}}\n", json_text(name), answer);
    std::fflush(stdout);
    if (device->is_lost()) return 1;
  }
  known = {};
  device->close();
  return 0;
}

}  // namespace
}  // namespace tenon

int main(int argc, char** argv) {
  const bool only_compiles = argc == 3 && std::string(argv[2]) == "--compile";
  if (argc != 2 && !only_compiles) return fmt::print(stderr, "usage: bench_survey DEVICE [--compile] | --ops\n"), 2;
  const std::string what = argv[1];
  if (what == "--ops") {
    for (const auto& op : tenon::all_ops()) fmt::print("{}\n", op.name);
    return 0;
  }
  try {
    return tenon::run(what, only_compiles);
  } catch (const tenon::Error& error) {
    return fmt::print(stderr, "{}\n", error.what()), 1;
  }
}
