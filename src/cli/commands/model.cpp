#include <fmt/format.h>

#include <chrono>
#include <memory>

#include "array/format_array.h"
#include "base/units.h"
#include "cli/commands/commands.h"
#include "cli/inputs.h"
#include "cli/json.h"
#include "cli/measure.h"
#include "cli/option_checks.h"
#include "model/onnx/import/node_context.h"
#include "tenon/error.h"
#include "tenon/functions.h"
#include "tenon/io.h"
#include "tenon/model.h"

namespace tenon::cli {
namespace {

struct ModelArguments {
  std::string file, device = "auto", output;
  std::vector<std::string> inputs, extents;
  double seconds = 2;
};

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// --- info ---

void write_values(JsonWriter& json, const char* name, const std::vector<ModelValue>& values) {
  json.key(name).begin_array();
  for (const ModelValue& value : values) {
    json.begin_object();
    json.member("name", value.name);
    json.member("type", value.type);
    json.member("optional", value.is_optional);
    if (value.has_shape) {
      json.key("shape").begin_array();
      for (const ModelValue::Extent& each : value.shape) {
        if (each.extent)
          json.value(*each.extent);
        else
          json.value(each.name);
      }
      json.end_array();
    }
    json.end_object();
  }
  json.end_array();
}

int show_info(const ModelArguments& arguments, const Session& session) {
  const Model model = Model::load(arguments.file);
  const ModelInfo& info = model.info();
  std::ostream& out = session.console.out;
  if (session.json) {
    print_document(out, 1, [&](JsonWriter& json) {
      json.member("format", info.format);
      json.member("producer", info.producer);
      json.member("opset", info.opset);
      write_values(json, "inputs", info.inputs);
      write_values(json, "outputs", info.outputs);
      json.member("nodes", info.nodes);
      json.member("parameters", info.parameters);
      json.member("weight_bytes", info.weight_bytes);
      json.key("ops").begin_object();
      for (const auto& [op, count] : info.ops) json.member(op, count);
      json.end_object();
    });
    return 0;
  }
  out << fmt::format("{} opset {}{}\n", info.format, info.opset, info.producer.empty() ? "" : ", by " + info.producer);
  for (const ModelValue& value : info.inputs) out << "input   " << to_string(value) << '\n';
  for (const ModelValue& value : info.outputs) out << "output  " << to_string(value) << '\n';
  out << fmt::format("{} parameters in {}, {} nodes:", info.parameters, format_bytes(static_cast<double>(info.weight_bytes)),
                     info.nodes);
  for (const auto& [op, count] : info.ops) out << fmt::format(" {} {}", op, count);
  out << '\n';
  return 0;
}

// --- run ---

// Numbers typed as integers where the model takes floats, and doubles from files where it takes float32.
Tensor fitted(const Input& input, const ModelInfo& info) {
  for (const ModelValue& value : info.inputs) {
    if (value.name != input.name || !value.dtype || *value.dtype == input.array.dtype()) continue;
    if (is_float(*value.dtype) || (is_integer(*value.dtype) && is_integer(input.array.dtype())) || *value.dtype == DType::boolean)
      return input.array.cast(*value.dtype);
  }
  return input.array;
}

int run_model(const ModelArguments& arguments, const Session& session) {
  const Model model = Model::load(arguments.file);
  Model::Tensors inputs;
  for (const Input& input : parse_inputs(arguments.inputs, std::nullopt)) inputs.emplace(input.name, fitted(input, model.info()));
  RunOptions options;
  options.device = arguments.device;
  const Model::Tensors outputs = model(inputs, options);
  std::ostream& out = session.console.out;
  if (!arguments.output.empty()) {
    ArrayFile file;
    for (const auto& [name, tensor] : outputs) file.arrays.emplace(name, tensor.to_host());
    if (arguments.output.ends_with(".npy") && file.arrays.size() == 1)
      save_npy(arguments.output, file.arrays.begin()->second);
    else
      save_safetensors(arguments.output, file);
    return 0;
  }
  for (const ModelValue& value : model.info().outputs) {
    const HostArray array = outputs.at(value.name).to_host();
    out << fmt::format("{}: {} {}\n{}\n", value.name, name(array.dtype()), to_string(array.shape()),
                       format_array(array, {.width = session.console.width}));
  }
  return 0;
}

// --- bench ---

// An input of the shape that --extent gives: ones for integers and bools, which are valid indices and masks in most models.
Tensor made_input(const ModelValue& value, const std::map<std::string, std::int64_t>& extents) {
  if (!value.dtype) throw Error(ErrorCode::unimplemented, fmt::format("the input {} cannot be made up", to_string(value)));
  std::vector<std::int64_t> dims;
  for (const ModelValue::Extent& each : value.shape) {
    const auto given = extents.find(each.name);
    dims.push_back(each.extent ? *each.extent : given != extents.end() ? given->second : 1);
  }
  const Shape shape{std::span<const std::int64_t>(dims)};
  return is_float(*value.dtype) ? randn(shape).cast(*value.dtype) : Tensor(HostArray::full(*value.dtype, shape, 1));
}

int bench_model(const ModelArguments& arguments, const Session& session) {
  std::map<std::string, std::int64_t> extents;
  for (const std::string& each : arguments.extents) {
    const std::size_t mark = each.find('=');
    const std::int64_t extent = mark == std::string::npos ? 0 : std::atoll(each.c_str() + mark + 1);
    if (extent <= 0) throw Error(ErrorCode::invalid_argument, fmt::format("--extent {} is not NAME=NUMBER", each));
    extents[each.substr(0, mark)] = extent;
  }
  const auto begin = std::chrono::steady_clock::now();
  const Model model = Model::load(arguments.file);
  const double load = seconds_since(begin);
  Model::Tensors inputs;
  for (const Input& input : parse_inputs(arguments.inputs, std::nullopt)) inputs.emplace(input.name, fitted(input, model.info()));
  for (const ModelValue& value : model.info().inputs)
    if (!value.is_optional && !inputs.contains(value.name)) inputs.emplace(value.name, made_input(value, extents).eval());
  RunOptions options;
  options.device = arguments.device;
  const auto work = [&] {
    for (const auto& [name, tensor] : model(inputs, options)) tensor.to_host();
  };
  const auto start = std::chrono::steady_clock::now();
  work();
  const double first = seconds_since(start);
  const Measurement m = measure(work, arguments.seconds, {});
  std::ostream& out = session.console.out;
  if (session.json) {
    print_document(out, 1, [&](JsonWriter& json) {
      json.member("load_seconds", load);
      json.member("first_seconds", first);
      json.member("median_seconds", m.median_seconds);
      json.member("p10_seconds", m.p10_seconds);
      json.member("p90_seconds", m.p90_seconds);
      json.member("calls", m.calls);
    });
    return 0;
  }
  out << fmt::format("load {}, first call {}, then {} ({} to {}, {} calls)\n", format_seconds(load), format_seconds(first),
                     format_seconds(m.median_seconds), format_seconds(m.p10_seconds), format_seconds(m.p90_seconds), m.calls);
  return 0;
}

int list_ops(const Session& session) {
  for (const std::string& op : onnx::supported_ops()) session.console.out << op << '\n';
  return 0;
}

using Run = int (*)(const ModelArguments&, const Session&);

Command* add_part(Command& command, Session& session, const std::shared_ptr<ModelArguments>& arguments, const char* name,
                  const char* description, Run run) {
  Command* part = command.add_subcommand(name, description);
  part->add_option("file", arguments->file, "An ONNX file")->required()->type_name("FILE");
  part->callback(
      [arguments, &session, run] { session.action = [arguments, &session, run] { return run(*arguments, session); }; });
  return part;
}

}  // namespace

void add_model_command(Command& app, Session& session) {
  auto arguments = std::make_shared<ModelArguments>();
  Command* command = app.add_subcommand("model", "Describe, run or measure a model from a file");
  command->require_subcommand(1, 1);
  command->footer(
      "Examples:\n  tenon model info minilm.onnx\n  tenon model run net.onnx x='rand([1, 3, 224, 224])' -o out.npy\n  tenon "
      "model bench minilm.onnx --extent batch=8 --extent sequence=32");
  add_output_options(*add_part(*command, session, arguments, "info", "Show inputs, outputs, ops and size", show_info), session);
  Command* run = add_part(*command, session, arguments, "run", "Run a model and print its outputs", run_model);
  run->add_option("inputs", arguments->inputs, "Values of its inputs, as for tenon run")->type_name("NAME=VALUE");
  run->add_option("--device", arguments->device, "Device to use: auto, a kind (cpu) or an id (cpu:0)")->type_name("DEVICE");
  run->add_option("-o,--output", arguments->output, "Write the outputs to a .safetensors file, or one output to a .npy file")
      ->type_name("FILE");
  Command* bench =
      add_part(*command, session, arguments, "bench", "Measure a model: loading, the first call, and later ones", bench_model);
  bench->add_option("inputs", arguments->inputs, "Values of its inputs; others are made up")->type_name("NAME=VALUE");
  bench->add_option("--extent", arguments->extents, "An extent of made-up inputs, by its name in the model")
      ->may_repeat()
      ->type_name("NAME=N");
  bench->add_option("--device", arguments->device, "Device to use: auto, a kind (cpu) or an id (cpu:0)")->type_name("DEVICE");
  bench->add_option("--seconds", arguments->seconds, "Measuring time")->check(in_range(0.001, 3600.0))->type_name("S");
  add_output_options(*bench, session);
  Command* ops = command->add_subcommand("ops", "List the ONNX ops that models may use");
  ops->callback([&session] { session.action = [&session] { return list_ops(session); }; });
}

}  // namespace tenon::cli
