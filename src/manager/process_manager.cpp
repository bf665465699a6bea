#include <cstdlib>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "tenon/manager.h"

namespace tenon {
namespace {

struct Process {
  std::mutex mutex;
  std::optional<Config> config;
  DeviceManager* manager = nullptr;
  std::vector<DeviceManager*> earlier;  // reachable for leak checkers: somebody may still refer to them
};

Process& process() {
  static Process* instance = new Process;  // never destroyed: tensors of static duration may outlive main
  return *instance;
}

}  // namespace

DeviceManager& process_manager() {
  Process& here = process();
  const std::lock_guard lock(here.mutex);
  if (here.manager == nullptr) {
    here.manager = new DeviceManager(here.config ? *here.config : Config::load());
    // A device that is open when the process ends would look like one whose user died.
    static const int registered = std::atexit([] {
      for (DeviceManager* manager : process().earlier) manager->shut_down();
      if (process().manager) process().manager->shut_down();
    });
    (void)registered;
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
