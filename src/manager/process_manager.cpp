#include <cstdint>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/threads/fork_mutex.h"
#include "lease/turnstile/fork_guard.h"
#include "manager/manager_state.h"
#include "tenon/manager.h"

namespace tenon {
namespace {

struct Process {
  ForkMutex mutex;
  std::optional<Config> config;
  DeviceManager* manager = nullptr;
  std::vector<std::shared_ptr<void>> observers;
  std::vector<DeviceManager*> earlier;    // reachable for leak checkers: somebody may still refer to them
  std::vector<DeviceManager*> inherited;  // of the process that this one was forked from: its devices are not ours to close
  std::uint64_t generation = 0, first_generation = 0;  // of the manager and of the first one (fork_guard.h)
};

Process& process() {
  static Process* instance = new Process;  // never destroyed: tensors of static duration may outlive main
  return *instance;
}

// A device that is open when the process ends would look like one whose user died.
void shut_down_all() {
  for (DeviceManager* manager : process().earlier) manager->shut_down();
  if (process().manager) process().manager->shut_down();
}

// A vendor's runtime ends itself in a handler that it registers when it is first used. What is registered last is called first,
// so devices are closed by a handler registered after that.
void shut_down_before_the_runtime(const DeviceEvent& event) {
  static auto& mutex = *new ForkMutex;
  static std::set<std::string>* const seen = new std::set<std::string>;
  const std::lock_guard lock(mutex);
  if (seen->insert(event.device).second) std::atexit(shut_down_all);
}

// The child of a fork has the memory of the parent's manager, but neither its threads nor its devices. It gets a manager of its
// own, which computes on the CPU.
void leave_to_the_parent(Process& here) {
  Config config = here.manager->config();
  config.prefer = "cpu";
  config.routing = RoutingMode::prefer;
  here.config = std::move(config);
  here.inherited.push_back(std::exchange(here.manager, nullptr));
  here.inherited.insert(here.inherited.end(), here.earlier.begin(), here.earlier.end());
  here.earlier.clear();
}

}  // namespace

DeviceManager& process_manager() {
  Process& here = process();
  const std::lock_guard lock(here.mutex);
  if (here.manager != nullptr && here.generation != fork_guard::generation()) leave_to_the_parent(here);
  if (here.manager == nullptr) {
    here.manager = new DeviceManager(here.config ? *here.config : Config::load());
    here.generation = fork_guard::generation();
    if (here.first_generation == 0) here.first_generation = here.generation;
    state_of(*here.manager).is_forked = here.generation != here.first_generation;
    std::atexit(shut_down_all);
    here.observers.push_back(here.manager->observe(shut_down_before_the_runtime, {DeviceEvent::Kind::opened}));
  }
  return *here.manager;
}

void set_process_config(Config config) {
  Process& here = process();
  const std::lock_guard lock(here.mutex);
  if (here.manager != nullptr && here.manager->config() != config) {
    here.earlier.push_back(here.manager);
    here.manager = nullptr;
  }
  here.config = std::move(config);
}

}  // namespace tenon
