// Open Inference Protocol v2: requests and answers with tensors as JSON or as raw bytes after it (binary_tensor_data).
#pragma once

#include <boost/json.hpp>
#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "server/compute/memory/memory_gate.h"
#include "server/compute/program/compute_request.h"
#include "server/http/message.h"

namespace tenon::server {

// "FP32". Block formats have no name in the protocol: they go out as FP32.
std::string_view datatype_of(DType dtype);
// Throws invalid_argument.
DType dtype_of_datatype(std::string_view name);

using NamedArray = std::pair<std::string, HostArray>;

struct WantedOutput {
  std::string name;
  bool is_binary = false;
};

struct InferenceRequest {
  std::string id;
  std::vector<NamedArray> inputs;     // as sent
  std::vector<WantedOutput> outputs;  // empty: all of them
  bool all_binary = false;
  std::string device = "auto";
  std::uint64_t priority = 0;            // 1 is the highest, 0 the default
  std::chrono::microseconds timeout{0};  // 0: none
  boost::json::object parameters;        // further ones
  MemoryGate::Share memory;              // of the inputs

  bool wants(std::string_view name) const;
  bool is_binary(std::string_view name) const;
};

// The body of a call. Throws invalid_argument naming the place; Problem 413 for too large a tensor.
InferenceRequest read_inference_request(const Call& call, const ProgramReader& reader);

struct InferenceAnswer {
  std::string model, version;
  std::string device;               // "": not known
  std::vector<NamedArray> outputs;  // all of them, in the order of the model
};
// Throws not_found for a wanted output that does not exist, Problem 413 for too large a tensor in JSON.
Response write_inference_answer(const InferenceRequest& request, const InferenceAnswer& answer);
// What write_inference_answer() will take for an output, as text.
std::uint64_t answer_bytes(const InferenceRequest& request, const std::string& name, DType dtype, const Shape& shape);

}  // namespace tenon::server
