// tenon-worker: hosts one device for another process (src/hal/worker/worker.h). Not to be run manually.
#include <cstdio>

#include "backends/all.h"
#include "hal/worker/worker.h"

int main() {
  if (!tenon::is_worker()) {
    std::fputs("tenon-worker is started by Tenon itself, for devices that run in a process of their own\n", stderr);
    return 2;
  }
  tenon::BackendRegistry registry;
  tenon::register_all_backends(registry, {});
  return tenon::run_worker(registry);
}
