#include "model/onnx/import/importer.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/text/printable.h"
#include "base/threads/stop_scope.h"
#include "model/onnx/import/fixed_values.h"
#include "model/onnx/model_watch.h"
#include "reference/reference.h"
#include "tenon/error.h"

namespace tenon::onnx {
namespace {

constexpr const char* kUnsupportedOpHint =
    "export the model so that it uses other ops, or expand this one into them; docs/models.md says how to list the supported ops";
constexpr std::int64_t kMaxSteps = 20'000;                  // of unrolled loops
constexpr int kMaxCalls = 32;                               // of functions and graphs within each other
constexpr std::int64_t kFoldedElements = 1 << 16;           // of one value that is computed while importing
constexpr std::int64_t kFoldedWork = 1 << 21;               // of all nodes of one such computation
constexpr std::uint64_t kValueBytes = sizeof(Value) + 128;  // with its place in a scope

std::int64_t elements(const ValuePtr& value) {
  if (value->kind == Value::Kind::tensor) return value->shape.elements();
  std::int64_t sum = 0;
  for (const ValuePtr& item : value->items) sum += elements(item);
  return sum;
}

bool is_known(const ValuePtr& value) {
  if (value->kind == Value::Kind::tensor) return value->host || value->is_string();
  return std::all_of(value->items.begin(), value->items.end(), is_known);
}

// The tensors within |value| that are nodes of |graph|.
void collect(const ValuePtr& value, const Graph& graph, std::vector<ValuePtr>& out) {
  if (value->kind == Value::Kind::tensor && value->graph == &graph && !value->host) out.push_back(value);
  for (const ValuePtr& item : value->items) collect(item, graph, out);
}

bool has_graph(const NodeProto& node) {
  return std::any_of(node.attributes.begin(), node.attributes.end(), [](const AttributeProto& a) { return a.graph != nullptr; });
}

void names_in(const GraphProto& graph, std::set<std::string_view>& out) {
  for (const NodeProto& node : graph.nodes) {
    out.insert(node.inputs.begin(), node.inputs.end());
    for (const AttributeProto& attribute : node.attributes)
      if (attribute.graph) names_in(*attribute.graph, out);
  }
  for (const ValueInfoProto& output : graph.outputs) out.insert(output.name);
}

// Nodes imported since the last checkpoint from which on another one is worth its copies.
constexpr std::size_t kNodesToRepeat = 100;

// A computed value whose program is small is computed again rather than kept.
bool is_small(const Graph& graph, NodeId output) {
  std::vector<bool> needed(static_cast<std::size_t>(graph.size()), false);
  needed[static_cast<std::size_t>(output)] = true;
  std::int64_t sum = 0;
  for (NodeId id = output; id >= 0; --id) {
    if (!needed[static_cast<std::size_t>(id)]) continue;
    sum += graph[id].shape.elements();
    for (const NodeId input : graph[id].inputs) needed[static_cast<std::size_t>(input)] = true;
  }
  return sum <= kSmallProgram;
}

const FunctionProto* find_function(const ModelProto& model, const NodeProto& node) {
  for (const FunctionProto& function : model.functions)
    if (function.name == node.op && function.domain == node.domain && function.overload == node.overload) return &function;
  return nullptr;
}

std::int64_t version_of(const OpsetImports* opsets, const ModelProto& model, std::string_view domain) {
  for (const OpsetImports* each : {opsets, &model.opsets}) {
    if (!each) continue;
    const auto found = each->find(domain);
    if (found != each->end()) return found->second;
  }
  return 1;
}

}  // namespace

LoadedModel::LoadedModel(const std::filesystem::path& path)
    : file(path),
      proto(parse_model(file.bytes())),
      weights(file, ExternalData(path.parent_path())) {
  order_nodes();
}

LoadedModel::LoadedModel(Bytes bytes) : file(bytes), proto(parse_model(file.bytes())), weights(file, ExternalData()) {
  order_nodes();
}

void LoadedModel::order_nodes() {
  std::set<std::string_view> wanted;
  for (const ValueInfoProto& output : proto.graph.outputs) wanted.insert(output.name);
  for (auto node = proto.graph.nodes.rbegin(); node != proto.graph.nodes.rend(); ++node) {
    if (std::none_of(node->outputs.begin(), node->outputs.end(), [&](std::string_view name) { return wanted.contains(name); }))
      continue;
    nodes.push_back(&*node);
    wanted.insert(node->inputs.begin(), node->inputs.end());
    for (const AttributeProto& attribute : node->attributes)
      if (attribute.graph) names_in(*attribute.graph, wanted);
  }
  std::reverse(nodes.begin(), nodes.end());
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    std::set<std::string_view> names(nodes[i]->inputs.begin(), nodes[i]->inputs.end());
    for (const AttributeProto& attribute : nodes[i]->attributes)
      if (attribute.graph) names_in(*attribute.graph, names);
    for (const std::string_view name : names) last_reads[name] = i;
  }
  for (const ValueInfoProto& output : proto.graph.outputs) last_reads[output.name] = nodes.size();
  ModelWatch::tell_keeps(nodes.size() * sizeof(void*) + last_reads.size() * 64);
}

ValuePtr Scope::find(std::string_view name) const {
  for (const Scope* scope = this; scope; scope = scope->parent) {
    const auto found = scope->values.find(name);
    if (found != scope->values.end()) return found->second;
  }
  return nullptr;
}

Importer::Importer(LoadedModel& model, const std::map<std::string, ValuePtr, std::less<>>& inputs,
                   std::span<const HostArray> answers, const Checkpoint* from)
    : model_(model),
      inputs_(inputs),
      answers_(answers),
      from_(from) {}

void Importer::number_leaves(const ValuePtr& value) {
  for (const ValuePtr& item : value->items) number_leaves(item);
  if (value->kind == Value::Kind::tensor && !value->is_string()) leaves_.emplace(value.get(), static_cast<int>(leaves_.size()));
}

ValuePtr Importer::value_of(const TensorProto& tensor) {
  ValuePtr& value = tensors_[&tensor];
  if (value) return value;
  if (tensor.type == ElementType::string) {
    const Shape shape = shape_of(tensor);
    if (tensor.strings.size() != static_cast<std::size_t>(shape.elements()))
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("{} strings for the shape {}", tensor.strings.size(), to_string(shape)));
    return value = text(shape, std::vector<std::string>(tensor.strings.begin(), tensor.strings.end()));
  }
  value = known(model_.weights.array(tensor), tensor.type);
  value->tensor = &tensor;
  if (value->shape.elements() > kLargestConstant) value->weight = model_.weights.place(tensor);
  return value;
}

void Importer::bind_inputs(Scope& scope) {
  for (const TensorProto& tensor : model_.proto.graph.initializers) {
    if (scope.values.contains(tensor.name))
      throw Error(ErrorCode::invalid_argument, fmt::format("the model has two initializers named '{}'", printable(tensor.name)));
    scope.values.emplace(tensor.name, value_of(tensor));
  }
  for (const ValueInfoProto& input : model_.proto.graph.inputs) {
    const auto given = inputs_.find(input.name);
    if (given != inputs_.end()) {
      number_leaves(given->second);
      scope.values[input.name] = given->second;
    } else if (!scope.values.contains(input.name) && input.type.kind != TypeProto::Kind::optional) {
      throw Error(ErrorCode::invalid_argument, fmt::format("the input '{}' is missing", printable(input.name)));
    }
  }
}

namespace {

// A value of an earlier import, for the next: what is not known is a leaf.
ValuePtr carried(const ValuePtr& value) {
  auto copy = std::make_shared<Value>(*value);
  copy->graph = nullptr;
  copy->node = -1;
  for (ValuePtr& item : copy->items) item = carried(item);
  return copy;
}

}  // namespace

void Importer::bind_checkpoint(Scope& scope) {
  const auto number = [&](const auto& self, const ValuePtr& value) -> void {
    for (const ValuePtr& item : value->items) self(self, item);
    if (value->kind == Value::Kind::tensor && !value->is_string() && !value->host)
      leaves_.emplace(value.get(), static_cast<int>(leaves_.size()));
  };
  for (const auto& [name, value] : from_->values) {
    const ValuePtr here = carried(value);
    number(number, here);
    scope.values[name] = here;
  }
}

std::shared_ptr<const Checkpoint> Importer::checkpoint(std::size_t node, const Scope& scope, std::vector<NodeId>& outputs) {
  auto result = std::make_shared<Checkpoint>();
  result->node = node;
  const auto source = [&](const auto& self, const ValuePtr& value) -> void {
    for (const ValuePtr& item : value->items) self(self, item);
    if (value->kind != Value::Kind::tensor || value->is_string() || value->host) return;
    if (const auto leaf = leaves_.find(value.get()); leaf != leaves_.end()) {
      result->sources.push_back({false, leaf->second});
    } else {
      result->sources.push_back({true, static_cast<int>(outputs.size())});
      outputs.push_back(expr(value).id());
    }
  };
  std::set<std::string_view> bound;
  for (const TensorProto& tensor : model_.proto.graph.initializers) bound.insert(tensor.name);
  for (const auto& [name, value] : scope.values) {
    const auto read = model_.last_reads.find(name);
    if (!value || read == model_.last_reads.end() || read->second < node) continue;
    if (bound.contains(name) || inputs_.contains(name)) continue;  // every import has these
    result->values.emplace(name, value);
  }
  for (auto& [name, value] : result->values) {
    source(source, value);
    value = carried(value);
  }
  return result;
}

namespace {

void set_fixed_apart(Import& import) {
  std::vector<bool> is_weight;
  for (const Feed& feed : import.feeds) is_weight.push_back(feed.kind == Feed::Kind::weight);
  std::optional<SeparatedGraph> parts = separate_fixed(import.graph, is_weight);
  if (!parts) return;
  FixedProgram fixed{std::move(parts->fixed), {}};
  for (const int input : parts->weights) fixed.feeds.push_back(import.feeds[static_cast<std::size_t>(input)]);
  std::vector<Feed> feeds;
  for (const int input : parts->inputs)
    feeds.push_back(input >= 0 ? import.feeds[static_cast<std::size_t>(input)] : Feed{Feed::Kind::fixed, -1 - input});
  import.graph = std::move(parts->rest);
  import.feeds = std::move(feeds);
  import.fixed = std::move(fixed);
}

}  // namespace

Import Importer::run() {
  ModelWatch::tell_imports();
  Scope scope;
  scope.opsets = &model_.proto.opsets;
  bind_inputs(scope);
  if (from_) bind_checkpoint(scope);
  Import result;
  std::vector<NodeId> outputs;
  const std::size_t first = from_ ? from_->node : 0;
  std::size_t place = first;
  try {
    for (; place < model_.nodes.size(); ++place) run_node(*model_.nodes[place], scope);
    for (const ValueInfoProto& info : model_.proto.graph.outputs) {
      const ValuePtr value = scope.find(info.name);
      if (!value) throw Error(ErrorCode::invalid_argument, fmt::format("no node makes the output '{}'", printable(info.name)));
      result.outputs.push_back(output(value, outputs));
    }
    result.is_complete = true;
  } catch (const NeedsValue& needs) {
    outputs = {expr(needs.value).id()};
    result.outputs.clear();
    if (place > first && (place - first > kNodesToRepeat || !is_small(main_, outputs[0])))
      result.checkpoint = checkpoint(place, scope, outputs);
  }
  main_.set_outputs(outputs);
  result.graph = std::move(main_);
  result.feeds = std::move(feeds_);
  if (result.is_complete) set_fixed_apart(result);
  return result;
}

OutputValue Importer::output(const ValuePtr& value, std::vector<NodeId>& outputs) {
  OutputValue out{.kind = value->kind, .type = value->type, .shape = value->shape};
  for (const ValuePtr& item : value->items) out.items.push_back(output(item, outputs));
  if (value->kind != Value::Kind::tensor) return out;
  out.strings = value->strings;
  if (value->host) out.known = value->host;
  if (out.strings || out.known) return out;
  out.place = static_cast<int>(outputs.size());
  outputs.push_back(expr(value).id());
  return out;
}

Expr Importer::expr(const ValuePtr& value) {
  if (value->is_string()) throw Error(ErrorCode::invalid_argument, "a tensor of strings where numbers are expected");
  if (value->graph == graph_) return {*graph_, value->node};
  if (graph_ != &main_) return {*graph_, graph_->constant(*value->host)};
  if (value->weight >= 0) {
    feeds_.push_back({Feed::Kind::weight, value->weight});
    value->node = main_.input(fmt::format("weight{}", value->weight), value->dtype(), value->shape);
  } else if (value->host) {
    value->node = main_.constant(*value->host);
  } else {
    const auto leaf = leaves_.find(value.get());
    if (leaf == leaves_.end()) throw Error(ErrorCode::internal, "ONNX: a value belongs to no graph");
    feeds_.push_back({Feed::Kind::given, leaf->second});
    value->node = main_.input(fmt::format("input{}", leaf->second), value->dtype(), value->shape);
  }
  value->graph = graph_;
  return {main_, value->node};
}

// What is folded while importing is shape arithmetic, which stays exact.
Expr Importer::operand(Expr x) {
  if (!model_.products || graph_ != &main_ || x.dtype() != DType::f32) return x;
  return build::cast(x, *model_.products);
}

Expr Importer::operand(const ValuePtr& value) {
  const bool is_weight = model_.products && graph_ == &main_ && value->weight >= 0 && value->dtype() == DType::f32;
  if (!is_weight) return operand(expr(value));
  const auto [found, is_new] = operands_.try_emplace(value->weight, -1);
  if (is_new) {
    const int place = model_.weights.converted(value->weight, *model_.products);
    feeds_.push_back({Feed::Kind::weight, place});
    found->second = main_.input(fmt::format("weight{}", place), *model_.products, value->shape);
  }
  return {main_, found->second};
}

ValuePtr Importer::made_weight(const std::vector<const void*>& sources, int part, const std::function<HostArray()>& make) {
  const int place = model_.weights.made(sources, part, make);
  const ValuePtr value = known(model_.weights.at(place));
  if (value->shape.elements() > kLargestConstant) value->weight = place;
  return value;
}

HostArray Importer::host(const ValuePtr& value) {
  if (!value->host && graph_ != &main_ && value->graph == graph_) {
    // Part of a computation that is being folded: all of it is known.
    Graph part = *graph_;
    part.set_outputs({value->node});
    value->host = reference_run(part, {})[0];
  }
  if (!value->host) {
    if (next_answer_ >= answers_.size()) throw NeedsValue{value};
    value->host = answers_[next_answer_++];
  }
  return *value->host;
}

void Importer::count_step() {
  if (++steps_ > kMaxSteps)
    throw Error(ErrorCode::resource_exhausted,
                fmt::format("loops take more than {} steps, which is too many to unroll", kMaxSteps));
}

std::vector<ValuePtr> Importer::call(const GraphProto& graph, const Scope& outer, std::vector<ValuePtr> arguments) {
  if (depth_ >= kMaxCalls) throw Error(ErrorCode::resource_exhausted, "graphs are nested too deeply");
  ++depth_;
  Scope scope;
  scope.parent = &outer;
  scope.opsets = outer.opsets;
  for (const TensorProto& tensor : graph.initializers) scope.values[tensor.name] = value_of(tensor);
  if (arguments.size() > graph.inputs.size())
    throw Error(ErrorCode::invalid_argument, fmt::format("the graph '{}' takes {} inputs, but it is given {}",
                                                         printable(graph.name), graph.inputs.size(), arguments.size()));
  for (std::size_t i = 0; i < arguments.size(); ++i) scope.values[graph.inputs[i].name] = arguments[i];
  run_nodes(graph.nodes, scope);
  std::vector<ValuePtr> results;
  for (const ValueInfoProto& info : graph.outputs) {
    results.push_back(scope.find(info.name));
    if (!results.back())
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("no node makes '{}', an output of the graph '{}'", printable(info.name), printable(graph.name)));
  }
  --depth_;
  return results;
}

Results Importer::call_function(const FunctionProto& function, const NodeProto& node, const Scope& outer,
                                const std::vector<ValuePtr>& inputs) {
  if (depth_ >= kMaxCalls)
    throw Error(ErrorCode::resource_exhausted,
                fmt::format("the function '{}' calls itself, or functions are nested too deeply", printable(function.name)));
  ++depth_;
  Scope scope;
  scope.is_function = true;
  scope.opsets = &function.opsets;
  for (const AttributeProto& each : function.defaults) scope.arguments[each.name] = &each;
  const NodeContext caller(*this, node, outer, inputs, 1);
  for (const AttributeProto& each : node.attributes)
    if (const AttributeProto* value = caller.find(each.name)) scope.arguments[each.name] = value;
  for (std::size_t i = 0; i < function.inputs.size() && i < inputs.size(); ++i)
    if (inputs[i]) scope.values[function.inputs[i]] = inputs[i];
  // An input that the caller leaves out has no value, and neither has what the function names so.
  run_nodes(function.nodes, scope);
  Results results;
  for (const std::string_view name : function.outputs) results.emplace_back(scope.find(name));
  --depth_;
  return results;
}

void Importer::run_nodes(const std::vector<NodeProto>& nodes, Scope& scope) {
  for (const NodeProto& node : nodes) run_node(node, scope);
}

void Importer::run_node(const NodeProto& node, Scope& scope) {
  check_stop();
  try {
    std::vector<ValuePtr> inputs;
    bool in_function = false;
    for (const Scope* each = &scope; each; each = each->parent) in_function = in_function || each->is_function;
    for (const std::string_view name : node.inputs) {
      inputs.push_back(name.empty() ? nullptr : scope.find(name));
      // Within a function a name without a value is an input that the caller left out.
      if (!name.empty() && !inputs.back() && !in_function && !inputs_.contains(name)) {
        const auto is_input = [&](const ValueInfoProto& info) { return info.name == name; };
        if (std::none_of(model_.proto.graph.inputs.begin(), model_.proto.graph.inputs.end(), is_input))
          throw Error(ErrorCode::invalid_argument, fmt::format("no earlier node makes its input '{}'", printable(name)));
      }
    }
    Results results;
    if (const FunctionProto* function = find_function(model_.proto, node)) {
      results = call_function(*function, node, scope, inputs);
    } else {
      const Converter converter = find_converter(node.domain, node.op);
      if (!converter) throw Error(ErrorCode::unimplemented, "this op is not supported", kUnsupportedOpHint);
      results = convert(converter, node, scope, inputs, version_of(scope.opsets, model_.proto, node.domain));
    }
    for (std::size_t i = 0; i < node.outputs.size(); ++i) {
      if (node.outputs[i].empty()) continue;
      ModelWatch::tell_uses(kValueBytes);
      if (i >= results.size() || !results[i].value()) {
        if (in_function) continue;
        throw Error(ErrorCode::unimplemented,
                    fmt::format("its output {} ('{}') is not supported", i, printable(node.outputs[i])));
      }
      if (!scope.values.insert_or_assign(node.outputs[i], results[i].value()).second && scope.parent == nullptr &&
          !scope.is_function)
        throw Error(ErrorCode::invalid_argument, fmt::format("'{}' is made twice", printable(node.outputs[i])));
    }
  } catch (const Error& error) {
    throw Error(error.code(), fmt::format("{}: {}", node_label(node), error.what()), error.hint());
  }
}

Results Importer::convert(Converter converter, const NodeProto& node, const Scope& scope, const std::vector<ValuePtr>& inputs,
                          std::int64_t version) {
  if (graph_ == &main_ && !has_graph(node))
    if (std::optional<Results> folded = fold(converter, node, scope, inputs, version)) return *std::move(folded);
  return converter(NodeContext(*this, node, scope, inputs, version));
}

std::optional<Results> Importer::fold(Converter converter, const NodeProto& node, const Scope& scope,
                                      const std::vector<ValuePtr>& inputs, std::int64_t version) {
  std::int64_t total = 0;
  for (const ValuePtr& input : inputs) {
    if (input && !is_known(input)) return std::nullopt;
    if (input) total += elements(input);
  }
  if (total > kFoldedElements) return cast_weight(node, inputs);
  Graph scratch;
  graph_ = &scratch;
  Results results;
  try {
    results = converter(NodeContext(*this, node, scope, inputs, version));
  } catch (...) {
    graph_ = &main_;
    throw;
  }
  graph_ = &main_;
  std::vector<ValuePtr> values;
  std::vector<NodeId> outputs;
  for (const Result& result : results)
    if (result.value()) collect(result.value(), scratch, values);
  std::int64_t work = 0;
  for (NodeId id = 0; id < scratch.size(); ++id) work += scratch[id].shape.elements();
  for (const ValuePtr& value : values) {
    if (value->shape.elements() > kFoldedElements) return std::nullopt;
    outputs.push_back(value->node);
  }
  if (work > kFoldedWork) return std::nullopt;
  if (!values.empty()) {
    for (const ValuePtr& value : values) ModelWatch::tell_uses(storage_bytes(value->dtype(), value->shape));
    scratch.set_outputs(outputs);
    const std::vector<HostArray> arrays = reference_run(scratch, {});
    for (std::size_t i = 0; i < values.size(); ++i) {
      values[i]->host = arrays[i];
      values[i]->graph = nullptr;
      values[i]->node = -1;
    }
  }
  return results;
}

std::optional<Results> Importer::cast_weight(const NodeProto& node, const std::vector<ValuePtr>& inputs) {
  if (node.op != "Cast" || !node.domain.empty() || inputs.size() != 1 || !inputs[0] || inputs[0]->weight < 0) return std::nullopt;
  if (inputs[0]->type != ElementType::f16 && inputs[0]->type != ElementType::bf16) return std::nullopt;
  const auto to =
      std::find_if(node.attributes.begin(), node.attributes.end(), [](const AttributeProto& a) { return a.name == "to"; });
  if (to == node.attributes.end() || to->integer != static_cast<std::int64_t>(ElementType::f32)) return std::nullopt;
  const int place = model_.weights.converted(inputs[0]->weight, DType::f32);
  const ValuePtr value = known(model_.weights.at(place), ElementType::f32);
  value->weight = place;
  Results results;
  results.emplace_back(value);
  return results;
}

void check_supported(const ModelProto& model) {
  std::map<std::string, std::string> missing;  // op -> the first node that uses it
  const auto check = [&](const std::vector<NodeProto>& nodes) {
    for (const NodeProto& node : nodes) {
      check_stop();
      if (!find_function(model, node) && !find_converter(node.domain, node.op))
        missing.try_emplace((node.domain.empty() ? "" : printable(node.domain) + ".") + printable(node.op), node_label(node));
    }
  };
  check(model.graph.nodes);
  for (const FunctionProto& function : model.functions) check(function.nodes);
  if (missing.empty()) return;
  std::string list;
  for (const auto& [op, label] : missing) list += fmt::format("{}{}", list.empty() ? "" : ", ", label);
  throw Error(ErrorCode::unimplemented, fmt::format("the model uses ops that are not supported: {}", list), kUnsupportedOpHint);
}

}  // namespace tenon::onnx
