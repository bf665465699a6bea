// eval(): who evaluates a node, where, and in which order.
#include <algorithm>
#include <condition_variable>
#include <map>
#include <mutex>
#include <optional>
#include <utility>

#include "base/threads/fork_mutex.h"
#include "lease/turnstile/fork_guard.h"
#include "tenon/error.h"
#include "tenon/tensor/use_device.h"
#include "tensor/run_plan.h"

namespace tenon {
namespace {

thread_local DeviceManager* chosen_manager = nullptr;
thread_local const std::string* chosen_device = nullptr;

// The nodes that this thread evaluates, so that no other does at the same time. All are claimed at once, and nobody waits while
// claiming some: threads cannot wait for each other in a circle. Nor does a thread wait that holds a lease, as the one it would
// wait for may be waiting for that device: it computes the value, too.
class Claim {
 public:
  // Waits until none of |nodes| is being evaluated. Throws cancelled and deadline_exceeded.
  Claim(Nodes nodes, const DeviceManager& manager, const RunOptions& options) : nodes_(std::move(nodes)) {
    const std::uint64_t here = process();
    const auto is_free = [&] {
      return std::none_of(nodes_.begin(), nodes_.end(), [here](const auto& node) { return node->claimed_in == here; });
    };
    std::unique_lock lock(mutex());
    if (!is_free()) {
      lock.unlock();
      const bool may_wait = !manager.holds_lease();
      lock.lock();
      if (may_wait) wait(lock, options, is_free);
    }
    std::erase_if(nodes_, [](const auto& node) { return node->is_evaluated(); });
    mine_.resize(nodes_.size());
    for (std::size_t i = 0; i < nodes_.size(); ++i)  // else by somebody else, or it is there twice
      if (std::exchange(nodes_[i]->claimed_in, here) != here) mine_.set(i);
  }
  ~Claim() {
    std::unique_lock lock(mutex());
    for (std::size_t i = 0; i < nodes_.size(); ++i)
      if (mine_[i]) nodes_[i]->claimed_in = 0;
    if (waiting() == 0) return;
    std::condition_variable_any& waiters = changed();
    lock.unlock();
    waiters.notify_all();
  }
  Claim(const Claim&) = delete;
  Claim& operator=(const Claim&) = delete;

  // Those without a value, all of which are to be evaluated.
  const Nodes& nodes() const { return nodes_; }

 private:
  template <class Free>
  static void wait(std::unique_lock<ForkMutex>& lock, const RunOptions& options, const Free& is_free) {
    std::condition_variable_any& changes = changed();
    ++waiting();
    struct Ended {
      ~Ended() { --waiting(); }
    } ended;
    const bool is_done = options.timeout ? changes.wait_for(lock, options.cancel, *options.timeout, is_free)
                                         : changes.wait(lock, options.cancel, is_free);
    if (is_done) return;
    if (options.cancel.stop_requested())
      throw Error(ErrorCode::cancelled, "cancelled while another thread was evaluating this tensor");
    throw Error(ErrorCode::deadline_exceeded, "timed out while another thread was evaluating this tensor");
  }
  // Never destroyed: a thread may still evaluate while the process exits.
  static ForkMutex& mutex() {
    static auto* instance = new ForkMutex;
    return *instance;
  }
  // With the mutex held. A forked child has one of its own: that of its parent may be in use there at the moment of the fork.
  static std::condition_variable_any& changed() {
    static auto& of_processes = *new std::map<std::uint64_t, std::condition_variable_any>;
    return of_processes[process()];
  }
  // With the mutex held: how many threads wait. In a forked child also those of its parent, for whom it signals in vain.
  static int& waiting() {
    static int count = 0;
    return count;
  }
  // Threads of the parent that evaluate something do not do so in its child.
  static std::uint64_t process() noexcept { return fork_guard::generation(); }

  // A flag for each node; up to 64 take no memory.
  class Flags {
   public:
    void resize(std::size_t size) {
      if (size > 64) many_.resize(size);
    }
    void set(std::size_t i) {
      if (many_.empty())
        few_ |= std::uint64_t{1} << i;
      else
        many_[i] = true;
    }
    bool operator[](std::size_t i) const { return many_.empty() ? (few_ >> i & 1) != 0 : many_[i]; }

   private:
    std::uint64_t few_ = 0;
    std::vector<bool> many_;
  };

  Nodes nodes_;
  Flags mine_;
};

struct Task {
  Nodes targets;
  std::string requested;
};

// The device requested for each planned node: its own, or the first one found on the way to its inputs.
std::vector<const std::string*> requests_of(const TensorPlan& plan) {
  std::vector<const std::string*> requests(plan.nodes.size());
  for (std::size_t i = 0; i < plan.nodes.size(); ++i) {
    requests[i] = &plan.nodes[i].node->requested;
    for (const std::uint32_t input : plan.inputs(plan.nodes[i]))
      if (requests[i]->empty()) requests[i] = requests[input];
  }
  return requests;
}

// The only device that the plan requests; the default if it requests none, nothing if it requests several.
std::optional<std::string_view> only_request(const TensorPlan& plan) {
  std::string_view only;
  for (const PlannedNode& node : plan.nodes) {
    const std::string& own = node.node->requested;
    if (own.empty() || own == only) continue;
    if (!only.empty()) return std::nullopt;
    only = own;
  }
  return only.empty() ? std::string_view(default_request()) : only;
}

// Targets that request the same device together; those without one join the first.
std::vector<Task> tasks_for(const TensorPlan& plan, const Nodes& nodes) {
  const std::vector<const std::string*> requests = requests_of(plan);
  const auto shared = [&](const PlannedNode& planned) {
    return *std::ranges::find_if(nodes, [&](const auto& node) { return node.get() == planned.node; });
  };
  std::vector<Task> tasks;
  Nodes anywhere;
  for (std::size_t i = 0; i < plan.nodes.size(); ++i) {
    if (!plan.nodes[i].is_target) continue;
    if (requests[i]->empty()) {
      anywhere.push_back(shared(plan.nodes[i]));
      continue;
    }
    auto task = std::find_if(tasks.begin(), tasks.end(), [&](const Task& known) { return known.requested == *requests[i]; });
    if (task == tasks.end()) task = tasks.insert(tasks.end(), Task{{}, *requests[i]});
    task->targets.push_back(shared(plan.nodes[i]));
  }
  if (anywhere.empty()) return tasks;
  if (tasks.empty()) tasks.push_back({{}, default_request()});
  tasks[0].targets.insert(tasks[0].targets.end(), anywhere.begin(), anywhere.end());
  return tasks;
}

// The unevaluated nodes of the plan that request another device than |requested|, one device at a time.
Task elsewhere(const TensorPlan& plan, const std::string& requested) {
  Task task;
  for (const PlannedNode& node : plan.nodes) {
    const std::string& own = node.node->requested;
    if (!node.expression || node.is_target || own.empty() || own == requested || node.node->weak) continue;
    if (task.requested.empty()) task.requested = own;
    if (task.requested == own) task.targets.push_back(node.node->shared_from_this());
  }
  return task;
}

void run_tasks(std::vector<Task> waiting, DeviceManager& manager, const RunOptions& options, Evaluation* evaluation) {
  std::reverse(waiting.begin(), waiting.end());
  while (!waiting.empty()) {
    TensorPlan planned = plan(waiting.back().targets);
    if (Task first = elsewhere(planned, waiting.back().requested); !first.targets.empty()) {
      waiting.push_back(std::move(first));
      continue;
    }
    RunOptions here = options;
    here.device = waiting.back().requested;
    run_plan(planned, manager, here, evaluation);
    waiting.pop_back();
  }
}

}  // namespace

DeviceManager& current_manager() { return chosen_manager ? *chosen_manager : process_manager(); }

UseManager::UseManager(DeviceManager& manager) noexcept : before_(chosen_manager) { chosen_manager = &manager; }
UseManager::~UseManager() { chosen_manager = before_; }

const std::string& default_request() noexcept {
  static const std::string any = "auto";
  return chosen_device ? *chosen_device : any;
}

UseDevice::UseDevice(std::string_view device) : device_(device), before_(chosen_device) { chosen_device = &device_; }
UseDevice::~UseDevice() { chosen_device = before_; }

void evaluate_nodes(std::span<const Tensor> tensors, const RunOptions& options, Evaluation* evaluation) {
  Nodes nodes;
  for (const Tensor& tensor : tensors)
    if (!node_of(tensor)->is_evaluated()) nodes.push_back(node_of(tensor));
  if (nodes.empty()) return;
  DeviceManager& manager = current_manager();
  const Claim claim(std::move(nodes), manager, options);
  if (claim.nodes().empty()) return;
  TensorPlan planned = plan(claim.nodes());
  if (options.device != "auto") {
    run_plan(planned, manager, options, evaluation);
  } else if (const std::optional<std::string_view> requested = only_request(planned)) {
    if (*requested == "auto") return run_plan(planned, manager, options, evaluation);
    RunOptions here = options;
    here.device = *requested;
    run_plan(planned, manager, here, evaluation);
  } else {
    run_tasks(tasks_for(planned, claim.nodes()), manager, options, evaluation);
  }
}

Evaluation eval(std::span<const Tensor> tensors, const RunOptions& options) {
  Evaluation evaluation;
  evaluate_nodes(tensors, options, &evaluation);
  return evaluation;
}

}  // namespace tenon
