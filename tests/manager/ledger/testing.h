// What the tests of the ledger share: a folder of their own, uses and events to write down.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <string>

#include "manager/ledger/store.h"
#include "temporary_folder.h"
#include "tenon/lease/device_status.h"

namespace tenon::testing {

class LedgerFolder : public test::TemporaryFolder {
 public:
  std::string file() const { return *this / "state/ledger.db"; }
};

// Noon of 2026-11-01 UTC, and times after it.
inline SystemTime at(double seconds) {
  return SystemTime(std::chrono::seconds(1'793'534'400)) +
         std::chrono::duration_cast<SystemTime::duration>(std::chrono::duration<double>(seconds));
}
constexpr double kDay = 86400, kHour = 3600;

inline Use use_of(const std::string& device, const std::string& program, double begin, double open_seconds,
                  double compute_seconds, std::optional<double> price = 2.0) {
  return {.begin = at(begin),
          .device = device,
          .kind = "gpu",
          .program = program,
          .epoch = 7,
          .runs = 1,
          .leases = 1,
          .opens = 1,
          .open_seconds = open_seconds,
          .held_seconds = open_seconds / 2,
          .compute_seconds = compute_seconds,
          .queued_seconds = 0.5,
          .bytes = 1024,
          .price_per_hour = price,
          .price_is_estimate = false};
}

using EventKind = DeviceEvent::Kind;

inline DeviceEvent event_of(EventKind kind, double when, double seconds = 0, const std::string& device = "cuda:0",
                            std::uint64_t epoch = 7) {
  DeviceEvent event;
  event.kind = kind;
  event.device = device;
  event.when = at(when);
  event.seconds = seconds;
  event.epoch = epoch;
  return event;
}

inline DeviceEvent run_of(const std::string& program, double when, double seconds, double compute_seconds,
                          const std::string& device = "cuda:0", std::uint64_t epoch = 7) {
  DeviceEvent event = event_of(EventKind::ran, when, seconds, device, epoch);
  event.program = program;
  event.timeline = {{"queued", 0.25}, {"computing", compute_seconds}};
  event.bytes = 100;
  return event;
}

#define TENON_NEEDS_LEDGER() \
  if (!ledger_is_built()) GTEST_SKIP() << "this build has no SQLite"

}  // namespace tenon::testing
