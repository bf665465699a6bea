// Ledger: records the use of devices without delaying computations.
//
// Events are summed in memory; a separate thread writes them, at most once per |every|, if there is something worth writing: any
// use of an accelerator, or a tenth of a second of computing on the CPU. A process that computes less opens no file and starts no
// thread. Events that cannot be written are kept and retried; only the first failure is logged. Memory use is bounded. A device
// that stays open is recorded once a minute, so that little is lost if the process is killed.
//
// Lifetime: the destructor, or the end of the process, writes the rest, waiting at most |patience| for other processes. A child
// of fork() records nothing. Thread safety: all functions may be called from any thread. record() does not block on files.
//
//   auto ledger = std::make_shared<Ledger>(Ledger::Options{.describe = [...](const std::string& id) { return info_of(id); }});
//   auto handle = manager.observe([ledger](const DeviceEvent& event) { ledger->record(event); });
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>

#include "manager/ledger/store.h"
#include "tenon/lease/device_status.h"

namespace tenon {

// The name of a process in the ledger: its program, or for an interpreter the script. Without arguments, because they may contain
// secrets.
std::string program_of(std::span<const std::string> command_line);
std::string program_of_this_process();

// |device| with the recorded price: the one in |prices|, else the built-in estimate, except for simulated devices, which cost
// nothing.
DeviceInfo with_price(DeviceInfo device, const std::map<std::string, double>& prices);

class Ledger {
 public:
  struct Options {
    std::string file = ledger_file();
    LedgerLimits limits = LedgerLimits::of_environment();
    std::string program = {};  // "": program_of_this_process()
    // Kind and model of a device, queried once per device on the ledger's own thread; may be unknown.
    std::function<DeviceInfo(const std::string& id)> describe = {};
    // US dollars per hour, by id, kind or name: Config::prices. Other devices use the built-in estimate, except simulated
    // ones.
    std::map<std::string, double> prices = {};
    std::chrono::milliseconds every = std::chrono::seconds(1);
    std::chrono::milliseconds patience = std::chrono::seconds(1);
  };
  Ledger();
  explicit Ledger(Options options);
  Ledger(const Ledger&) = delete;
  Ledger& operator=(const Ledger&) = delete;
  ~Ledger();

  void record(const DeviceEvent& event) noexcept;
  // Writes all pending events, however few. Returns when they are written; false if they could not be.
  bool flush();

  struct Writer;

 private:
  std::unique_ptr<Writer> writer_;
};

}  // namespace tenon
