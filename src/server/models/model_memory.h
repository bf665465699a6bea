// ModelMemory and ModelScope: the memory of models in the server's gate, counted before it is taken.
//
// Files of the operator are counted by their size. A model that a client sent is counted as it is read, in the client's share:
// what it keeps (ModelMemory), and what importing and running it takes meanwhile (ModelScope).
// Thread safety: ModelMemory: all calls may run concurrently. ModelScope: on the stack of the thread that calls the model.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>

#include "graph/growth.h"
#include "model/onnx/model_watch.h"
#include "server/compute/memory/memory_gate.h"
#include "server/compute/program/compute_request.h"

namespace tenon::server {

class ModelMemory {
 public:
  // |make_room| frees something of the same client; false if there is nothing to free.
  ModelMemory(ClientMemory memory, std::function<bool()> make_room)
      : tally_(std::move(memory)),
        make_room_(std::move(make_room)) {}

  // Throws Problem.
  void add(std::uint64_t bytes);
  std::uint64_t bytes() const;

 private:
  mutable std::mutex mutex_;
  MemoryTally tally_;
  const std::function<bool()> make_room_;
};

// While it lives, every import and every program of a model in this thread is checked against |limits| and counted for |memory|.
// The calls of the model throw Problem for what is too much, and what check_stop() throws.
class ModelScope : private onnx::ModelWatch {
 public:
  // |kept| may be null: what stays is not counted.
  ModelScope(const ProgramLimits& limits, const ClientMemory& memory, std::shared_ptr<ModelMemory> kept);

 private:
  void keeps(std::uint64_t bytes) override;
  void imports() override { used_ = 0; }
  void uses(std::uint64_t bytes) override;
  void runs(const Graph& program) override;

  const ProgramLimits& limits_;
  const std::shared_ptr<ModelMemory> kept_;
  MemoryTally nodes_, values_, results_;
  std::uint64_t used_ = 0;  // by the present import
  const GraphWatch graphs_;
};

}  // namespace tenon::server
