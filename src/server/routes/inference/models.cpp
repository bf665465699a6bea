// The models of the folder in the Open Inference Protocol.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "base/text/json_writer.h"
#include "server/compute/program/estimates.h"
#include "server/http/problem.h"
#include "server/routes/inference/inference.h"
#include "server/routes/inference/protocol.h"
#include "server/services.h"
#include "tenon/tensor/program.h"

namespace tenon::server {
namespace {

void write_dims(JsonWriter& out, const JsonKey& key, const ModelValue& value, std::size_t from) {
  out.key(key).begin_array();
  for (std::size_t i = from; i < value.shape.size(); ++i) out.value(value.shape[i].extent.value_or(-1));
  out.end_array();
}

void write_values(JsonWriter& out, const JsonKey& key, const std::vector<ModelValue>& values) {
  out.key(key).begin_array();
  for (const ModelValue& value : values) {
    out.begin_object();
    out.member("name", value.name);
    out.member("datatype", value.dtype ? datatype_of(*value.dtype) : std::string_view("BYTES"));
    write_dims(out, "shape", value, 0);
    out.end_object();
  }
  out.end_array();
}

// Triton's convention: without the batch axis where there is a largest batch.
void write_config_values(JsonWriter& out, const JsonKey& key, const std::vector<ModelValue>& values, bool has_batch) {
  out.key(key).begin_array();
  for (const ModelValue& value : values) {
    out.begin_object();
    out.member("name", value.name);
    out.member("data_type", fmt::format("TYPE_{}", value.dtype ? datatype_of(*value.dtype) : std::string_view("STRING")));
    write_dims(out, "dims", value, has_batch ? 1 : 0);
    out.member("optional", value.is_optional);
    out.end_object();
  }
  out.end_array();
}

void write_duration(JsonWriter& out, const JsonKey& key, const BatchStatistics::Duration& duration) {
  out.key(key).begin_object();
  out.member("count", duration.count);
  out.member("ns", duration.nanoseconds);
  out.end_object();
}

std::string_view index_state(ServedModel::State state) {
  switch (state) {
    case ServedModel::State::loading: return "LOADING";
    case ServedModel::State::ready:
    case ServedModel::State::unloaded: return "READY";
    default: return "UNAVAILABLE";
  }
}

// The batch sizes that have run, as Triton lists them.
void write_batches(JsonWriter& out, const BatchStatistics& batches) {
  out.key("batch_stats").begin_array();
  for (const auto& [rows, duration] : batches.batches) {
    out.begin_object();
    out.member("batch_size", rows);
    write_duration(out, "compute_input", {.count = duration.count});
    write_duration(out, "compute_infer", duration);
    write_duration(out, "compute_output", {.count = duration.count});
    out.end_object();
  }
  out.end_array();
}

void write_statistics(JsonWriter& out, ServedModel& model) {
  const BatchStatistics batches = model.batcher().statistics();
  out.begin_object();
  write_inference_statistics(out, model.name(), std::to_string(model.version()), batches);
  out.key("tenon").begin_object();
  write_batching(out, model, model.status(), batches);
  out.end_object();
  out.end_object();
}

NamedArrays fitted_arrays(const Model& model, InferenceRequest& request) {
  Model::Tensors tensors;
  for (const auto& [name, array] : request.inputs) tensors.emplace(name, program_input(array.dtype(), array.shape()));
  model.fitted(tensors);
  NamedArrays arrays;
  for (auto& [name, array] : request.inputs) {
    const auto value = std::ranges::find(model.info().inputs, name, &ModelValue::name);
    if (value == model.info().inputs.end()) continue;
    arrays.emplace(name, *value->dtype == array.dtype() ? std::move(array) : array.cast(*value->dtype));
  }
  return arrays;
}

void check_outputs(const InferenceRequest& request, const ModelInfo& info, const std::string& model) {
  for (const WantedOutput& wanted : request.outputs) {
    const auto known = std::find_if(info.outputs.begin(), info.outputs.end(),
                                    [&](const ModelValue& value) { return value.name == wanted.name; });
    if (known != info.outputs.end()) continue;
    std::string names;
    for (const ModelValue& value : info.outputs)
      if (names.size() < 300) names += (names.empty() ? "'" : ", '") + value.name + "'";
    throw Error(ErrorCode::not_found, fmt::format("{} has no output '{}'", model, wanted.name.substr(0, 64)),
                "its outputs: " + names);
  }
}

std::string_view platform_of(const LoadedModel& loaded) {
  if (!loaded.generator) return "tenon_onnx";
  return loaded.info().format == "safetensors" ? "tenon_safetensors" : "tenon_gguf";
}

}  // namespace

void write_inference_statistics(JsonWriter& out, const std::string& name, const std::string& version,
                                const BatchStatistics& batches) {
  out.member("name", name);
  out.member("version", version);
  out.member("last_inference", batches.last_ms);
  out.member("inference_count", batches.inferences);
  out.member("execution_count", batches.executions);
  out.key("inference_stats").begin_object();
  write_duration(out, "success", batches.success);
  write_duration(out, "fail", batches.fail);
  write_duration(out, "queue", batches.queue);
  write_duration(out, "compute_input", {.count = batches.compute.count});
  write_duration(out, "compute_infer", batches.compute);
  write_duration(out, "compute_output", {.count = batches.compute.count});
  out.end_object();
  write_batches(out, batches);
}

int priority_of(std::uint64_t level) { return level == 0 ? 0 : 5 - static_cast<int>(std::min<std::uint64_t>(level, 10)); }

void rethrow_from_run(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const Error& failure) {
    throw Problem::of(failure, Stage::running);
  }
}

void write_batching(JsonWriter& out, const ServedModel& model, const ServedModel::Status& status,
                    const BatchStatistics& batches) {
  out.member("state", name(status.state));
  out.text_or_null("problem", status.problem);
  out.member("resident_bytes", status.bytes);
  out.seconds("load_seconds", status.load_seconds);
  out.member("loads", status.loads);
  out.member("batched", status.batching.batches);
  out.member("padded", status.batching.pads);
  out.member("batching", status.batching.reason);
  out.member("max_batch_size", batches.rows_limit);
  out.member("latency_objective_ms", model.source().config.latency_objective.count());
  out.member("waiting", batches.waiting);
  out.member("running", batches.running);
  out.member("departed", batches.departed);
  out.member("late", batches.late);
  out.member("refused", batches.refused);
  out.member("tokens", batches.elements);
  out.member("padded_tokens", batches.padded_elements);
}

std::shared_ptr<ServedModel> model_of(Services& services, const Call& call) {
  return services.models.find(call.arguments[0], call.arguments.size() > 1 ? call.arguments[1] : "");
}

Response model_metadata(Services& services, const Call& call) {
  const std::shared_ptr<ServedModel> model = model_of(services, call);
  const std::shared_ptr<const LoadedModel> loaded = model->acquire(call.cancel);
  const ModelInfo& info = loaded->info();
  const ServedModel::Status status = model->status();
  Response response;
  JsonWriter out(response.body);
  out.begin_object();
  out.member("name", model->name());
  out.list("versions", services.models.versions(model->name()));
  out.member("platform", platform_of(*loaded));
  write_values(out, "inputs", info.inputs);
  write_values(out, "outputs", info.outputs);
  out.key("parameters").begin_object();
  out.member("batched", status.batching.batches);
  out.member("batching", status.batching.reason);
  out.member("tokenizer", loaded->encoder.has_value());
  out.member("weight_bytes", info.weight_bytes);
  out.end_object();
  out.end_object();
  return response;
}

Response model_config(Services& services, const Call& call) {
  const std::shared_ptr<ServedModel> model = model_of(services, call);
  const std::shared_ptr<const LoadedModel> loaded = model->acquire(call.cancel);
  const ModelInfo& info = loaded->info();
  const ServedModel::Status status = model->status();
  const ModelConfig& config = model->source().config;
  Response response;
  JsonWriter out(response.body);
  out.begin_object();
  out.member("name", model->name());
  out.member("platform", platform_of(*loaded));
  out.member("backend", "tenon");
  out.member("max_batch_size", status.batching.batches ? config.most_rows() : 0);
  write_config_values(out, "input", info.inputs, status.batching.batches);
  write_config_values(out, "output", info.outputs, status.batching.batches);
  if (status.batching.batches) {
    out.key("dynamic_batching").begin_object();
    out.member("max_queue_delay_microseconds", 0);
    out.key("default_queue_policy").begin_object();
    out.member("max_queue_size", config.max_queue);
    out.member("default_timeout_microseconds", config.timeout.count());
    out.end_object();
    out.end_object();
  }
  out.key("instance_group").begin_array();
  for (std::size_t i = 0; i < std::max<std::size_t>(config.devices.size(), 1); ++i) {
    out.begin_object();
    out.member("name", fmt::format("{}_{}", model->name(), i));
    out.member("kind", "KIND_AUTO");
    out.member("count", 1);
    out.member("device", i < config.devices.size() ? config.devices[i] : std::string("auto"));
    out.end_object();
  }
  out.end_array();
  out.key("parameters").begin_object();
  const auto parameter = [&](const JsonKey& key, const std::string& value) {
    out.key(key).begin_object();
    out.member("string_value", value);
    out.end_object();
  };
  parameter("batching", status.batching.reason);
  parameter("latency_objective_ms", std::to_string(config.latency_objective.count()));
  parameter("max_tokens", std::to_string(config.encoder.max_tokens));
  out.end_object();
  out.end_object();
  return response;
}

Response model_statistics(const std::vector<std::shared_ptr<ServedModel>>& models) {
  Response response;
  JsonWriter out(response.body);
  out.begin_object();
  out.key("model_stats").begin_array();
  for (const std::shared_ptr<ServedModel>& model : models) write_statistics(out, *model);
  out.end_array();
  out.end_object();
  return response;
}

void write_model_index(JsonWriter& out, Services& services, bool only_ready) {
  for (const std::shared_ptr<ServedModel>& model : services.models.all()) {
    const ServedModel::Status status = model->status();
    const std::string_view state = index_state(status.state);
    if (only_ready && state != "READY") continue;
    out.begin_object();
    out.member("name", model->name());
    out.member("version", std::to_string(model->version()));
    out.member("state", state);
    out.member("reason", !status.problem.empty()                        ? status.problem
                         : status.state == ServedModel::State::unloaded ? std::string("loaded by the first request")
                         : status.state == ServedModel::State::stopped  ? std::string("unloaded")
                                                                        : std::string());
    out.end_object();
  }
}

void infer_with_model(Services& services, const Call& call, const Finish& finish) {
  const std::shared_ptr<ServedModel> model = model_of(services, call);
  const std::shared_ptr<const LoadedModel> loaded = model->acquire(call.cancel);
  if (loaded->generator)
    throw Error(ErrorCode::invalid_argument, fmt::format("model {} takes prompts, not tensors", model->name()),
                "POST /v1/completions or /v1/chat/completions");
  auto request = std::make_shared<InferenceRequest>(read_inference_request(call, services.reader(call)));
  check_outputs(*request, loaded->model->info(), model->name());
  if (!request->parameters.empty())
    throw Error(ErrorCode::invalid_argument,
                fmt::format("unknown parameter '{}'", std::string(request->parameters.begin()->key()).substr(0, 64)),
                "parameters of a model's request: binary_data_output, device, priority, timeout");
  BatchItem item;
  item.input = fitted_arrays(*loaded->model, *request);
  model->describe(item, *loaded);
  if (request->device != "auto") {
    services.manager.find(request->device);
    item.device = request->device;
    item.key += "@" + request->device;
  }
  item.priority = priority_of(request->priority);
  if (request->timeout.count() > 0) item.deadline = BatchItem::Clock::now() + request->timeout;
  item.client = call.client.quota;
  item.cancel = call.cancel;
  item.memory = std::move(request->memory);
  item.done = [&services, model, loaded, request, finish, quota = call.client.quota](BatchOutcome outcome) {
    auto held = std::make_shared<BatchOutcome>(std::move(outcome));
    finish([&services, &model, &loaded, &request, &quota, held]() {
      if (held->error) rethrow_from_run(held->error);
      InferenceAnswer answer{.model = model->name(), .version = std::to_string(model->version()), .device = held->device};
      std::uint64_t bytes = 0;
      for (const ModelValue& value : loaded->model->info().outputs) {
        const auto output = held->outputs.find(value.name);
        if (output == held->outputs.end()) continue;
        bytes += answer_bytes(*request, value.name, output->second.dtype(), output->second.shape()) + output->second.bytes();
        answer.outputs.emplace_back(value.name, output->second);
      }
      MemoryGate::Share memory = ClientMemory{services.memory, quota}.take(bytes);
      Response response = write_inference_answer(*request, answer);
      if (memory) memory.shrink_to(response.bytes());
      response.memory = std::move(memory);
      return response;
    });
  };
  std::vector<BatchItem> items;
  items.push_back(std::move(item));
  model->submit(std::move(items));
}

}  // namespace tenon::server
