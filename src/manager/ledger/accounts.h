// LedgerAccounts: from what happens to devices to rows of the ledger.
//
// Uses are gathered by device, program, lease and result until they are taken. The time a device is open belongs to the program
// that ran on it last: what passes between two runs to the one before, and what passed before the first run to that one. The
// processor is never really opened or closed; its time open is the time programs ran on it.
//
// Thread safety: one thread at a time.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "manager/ledger/store.h"
#include "tenon/lease/device_status.h"

namespace tenon {

class LedgerAccounts {
 public:
  // |program|: what uses are booked under whose event names none; "" leaves them without a name.
  explicit LedgerAccounts(std::string program) : process_(std::move(program)) {}

  void add(const DeviceEvent& event);
  // Books the time that devices have been open until |now|.
  void book_open_time(SystemTime now);

  // Short computations on the CPU cost nothing and are many: they are worth a write only together.
  bool is_worth_writing() const noexcept { return has_accelerator_ || processor_seconds_ >= kProcessorSeconds; }
  // The same of a single use.
  static bool is_worth_writing(const DeviceInfo& device, double seconds) noexcept {
    return device.kind != DeviceKind::cpu || seconds >= kProcessorSeconds;
  }
  bool has_open_device() const noexcept { return !open_.empty(); }

  // What was gathered, without kind and price. Afterwards nothing is gathered; which devices are open stays known.
  std::vector<Use> take();
  // Gathers again what could not be written.
  void give_back(std::vector<Use> uses);

  static constexpr double kProcessorSeconds = 0.1;
  // Beyond this many rows leases are no longer told apart, then programs; the sums stay right.
  static constexpr std::size_t kMostRows = 4096;

 private:
  using Key = std::tuple<std::string, std::string, std::string, std::uint64_t>;  // device, program, result, epoch
  struct Open {
    SystemTime booked_until;
    std::string program;  // "": none ran yet
    std::uint64_t epoch = 0;
    std::uint64_t opens = 1;  // not booked yet
  };

  Use& row(const std::string& device, const std::string& program, const std::string& result, std::uint64_t epoch,
           SystemTime begin);
  void book(const std::string& device, Open& open, const std::string& program, SystemTime until);
  void add_run(const DeviceEvent& event);
  Use& row_of(const DeviceEvent& run, const std::string& program, SystemTime begin);
  void end_open(const DeviceEvent& event);
  const std::string& program_on(const std::string& device) const;

  std::string process_;
  std::map<Key, Use> rows_;
  Use* last_ = nullptr;  // the row of the run before, which most runs continue
  std::map<std::string, Open> open_;
  std::map<std::string, std::string> last_program_;  // by device
  double processor_seconds_ = 0;
  bool has_accelerator_ = false;
};

}  // namespace tenon
