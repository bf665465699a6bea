// What the files beside a model say of the encoder that it is part of.
#include <algorithm>
#include <boost/json.hpp>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "base/text/printable.h"
#include "tenon/array/io.h"
#include "tenon/error.h"
#include "tenon/model/encoder.h"

namespace tenon {
namespace {

// What cannot be read, or is longer than such files are, says nothing.
boost::json::value json_value_of(const std::filesystem::path& file) {
  constexpr std::size_t kMost = 1 << 20;
  std::error_code error;
  if (!std::filesystem::is_regular_file(file, error)) return {};
  std::ifstream in(file, std::ios::binary);
  std::string text(kMost, '\0');
  in.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(std::max<std::streamsize>(in.gcount(), 0)));
  boost::system::error_code parse_error;
  boost::json::value value = boost::json::parse(text, parse_error);
  return parse_error ? boost::json::value() : value;
}
boost::json::object json_of(const std::filesystem::path& file) {
  const boost::json::value value = json_value_of(file);
  return value.is_object() ? value.get_object() : boost::json::object();
}

std::optional<std::int64_t> positive(const boost::json::object& object, std::string_view name) {
  const boost::json::value* value = object.if_contains(name);
  return value != nullptr && value->is_int64() && value->get_int64() > 0 ? std::optional(value->get_int64()) : std::nullopt;
}

// Some models count positions from their padding's on, so that less than max_position_embeddings is left; all take the default.
std::optional<std::int64_t> tokens_of(const std::filesystem::path& folder) {
  const std::optional<std::int64_t> positions = positive(json_of(folder / "config.json"), "max_position_embeddings");
  std::optional<std::int64_t> most = positive(json_of(folder / "sentence_bert_config.json"), "max_seq_length");
  if (!most && positions) most = std::min(EncoderOptions::kMaxTokens, *positions);
  if (most && positions) most = std::min(*most, *positions);
  return most;
}

using Pooling = EncoderOptions::Pooling;

struct PoolingName {
  std::string_view name, key;  // |key|: in the configuration of the module
  Pooling how;
};
constexpr PoolingName kPoolings[] = {
    {"first", "pooling_mode_cls_token", Pooling::first},
    {"mean", "pooling_mode_mean_tokens", Pooling::mean},
    {"last", "pooling_mode_lasttoken", Pooling::last},
    {"max", "pooling_mode_max_tokens", Pooling::max},
    {"mean_sqrt_len", "pooling_mode_mean_sqrt_len_tokens", Pooling::mean_sqrt_len},
    {"weighted_mean", "pooling_mode_weightedmean_tokens", Pooling::weighted_mean},
};

std::string text_in(const boost::json::object& object, std::string_view name) {
  const boost::json::value* value = object.if_contains(name);
  return value != nullptr && value->is_string() ? std::string(value->get_string()) : "";
}

// Newer files name the way, older ones have a truth value for each.
std::optional<Pooling> pooling_of(const boost::json::object& file) {
  std::optional<Pooling> found;
  std::string mode = text_in(file, "pooling_mode");
  if (mode == "cls") mode = "first";
  if (mode == "lasttoken") mode = "last";
  if (mode == "mean_sqrt_len_tokens") mode = "mean_sqrt_len";
  if (mode == "weightedmean") mode = "weighted_mean";
  if (!mode.empty()) return parse_pooling(mode);
  for (const PoolingName& each : kPoolings) {
    const boost::json::value* const says = file.if_contains(each.key);
    if (says == nullptr || !says->is_bool() || !says->get_bool()) continue;
    if (found)
      throw Error(ErrorCode::unimplemented, "vectors of several poolings one after the other are not supported",
                  "name one of them as the pooling");
    found = each.how;
  }
  return found;
}

EncoderOptions::Dense dense_in(const std::filesystem::path& folder) {
  const boost::json::object config = json_of(folder / "config.json");
  const std::string act = text_in(config, "activation_function");
  if (!act.ends_with("Tanh") && !act.ends_with("Identity") && !act.empty())
    throw Error(ErrorCode::unimplemented, fmt::format("the activation '{}' of a dense module is not supported", printable(act)));
  if (!std::filesystem::exists(folder / "model.safetensors"))
    throw Error(ErrorCode::unimplemented,
                fmt::format("the module '{}' has no model.safetensors", printable(folder.filename().string())),
                "save the model again with sentence-transformers, which writes one");
  const ArrayFile file = load_safetensors(folder / "model.safetensors");
  const auto weight = file.arrays.find("linear.weight"), bias = file.arrays.find("linear.bias");
  const bool has_bias = bias != file.arrays.end();
  if (weight == file.arrays.end() || weight->second.shape().rank() != 2 ||
      (has_bias && bias->second.shape() != Shape{weight->second.shape()[0]}))
    throw Error(ErrorCode::invalid_argument, fmt::format("the module '{}' has no matrix", printable(folder.filename().string())));
  return {weight->second.cast(DType::f32),
          has_bias ? bias->second.cast(DType::f32) : HostArray::zeros(DType::f32, {weight->second.shape()[0]}),
          act.empty() || act.ends_with("Tanh")};
}

// What sentence-transformers does after the model: modules by the end of their type and their folders. Files of older models
// have no list.
struct Module {
  std::string type;
  std::filesystem::path folder;
};
std::vector<Module> modules_in(const std::filesystem::path& folder) {
  std::vector<Module> out;
  const boost::json::value list = json_value_of(folder / "modules.json");
  if (!list.is_array()) return out;
  for (const boost::json::value& each : list.get_array()) {
    if (!each.is_object()) continue;
    const std::string type = text_in(each.get_object(), "type"), path = text_in(each.get_object(), "path");
    if (path.empty()) continue;  // the model itself
    if (path.front() == '.' || path.find_first_of(std::string_view("/\\\0", 3)) != std::string::npos)
      throw Error(ErrorCode::invalid_argument, fmt::format("modules.json names the folder '{}'", printable(path)));
    out.push_back({type.substr(type.rfind('.') + 1), folder / path});
  }
  return out;
}

}  // namespace

EncoderOptions::Pooling parse_pooling(std::string_view name) {
  std::string known;
  for (const PoolingName& each : kPoolings) {
    if (each.name == name) return each.how;
    known += fmt::format("{}{}", known.empty() ? "" : ", ", each.name);
  }
  throw Error(ErrorCode::invalid_argument, fmt::format("there is no pooling '{}'", printable(std::string(name))),
              fmt::format("it is one of {}", known));
}

EncoderOptions EncoderOptions::completed(const std::filesystem::path& folder) const {
  EncoderOptions options = *this;
  if (options.max_tokens == 0) options.max_tokens = tokens_of(folder).value_or(0);
  std::filesystem::path how = folder / "1_Pooling";
  for (const Module& module : modules_in(folder)) {
    if (module.type == "Pooling")
      how = module.folder;
    else if (module.type == "Dense" && dense.empty())
      options.dense.push_back(dense_in(module.folder));
    else if (module.type != "Normalize" && module.type != "Dropout" && module.type != "Dense")
      throw Error(ErrorCode::unimplemented, fmt::format("modules of type '{}' are not supported", printable(module.type)),
                  "the modules Transformer, Pooling, Dense and Normalize are");
  }
  if (!options.pooling) options.pooling = pooling_of(json_of(how / "config.json"));
  return options;
}

}  // namespace tenon
