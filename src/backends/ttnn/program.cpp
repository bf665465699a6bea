#include "backends/ttnn/program.h"

#include <fmt/format.h>

#include <cstdlib>

#include "base/json_writer.h"
#include "graph/bytes.h"
#include "tenon/error.h"

namespace tenon::ttnn {
namespace {

void write_extents(JsonWriter& json, const Shape& shape) {
  json.begin_array();
  for (const std::int64_t extent : shape) json.value(extent);
  json.end_array();
}

struct ArgumentWriter {
  JsonWriter& json;
  void object(const char* key, const auto& value) {
    json.begin_object();
    json.member(std::string_view(key), value);
    json.end_object();
  }
  void operator()(const TensorArgument& x) { object("tensor", x.slot); }
  void operator()(const TensorsArgument& x) {
    json.begin_array();
    for (const int slot : x.slots) object("tensor", slot);
    json.end_array();
  }
  void operator()(const AttributeArgument& x) { object("ttnn", x.path); }
  void operator()(const PreciseArgument&) { object("precise", true); }
  void operator()(const DeviceArgument&) { object("device", true); }
  void operator()(bool x) { json.value(x); }
  void operator()(std::int64_t x) { json.value(x); }
  // As an object, because JSON has no infinities.
  void operator()(double x) { object("number", x); }
  void operator()(const Integers& x) {
    json.begin_array();
    for (const std::int64_t each : x) json.value(each);
    json.end_array();
  }
  void operator()(const IntegerPairs& x) {
    json.begin_array();
    for (const auto& [first, second] : x) {
      json.begin_array();
      json.value(first);
      json.value(second);
      json.end_array();
    }
    json.end_array();
  }
};
void write_argument(JsonWriter& json, const CallArgument& argument) { std::visit(ArgumentWriter{json}, argument); }

void write_places(JsonWriter& json, const std::vector<std::pair<int, std::string>>& places) {
  json.begin_array();
  for (const auto& [slot, form] : places) {
    json.begin_array();
    json.value(slot);
    json.value(form);
    json.end_array();
  }
  json.end_array();
}

TranslatedProgram program_of(std::string text, const std::vector<std::byte>& constants, std::vector<TensorType> inputs,
                             std::vector<TensorType> outputs, const char* tier) {
  ByteWriter bytes;
  bytes.text(text);
  bytes.number(constants.size());
  bytes.raw(constants);
  return {bytes.take(), std::move(inputs), std::move(outputs), tier, {}};
}

TranslatedProgram exact_program(const Graph& graph) {
  ExactPlan plan = plan_exact(graph);
  return program_of(program_text(plan), plan.constants, std::move(plan.input_types), std::move(plan.output_types), "exact");
}

// The simulator of Wormhole chips ends the process on every 32-bit tensor that a compute core touches.
bool computes_float32(const DeviceInfo& device) {
  const auto chip = device.details.find("chip");
  return !(device.details.contains("simulator") && chip != device.details.end() && chip->second == "wormhole");
}

}  // namespace

std::optional<Math> parse_math(std::string_view text) noexcept {
  if (text == "exact") return Math::exact;
  if (text == "fast") return Math::fast;
  if (text == "auto") return Math::by_limits;
  return std::nullopt;
}

Math configured_math() {
  const char* const given = std::getenv("TENON_TENSTORRENT_MATH");
  if (!given || !*given) return Math::by_limits;
  if (const auto math = parse_math(given)) return *math;
  throw Error(ErrorCode::invalid_argument, fmt::format("TENON_TENSTORRENT_MATH is '{}'; it must be exact, fast or auto", given));
}

std::string program_text(const ExactPlan& plan) {
  std::string text;
  JsonWriter json(text);
  json.begin_object();
  json.member("slots", plan.slots.size());
  std::vector<std::pair<int, std::string>> inputs, outputs;
  for (std::size_t i = 0; i < plan.slots.size(); ++i) {
    if (plan.slots[i].kind == ExactSlot::Kind::input) inputs.emplace_back(static_cast<int>(i), "lines");
    if (plan.slots[i].kind == ExactSlot::Kind::output) outputs.emplace_back(static_cast<int>(i), "lines");
  }
  json.key("inputs");
  write_places(json, inputs);
  json.key("outputs");
  write_places(json, outputs);
  json.key("constants");
  json.begin_array();
  for (std::size_t i = 0; i < plan.slots.size(); ++i) {
    if (plan.slots[i].kind != ExactSlot::Kind::constant) continue;
    json.begin_object();
    json.member("slot", i);
    json.member("offset", plan.slots[i].offset_bytes);
    json.member("bytes", plan.slots[i].bytes);
    json.member("form", "lines");
    json.end_object();
  }
  json.end_array();
  json.key("temporaries");
  json.begin_array();
  for (std::size_t i = 0; i < plan.slots.size(); ++i) {
    if (plan.slots[i].kind != ExactSlot::Kind::temporary) continue;
    json.begin_array();
    json.value(i);
    json.value(plan.slots[i].bytes);
    json.end_array();
  }
  json.end_array();
  json.member("status", plan.status_slot);
  json.key("kernels");
  json.begin_array();
  for (const ExactKernel& kernel : plan.kernels) json.value(kernel.source);
  json.end_array();
  json.key("steps");
  json.begin_array();
  for (const ExactLaunch& launch : plan.launches) {
    json.begin_object();
    json.member("kernel", launch.kernel);
    json.member("groups", launch.groups);
    json.list("words", launch.words);
    json.key("buffers");
    json.begin_array();
    for (const auto& [word, slot] : launch.buffers) {
      json.begin_array();
      json.value(word);
      json.value(slot);
      json.end_array();
    }
    json.end_array();
    json.end_object();
  }
  json.end_array();
  json.end_object();
  return text;
}

std::string program_text(const FastPlan& plan, std::vector<std::byte>& constants) {
  std::string text;
  JsonWriter json(text);
  json.begin_object();
  json.member("slots", plan.slots);
  json.key("inputs");
  write_places(json, plan.inputs);
  json.key("outputs");
  write_places(json, plan.outputs);
  json.key("constants");
  json.begin_array();
  for (const FastConstant& constant : plan.constants) {
    json.begin_object();
    json.member("slot", constant.slot);
    json.member("offset", constants.size());
    json.member("bytes", constant.value.bytes());
    json.member("form", constant.form);
    json.member("dtype", name(constant.value.dtype()));
    json.key("shape");
    write_extents(json, constant.value.shape());
    json.end_object();
    constants.insert(constants.end(), constant.value.data(), constant.value.data() + constant.value.bytes());
  }
  json.end_array();
  json.key("temporaries");
  json.begin_array();
  json.end_array();
  json.key("steps");
  json.begin_array();
  for (const CallStep& step : plan.steps) {
    json.begin_object();
    json.member("call", step.call);
    json.key("arguments");
    json.begin_array();
    for (const CallArgument& argument : step.arguments) write_argument(json, argument);
    json.end_array();
    json.key("named");
    json.begin_object();
    for (const auto& [key, argument] : step.named) {
      json.key(key);
      write_argument(json, argument);
    }
    json.end_object();
    json.key("outputs");
    json.begin_array();
    json.value(step.output);
    json.end_array();
    json.list("drop", step.drop);
    json.end_object();
  }
  json.end_array();
  json.end_object();
  return text;
}

TranslatedProgram translate(const Graph& graph, const DeviceInfo& device, Math math) {
  if (math != Math::exact && computes_float32(device))
    if (auto plan = plan_fast(graph, math == Math::fast ? Trust::all : Trust::limits)) {
      std::vector<std::byte> constants;
      std::string text = program_text(*plan, constants);
      TranslatedProgram fast =
          program_of(std::move(text), constants, std::move(plan->input_types), std::move(plan->output_types), "fast");
      // TTNN refuses some shapes and types only when it is called.
      const TranslatedProgram exact = exact_program(graph);
      fast.bytes.insert(fast.bytes.end(), exact.bytes.begin(), exact.bytes.end());
      fast.other_tier = exact.tier;
      return fast;
    }
  return exact_program(graph);
}

}  // namespace tenon::ttnn
