#include "backends/cuda/captured_runs.h"

#include <algorithm>

#include "backends/cuda/context.h"
#include "base/log.h"

namespace tenon::cuda {

RawGraphExec CapturedGraphs::capture(const std::function<void(RawStream)>& put) {
  const Driver& driver = context_.driver();
  const std::lock_guard lock(mutex_);
  if (is_closed_) return nullptr;
  if (!stream_) context_.check(driver.stream_create(&stream_, kStreamNonBlocking), "creating a stream");
  if (driver.capture_begin(stream_, kCaptureRelaxed) != kSuccess) return nullptr;
  RawGraph graph = nullptr;
  try {
    put(stream_);
  } catch (...) {
    driver.capture_end(stream_, &graph);
    if (graph) driver.graph_destroy(graph);
    throw;
  }
  if (driver.capture_end(stream_, &graph) != kSuccess || !graph) return nullptr;
  RawGraphExec made = nullptr;
  const Result result = driver.graph_instantiate(&made, graph, 0);
  driver.graph_destroy(graph);
  if (result != kSuccess) return nullptr;
  graphs_.insert(made);
  return made;
}

void CapturedGraphs::destroy(RawGraphExec graph) noexcept {
  const std::lock_guard lock(mutex_);
  // The driver keeps a graph that still runs until it has finished.
  if (graphs_.erase(graph) > 0) context_.driver().graph_exec_destroy(graph);
}

void CapturedGraphs::close(bool is_lost) noexcept {
  const std::lock_guard lock(mutex_);
  is_closed_ = true;
  if (!is_lost) {
    for (const RawGraphExec graph : graphs_) context_.driver().graph_exec_destroy(graph);
    if (stream_) context_.driver().stream_destroy(stream_);
  }
  graphs_.clear();
  stream_ = nullptr;
}

CapturedRuns::~CapturedRuns() {
  for (const Known& known : known_)
    if (known.graph) graphs_.destroy(known.graph);
}

// Moves it to the front.
CapturedRuns::Known* CapturedRuns::find(std::span<const DevicePointer> inputs, std::span<const DevicePointer> outputs) {
  const auto is_same = [&](const Known& known) {
    return std::equal(outputs.begin(), outputs.end(), known.addresses.begin() + static_cast<std::ptrdiff_t>(inputs.size())) &&
           std::equal(inputs.begin(), inputs.end(), known.addresses.begin());
  };
  const auto found = std::ranges::find_if(known_, is_same);
  if (found == known_.end()) return nullptr;
  std::rotate(known_.begin(), found, found + 1);
  return &known_.front();
}

void CapturedRuns::run(std::span<const DevicePointer> inputs, std::span<const DevicePointer> outputs, int runs_before,
                       const std::function<void(RawStream)>& put) {
  Known* const known = is_refused_ ? nullptr : find(inputs, outputs);
  if (known && !known->graph && known->runs++ >= runs_before - 1) {
    known->graph = graphs_.capture(put);
    if (!known->graph) {
      is_refused_ = true;
      logging::debug("{}: the calls of a program cannot be captured as a graph", context_.card().id);
    }
  }
  if (known && known->graph)
    return context_.check(context_.driver().graph_launch(known->graph, context_.stream()), "launching a graph");
  put(context_.stream());
  if (known || is_refused_) return;
  if (known_.size() == kKept) {
    if (known_.back().graph) graphs_.destroy(known_.back().graph);
    known_.pop_back();
  }
  Known& added = *known_.emplace(known_.begin());
  added.addresses.assign(inputs.begin(), inputs.end());
  added.addresses.insert(added.addresses.end(), outputs.begin(), outputs.end());
}

}  // namespace tenon::cuda
