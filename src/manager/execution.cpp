// The way of one computation: lease, compile, upload, compute, download.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <limits>
#include <optional>
#include <utility>

#include "base/log.h"
#include "base/threads/progress_scope.h"
#include "base/threads/stop_scope.h"
#include "base/threads/turn.h"
#include "device/naming.h"
#include "hal/worker/hosted.h"
#include "manager/config/settings.h"
#include "manager/evaluate.h"
#include "manager/manager_state.h"
#include "tenon/error.h"

namespace tenon {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_between(Clock::time_point from, Clock::time_point to) { return std::chrono::duration<double>(to - from).count(); }

// The stages of one run, as they happen. Each begins where the one before ended: reading the clock is a good part of a small
// run.
class Recorder {
 public:
  Recorder(const RunOptions& options, const std::string& device) : options_(options), device_(device) {
    timeline_.reserve(kStages);
  }

  void begin(const char* stage) {
    stage_ = stage;
    check_cancelled();
    tell(stage, {});
  }
  void check_cancelled() const {
    if (options_.cancel.stop_requested()) throw Error(ErrorCode::cancelled, fmt::format("cancelled before {}", stage_));
  }
  void end() { end(lap()); }
  void end(double seconds) { add(stage_, seconds); }
  // Since the last lap, or the beginning.
  double lap() {
    const Clock::time_point now = Clock::now();
    return seconds_between(std::exchange(last_, now), now);
  }
  void add(const char* stage, double seconds) {
    timeline_.push_back({stage, seconds, next_start_});
    next_start_ += seconds;
  }
  void tell(const char* stage, const QueuePlace& place) const {
    if (options_.on_progress) options_.on_progress({stage, device_, place});
  }
  Timeline take_timeline() { return std::move(timeline_); }

 private:
  static constexpr std::size_t kStages = 6;
  const RunOptions& options_;
  const std::string& device_;
  const char* stage_ = "";
  Clock::time_point last_;
  double next_start_ = 0;
  Timeline timeline_;
};

// While a run of a client uses an exclusive device: it makes room for those of others between two tiles.
class DeviceTurn final : public Turn {
 public:
  DeviceTurn(DeviceOwner& owner, LeaseGrant& grant) : owner_(owner), grant_(grant), before_(current()) { set_current(this); }
  ~DeviceTurn() { set_current(before_); }

  void offer() noexcept override {
    const Clock::time_point now = Clock::now();
    if (now < look_at_) return;
    look_at_ = now + kLook;
    owner_.offer(grant_);
  }
  // Whoever waits for something else keeps the device.
  void give_back() noexcept override {}
  void take_again() noexcept override {}
  bool is_crowded() const noexcept override { return before_ && before_->is_crowded(); }

 private:
  static constexpr std::chrono::milliseconds kLook{1};
  DeviceOwner& owner_;
  LeaseGrant& grant_;
  Turn* const before_;
  Clock::time_point look_at_ = Clock::now() + kLook;
};

LeaseOptions lease_request(const RunOptions& options, const Recorder& recorder) {
  LeaseOptions requested;
  requested.timeout = options.at_once ? std::optional(std::chrono::nanoseconds::zero()) : options.timeout;
  requested.priority = options.priority;
  requested.cancel = options.cancel;
  if (options.on_progress)
    requested.on_wait = [&](const QueuePlace& place) {
      recorder.tell(place.ahead_here + place.ahead_elsewhere > 0 ? "queued" : "opening", place);
    };
  return requested;
}

struct Compiled {
  std::shared_ptr<Executable> executable;
  bool was_there = false;
};

[[noreturn]] void refuse_to_wait(const DeviceOwner& owner) {
  throw Error(ErrorCode::unavailable, fmt::format("{} is not ready to run this program at once", owner.device().id));
}

Compiled compiled(DeviceOwner::Operation& operation, const Graph& graph, bool at_once) {
  const GraphKey key = graph.key();
  Compiled program;
  program.executable = operation.executables().find(key);
  program.was_there = program.executable != nullptr;
  if (!program.was_there) {
    if (at_once) throw Error(ErrorCode::unavailable, "the program is not compiled");
    program.executable = operation.device().compile(graph);
    operation.executables().keep(graph, program.executable);
  }
  return program;
}

// The fastest of |repeat| runs.
double compute(Executable& executable, std::span<const Buffer* const> inputs, std::span<Buffer* const> outputs, int repeat,
               Recorder& recorder) {
  double best = std::numeric_limits<double>::infinity();
  for (int i = 0; i < repeat; ++i) {
    recorder.check_cancelled();
    if (i > 0) check_stop();
    executable.run(inputs, outputs);
    best = std::min(best, recorder.lap());
  }
  return best;
}

// Common to run() and evaluate(): |upload| gives the buffer of input i on the device of an operation, |take| receives the output
// buffers, both within the operation.
struct Execution {
  ManagerState& state;
  const Graph& graph;
  const RunOptions& options;
  bool moves_tensors = true;                             // up and down; else they are on the device already, and stay there
  std::optional<Routing::Choice> chosen = std::nullopt;  // before; else it is made here
  std::shared_ptr<DeviceOwner> owner = nullptr;
  std::shared_ptr<const Decision> decision = nullptr;
  Timeline timeline = {};
  std::optional<DeviceInfo> opened = {};  // if the device computes in tiers: as it was while it was open
  Clock::time_point begun = Clock::now();

  Routing::Choice choose() const {
    return state.routing.choose(graph, options.device, {options.routing, options.prefer}, options.explain);
  }

  template <class Upload, class Take>
  void perform(std::size_t input_count, const Upload& upload, const Take& take) {
    if (input_count != graph.inputs().size())
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("the program has {} inputs, got {}", graph.inputs().size(), input_count));
    if (options.repeat < 1) throw Error(ErrorCode::invalid_argument, "repeat must be at least 1");
    check_results(state.config, graph);
    if (options.at_once && !state.routing.is_decided(options.device))
      throw Error(ErrorCode::unavailable, "a device has to be chosen first");
    Routing::Choice choice = chosen ? *std::move(chosen) : choose();
    owner = std::move(choice.owner);
    const bool is_on_host = is_host(owner->device());
    if (options.at_once && (!is_on_host || !owner->has_compiled(graph.key()))) refuse_to_wait(*owner);
    decision = std::move(choice.decision);
    if (options.on_decision) options.on_decision(*decision);

    // Turns are for the host's cores: whoever has waited for a device does not keep it waiting for a core.
    std::optional<WithoutTurn> without_turn;
    if (!is_on_host) without_turn.emplace();
    Recorder recorder(options, owner->device().id);
    LeaseOptions requested = lease_request(options, recorder);
    if (owner->device().exclusive) requested.client = options.client;
    const Lease lease = state.acquire(*owner, requested);
    recorder.add("queued", DeviceOwner::grant_of(lease).queued_seconds());
    recorder.add("opening", DeviceOwner::grant_of(lease).open_seconds);
    // Loops on the host end at the limit by themselves, and there is no other CPU to give this one up for.
    DeviceOwner::Operation operation =
        owner->begin(DeviceOwner::grant_of(lease), options.cancel, is_on_host ? std::nullopt : options.limit);
    const StopScope scope(options.cancel, options.limit);
    std::optional<DeviceTurn> turn;
    if (owner->device().exclusive && !options.client.empty()) turn.emplace(*owner, DeviceOwner::grant_of(lease));
    double compute_seconds = 0;
    std::uint64_t bytes = 0;
    Compiled program;
    recorder.lap();
    try {
      recorder.begin("compiling");
      program = compiled(operation, graph, options.at_once);
      const std::shared_ptr<Executable>& executable = program.executable;
      recorder.end();

      recorder.begin("uploading");
      std::vector<std::shared_ptr<const Buffer>> inputs;
      std::vector<std::shared_ptr<Buffer>> outputs;
      std::vector<const Buffer*> in;
      std::vector<Buffer*> out;
      inputs.reserve(input_count);
      in.reserve(input_count);
      for (std::size_t i = 0; i < input_count; ++i) {
        inputs.push_back(upload(operation, i));
        in.push_back(inputs.back().get());
        bytes += storage_bytes(in.back()->type().dtype, in.back()->type().shape);
      }
      for (const TensorType& type : executable->output_types()) {
        outputs.push_back(operation.residency()->allocate(type));
        out.push_back(outputs.back().get());
        bytes += storage_bytes(type.dtype, type.shape);
      }
      recorder.end();

      recorder.begin("computing");
      // A worker may compile kernels when they first run.
      const ProgressScope progress([&](const std::string& what) { recorder.tell(what.c_str(), {}); });
      compute_seconds = compute(*executable, in, out, options.repeat, recorder);
      recorder.end(compute_seconds);

      recorder.begin("downloading");
      take(operation, std::move(outputs));
      recorder.end();
    } catch (...) {
      operation.failed();
      owner->count_run(compute_seconds, true);
      throw;
    }
    owner->count_run(compute_seconds, false);
    if (const auto* const tiered = dynamic_cast<const Tiered*>(program.executable.get()); tiered && !tiered->tier().empty()) {
      opened = operation.device().info();
      opened->details["tier"] = tiered->tier();
      for (const auto& [tier, ops] : tiered->ops_by_tier())
        opened->details["ops " + tier] = fmt::format("{}", fmt::join(ops, " "));
    }
    timeline = recorder.take_timeline();
    learn(DeviceOwner::grant_of(lease), program.was_there);
    if (owner->events().is_wanted(DeviceEvent::Kind::ran)) tell(lease, bytes);
  }

  template <class Result>
  void describe(Result& result) {
    result.device = owner->device();
    result.timeline = std::move(timeline);
    result.decision = std::move(decision);
    if (!opened) return;
    result.device.name = std::move(opened->name);
    for (auto& [key, value] : opened->details) result.device.details[key] = std::move(value);
  }

  // What routing predicts from.
  void learn(const LeaseGrant& grant, bool was_compiled) const {
    ProfileStore& profiles = state.routing.profiles();
    if (was_compiled && grant.open_seconds == 0 && !profiles.wants_run()) return;
    if (grant.was_paused) return;  // it took longer than it takes
    Work work = state.routing.work_of(graph);
    if (!moves_tensors) work.upload_bytes = work.download_bytes = 0;
    profiles.record_run(owner->device(), work, was_compiled, timeline);
    if (grant.open_seconds > 0) profiles.record_open(owner->device(), grant.open_seconds);
  }

  void tell(const Lease& lease, std::uint64_t bytes) {
    DeviceEvent event;
    event.kind = DeviceEvent::Kind::ran;
    event.device = owner->device().id;
    event.when = std::chrono::system_clock::now();
    for (const Span& span : timeline) event.seconds += span.seconds;
    // A lease of the host is never interrupted, so that the epoch of its grant is that of the device.
    event.epoch = is_host(owner->device()) ? DeviceOwner::grant_of(lease).epoch : lease.epoch();
    event.program = options.program;
    event.timeline = std::move(timeline);
    event.bytes = bytes;
    owner->events().send(event);
    timeline = std::move(event.timeline);
  }
};

RunResult run_once(Execution& execution, std::span<const HostArray> inputs) {
  RunResult result;
  execution.perform(
      inputs.size(), [&](DeviceOwner::Operation& operation, std::size_t i) { return operation.residency()->upload(inputs[i]); },
      [&](DeviceOwner::Operation& operation, std::vector<std::shared_ptr<Buffer>> outputs) {
        for (const std::shared_ptr<Buffer>& buffer : outputs) result.outputs.push_back(operation.residency()->download(*buffer));
      });
  execution.describe(result);
  return result;
}

// Another device for a program whose device failed, if the caller left the choice to us and there is one. A program has no
// effects but its results, so that running it again is safe; once, because it may be the program that costs the devices.
std::optional<Routing::Choice> choice_after(const Execution& execution, const Error& error) {
  const RunOptions& options = execution.options;
  if (error.code() != ErrorCode::unavailable || options.at_once || !execution.owner) return std::nullopt;
  const DeviceOwner& failed = *execution.owner;
  const std::optional<double> since = failed.seconds_since_failure();
  if (!since || *since > seconds_between(execution.begun, Clock::now())) return std::nullopt;
  if (failed.is_held_by_this_thread() || is_named(failed.device(), options.device) || device_number(options.device))
    return std::nullopt;
  Routing::Choice choice = execution.choose();
  if (choice.owner == execution.owner) return std::nullopt;
  auto decision = std::make_shared<Decision>(*choice.decision);
  decision->warning = fmt::format("{} failed: {}; repeated on {}", failed.device().id, error.what(), decision->device.id);
  logging::warn("{}", decision->warning);
  choice.decision = std::move(decision);
  return choice;
}

EvaluateResult evaluate_once(Execution& execution, std::span<const std::shared_ptr<Storage>> inputs) {
  EvaluateResult result;
  execution.perform(
      inputs.size(), [&](DeviceOwner::Operation& operation, std::size_t i) { return inputs[i]->on(operation.residency()); },
      [&](DeviceOwner::Operation& operation, std::vector<std::shared_ptr<Buffer>> outputs) {
        for (std::shared_ptr<Buffer>& buffer : outputs)
          result.outputs.push_back(Storage::on_device(operation.residency(), std::move(buffer)));
      });
  result.owner = std::move(execution.owner);
  result.timeline = std::move(execution.timeline);
  result.decision = std::move(execution.decision);
  return result;
}

// Runs |once|, and once more on another device if the first fails.
template <class Once>
auto with_another_device(Execution execution, const Once& once) {
  try {
    return once(execution);
  } catch (const Error& error) {
    std::optional<Routing::Choice> other = choice_after(execution, error);
    if (!other) throw;
    Execution again{execution.state, execution.graph, execution.options, execution.moves_tensors, std::move(other)};
    return once(again);
  }
}

bool is_plain(const RunOptions& options) {
  return !options.on_progress && !options.on_decision && !options.explain && options.repeat == 1 && !options.limit &&
         !options.routing && options.prefer.empty() && !options.cancel.stop_possible();
}

// What observers and routing learn of a run at once.
void report_at_once(ManagerState& state, const Graph& graph, const DeviceOwner& owner, const RunOptions& options, double seconds,
                    std::uint64_t bytes) {
  thread_local DeviceEvent event;  // so that its texts need no memory
  event.kind = DeviceEvent::Kind::ran;
  event.device = owner.device().id;
  event.seconds = seconds;
  event.program = options.program;
  event.timeline.resize(1);
  event.timeline[0].stage = "computing";
  event.timeline[0].seconds = seconds;
  event.bytes = bytes;
  if (owner.events().is_wanted(DeviceEvent::Kind::ran)) {
    event.when = std::chrono::system_clock::now();
    owner.events().send(event);
  }
  ProfileStore& profiles = state.routing.profiles();
  if (!profiles.wants_run()) return;
  Work work = state.routing.work_of(graph);
  work.upload_bytes = work.download_bytes = 0;
  profiles.record_run(owner.device(), work, true, event.timeline);
}

}  // namespace

std::optional<std::vector<std::shared_ptr<Storage>>> evaluate_at_once(DeviceManager& manager, const Graph& graph,
                                                                      std::span<const std::shared_ptr<Storage>> inputs,
                                                                      const RunOptions& options) {
  constexpr std::size_t kMost = 8;  // inputs, outputs
  if (inputs.size() > kMost || inputs.size() != graph.inputs().size() || graph.outputs().size() > kMost || !is_plain(options))
    return std::nullopt;
  if (DeviceOwner::leases_held() > 0) return std::nullopt;  // it may be this thread's, and of another device
  ManagerState& state = state_of(manager);
  const std::shared_ptr<DeviceOwner> owner = state.routing.decided_host(options.device);
  using Kind = DeviceEvent::Kind;
  if (!owner || owner->events().is_wanted_of_cpu(Kind::granted) || owner->events().is_wanted_of_cpu(Kind::released))
    return std::nullopt;
  check_results(state.config, graph);
  std::optional<DeviceOwner::Operation> operation = owner->begin_at_once();
  const std::shared_ptr<Executable> executable = operation ? operation->executables().find(graph.key()) : nullptr;
  if (!executable) return std::nullopt;

  std::array<std::shared_ptr<const Buffer>, kMost> held;
  std::array<std::shared_ptr<Buffer>, kMost> made;
  std::array<const Buffer*, kMost> in{};
  std::array<Buffer*, kMost> out{};
  std::uint64_t bytes = 0;
  const std::span<const TensorType> types = executable->output_types();
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    held[i] = inputs[i]->on(operation->residency());
    in[i] = held[i].get();
    bytes += storage_bytes(in[i]->type().dtype, in[i]->type().shape);
  }
  for (std::size_t i = 0; i < types.size(); ++i) {
    made[i] = operation->residency()->allocate(types[i]);
    out[i] = made[i].get();
    bytes += storage_bytes(types[i].dtype, types[i].shape);
  }
  const auto begin = std::chrono::steady_clock::now();
  try {
    executable->run(std::span(in).first(inputs.size()), std::span(out).first(types.size()));
  } catch (...) {
    operation->failed();
    operation->count_run(seconds_between(begin, std::chrono::steady_clock::now()));
    throw;
  }
  const double seconds = seconds_between(begin, std::chrono::steady_clock::now());
  operation->count_run(seconds);
  std::vector<std::shared_ptr<Storage>> outputs;
  outputs.reserve(types.size());
  for (std::size_t i = 0; i < types.size(); ++i)
    outputs.push_back(Storage::on_device(operation->residency(), std::move(made[i])));
  operation.reset();
  report_at_once(state, graph, *owner, options, seconds, bytes);
  return outputs;
}

RunResult DeviceManager::run(const Graph& graph, std::span<const HostArray> inputs, const RunOptions& options) {
  return with_another_device({*state_, graph, options}, [&](Execution& execution) { return run_once(execution, inputs); });
}

EvaluateResult evaluate(DeviceManager& manager, const Graph& graph, std::span<const std::shared_ptr<Storage>> inputs,
                        const RunOptions& options) {
  // An input that was on the lost device alone cannot be had on another: its data_loss says so.
  return with_another_device({state_of(manager), graph, options, /*moves_tensors=*/false},
                             [&](Execution& execution) { return evaluate_once(execution, inputs); });
}

}  // namespace tenon
