#include "server/models/batching/op_batches.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <cstring>
#include <set>
#include <span>

#include "base/log.h"
#include "server/compute/program/row_program.h"
#include "server/models/batching/batch_run.h"
#include "server/services.h"
#include "tenon/error.h"

namespace tenon::server {
namespace {

constexpr std::size_t kMostLanes = 256;
constexpr std::size_t kMostWaiting = 1024;

using Arrays = std::vector<HostArray>;

Arrays arrays_of(const BatchItem& item) {
  Arrays arrays;
  for (const auto& [place, array] : std::get<NamedArrays>(item.input)) arrays.push_back(array);
  return arrays;
}

// The arrays of all items below each other, those of the last one again up to |requests|.
Arrays stacked(std::span<const BatchItem> items, std::size_t requests) {
  Arrays out;
  for (const auto& [place, first] : std::get<NamedArrays>(items.front().input)) {
    std::vector<std::int64_t> extents(first.shape().begin(), first.shape().end());
    extents[0] *= static_cast<std::int64_t>(requests);
    HostArray all = HostArray::empty(first.dtype(), Shape(extents));
    std::byte* at = all.mutable_data();
    for (std::size_t i = 0; i < requests; ++i, at += first.bytes())
      std::memcpy(at, std::get<NamedArrays>(items[std::min(i, items.size() - 1)].input).at(place).data(), first.bytes());
    out.push_back(std::move(all));
  }
  return out;
}

NamedArrays named(const Arrays& arrays) {
  NamedArrays out;
  for (std::size_t i = 0; i < arrays.size(); ++i) out.emplace(OpBatches::place(i), arrays[i]);
  return out;
}

// Those of request |index| out of |requests|.
NamedArrays part_of(const Arrays& arrays, std::size_t index, std::size_t requests) {
  Arrays parts;
  for (const HostArray& all : arrays) {
    std::vector<std::int64_t> extents(all.shape().begin(), all.shape().end());
    extents[0] /= static_cast<std::int64_t>(requests);
    HostArray part = HostArray::empty(all.dtype(), Shape(extents));
    std::memcpy(part.mutable_data(), all.data() + index * part.bytes(), part.bytes());
    parts.push_back(std::move(part));
  }
  return named(parts);
}

}  // namespace

// Equal requests: one batch at a time.
class OpBatches::Lane : public std::enable_shared_from_this<Lane> {
 public:
  Lane(Services& services, const std::string& key, OpProgram program)
      : services_(services),
        program_(std::move(program)),
        batcher_({.name = program_.name,
                  .max_queue = kMostWaiting,
                  .limits = {.rows = kMostRequests},
                  .start = [this, key](std::function<void()> task) { return start(key, std::move(task)); },
                  .run = [this](const Batch& batch, std::size_t, const std::stop_token& cancel,
                                std::string& device) { return run(batch.items, cancel, device); }}) {}

  void submit(BatchItem item) {
    std::vector<BatchItem> items;
    items.push_back(std::move(item));
    starts_here_ = true;
    try {
      batcher_.submit(std::move(items));
    } catch (...) {
      starts_here_ = false;
      throw;
    }
    starts_here_ = false;
  }
  bool is_idle() const { return batcher_.is_idle(); }

 private:
  // The thread that brings a request to an idle lane is a thread of the pool already. Further batches join the queue, so that
  // others have their turn.
  bool start(const std::string& key, std::function<void()> task) {
    if (std::exchange(starts_here_, false)) {
      task();
      return true;
    }
    return services_.workers.submit(MemoryGate::kServer, key, [task = std::move(task), self = shared_from_this()] { task(); });
  }

  Arrays compute(const Graph& graph, const Arrays& arrays, const std::stop_token& cancel, std::string& device) const {
    RunOptions options = program_.run;
    options.cancel = cancel;
    RunResult result = services_.manager.run(graph, arrays, options);
    device = result.device->id;
    return std::move(result.outputs);
  }

  std::vector<BatchResult> run(std::span<const BatchItem> items, const std::stop_token& cancel, std::string& device) {
    const auto begin = Batcher::Clock::now();
    std::vector<BatchResult> results = items.size() > 1 ? run_together(items, cancel, device) : run_each(items, cancel, device);
    const double seconds = std::chrono::duration<double>(Batcher::Clock::now() - begin).count();
    program_.on_execution(items.size(), seconds);
    return results;
  }

  std::vector<BatchResult> run_each(std::span<const BatchItem> items, const std::stop_token& cancel, std::string& device) const {
    std::vector<BatchResult> results(items.size());
    for (std::size_t i = 0; i < items.size(); ++i) try {
        results[i].outputs = named(compute(program_.graph, arrays_of(items[i]), cancel, device));
      } catch (...) {
        results[i].error = std::current_exception();
      }
    return results;
  }

  std::vector<BatchResult> run_together(std::span<const BatchItem> items, const std::stop_token& cancel, std::string& device) {
    // A power of two: few programs are compiled.
    const std::size_t requests = std::bit_ceil(items.size());
    const Graph* graph = graph_of(requests);
    if (graph == nullptr) return run_each(items, cancel, device);
    std::vector<BatchResult> results(items.size());
    try {
      const Arrays outputs = compute(*graph, stacked(items, requests), cancel, device);
      for (std::size_t i = 0; i < items.size(); ++i) results[i].outputs = part_of(outputs, i, requests);
    } catch (const std::exception&) {
      if (cancel.stop_requested()) throw;
      // One of them may be at fault, or all together take too much memory.
      return run_each(items, cancel, device);
    }
    if (verified_.contains(requests)) return results;
    // Different sizes can take different paths through a backend.
    std::vector<BatchResult> alone = run_each(items, cancel, device);
    for (std::size_t i = 0; i < items.size(); ++i)
      if (alone[i].error || !have_equal_bits(results[i].outputs, alone[i].outputs)) {
        logging::warn("{} is not batched: for {} requests results differ from those of a request alone", program_.name, requests);
        batcher_.set_rows_limit(1);
        return alone;
      }
    verified_.insert(requests);
    return results;
  }

  // Null if the op builds another program for that many.
  const Graph* graph_of(std::size_t requests) {
    const auto [at, is_new] = graphs_.try_emplace(requests);
    if (is_new) try {
        Graph larger = program_.build(static_cast<std::int64_t>(requests));
        if (is_same_for_more_rows(program_.graph, larger)) at->second = std::make_unique<const Graph>(std::move(larger));
      } catch (const Error& error) {
        logging::debug("{} cannot be batched: {}", program_.name, error.what());
      }
    if (at->second == nullptr) batcher_.set_rows_limit(1);
    return at->second.get();
  }

  inline static thread_local bool starts_here_ = false;

  Services& services_;
  const OpProgram program_;
  // Of the thread that runs the batch: there is one at a time.
  std::map<std::size_t, std::unique_ptr<const Graph>> graphs_;
  std::set<std::size_t> verified_;
  Batcher batcher_;
};

std::string OpBatches::place(std::size_t index) { return fmt::format("{:04}", index); }

bool OpBatches::takes(const Graph& graph) {
  std::uint64_t bytes = 0;
  for (const NodeId input : graph.inputs()) bytes += storage_bytes(graph[input].dtype, graph[input].shape);
  return bytes <= kMostBytes && graph.inputs().size() < 1000 && rows_of(graph).has_value();
}

std::shared_ptr<OpBatches::Lane> OpBatches::lane_of(const std::string& key, OpProgram& program) {
  const std::lock_guard lock(mutex_);
  if (const auto found = lanes_.find(key); found != lanes_.end()) return found->second;
  if (lanes_.size() >= kMostLanes) std::erase_if(lanes_, [](const auto& lane) { return lane.second->is_idle(); });
  auto lane = std::make_shared<Lane>(services_, key, std::move(program));
  // With that many kinds of requests at work, a further one runs without company.
  if (lanes_.size() < kMostLanes) lanes_.emplace(key, lane);
  return lane;
}

void OpBatches::run(const std::string& key, OpProgram program, BatchItem item) {
  item.key = key;
  lane_of(key, program)->submit(std::move(item));
}

}  // namespace tenon::server
