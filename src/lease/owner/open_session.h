// OpenSession: one device from its opening to its closing, with what lives on it.
//
// Thread safety: with the mutex of the device's owner held, except close(), which may take long: nobody else sees it by then.
#pragma once

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/log.h"
#include "hal/collectives.h"
#include "lease/executable_cache.h"
#include "lease/storage.h"
#include "lease/turnstile/turnstile.h"
#include "tenon/error.h"

namespace tenon {

struct OpenSession {
  std::shared_ptr<OpenDevice> device;
  std::shared_ptr<Residency> residency;
  Turnstile::Pass pass;    // empty for a device without a queue between processes
  Clock::Time held_since;  // the quantum runs from here
  ExecutableCache executables{};
  JoinedGroups groups{};
  Clock::Time idle_since{}, close_at{};    // while idle
  Clock::Time retry_at{};                  // of closing, after the values on it could not be moved
  int operations = 0;                      // that run on it
  std::vector<Clock::Time> overdue_at;     // when those that have a limit are overdue
  Clock::Time give_up_at = Clock::kNever;  // the device was abandoned; what still runs then is left to itself
  bool others_wait = false;                // other processes, as of the last look
  bool overdue_is_logged = false;
  bool is_dirty = false;  // not closed cleanly: the next holder must recover the device

  // Whether another process waits for the device.
  bool look_for_waiters() {
    if (pass) try {
        others_wait = pass.has_waiters();
      } catch (const Error& error) {
        logging::warn("{}: cannot see who waits: {}", residency->device_id(), error.what());
      }
    return others_wait;
  }

  // When the first operation is overdue; kNever if none is, or none runs.
  Clock::Time first_overdue() const {
    if (operations == 0 || overdue_at.empty()) return Clock::kNever;
    return std::max(*std::min_element(overdue_at.begin(), overdue_at.end()),
                    give_up_at == Clock::kNever ? Clock::Time::min() : give_up_at);
  }
  void forget_overdue(Clock::Time time) {
    const auto found = std::find(overdue_at.begin(), overdue_at.end(), time);
    if (found == overdue_at.end()) return;
    *found = overdue_at.back();
    overdue_at.pop_back();
  }

  // Closes the device, on which no operation runs and no value is left. Returns what went wrong, "" if nothing did.
  std::string close() {
    std::string failure;
    executables.clear();
    groups.clear();
    residency.reset();
    try {
      device->close();
    } catch (const std::exception& error) {
      failure = error.what();
    }
    is_dirty = !failure.empty() || device->is_lost();
    device.reset();
    return failure;
  }
  // Lets the next process have the device, after close().
  void give_pass_back() noexcept { is_dirty ? pass.give_back_dirty() : pass.give_back(); }
};

}  // namespace tenon
