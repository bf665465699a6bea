// ServedModel: one version of a model of the folder: its state, its place in memory, its batches.
//
// States:
//   unloaded  not in memory; the first request loads it
//   loading   a request, or /v2/repository/models/NAME/load, is loading it; others wait for that
//   ready     in memory; after a while without requests, or when others need the memory, it becomes unloaded
//   failed    it could not be loaded: |problem| says why; a load tries again
//   stopped   unloaded on request: nothing loads it but a load
//
// Loading reads the files, takes their size from the server's memory, finds out whether the model may be batched, and runs the
// warm-ups. A model that a client sent takes the client's memory and threads instead of the server's. Lifetime: by shared
// pointer; requests keep it. Thread safety: all calls may run concurrently. load() and acquire() block, compute and must not be
// called in the I/O thread.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <stop_token>
#include <string>
#include <vector>

#include "server/compute/memory/memory_gate.h"
#include "server/models/batching/batch_run.h"
#include "server/models/batching/batcher.h"
#include "server/models/generation_queue.h"
#include "server/models/model_folder.h"
#include "server/models/model_memory.h"

namespace tenon::server {

struct Services;

// A model in memory.
struct LoadedModel {
  std::optional<Model> model;          // none for a language model
  std::optional<Encoder> encoder;      // for texts
  std::optional<Generator> generator;  // for prompts
  std::vector<Generator> replicas;     // of |generator|, by instance; instances on one device share theirs
  BatchLayout layout;
  MemoryGate::Share memory;           // of the weights
  std::shared_ptr<ModelMemory> kept;  // instead, of a model that was sent
  std::uint64_t bytes = 0;
  double load_seconds = 0;
  std::string encoder_problem;  // why there is no encoder although there is a tokenizer

  const ModelInfo& info() const { return generator ? generator->info() : model->info(); }
};

class ServedModel : public std::enable_shared_from_this<ServedModel> {
 public:
  using Clock = std::chrono::steady_clock;
  enum class State : std::uint8_t { unloaded, loading, ready, failed, stopped };

  ServedModel(Services& services, ModelSource source);

  const std::string& name() const noexcept { return source_.name; }
  std::int64_t version() const noexcept { return source_.version; }
  const ModelSource& source() const noexcept { return source_; }

  // The model in memory, loaded if it is not. Throws what loading throws; failed_precondition if it was unloaded on request.
  std::shared_ptr<const LoadedModel> acquire(const std::stop_token& cancel);
  // The same on request: also for a model that failed or was stopped.
  void load(const std::stop_token& cancel);
  // Out of memory until the next load; what runs ends first. What waits fails.
  void stop();
  // Out of memory until the next request. False if it is in use or not in memory.
  bool release();
  // release() if it was idle for as long as the keep-open policy allows.
  void release_if_idle(Clock::time_point now);

  // Joins the queue. Throws Problem for a full one.
  void submit(std::vector<BatchItem> items);
  // The program for inputs of these shapes. Throws Problem for one that takes too much memory.
  std::shared_ptr<const Graph> graph(const LoadedModel& loaded, const Model::Tensors& shapes) const;
  // The key and length of a request with these arrays.
  void describe(BatchItem& item, const LoadedModel& loaded) const;
  Batcher& batcher() noexcept { return batcher_; }
  // Joins the queue of a language model with all of |tasks|. Throws Problem for a full one.
  void generate(std::vector<GenerationTask> tasks);
  // Requests that wait and whose client has gone or whose time is over end.
  void drop_dead();
  // The server ends: what runs is cancelled.
  void cancel_running();
  GenerationStatistics generation() const { return generation_->statistics(); }
  // Whether it is a language model, by its names and configuration.
  bool is_generator() const { return source_.is_generator; }

  struct Status {
    State state = State::unloaded;
    std::string problem;       // of State::failed
    BatchingVerdict batching;  // as far as it is known
    std::uint64_t bytes = 0;   // in memory
    double load_seconds = 0;   // of the last load
    double idle_seconds = 0;   // since the last request
    std::uint64_t loads = 0;
    std::shared_ptr<const LoadedModel> loaded;  // null unless ready
    std::shared_ptr<const ModelInfo> info;      // of the last load; null before
  };
  Status status() const;
  // Whether a request can be served, now or after loading.
  bool is_servable() const;

 private:
  std::shared_ptr<const LoadedModel> load_files(const std::stop_token& cancel, BatchingVerdict& verdict);
  void load_generators(LoadedModel& loaded, std::uint64_t estimate) const;
  void warm_up(const LoadedModel& loaded, const RunOptions& options);
  std::shared_ptr<const LoadedModel> load_now(std::unique_lock<std::mutex>& lock, const std::stop_token& cancel);
  std::vector<BatchResult> run_batch(const Batch& batch, std::size_t instance, std::stop_token cancel, std::string& device);
  std::vector<NamedArrays> run_items(const LoadedModel& loaded, std::span<const BatchItem> items, std::int64_t length,
                                     const RunOptions& options);
  // The same, on the device of another instance if this one's has failed.
  std::vector<NamedArrays> run_on_any(const LoadedModel& loaded, std::span<const BatchItem> items, std::int64_t length,
                                      RunOptions options);
  RunOptions run_options(std::size_t instance, std::stop_token cancel) const;
  // Who pays for what it takes.
  const std::string& payer() const { return source_.body ? source_.quota : MemoryGate::kServer; }
  ClientMemory payers_memory() const;
  void load_sent(LoadedModel& loaded);
  BatchingVerdict probe(const LoadedModel& loaded, const RunOptions& options) const;
  void stop_batching(const std::string& reason);
  double keep_seconds(double load_seconds) const;

  Services& services_;
  const ModelSource source_;
  mutable std::mutex mutex_;
  std::condition_variable_any changed_;
  State state_;
  std::exception_ptr error_;  // of State::failed
  std::string problem_;
  std::shared_ptr<const LoadedModel> loaded_;
  BatchingVerdict batching_;
  std::shared_ptr<const ModelInfo> info_;
  double load_seconds_ = 0;
  std::uint64_t loads_ = 0;
  Clock::time_point used_;
  std::set<std::string> verified_;  // shapes of batches whose bits were compared with those of their items alone
  Batcher batcher_;
  const std::shared_ptr<GenerationQueue> generation_;
};

std::string_view name(ServedModel::State state) noexcept;

}  // namespace tenon::server
