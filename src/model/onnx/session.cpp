#include "model/onnx/session.h"

#include <fmt/format.h>

#include <algorithm>

#include "manager/evaluate.h"
#include "model/onnx/model_watch.h"
#include "reference/reference.h"
#include "tenon/error.h"

namespace tenon::onnx {
namespace {

constexpr std::size_t kMaxPlans = 64;
constexpr int kMaxStages = 4096;

using Inputs = std::map<std::string, RunValue, std::less<>>;

void describe(const RunValue& value, std::string& out) {
  fmt::format_to(std::back_inserter(out), "{}:{}:{}", static_cast<int>(value.kind), static_cast<int>(value.type),
                 to_string(value.shape));
  if (value.strings)
    for (const std::string& each : *value.strings) fmt::format_to(std::back_inserter(out), "\"{}:{}\"", each.size(), each);
  for (const RunValue& item : value.items) {
    out += '(';
    describe(item, out);
    out += ')';
  }
}

std::string key_of(const Inputs& inputs) {
  std::string key;
  for (const auto& [name, value] : inputs) {
    fmt::format_to(std::back_inserter(key), "{}={}:", name.size(), name);
    describe(value, key);
    key += ';';
  }
  return key;
}

ValuePtr value_of(const RunValue& run) {
  auto value = std::make_shared<Value>();
  value->kind = run.kind;
  value->type = run.type;
  value->shape = run.shape;
  value->strings = run.strings;
  for (const RunValue& item : run.items) value->items.push_back(value_of(item));
  return value;
}

void leaves(const RunValue& value, std::vector<std::shared_ptr<Storage>>& out) {
  for (const RunValue& item : value.items) leaves(item, out);
  if (value.tensor) out.push_back(value.tensor);
}

RunValue result_of(const OutputValue& output, const std::vector<std::shared_ptr<Storage>>& results) {
  RunValue value{.kind = output.kind, .type = output.type, .shape = output.shape, .strings = output.strings};
  for (const OutputValue& item : output.items) value.items.push_back(result_of(item, results));
  if (output.place >= 0) value.tensor = results[static_cast<std::size_t>(output.place)];
  if (output.known) value.tensor = Storage::from_host(*output.known);
  return value;
}

std::size_t bytes_of(const Import& import, const std::string& key) {
  std::size_t bytes = sizeof(Import) + 2 * key.size() + static_cast<std::size_t>(import.graph.size()) * 2 * sizeof(Node);
  for (NodeId id = 0; id < import.graph.size(); ++id)
    if (import.graph[id].prim == Prim::constant) bytes += import.graph[id].as<ConstantAttr>().value.bytes();
  for (const OutputValue& output : import.outputs)
    if (output.known) bytes += output.known->bytes();
  if (import.checkpoint)
    for (const auto& [name, value] : import.checkpoint->values) bytes += sizeof(Value) + (value->host ? value->host->bytes() : 0);
  return bytes;
}

bool is_small(const Graph& graph) {
  std::int64_t sum = 0;
  for (NodeId id = 0; id < graph.size(); ++id) sum += graph[id].shape.elements();
  return sum <= kSmallProgram;
}

}  // namespace

RunValue RunValue::from(HostArray array, ElementType type) {
  RunValue value;
  value.type = type == ElementType::undefined ? element_type(array.dtype()) : type;
  value.shape = array.shape();
  value.tensor = Storage::from_host(std::move(array));
  return value;
}

std::size_t Session::programs() const {
  const std::lock_guard lock(mutex_);
  return plans_.size();
}

Session::Storages Session::feeds_of(std::span<const Feed> feeds, const std::string& device, const Storages& given,
                                    const Storages& fixed) {
  Storages out;
  out.reserve(feeds.size());
  const std::lock_guard lock(mutex_);
  std::map<int, std::shared_ptr<Storage>>& weights = weights_[device];
  for (const Feed& feed : feeds) {
    if (feed.kind != Feed::Kind::weight) {
      out.push_back((feed.kind == Feed::Kind::fixed ? fixed : given).at(static_cast<std::size_t>(feed.place)));
      continue;
    }
    std::shared_ptr<Storage>& storage = weights[feed.place];
    if (!storage) storage = Storage::from_host(model_->weights.at(feed.place));
    out.push_back(storage);
  }
  return out;
}

Session::Storages Session::fixed_of(DeviceManager& manager, const Import& program, const RunOptions& options) {
  if (!program.fixed) return {};
  const GraphKey graph = program.fixed->graph.key();
  std::string name = fmt::format("{:x}{:016x}", graph.high, graph.low);
  for (const Feed& feed : program.fixed->feeds) name += fmt::format(",{}", feed.place);
  const std::pair key{options.device, std::move(name)};
  {
    const std::lock_guard lock(mutex_);
    // Unless the device failed that had them.
    if (const auto found = fixed_.find(key);
        found != fixed_.end() && std::ranges::none_of(found->second, [](const auto& each) { return each->is_lost(); }))
      return found->second;
  }
  ModelWatch::tell_runs(program.fixed->graph);
  std::uint64_t bytes = 0;
  for (const NodeId id : program.fixed->graph.outputs())
    bytes += storage_bytes(program.fixed->graph[id].dtype, program.fixed->graph[id].shape);
  ModelWatch::tell_keeps(bytes);
  Storages results =
      evaluate(manager, program.fixed->graph, feeds_of(program.fixed->feeds, options.device, {}, {}), options).outputs;
  const std::lock_guard lock(mutex_);
  return fixed_[key] = std::move(results);
}

std::shared_ptr<const Import> Session::plan(const std::string& key, const Inputs& inputs, std::span<const HostArray> answers,
                                            const Checkpoint* from) {
  {
    const std::lock_guard lock(mutex_);
    const auto found = plans_.find(key);
    if (found != plans_.end()) {
      recent_.splice(recent_.end(), recent_, found->second.position);
      return found->second.program;
    }
  }
  std::map<std::string, ValuePtr, std::less<>> values;
  for (const auto& [name, value] : inputs) values.emplace(name, value_of(value));
  auto program = std::make_shared<const Import>(Importer(*model_, values, answers, from).run());
  const std::lock_guard lock(mutex_);
  if (plans_.contains(key)) return plans_.at(key).program;
  const std::size_t bytes = bytes_of(*program, key);
  if (bytes > program_bytes_) return program;
  while (plans_.size() >= kMaxPlans || plan_bytes_ + bytes > program_bytes_) {
    // Programs that follow from data may never be needed again: they go first.
    auto oldest =
        std::find_if(recent_.begin(), recent_.end(), [&](const std::string& each) { return !plans_.at(each).is_first; });
    if (oldest == recent_.end()) oldest = recent_.begin();
    plan_bytes_ -= plans_.at(*oldest).bytes;
    plans_.erase(*oldest);
    recent_.erase(oldest);
  }
  plans_.emplace(key, Plan{program, recent_.insert(recent_.end(), key), bytes, answers.empty() && !from});
  plan_bytes_ += bytes;
  return program;
}

std::shared_ptr<const Import> Session::import(const Inputs& inputs) { return plan(key_of(inputs), inputs, {}, nullptr); }

SessionResult Session::run(DeviceManager& manager, const Inputs& inputs, const RunOptions& options) {
  std::string key = key_of(inputs);
  std::vector<HostArray> answers;
  std::vector<std::shared_ptr<Storage>> given;
  // In the order in which an import numbers them: that of the model's inputs.
  for (const ValueInfoProto& info : model_->proto.graph.inputs)
    if (const auto found = inputs.find(info.name); found != inputs.end()) leaves(found->second, given);
  SessionResult result;
  std::shared_ptr<const Checkpoint> from;
  const std::size_t inputs_given = given.size();
  for (int stage = 0; stage < kMaxStages; ++stage) {
    const std::shared_ptr<const Import> program = plan(key, inputs, answers, from.get());
    const Storages feeds = feeds_of(program->feeds, options.device, given, fixed_of(manager, *program, options));
    std::vector<std::shared_ptr<Storage>> outputs;
    if (!program->graph.outputs().empty()) {
      ModelWatch::tell_runs(program->graph);
      if (!program->is_complete && is_small(program->graph)) {
        std::vector<HostArray> arrays;
        for (const auto& feed : feeds) arrays.push_back(feed->to_host());
        for (HostArray& output : reference_run(program->graph, arrays)) outputs.push_back(Storage::from_host(std::move(output)));
      } else {
        EvaluateResult evaluated = evaluate(manager, program->graph, feeds, options);
        outputs = std::move(evaluated.outputs);
        result.device = evaluated.owner->device();
        result.timeline = std::move(evaluated.timeline);
        ++result.programs;
      }
    }
    if (program->is_complete) {
      for (const OutputValue& output : program->outputs) result.outputs.push_back(result_of(output, outputs));
      return result;
    }
    if (program->checkpoint) {
      from = program->checkpoint;
      answers.clear();
      std::vector<std::shared_ptr<Storage>> carried(given.begin(), given.begin() + static_cast<std::ptrdiff_t>(inputs_given));
      for (const Checkpoint::Source& source : from->sources)
        carried.push_back((source.is_output ? outputs : given).at(static_cast<std::size_t>(source.place)));
      given = std::move(carried);
    }
    answers.push_back(outputs.at(0)->to_host());
    const HostArray& answer = answers.back();
    key += fmt::format("|{}:", to_string(answer.shape()));
    key.append(reinterpret_cast<const char*>(answer.data()), answer.bytes());
  }
  throw Error(ErrorCode::resource_exhausted, fmt::format("the model asks for more than {} values of its own data", kMaxStages));
}

}  // namespace tenon::onnx
