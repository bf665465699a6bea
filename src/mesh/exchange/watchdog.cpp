#include "mesh/exchange/watchdog.h"

#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <utility>

namespace tenon::mesh {

Watchdog::Watchdog(std::string failure, std::chrono::nanoseconds deadline)
    : thread_([this, failure = std::move(failure), deadline](const std::stop_token& stop) {
        std::unique_lock lock(mutex_);
        over_.wait_for(lock, stop, deadline, [] { return false; });
        if (stop.stop_requested()) return;
        fmt::print(stderr, "tenon: {} within {} s: another process of the job is gone or hangs\n", failure,
                   std::chrono::duration<double>(deadline).count());
        std::fflush(stderr);
        std::_Exit(1);
      }) {}

}  // namespace tenon::mesh
