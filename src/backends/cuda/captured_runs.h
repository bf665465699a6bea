// CapturedRuns: the calls of a program as CUDA graphs, one for each set of buffers that it is run with again and again.
//
// Putting a call in a stream costs the host some microseconds, the calls of a graph together little more than one call. A graph
// holds addresses, so it serves only the buffers it was captured with; a generation that passes its results on as the next inputs
// alternates between two sets. A set that is seen again is captured; the graphs used last are kept.
//
// Lifetime: CapturedGraphs belongs to a context, which closes it; CapturedRuns belongs to a program and may outlive that.
// Thread safety: CapturedGraphs: all calls may run concurrently. CapturedRuns: none; the owner holds the context's queue.
#pragma once

#include <functional>
#include <mutex>
#include <set>
#include <span>
#include <vector>

#include "backends/cuda/api.h"

namespace tenon::cuda {

class Context;

class CapturedGraphs {
 public:
  explicit CapturedGraphs(Context& context) : context_(context) {}

  // The calls that |put| makes in the stream it is given, as a graph. Null if they cannot be captured.
  RawGraphExec capture(const std::function<void(RawStream)>& put);
  void destroy(RawGraphExec graph) noexcept;
  // Destroys all; |is_lost|: they are gone already.
  void close(bool is_lost) noexcept;

 private:
  Context& context_;
  std::mutex mutex_;
  RawStream stream_ = nullptr;  // only for capturing: what others put in the context's stream meanwhile must not be captured
  std::set<RawGraphExec> graphs_;
  bool is_closed_ = false;
};

class CapturedRuns {
 public:
  CapturedRuns(Context& context, CapturedGraphs& graphs) : context_(context), graphs_(graphs) {}
  ~CapturedRuns();
  CapturedRuns(const CapturedRuns&) = delete;
  CapturedRuns& operator=(const CapturedRuns&) = delete;

  // Puts the calls of |put| in the context's stream, which depend on nothing but these addresses. They are captured once they
  // were put there |runs_before| times with the same ones.
  void run(std::span<const DevicePointer> inputs, std::span<const DevicePointer> outputs, int runs_before,
           const std::function<void(RawStream)>& put);

 private:
  struct Known {
    std::vector<DevicePointer> addresses;
    RawGraphExec graph = nullptr;  // null until the set was seen often enough
    int runs = 0;                  // without a graph
  };
  static constexpr std::size_t kKept = 16;

  Known* find(std::span<const DevicePointer> inputs, std::span<const DevicePointer> outputs);

  Context& context_;
  CapturedGraphs& graphs_;
  std::vector<Known> known_;  // the one used last first
  bool is_refused_ = false;   // the calls cannot be captured
};

}  // namespace tenon::cuda
