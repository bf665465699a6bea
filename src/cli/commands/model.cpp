#include <fmt/format.h>
#include <time.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <limits>
#include <memory>
#include <set>
#include <span>
#include <string>

#include "array/format_array.h"
#include "array/io/byte_source.h"
#include "base/text/printable.h"
#include "base/text/units.h"
#include "cli/commands/commands.h"
#include "cli/commands/model_compare.h"
#include "cli/inputs/model_inputs.h"
#include "cli/json.h"
#include "cli/measure.h"
#include "cli/option_checks.h"
#include "cli/terminal/progress_talk.h"
#include "manager/routing/tuning.h"
#include "model/generate/model_files.h"
#include "model/onnx/convert.h"
#include "model/onnx/import/node_context.h"
#include "present/route.h"
#include "tenon/array/io.h"
#include "tenon/error.h"
#include "tenon/model.h"

namespace tenon::cli {
namespace {

struct ModelArguments {
  std::string file, device = "auto", output, dtype, products = "float32";
  std::vector<std::string> inputs, extents;
  double seconds = 2;
  bool explain = false, sweep = false;
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

// A language model has no graph, but what its files say.
int show_language_model(const ModelArguments& arguments, const Session& session) {
  const ModelFiles files = open_model_files(arguments.file);
  const gguf::Source& file = files.source;
  const ModelInfo& info = files.info;
  std::ostream& out = session.console.out;
  if (session.json) {
    print_document(out, 1, [&](JsonWriter& json) {
      json.member("format", info.format);
      json.member("parameters", info.parameters);
      json.member("weight_bytes", info.weight_bytes);
      json.key("metadata").begin_object();
      for (const auto& [key, value] : info.metadata) json.member(key, value);
      json.end_object();
      json.key("tensors").begin_array();
      for (const gguf::TensorInfo& tensor : file.tensors()) {
        json.begin_object();
        json.member("name", tensor.name);
        json.member("type", name(tensor.type));
        json.key("shape").begin_array();
        for (const std::int64_t extent : tensor.shape) json.value(extent);
        json.end_array();
        json.end_object();
      }
      json.end_array();
    });
    return 0;
  }
  out << fmt::format("{}, {} parameters in {}: {} tensors ({})\n", info.format, info.parameters,
                     format_bytes(static_cast<double>(info.weight_bytes)), file.tensors().size(), info.metadata.at("tensors"));
  constexpr std::size_t kWidest = 60;
  for (const auto& [key, value] : info.metadata) {
    if (key == "tensors") continue;
    const std::string shown = printable(value.substr(0, value.find('\n')));
    out << fmt::format("{:<44} {}{}\n", printable(key), shown.substr(0, kWidest), value.size() > kWidest ? " ..." : "");
  }
  return 0;
}

int show_info(const ModelArguments& arguments, const Session& session) {
  if (is_language_model(arguments.file)) return show_language_model(arguments, session);
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

Model load_model(const ModelArguments& arguments) {
  return Model::load(arguments.file, {.products = parse_dtype(arguments.products)});
}

void add_products_option(Command& command, ModelArguments& arguments) {
  command.add_option("--dtype", arguments.products, "Type of what enters products; the rest is computed in float32")
      ->check(one_of({"float32", "bfloat16", "float16"}))
      ->type_name("TYPE");
}

// --- run ---

int run_model(const ModelArguments& arguments, const Session& session) {
  const Model model = load_model(arguments);
  const Model::Tensors inputs = given_inputs(arguments.inputs, model.info());
  RunOptions options;
  options.device = arguments.device;
  if (arguments.explain) {
    options.explain = true;
    options.on_decision = [&](const Decision& decision) {
      session.console.out << present::route_text(decision, session.console.style()) << '\n' << std::flush;
    };
  }
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

double cpu_seconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

// Of this program: a child's own figures (getrusage) begin with its parent's.
std::size_t peak_memory_bytes() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with("VmHWM:")) return static_cast<std::size_t>(std::strtoull(line.c_str() + 6, nullptr, 10)) * 1024;
  return 0;
}

// --- bench --sweep ---

// The first axes that the model leaves free, as extents of this batch.
std::vector<std::string> batch_extents(const ModelInfo& info, std::int64_t batch) {
  std::set<std::string> extents;
  for (const ModelValue& value : info.inputs)
    if (!value.is_optional && !value.shape.empty() && !value.shape[0].extent)
      extents.insert(fmt::format("{}={}", value.shape[0].name.empty() ? value.name + "[0]" : value.shape[0].name, batch));
  if (extents.empty())
    throw Error(ErrorCode::invalid_argument, "no input has a first axis of any extent: the batch of this model is fixed");
  return {extents.begin(), extents.end()};
}

int sweep_model(const ModelArguments& arguments, const Session& session) {
  if (!arguments.inputs.empty())
    throw Error(ErrorCode::invalid_argument, "--sweep makes up every input", "leave NAME=VALUE out, or --sweep");
  const Model model = load_model(arguments);
  RunOptions options;
  options.device = arguments.device;
  const auto inputs_for = [&](std::int64_t batch) {
    std::vector<std::string> extents = batch_extents(model.info(), batch);
    extents.insert(extents.end(), arguments.extents.begin(), arguments.extents.end());
    Model::Tensors inputs;
    make_up_inputs(extents, model.info(), inputs);
    return inputs;
  };
  const auto seconds_of = [&](std::int64_t batch) {
    const Model::Tensors inputs = inputs_for(batch);
    const auto once = [&] {
      const auto start = std::chrono::steady_clock::now();
      for (const auto& [name, tensor] : model(inputs, options)) tensor.to_host();
      return seconds_since(start);
    };
    once();  // compiles
    double least = std::numeric_limits<double>::infinity();
    for (int i = 0; i < 3; ++i) least = std::min(least, once());
    return least;
  };
  const auto bytes_of = [&](std::int64_t batch) {
    std::uint64_t sum = 0;
    for (const auto& [name, tensor] : inputs_for(batch)) sum += storage_bytes(tensor.dtype(), tensor.shape());
    return sum;
  };
  ProgressTalk talk(session.console);
  const auto begin = std::chrono::steady_clock::now();
  const TuneResult found = find_batch_size(
      {.measure = seconds_of, .bytes_of = bytes_of, .on_begin = [&](std::int64_t batch) { talk.measuring_batch(batch); }},
      {.max_batch = 1024, .is_over = [&] { return seconds_since(begin) > arguments.seconds; }});
  talk.clear();
  std::ostream& out = session.console.out;
  if (session.json) {
    print_document(out, 1, [&](JsonWriter& json) {
      json.key("points").begin_array();
      for (const TunePoint& point : found.points) {
        json.begin_object();
        json.member("batch", point.batch);
        json.member("seconds", point.seconds);
        json.member("rows_per_second", point.rows_per_second());
        json.end_object();
      }
      json.end_array();
      json.member("recommended_batch", found.knee().batch);
      json.member("stopped", found.stopped);
    });
    return 0;
  }
  for (const TunePoint& point : found.points)
    out << fmt::format("batch {:>5}  {:>10}  {}\n", point.batch, format_seconds(point.seconds),
                       format_rate(point.rows_per_second(), "rows/s"));
  out << fmt::format("recommended batch: {}, the smallest with 90 % of the best throughput\n", found.knee().batch);
  return 0;
}

int bench_model(const ModelArguments& arguments, const Session& session) {
  if (arguments.sweep) return sweep_model(arguments, session);
  const auto begin = std::chrono::steady_clock::now();
  const double begin_cpu = cpu_seconds();
  const Model model = load_model(arguments);
  const double load = seconds_since(begin), load_cpu = cpu_seconds() - begin_cpu;
  Model::Tensors inputs = given_inputs(arguments.inputs, model.info());
  make_up_inputs(arguments.extents, model.info(), inputs);
  RunOptions options;
  options.device = arguments.device;
  double least_cpu = std::numeric_limits<double>::infinity();
  const auto work = [&] {
    const double before = cpu_seconds();
    for (const auto& [name, tensor] : model(inputs, options)) tensor.to_host();
    least_cpu = std::min(least_cpu, cpu_seconds() - before);
  };
  const auto start = std::chrono::steady_clock::now();
  work();
  const double first = seconds_since(start);
  const Measurement m = measure(work, arguments.seconds, {});
  const std::size_t memory = peak_memory_bytes();
  std::ostream& out = session.console.out;
  if (session.json) {
    print_document(out, 1, [&](JsonWriter& json) {
      json.member("load_seconds", load);
      json.member("load_cpu_seconds", load_cpu);
      json.member("first_seconds", first);
      json.member("median_seconds", m.median_seconds);
      json.member("p10_seconds", m.p10_seconds);
      json.member("p90_seconds", m.p90_seconds);
      json.member("least_cpu_seconds", least_cpu);
      json.member("memory_bytes", memory);
      json.member("calls", m.calls);
    });
    return 0;
  }
  out << fmt::format("load {}, first call {}, then {} ({} to {}, {} calls); {} of memory\n", format_seconds(load),
                     format_seconds(first), format_seconds(m.median_seconds), format_seconds(m.p10_seconds),
                     format_seconds(m.p90_seconds), m.calls, format_bytes(static_cast<double>(memory)));
  return 0;
}

// --- convert ---

int convert_model(const ModelArguments& arguments, const Session& session) {
  const onnx::Converted converted =
      onnx::with_small_weights(arguments.file, arguments.dtype == "float16" ? DType::f16 : DType::bf16);
  const auto given = static_cast<double>(std::filesystem::file_size(arguments.file));  // which the output may replace
  // A model that could not be read again would be found out too late.
  const std::span bytes = std::as_bytes(std::span(converted.bytes));
  Model::parse(bytes);
  write_file(arguments.output, std::array{bytes});
  if (!session.quiet)
    session.console.err << fmt::format("{} weights in {}, {} instead of {}\n", converted.tensors, arguments.dtype,
                                       format_bytes(static_cast<double>(converted.bytes.size())), format_bytes(given));
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
  part->add_option("file", arguments->file,
                   "An ONNX file; for info also a language model: a GGUF file, or a folder of safetensors")
      ->required()
      ->type_name("FILE");
  part->callback(
      [arguments, &session, run] { session.action = [arguments, &session, run] { return run(*arguments, session); }; });
  return part;
}

}  // namespace

void add_model_command(Command& app, Session& session) {
  auto arguments = std::make_shared<ModelArguments>();
  Command* command = app.add_subcommand("model", "Describe, run, measure, compare or convert a model from a file");
  command->require_subcommand(1, 1);
  command->footer(
      "Examples:\n  tenon model info minilm.onnx\n  tenon model run net.onnx x='rand([1, 3, 224, 224])' -o out.npy\n  tenon "
      "model bench minilm.onnx --extent batch=8 --extent sequence=32\n  tenon model compare net.onnx "
      "--device cpu --device opencl:0");
  add_output_options(*add_part(*command, session, arguments, "info", "Show inputs, outputs, ops and size", show_info), session);
  Command* run = add_part(*command, session, arguments, "run", "Run a model and print its outputs", run_model);
  run->add_option("inputs", arguments->inputs, "Values of its inputs, as for tenon run")->type_name("NAME=VALUE");
  run->add_option("--device", arguments->device, "Device to use: auto, a kind (cpu) or an id (cpu:0)")->type_name("DEVICE");
  run->add_flag("--explain", arguments->explain, "Show the predicted time of each device and why one was chosen");
  add_products_option(*run, *arguments);
  run->add_option("-o,--output", arguments->output, "Write the outputs to a .safetensors file, or one output to a .npy file")
      ->type_name("FILE");
  Command* bench =
      add_part(*command, session, arguments, "bench", "Measure a model: loading, the first call, and later ones", bench_model);
  bench->add_option("inputs", arguments->inputs, "Values of its inputs; others are made up")->type_name("NAME=VALUE");
  bench->add_option("--extent", arguments->extents, "An extent of made-up inputs: its name in the model, or INPUT[AXIS]")
      ->may_repeat()
      ->type_name("NAME=N");
  bench->add_option("--device", arguments->device, "Device to use: auto, a kind (cpu) or an id (cpu:0)")->type_name("DEVICE");
  add_products_option(*bench, *arguments);
  bench->add_flag("--sweep", arguments->sweep,
                  "Double the batch from 1 and recommend the smallest with nearly the best throughput");
  bench->add_option("--seconds", arguments->seconds, "Measuring time")->check(in_range(0.001, 3600.0))->type_name("S");
  add_output_options(*bench, session);
  Command* convert = add_part(*command, session, arguments, "convert", "Store a model's weights in 16 bits", convert_model);
  convert->add_option("output", arguments->output, "The ONNX file to write")->required()->type_name("OUTPUT");
  convert->add_option("--dtype", arguments->dtype, "Type of the weights; ops compute in float32 as before")
      ->required()
      ->check(one_of({"float16", "bfloat16"}))
      ->type_name("TYPE");
  auto comparing = std::make_shared<CompareArguments>();
  Command* compare = command->add_subcommand("compare", "Compare a model's outputs on several devices, or with recorded ones");
  compare->add_option("file", comparing->file, "An ONNX file")->required()->type_name("FILE");
  compare->add_option("inputs", comparing->inputs, "Values of its inputs; others are made up")->type_name("NAME=VALUE");
  compare->add_option("--device", comparing->devices, "A device to compare; the first one is what the others are judged by")
      ->may_repeat()
      ->type_name("DEVICE");
  compare
      ->add_option("--reference", comparing->reference,
                   "Recorded values: a .safetensors or .npz file with tensors input.NAME and output.NAME")
      ->type_name("FILE");
  compare->add_option("--extent", comparing->extents, "An extent of made-up inputs: its name in the model, or INPUT[AXIS]")
      ->may_repeat()
      ->type_name("NAME=N");
  compare->add_option("--tolerance", comparing->tolerance, "Largest difference allowed, relative to the largest element")
      ->check(in_range(0.0, 1.0))
      ->type_name("T");
  add_output_options(*compare, session);
  compare->callback(
      [comparing, &session] { session.action = [comparing, &session] { return compare_model(*comparing, session); }; });
  Command* ops = command->add_subcommand("ops", "List the ONNX ops that models may use");
  ops->callback([&session] { session.action = [&session] { return list_ops(session); }; });
}

}  // namespace tenon::cli
