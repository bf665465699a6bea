#include "backends/ttnn/program.h"

#include <fmt/format.h>

#include <cstdlib>

#include "base/text/json_writer.h"
#include "graph/encode/bytes.h"
#include "tenon/error.h"

namespace tenon::ttnn {
namespace {

void write_extents(JsonWriter& json, const Shape& shape) {
  json.begin_array();
  for (const std::int64_t extent : shape) json.value(extent);
  json.end_array();
}

void write_type(JsonWriter& json, const TensorType& type) {
  json.member("dtype", name(type.dtype));
  json.key("shape");
  write_extents(json, type.shape);
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

// [[slot, form, number of the part's input or output], ...]
void write_place(JsonWriter& json, int slot, std::string_view form, std::size_t number) {
  json.begin_array();
  json.value(slot);
  json.value(form);
  json.value(number);
  json.end_array();
}

void write_exact(JsonWriter& json, const ExactPlan& plan, std::vector<std::byte>& constants) {
  json.member("slots", plan.slots.size());
  for (const auto& [key, kind] : {std::pair("inputs", ExactSlot::Kind::input), {"outputs", ExactSlot::Kind::output}}) {
    json.key(std::string_view(key));
    json.begin_array();
    for (std::size_t i = 0; i < plan.slots.size(); ++i)
      if (plan.slots[i].kind == kind)
        write_place(json, static_cast<int>(i), "lines", static_cast<std::size_t>(plan.slots[i].index));
    json.end_array();
  }
  json.key("constants");
  json.begin_array();
  for (std::size_t i = 0; i < plan.slots.size(); ++i) {
    if (plan.slots[i].kind != ExactSlot::Kind::constant) continue;
    json.begin_object();
    json.member("slot", i);
    json.member("offset", constants.size() + plan.slots[i].offset_bytes);
    json.member("bytes", plan.slots[i].bytes);
    json.member("form", "lines");
    json.end_object();
  }
  json.end_array();
  constants.insert(constants.end(), plan.constants.begin(), plan.constants.end());
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
}

void write_step(JsonWriter& json, const CallStep& step) {
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

void write_fast(JsonWriter& json, const FastPlan& plan, std::vector<std::byte>& constants) {
  json.member("slots", plan.slots);
  json.key("inputs");
  json.begin_array();
  for (const FastInput& input : plan.inputs) write_place(json, input.slot, input.form, static_cast<std::size_t>(input.input));
  json.end_array();
  json.key("outputs");
  json.begin_array();
  for (std::size_t i = 0; i < plan.outputs.size(); ++i) write_place(json, plan.outputs[i].first, plan.outputs[i].second, i);
  json.end_array();
  json.key("constants");
  json.begin_array();
  for (const FastConstant& constant : plan.constants) {
    json.begin_object();
    json.member("slot", constant.slot);
    json.member("offset", constants.size());
    json.member("bytes", constant.value.bytes());
    json.member("form", constant.form);
    write_type(json, {constant.value.dtype(), constant.value.shape()});
    json.end_object();
    constants.insert(constants.end(), constant.value.data(), constant.value.data() + constant.value.bytes());
  }
  json.end_array();
  json.key("steps");
  json.begin_array();
  for (const CallStep& step : plan.steps) write_step(json, step);
  json.end_array();
}

TranslatedProgram program_of(const MixedPlan& plan) {
  std::vector<std::byte> constants;
  const std::string text = program_text(plan, constants);
  ByteWriter bytes;
  bytes.text(text);
  bytes.number(constants.size());
  bytes.raw(constants);
  return {.bytes = bytes.take(),
          .input_types = plan.input_types,
          .output_types = plan.output_types,
          .tier = plan.tier(),
          .ops_by_tier = plan.ops_by_tier};
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

std::string program_text(const MixedPlan& plan, std::vector<std::byte>& constants) {
  std::string text;
  JsonWriter json(text);
  json.begin_object();
  json.key("values");
  json.begin_array();
  for (const TensorType& value : plan.values) {
    json.begin_object();
    write_type(json, value);
    json.end_object();
  }
  json.end_array();
  json.list("outputs", plan.outputs);
  json.key("parts");
  json.begin_array();
  for (const PlanPart& part : plan.parts) {
    json.begin_object();
    json.list("from", part.inputs);
    json.list("to", part.outputs);
    if (part.is_fast)
      write_fast(json, part.fast, constants);
    else
      write_exact(json, part.exact, constants);
    json.end_object();
  }
  json.end_array();
  json.end_object();
  return text;
}

FastRules rules_for(const DeviceInfo& device, Math math) {
  return {.trust = math == Math::fast ? Trust::all : Trust::limits, .has_32_bit = computes_float32(device)};
}

TranslatedProgram translate(const Graph& graph, const DeviceInfo& device, Math math) {
  if (math != Math::exact)
    if (const auto plan = plan_mixed(graph, rules_for(device, math))) {
      TranslatedProgram program = program_of(*plan);
      // TTNN refuses some shapes and types only when it is called.
      const TranslatedProgram exact = program_of(plan_all_exact(graph));
      program.bytes.insert(program.bytes.end(), exact.bytes.begin(), exact.bytes.end());
      program.other_tier = exact.tier;
      return program;
    }
  return program_of(plan_all_exact(graph));
}

}  // namespace tenon::ttnn
