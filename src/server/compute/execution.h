// Running a ComputeRequest and saying what came of it.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "present/mesh.h"
#include "reference/comparison.h"
#include "server/compute/program/compute_request.h"
#include "server/compute/uploads.h"
#include "server/http/message.h"
#include "tenon/manager.h"

namespace tenon::server {

struct Outcome {
  RunResult run;
  std::vector<std::string> status_log;
  std::vector<double> log_seconds;   // when each line of the log was written, after the start
  std::optional<RunCost> cost = {};  // of the device
  double seconds = 0;
  ComparedResults compared;                   // empty when not asked for
  std::string not_compared;                   // why
  std::string download;                       // where the result is kept; "" for nowhere
  MemoryGate::Share memory;                   // of the comparison
  std::optional<present::MeshRun> mesh = {};  // for a program on several devices
};

struct ExecutionOptions {
  ClientMemory memory;  // for the comparison, which is left out where there is none
  std::stop_token cancel = {};
  std::optional<std::chrono::nanoseconds> limit = std::nullopt;  // from the grant of the device to the comparison's end
  bool at_once = false;                                          // as in RunOptions
  // Besides the log; called by the thread that runs.
  std::function<void(const Progress&, const std::vector<std::string>& status_log)> on_progress = {};
  // Called when the outcome has its results and a comparison follows that takes long.
  std::function<void()> on_result = {};
};

// Fills |outcome|. Throws what DeviceManager::run throws; the outcome's log then says how far it came.
void execute(const ComputeRequest& program, DeviceManager& manager, const ExecutionOptions& options, Outcome& outcome);

// The answer of POST /api/execute as JSON text.
std::string answer_json(const ComputeRequest& program, const Outcome& outcome, std::string_view request_id);
// The answer itself, a file where the program asks for one.
Response answer(const ComputeRequest& program, const Outcome& outcome, std::string_view request_id);
// Results as a file. |format| is npy, npz, safetensors or csv; throws invalid_argument for another. npy and csv have the result
// at |index|.
Response file_response(const KeptResults& results, std::string_view format, std::size_t index);

}  // namespace tenon::server
