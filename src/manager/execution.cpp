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

using HeldBuffers = std::vector<std::shared_ptr<const Buffer>>;

// The buffers of |inputs| on the device of |operation|.
void bring(std::span<const std::shared_ptr<Storage>> inputs, const DeviceOwner::Operation& operation,
           std::span<std::shared_ptr<const Buffer>> buffers) {
  operation.residency()->find(inputs, buffers);
  for (std::size_t i = 0; i < inputs.size(); ++i)
    if (!buffers[i]) buffers[i] = inputs[i]->on(operation.residency());
}

std::uint64_t bytes_of(std::span<const TensorType> types) {
  std::uint64_t bytes = 0;
  for (const TensorType& type : types) bytes += storage_bytes(type.dtype, type.shape);
  return bytes;
}

// Common to run() and evaluate(): |upload| gives the buffers of the inputs on the device of an operation, |take| receives those
// of the outputs, both within the operation.
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
      const std::span<const TensorType> types = executable->output_types();
      const HeldBuffers inputs = upload(operation);
      std::vector<std::shared_ptr<Buffer>> outputs;
      std::vector<const Buffer*> in;
      std::vector<Buffer*> out;
      in.reserve(input_count);
      for (const std::shared_ptr<const Buffer>& input : inputs) in.push_back(input.get());
      outputs.reserve(types.size());
      out.reserve(types.size());
      for (const TensorType& type : types) {
        outputs.push_back(operation.residency()->allocate(type));
        out.push_back(outputs.back().get());
      }
      bytes = bytes_of(executable->input_types()) + bytes_of(types);
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
    result.device = owner->description();
    result.timeline = std::move(timeline);
    result.decision = std::move(decision);
    if (!opened) return;
    auto device = std::make_shared<DeviceInfo>(owner->device());
    device->name = std::move(opened->name);
    for (auto& [key, value] : opened->details) device->details[key] = std::move(value);
    result.device = std::move(device);
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
      inputs.size(),
      [&](const DeviceOwner::Operation& operation) {
        HeldBuffers buffers;
        buffers.reserve(inputs.size());
        for (const HostArray& input : inputs) buffers.push_back(operation.residency()->upload(input));
        return buffers;
      },
      [&](DeviceOwner::Operation& operation, std::vector<std::shared_ptr<Buffer>> outputs) {
        result.outputs.reserve(outputs.size());
        for (const std::shared_ptr<Buffer>& buffer : outputs) result.outputs.push_back(operation.residency()->download(*buffer));
      });
  execution.describe(result);
  return result;
}

// A program whose device failed runs again at most so often: it may be the program that costs the devices.
constexpr int kRepetitions = 2;

// Another device for a program whose device failed, if the caller left the choice to us and there is one. A program has no
// effects but its results, so that running it again is safe.
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
  const std::string warning = fmt::format("{} failed: {}; repeated on {}", failed.device().id, error.what(), decision->device.id);
  logging::warn("{}", warning);
  const std::string before = execution.decision ? execution.decision->warning : "";
  decision->warning = before.empty() ? warning : fmt::format("{}; {}", before, warning);
  choice.decision = std::move(decision);
  return choice;
}

EvaluateResult evaluate_once(Execution& execution, std::span<const std::shared_ptr<Storage>> inputs) {
  EvaluateResult result;
  execution.perform(
      inputs.size(),
      [&](const DeviceOwner::Operation& operation) {
        HeldBuffers buffers(inputs.size());
        bring(inputs, operation, buffers);
        return buffers;
      },
      [&](DeviceOwner::Operation& operation, std::vector<std::shared_ptr<Buffer>> outputs) {
        result.outputs = Storage::on_device(operation.residency(), outputs);
      });
  result.owner = std::move(execution.owner);
  result.timeline = std::move(execution.timeline);
  result.decision = std::move(execution.decision);
  return result;
}

// Runs |once|, and again on other devices if one fails.
template <class Once>
auto with_another_device(Execution first, const Once& once) {
  std::optional<Execution> again;
  for (int repetitions = 0;; ++repetitions) {
    Execution& execution = again ? *again : first;
    try {
      return once(execution);
    } catch (const Error& error) {
      std::optional<Routing::Choice> other = repetitions < kRepetitions ? choice_after(execution, error) : std::nullopt;
      if (!other) throw;
      again.emplace(Execution{first.state, first.graph, first.options, first.moves_tensors, std::move(other)});
    }
  }
}

bool is_plain(const RunOptions& options) {
  return !options.on_progress && !options.on_decision && !options.explain && options.repeat == 1 && !options.limit &&
         !options.routing && options.prefer.empty() && !options.cancel.stop_possible();
}

// --- Programs that run at once ---

constexpr std::size_t kMost = 8;  // inputs, outputs

// A program that is compiled for this CPU and can run without waiting.
struct AtOnce {
  DeviceOwner::Operation operation;
  std::shared_ptr<Executable> executable;
};

// None if it is no such program, or |options| ask for more: then nothing was done. |decision|, if there is one, receives the
// decision for the CPU.
std::optional<AtOnce> begin_at_once(ManagerState& state, const Graph& graph, std::size_t inputs, const RunOptions& options,
                                    std::shared_ptr<const Decision>* decision) {
  if (inputs > kMost || inputs != graph.inputs().size() || graph.outputs().size() > kMost || !is_plain(options))
    return std::nullopt;
  if (DeviceOwner::leases_held() > 0) return std::nullopt;  // it may be this thread's, and of another device
  std::shared_ptr<DeviceOwner> owner = state.routing.decided_host(options.device, decision);
  using Kind = DeviceEvent::Kind;
  if (!owner || owner->events().is_wanted_of_cpu(Kind::granted) || owner->events().is_wanted_of_cpu(Kind::released))
    return std::nullopt;
  check_results(state.config, graph);
  std::optional<DeviceOwner::Operation> operation = DeviceOwner::begin_at_once(std::move(owner));
  std::shared_ptr<Executable> executable = operation ? operation->executables().find(graph.key()) : nullptr;
  if (!executable) return std::nullopt;
  return AtOnce{*std::move(operation), std::move(executable)};
}

// Runs it between |begun| and the time it returns.
template <class In, class Out>
Clock::time_point compute_at_once(AtOnce& run, const In& inputs, const Out& outputs, Clock::time_point begun) {
  std::array<const Buffer*, kMost> in{};
  std::array<Buffer*, kMost> out{};
  const std::size_t takes = run.executable->input_types().size(), gives = run.executable->output_types().size();
  for (std::size_t i = 0; i < takes; ++i) in[i] = inputs[i].get();
  for (std::size_t i = 0; i < gives; ++i) out[i] = outputs[i].get();
  const auto count = [&] {
    const Clock::time_point now = Clock::now();
    run.operation.count_run(seconds_between(begun, now), now);
    return now;
  };
  try {
    run.executable->run(std::span(in).first(takes), std::span(out).first(gives));
  } catch (...) {
    run.operation.failed();
    count();
    throw;
  }
  return count();
}

// The time of day at |now|. The clock of the day is read now and then only, as reading one is a good part of a small run.
std::chrono::system_clock::time_point time_of_day(Clock::time_point now) {
  constexpr std::chrono::seconds kReadEvery{1};
  thread_local Clock::time_point read_at;
  thread_local std::chrono::system_clock::time_point was;
  if (now - read_at >= kReadEvery) {
    read_at = Clock::now();
    was = std::chrono::system_clock::now();
  }
  return was + std::chrono::duration_cast<std::chrono::system_clock::duration>(now - read_at);
}

// What observers and routing learn of a run at once, which ended at |now|.
void report_at_once(ManagerState& state, const Graph& graph, const AtOnce& run, const RunOptions& options, bool moves_tensors,
                    Timeline& timeline, Clock::time_point now) {
  const DeviceOwner& owner = run.operation.owner();
  if (owner.events().is_wanted(DeviceEvent::Kind::ran)) {
    thread_local DeviceEvent event;  // so that its texts need no memory
    event.kind = DeviceEvent::Kind::ran;
    event.device = owner.device().id;
    event.when = time_of_day(now);
    event.seconds = 0;
    for (const Span& span : timeline) event.seconds += span.seconds;
    event.program = options.program;
    event.bytes = bytes_of(run.executable->input_types()) + bytes_of(run.executable->output_types());
    event.timeline.swap(timeline);
    owner.events().send(event);
    event.timeline.swap(timeline);
  }
  ProfileStore& profiles = state.routing.profiles();
  if (!profiles.wants_run()) return;
  Work work = state.routing.work_of(graph);
  if (!moves_tensors) work.upload_bytes = work.download_bytes = 0;
  profiles.record_run(owner.device(), work, true, timeline);
}

// The stages of a run on memory that the host and the device share: nothing is uploaded or downloaded.
Timeline timeline_at_once(double computing) {
  struct Stage {
    std::string_view name;
    double seconds = 0, start = 0;
    operator Span() const { return {std::string(name), seconds, start}; }
  };
  const Stage stages[] = {
      {"queued"}, {"opening"}, {"compiling"}, {"uploading"}, {"computing", computing}, {"downloading", 0, computing}};
  return {std::begin(stages), std::end(stages)};
}

constexpr std::size_t kMostBytesAtOnce = 64 * 1024;  // of inputs: computing with as much takes some ten microseconds

std::optional<RunResult> run_at_once(ManagerState& state, const Graph& graph, std::span<const HostArray> inputs,
                                     const RunOptions& options) {
  // Without a lease nobody who asks for the device alone waits for it, so it must not take long.
  std::size_t bytes = 0;
  for (const HostArray& input : inputs) bytes += input.bytes();
  if (bytes > kMostBytesAtOnce) return std::nullopt;
  RunResult result;
  std::optional<AtOnce> run = begin_at_once(state, graph, inputs.size(), options, &result.decision);
  if (!run) return std::nullopt;
  const Clock::time_point begun = Clock::now();
  Residency& residency = *run->operation.residency();
  const std::span<const TensorType> types = run->executable->output_types();
  std::array<std::unique_ptr<Buffer>, kMost> held, made;
  for (std::size_t i = 0; i < inputs.size(); ++i) held[i] = residency.upload(inputs[i]);
  for (std::size_t i = 0; i < types.size(); ++i) made[i] = residency.allocate(types[i]);
  const Clock::time_point computed = compute_at_once(*run, held, made, begun);
  result.outputs.reserve(types.size());
  for (std::size_t i = 0; i < types.size(); ++i) result.outputs.push_back(residency.download(*made[i]));
  result.timeline = timeline_at_once(seconds_between(begun, computed));
  result.device = run->operation.owner().description();
  report_at_once(state, graph, *run, options, /*moves_tensors=*/true, result.timeline, computed);
  return result;
}

}  // namespace

std::optional<std::vector<std::shared_ptr<Storage>>> evaluate_at_once(DeviceManager& manager, const Graph& graph,
                                                                      std::span<const std::shared_ptr<Storage>> inputs,
                                                                      const RunOptions& options) {
  ManagerState& state = state_of(manager);
  std::optional<AtOnce> run = begin_at_once(state, graph, inputs.size(), options, nullptr);
  if (!run) return std::nullopt;
  const std::shared_ptr<Residency>& residency = run->operation.residency();
  const std::span<const TensorType> types = run->executable->output_types();
  std::array<std::shared_ptr<const Buffer>, kMost> held;
  std::array<std::shared_ptr<Buffer>, kMost> made;
  bring(inputs, run->operation, held);
  for (std::size_t i = 0; i < types.size(); ++i) made[i] = residency->allocate(types[i]);
  const auto begun = std::chrono::steady_clock::now();
  const auto computed = compute_at_once(*run, held, made, begun);
  std::vector<std::shared_ptr<Storage>> outputs = Storage::on_device(residency, std::span(made).first(types.size()));
  thread_local Timeline timeline;
  // An observer that evaluates a tensor comes here again while the stages are in its event.
  timeline.resize(1);
  timeline[0].stage = "computing";
  timeline[0].seconds = seconds_between(begun, computed);
  report_at_once(state, graph, *run, options, /*moves_tensors=*/false, timeline, computed);
  return outputs;
}

RunResult DeviceManager::run(const Graph& graph, std::span<const HostArray> inputs, const RunOptions& options) {
  if (std::optional<RunResult> result = run_at_once(*state_, graph, inputs, options)) return *std::move(result);
  return with_another_device({*state_, graph, options}, [&](Execution& execution) { return run_once(execution, inputs); });
}

EvaluateResult evaluate(DeviceManager& manager, const Graph& graph, std::span<const std::shared_ptr<Storage>> inputs,
                        const RunOptions& options) {
  // An input that was on the lost device alone cannot be had on another: its data_loss says so.
  return with_another_device({state_of(manager), graph, options, /*moves_tensors=*/false},
                             [&](Execution& execution) { return evaluate_once(execution, inputs); });
}

}  // namespace tenon
