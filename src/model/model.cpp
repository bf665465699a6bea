#include "tenon/model.h"

#include <fmt/format.h>

#include <algorithm>

#include "array/io/byte_source.h"
#include "base/text/printable.h"
#include "manager/routing/tuning.h"
#include "model/checkpoint/decoder_config.h"
#include "model/checkpoint/encoder.h"
#include "model/model_info.h"
#include "model/onnx/session.h"
#include "tenon/array/io.h"
#include "tenon/error.h"
#include "tensor/node.h"

namespace tenon {

struct ModelState {
  ModelState(std::shared_ptr<onnx::LoadedModel> model, const ModelOptions& given)
      : loaded(model),
        session(model, given.program_bytes),
        info(info_of(*model)),
        options(given) {}
  std::shared_ptr<const onnx::LoadedModel> loaded;
  onnx::Session session;
  const ModelInfo info;
  const ModelOptions options;
};

namespace {

using Inputs = std::map<std::string, onnx::RunValue, std::less<>>;

// Whether every value of |from| is one of |to|.
bool holds_all(DType from, DType to) { return from != to && promote(from, to) == to && is_float(from) == is_float(to); }

void check_shape(const ModelValue& value, const Shape& shape, std::map<std::string, std::int64_t>& named) {
  bool fits = !value.has_shape || static_cast<int>(value.shape.size()) == shape.rank();
  std::string reason;
  for (int i = 0; fits && value.has_shape && i < shape.rank(); ++i) {
    const ModelValue::Extent& each = value.shape[static_cast<std::size_t>(i)];
    fits = !each.extent || *each.extent == shape[i];
    if (each.name.empty()) continue;
    const auto [known, is_new] = named.try_emplace(each.name, shape[i]);
    if (!is_new && known->second != shape[i]) {
      fits = false;
      reason = fmt::format("; '{}' is {} in another input", printable(each.name), known->second);
    }
  }
  if (!fits)
    throw Error(ErrorCode::invalid_argument,
                fmt::format("the input has the shape {}, the model expects {}{}", to_string(shape), to_string(value), reason));
}

Model::Tensors fitted(const ModelInfo& info, const Model::Tensors& given) {
  Model::Tensors tensors;
  std::map<std::string, std::int64_t> named;
  for (const auto& [name, tensor] : given) {
    const auto known =
        std::find_if(info.inputs.begin(), info.inputs.end(), [&](const ModelValue& each) { return each.name == name; });
    if (known == info.inputs.end()) {
      std::string names;
      for (const ModelValue& each : info.inputs) names += (names.empty() ? "" : ", ") + printable(each.name);
      throw Error(ErrorCode::invalid_argument, fmt::format("the model has no input '{}'", printable(name)),
                  "its inputs are: " + names);
    }
    if (!known->dtype)
      throw Error(ErrorCode::unimplemented,
                  fmt::format("the input '{}' is a {}, which no tensor holds", printable(name), known->type));
    check_shape(*known, tensor.shape(), named);
    if (tensor.dtype() != *known->dtype && !holds_all(tensor.dtype(), *known->dtype))
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("the input '{}' is {}, the model expects {}", printable(name), tenon::name(tensor.dtype()),
                              to_string(*known)),
                  fmt::format("convert it with cast(x, {})", tenon::name(*known->dtype)));
    tensors.emplace(name, tensor.dtype() == *known->dtype ? tensor : tensor.cast(*known->dtype));
  }
  for (const ModelValue& each : info.inputs)
    if (!given.contains(each.name) && !each.is_optional && each.type.find("optional") != 0)
      throw Error(ErrorCode::invalid_argument, fmt::format("the input '{}' is missing", to_string(each)));
  return tensors;
}

Inputs checked(const ModelInfo& info, const Model::Tensors& given, const RunOptions& options) {
  const Model::Tensors tensors = fitted(info, given);
  std::vector<Tensor> all;
  for (const auto& [name, tensor] : tensors) all.push_back(tensor);
  // Literals have no storage, so they become arrays; everything else stays where it is.
  eval(all, options);
  Inputs inputs;
  for (const auto& [name, tensor] : tensors) {
    onnx::RunValue run;
    run.type = onnx::element_type(tensor.dtype());
    run.shape = tensor.shape();
    const std::shared_ptr<Storage> storage = node_of(tensor)->state().storage;
    run.tensor = storage ? storage : Storage::from_host(tensor.to_host());
    inputs.emplace(name, std::move(run));
  }
  return inputs;
}

// For questions that need no values.
Inputs shapes_of(const ModelInfo& info, const Model::Tensors& given) {
  Inputs inputs;
  for (const auto& [name, tensor] : given) {
    onnx::RunValue run;
    run.type = onnx::element_type(tensor.dtype());
    for (const ModelValue& each : info.inputs)
      if (each.name == name && each.dtype) run.type = onnx::element_type(*each.dtype);
    run.shape = tensor.shape();
    inputs.emplace(name, std::move(run));
  }
  return inputs;
}

Tensor tensor_of(const onnx::RunValue& value, const std::string& name) {
  if (!value.tensor)
    throw Error(ErrorCode::unimplemented, fmt::format("the output '{}' is not a tensor of numbers", printable(name)));
  auto node = std::make_shared<TensorNode>();
  node->graph_dtype = value.tensor->type().dtype;
  node->shape = value.tensor->type().shape;
  node->set_storage(value.tensor);
  return tenon::tensor_of(std::move(node));
}

// Errors of the format say what is wrong; what to do depends only on their kind.
Error with_hint(const Error& error, const std::string& message) {
  if (!error.hint().empty()) return {error.code(), message, error.hint()};
  switch (error.code()) {
    case ErrorCode::invalid_argument: return {error.code(), message, "export the model again; onnx.checker says what is wrong"};
    case ErrorCode::unimplemented: return {error.code(), message, "export the model without this, or with another opset"};
    case ErrorCode::resource_exhausted: return {error.code(), message, "split the model, or use a smaller one"};
    case ErrorCode::data_loss: return {error.code(), message, "fetch the file again"};
    default: return {error.code(), message};
  }
}

std::shared_ptr<ModelState> state_of(std::shared_ptr<onnx::LoadedModel> loaded, const ModelOptions& options) {
  check_supported(loaded->proto);
  if (options.products && *options.products != DType::f32) {
    if (*options.products != DType::f16 && *options.products != DType::bf16)
      throw Error(ErrorCode::invalid_argument, fmt::format("products cannot be computed in {}", name(*options.products)),
                  "use float32, float16 or bfloat16");
    loaded->products = options.products;
  }
  return std::make_shared<ModelState>(std::move(loaded), options);
}

}  // namespace

Model Model::load_checkpoint(const std::filesystem::path& file, const ModelOptions& options) {
  try {
    const std::filesystem::path config = file.parent_path() / "config.json";
    const std::unique_ptr<ByteSource> source = open_source(config);
    constexpr std::uint64_t kMost = 1 << 20;
    if (source->size() > kMost) throw Error(ErrorCode::resource_exhausted, "config.json is too large");
    std::string text(source->size(), '\0');
    source->read(0, std::as_writable_bytes(std::span(text)));
    if (checkpoint::is_decoder_config(text))
      throw Error(ErrorCode::unimplemented, "it is a language model", "load it as a Generator, which writes text");
    return parse(checkpoint::encoder_as_onnx(text, load_safetensors(file)), options);
  } catch (const Error& error) {
    throw Error(error.code(), fmt::format("model '{}': {}", printable(file.string()), error.what()), error.hint());
  }
}

std::filesystem::path Model::file_in(const std::filesystem::path& path) {
  if (!std::filesystem::is_directory(path)) return path;
  for (const char* const name : {"model.onnx", "model.safetensors", "onnx/model.onnx"})
    if (std::filesystem::exists(path / name)) return path / name;
  throw Error(ErrorCode::not_found,
              fmt::format("the folder '{}' has no model.onnx, model.safetensors or onnx/model.onnx", printable(path.string())),
              "name the model's file");
}

Model Model::load(const std::filesystem::path& path, const ModelOptions& options) {
  const std::filesystem::path file = file_in(path);
  const std::string extension = file.extension().string();
  if (extension == ".gguf")
    throw Error(ErrorCode::unimplemented, fmt::format("'{}' is a language model", printable(file.string())),
                "load it as a Generator, which writes text");
  if (extension == ".safetensors") return load_checkpoint(file, options);
  if (extension == ".pt" || extension == ".pth" || extension == ".tflite" || extension == ".pb" || extension == ".h5")
    throw Error(ErrorCode::unimplemented, fmt::format("'{}': models in this format are not supported", printable(file.string())),
                "export the model as ONNX");
  try {
    return Model(state_of(std::make_shared<onnx::LoadedModel>(file), options));
  } catch (const Error& error) {
    throw with_hint(error, fmt::format("model '{}': {}", printable(file.string()), error.what()));
  }
}

Model Model::parse(std::span<const std::byte> onnx, const ModelOptions& options) {
  try {
    return Model(state_of(std::make_shared<onnx::LoadedModel>(onnx), options));
  } catch (const Error& error) {
    throw with_hint(error, error.what());
  }
}

const ModelInfo& Model::info() const noexcept { return state_->info; }
const ModelOptions& Model::options() const noexcept { return state_->options; }
std::vector<ModelNode> Model::nodes(std::size_t first, std::size_t count) const {
  return nodes_of(*state_->loaded, first, count);
}
std::size_t Model::programs() const { return state_->session.programs(); }

Model::Tensors Model::fitted(const Tensors& inputs) const { return tenon::fitted(state_->info, inputs); }

Model::Tensors Model::operator()(const Tensors& inputs, const RunOptions& options) const {
  const Inputs values = checked(state_->info, inputs, options);
  RunOptions here = options;
  if (here.device == "auto") here.device = default_request();
  const onnx::SessionResult result = state_->session.run(current_manager(), values, here);
  Tensors outputs;
  for (std::size_t i = 0; i < result.outputs.size(); ++i) {
    const std::string& name = state_->info.outputs[i].name;
    outputs.emplace(name, tensor_of(result.outputs[i], name));
  }
  return outputs;
}

Decision Model::explain(const Tensors& inputs, std::string_view device) const {
  return current_manager().explain(state_->session.import(shapes_of(state_->info, inputs))->graph, device);
}

std::int64_t Model::recommended_batch(const std::function<Tensors(std::int64_t)>& inputs, std::string_view request,
                                      std::int64_t most) const {
  std::vector<TunePoint> points;
  for (std::int64_t batch = 1; batch <= std::max<std::int64_t>(most, 1); batch *= 2) {
    const Decision decision = explain(inputs(batch), request);
    // Opening and compiling happen once, whatever the batch.
    const Stages& predicted = decision.considered.at(0).predicted;
    points.push_back({.batch = batch, .seconds = predicted.transfer_seconds + predicted.compute_seconds});
  }
  return points[knee_of(points)].batch;
}

std::shared_ptr<const Graph> Model::graph(const Tensors& inputs) const {
  const std::shared_ptr<const onnx::Import> import = state_->session.import(shapes_of(state_->info, inputs));
  return {import, &import->graph};
}

std::string Model::program(const Tensors& inputs) const {
  return state_->session.import(shapes_of(state_->info, inputs))->graph.text();
}

}  // namespace tenon
