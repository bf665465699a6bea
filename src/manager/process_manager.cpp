#include <cstdlib>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tenon/manager.h"

namespace tenon {
namespace {

struct Process {
  std::mutex mutex;
  std::optional<Config> config;
  DeviceManager* manager = nullptr;
  std::vector<std::shared_ptr<void>> observers;
  std::vector<DeviceManager*> earlier;  // reachable for leak checkers: somebody may still refer to them
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
  static std::mutex mutex;
  static std::set<std::string>* const seen = new std::set<std::string>;
  const std::lock_guard lock(mutex);
  if (seen->insert(event.device).second) std::atexit(shut_down_all);
}

}  // namespace

DeviceManager& process_manager() {
  Process& here = process();
  const std::lock_guard lock(here.mutex);
  if (here.manager == nullptr) {
    here.manager = new DeviceManager(here.config ? *here.config : Config::load());
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
