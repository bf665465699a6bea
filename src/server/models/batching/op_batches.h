// OpBatches: equal requests for an op run as one program, their rows below each other.
//
// Requests are equal if the op, its parameters, the device request and the types and shapes of the inputs are. The first one runs
// at once, in the thread that brought it; those that come while it runs collect, and the next batch takes them (Batcher). Only
// programs that compute every row for itself are batched (row_program.h), and the first batch of each size is compared with its
// requests alone: an answer has the same bits in company.
//
// Lifetime: used by requests only. Thread safety: all calls may run concurrently.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "server/models/batching/batcher.h"
#include "tenon/graph.h"
#include "tenon/manager.h"

namespace tenon::server {

struct Services;

// What equal requests share.
struct OpProgram {
  std::string name;                                   // in messages: "op.add"
  Graph graph;                                        // of one request
  std::function<Graph(std::int64_t requests)> build;  // of several: the first extent of every input is that many times as large
  RunOptions run;
  // Called by the thread that ran a batch.
  std::function<void(std::size_t requests, double seconds)> on_execution;
};

class OpBatches {
 public:
  // Requests with more bytes of inputs have nothing to gain: copying them costs more than a run of their own begins with.
  static constexpr std::uint64_t kMostBytes = 64 << 10;
  static constexpr std::int64_t kMostRequests = 32;

  explicit OpBatches(Services& services) : services_(services) {}

  // Whether requests with this graph are batched.
  static bool takes(const Graph& graph);
  // Runs |item|, whose input is the arrays in the order of the graph's inputs, named "0000", "0001", ..., now or with others of
  // the same |key|. Its outputs are named likewise. Throws Problem 429 or 503 where too many wait.
  void run(const std::string& key, OpProgram program, BatchItem item);

  static std::string place(std::size_t index);  // "0001"

 private:
  class Lane;
  std::shared_ptr<Lane> lane_of(const std::string& key, OpProgram& program);

  Services& services_;
  std::mutex mutex_;
  std::map<std::string, std::shared_ptr<Lane>> lanes_;  // those without work leave when there are many
};

}  // namespace tenon::server
