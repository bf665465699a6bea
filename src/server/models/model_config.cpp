#include "server/models/model_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json.hpp>
#include <charconv>
#include <fstream>
#include <sstream>

#include "base/text/printable.h"
#include "tenon/error.h"

namespace tenon::server {
namespace {

constexpr std::size_t kMaxConfigBytes = 1 << 20;
constexpr int kMaxDepth = 32;

class TextReader {
 public:
  explicit TextReader(std::string_view text) : text_(text) {}

  std::vector<TextField> fields(char end, int depth) {
    if (depth > kMaxDepth) fail("is nested too deeply");
    std::vector<TextField> out;
    while (true) {
      skip();
      if (end != 0 && take(end)) return out;
      if (at_ == text_.size()) {
        if (end != 0) fail(fmt::format("ends before '{}'", end));
        return out;
      }
      read_field(out, depth);
      skip();
      if (!take(',')) take(';');
    }
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    const auto line = std::count(text_.begin(), text_.begin() + static_cast<std::ptrdiff_t>(at_), '\n') + 1;
    throw Error(ErrorCode::invalid_argument, fmt::format("config.pbtxt, line {}: {}", line, what));
  }
  void skip() {
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == '#')
        while (at_ < text_.size() && text_[at_] != '\n') ++at_;
      else if (c == ' ' || c == '\t' || c == '\n' || c == '\r')
        ++at_;
      else
        return;
    }
  }
  bool take(char wanted) {
    if (at_ == text_.size() || text_[at_] != wanted) return false;
    ++at_;
    return true;
  }
  static bool is_word(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.' || c == '-' ||
           c == '+';
  }
  std::string word() {
    const std::size_t begin = at_;
    while (at_ < text_.size() && is_word(text_[at_])) ++at_;
    if (begin == at_)
      fail(at_ < text_.size() ? fmt::format("unexpected '{}'", printable(text_.substr(at_, 1))) : "unexpected end");
    return std::string(text_.substr(begin, at_ - begin));
  }
  std::string quoted(char quote) {
    std::string out;
    while (true) {
      if (at_ == text_.size() || text_[at_] == '\n') fail("a text does not end");
      char c = text_[at_++];
      if (c == quote) return out;
      if (c == '\\') {
        if (at_ == text_.size()) fail("a text does not end");
        c = text_[at_++];
        c = c == 'n' ? '\n' : c == 't' ? '\t' : c == 'r' ? '\r' : c;
      }
      out += c;
    }
  }
  std::string scalar() {
    skip();
    if (take('"')) return quoted('"');
    if (take('\'')) return quoted('\'');
    return word();
  }
  void read_value(const std::string& name, std::vector<TextField>& out, int depth) {
    skip();
    if (take('{')) {
      out.push_back({.name = name, .fields = fields('}', depth + 1), .is_message = true});
    } else if (take('[')) {
      skip();
      if (take(']')) return;
      do read_value(name, out, depth + 1);
      while (skip(), take(','));
      skip();
      if (!take(']')) fail("a list does not end with ']'");
    } else {
      out.push_back({.name = name, .value = scalar()});
    }
  }
  void read_field(std::vector<TextField>& out, int depth) {
    const std::string name = word();
    skip();
    const bool has_colon = take(':');
    skip();
    if (!has_colon && (at_ == text_.size() || (text_[at_] != '{' && text_[at_] != '[')))
      fail(fmt::format("field '{}' has no value", printable(name)));
    read_value(name, out, depth);
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

template <class Number>
Number number(const TextField& field, Number low, Number high) {
  Number value{};
  const char* const end = field.value.data() + field.value.size();
  const auto [stop, error] = std::from_chars(field.value.data(), end, value);
  if (field.is_message || error != std::errc{} || stop != end || value < low || value > high)
    throw Error(ErrorCode::invalid_argument, fmt::format("config.pbtxt: '{}' must be a number from {} to {}, not '{}'",
                                                         printable(field.name), low, high, printable(field.value)));
  return value;
}

void read_versions(const TextField& policy, ModelConfig& config) {
  for (const TextField& each : policy.fields) {
    if (each.name == "all") config.versions = ModelConfig::Versions::all;
    if (each.name == "latest") {
      config.versions = ModelConfig::Versions::latest;
      for (const TextField& field : each.fields)
        if (field.name == "num_versions") config.latest = number<std::int64_t>(field, 1, 1000);
    }
    if (each.name == "specific") {
      config.versions = ModelConfig::Versions::specific;
      for (const TextField& field : each.fields)
        if (field.name == "versions") config.specific.push_back(number<std::int64_t>(field, 1, INT64_MAX));
    }
  }
}

void read_instances(const TextField& group, ModelConfig& config) {
  std::int64_t count = 1;
  std::string device = "auto";
  for (const TextField& field : group.fields) {
    if (field.name == "count") count = number<std::int64_t>(field, 1, 64);
    if (field.name == "kind" && field.value == "KIND_CPU") device = "cpu";
    if (field.name == "kind" && field.value == "KIND_GPU") device = "gpu";
  }
  for (std::int64_t i = 0; i < count; ++i) config.devices.push_back(device);
}

void read_batching(const TextField& batching, ModelConfig& config) {
  for (const TextField& each : batching.fields) {
    if (each.name != "default_queue_policy") continue;
    for (const TextField& field : each.fields) {
      if (field.name == "default_timeout_microseconds")
        config.timeout = std::chrono::microseconds(number<std::int64_t>(field, 0, INT64_MAX / 1000));
      if (field.name == "max_queue_size")
        if (const auto size = number<std::int64_t>(field, 0, 1'000'000); size > 0)
          config.max_queue = static_cast<std::size_t>(size);
    }
  }
}

void read_warm_up(const TextField& warm_up, ModelConfig& config) {
  ModelConfig::WarmUp out;
  for (const TextField& each : warm_up.fields) {
    if (each.name == "batch_size") out.batch = std::max<std::int64_t>(number<std::int64_t>(each, 0, 4096), 1);
    if (each.name != "inputs") continue;
    std::string key;
    std::vector<std::int64_t> dims;
    for (const TextField& field : each.fields) {
      if (field.name == "key") key = field.value;
      if (field.name == "value")
        for (const TextField& inner : field.fields)
          if (inner.name == "dims") dims.push_back(number<std::int64_t>(inner, 0, 1 << 24));
    }
    out.dims.emplace(key, std::move(dims));
  }
  if (config.warm_up.size() < 64) config.warm_up.push_back(std::move(out));
}

void read_parameter(const std::string& key, TextField value, ModelConfig& config) {
  value.name = key;
  if (key == "latency_objective_ms")
    config.latency_objective = std::chrono::milliseconds(number<std::int64_t>(value, 1, 3'600'000));
  if (key == "max_tokens") config.encoder.max_tokens = number<std::int64_t>(value, 1, 1 << 20);
  if (key == "keep_seconds") config.keep_seconds = number<double>(value, 0.0, 1e9);
  if (key == "normalize") config.encoder.normalize = value.value == "true" || value.value == "1";
  if (key == "pooling") config.encoder.pooling = parse_pooling(value.value);
  if (key == "dtype") {
    const std::optional<DType> dtype = parse_dtype(value.value);
    if (dtype != DType::f32 && dtype != DType::f16 && dtype != DType::bf16)
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("config.pbtxt: dtype must be float32, float16 or bfloat16, not '{}'", printable(value.value)));
    config.encoder.model.products = dtype;
  }
  if (key == "devices") {
    config.devices.clear();
    std::istringstream list(value.value);
    for (std::string device; std::getline(list, device, ',');)
      if (!device.empty()) config.devices.push_back(device);
  }
}

std::string contents(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  std::string text(kMaxConfigBytes + 1, '\0');
  in.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(std::max<std::streamsize>(in.gcount(), 0)));
  if (text.size() > kMaxConfigBytes)
    throw Error(ErrorCode::invalid_argument, fmt::format("'{}' is longer than 1 MiB", printable(file.filename().string())));
  return text;
}

}  // namespace

std::vector<TextField> parse_text_proto(std::string_view text) { return TextReader(text).fields(0, 0); }

ModelConfig read_model_config(std::string_view pbtxt, const std::string& name) {
  ModelConfig config;
  for (const TextField& field : parse_text_proto(pbtxt)) {
    if (field.name == "name" && field.value != name)
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("config.pbtxt is for the model '{}', the folder is '{}'", printable(field.value), printable(name)));
    if (field.name == "max_batch_size") config.max_batch_size = number<std::int64_t>(field, 0, 65536);
    if (field.name == "version_policy") read_versions(field, config);
    if (field.name == "instance_group") read_instances(field, config);
    if (field.name == "dynamic_batching") read_batching(field, config);
    if (field.name == "model_warmup") read_warm_up(field, config);
    if (field.name != "parameters") continue;
    std::string key;
    TextField value;
    for (const TextField& each : field.fields) {
      if (each.name == "key") key = each.value;
      if (each.name == "value" && !each.fields.empty()) value = each.fields.front();
    }
    read_parameter(key, std::move(value), config);
  }
  return config;
}

ModelConfig load_model_config(const std::filesystem::path& folder, const std::filesystem::path& files, const std::string& name) {
  std::error_code error;
  const std::filesystem::path pbtxt = folder / "config.pbtxt";
  const bool has_pbtxt = std::filesystem::is_regular_file(pbtxt, error);
  // config.pbtxt comes before the encoder's own files, and those of the version before the model's.
  ModelConfig config = has_pbtxt ? read_model_config(contents(pbtxt), name) : ModelConfig();
  config.encoder = config.encoder.completed(files).completed(folder);
  if (config.encoder.max_tokens == 0) config.encoder.max_tokens = EncoderOptions::kMaxTokens;
  return config;
}

}  // namespace tenon::server
