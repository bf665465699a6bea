// ModelConfig: how a model of the folder is served. Read from Triton's config.pbtxt and from the files that models bring along
// (config.json, sentence_bert_config.json, 1_Pooling/config.json); everything has a default.
//
// Of config.pbtxt these fields are used: name, max_batch_size, version_policy, instance_group {count kind}, dynamic_batching
// {default_queue_policy {default_timeout_microseconds max_queue_size}}, model_warmup {batch_size inputs {dims}}, parameters.
// Further fields of Triton's schema are accepted and have no effect: inputs, outputs and types are those of the model file, and
// nothing waits for a fuller batch while the model is idle. Parameters that Tenon knows: latency_objective_ms, max_tokens,
// pooling (as parse_pooling() has it), normalize, dtype (of products: float32, float16, bfloat16), devices ("cpu:0,cuda:0": one
// instance each), keep_seconds.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tenon/model/encoder.h"

namespace tenon::server {

struct ModelConfig {
  // nullopt: the default of kMaxBatch; 0: never batched.
  std::optional<std::int64_t> max_batch_size;
  static constexpr std::int64_t kMaxBatch = 32;

  enum class Versions : std::uint8_t { latest, all, specific };
  Versions versions = Versions::latest;
  std::int64_t latest = 1;                // how many, for Versions::latest
  std::vector<std::int64_t> specific;     // for Versions::specific
  std::vector<std::string> devices = {};  // the device request of each instance; empty: one instance on "auto"

  std::chrono::milliseconds latency_objective{500};
  std::chrono::microseconds timeout{0};  // of a request that names none, in the queue; 0: none
  std::size_t max_queue = 1024;          // requests
  std::optional<double> keep_seconds;    // in memory while idle; nullopt: by the keep-open policy
  EncoderOptions encoder = {};

  struct WarmUp {
    std::int64_t batch = 1;
    std::map<std::string, std::vector<std::int64_t>> dims;  // by input, without the batch
  };
  std::vector<WarmUp> warm_up;

  std::int64_t most_rows() const noexcept { return max_batch_size ? std::max<std::int64_t>(*max_batch_size, 1) : kMaxBatch; }
};

// Protocol buffers in text form: fields in order, each a scalar or a message. Bounded in size and depth.
struct TextField {
  std::string name;
  std::string value;              // of a scalar, without quotes
  std::vector<TextField> fields;  // of a message
  bool is_message = false;
};
// Throws invalid_argument with the line.
std::vector<TextField> parse_text_proto(std::string_view text);

// Throws invalid_argument naming the field. |name| is the model's: a config for another one is refused.
ModelConfig read_model_config(std::string_view pbtxt, const std::string& name);

// What the folder of a model says: config.pbtxt in |folder|, the files of the encoder in |files| (the folder of the version).
ModelConfig load_model_config(const std::filesystem::path& folder, const std::filesystem::path& files, const std::string& name);

}  // namespace tenon::server
