// Ledger: writes down what every lease took, without anybody waiting for it.
//
// Events are added up in memory; a thread of its own writes them, at most once in |every|, when there is something worth a write:
// any use of an accelerator, or a tenth of a second of computing on the processor. A process that computes less opens no file and
// starts no thread. What cannot be written is kept and tried again; the first failure is logged, the rest are not. The memory
// used is bounded. A device that stays open is booked once a minute, so that a process that is killed takes little with it.
//
// Lifetime: the destructor, or the end of the process, writes what is left, waiting at most |patience| for other processes. A
// child of fork() records nothing. Thread safety: everything may be called from anywhere. record() does not block on files.
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
#include "tenon/device_status.h"

namespace tenon {

// What a process is called in the ledger: its program's name, or for an interpreter the script's. No arguments: those may be
// secret.
std::string program_of(std::span<const std::string> command_line);
std::string program_of_this_process();

// |device| with the price that is written down: the one given in |prices|, else the built-in estimate, except for a simulated
// one, which costs nobody anything.
DeviceInfo with_price(DeviceInfo device, const std::map<std::string, double>& prices);

class Ledger {
 public:
  struct Options {
    std::string file = ledger_file();
    LedgerLimits limits = LedgerLimits::of_environment();
    std::string program = {};  // "": program_of_this_process()
    // Kind and model of a device, asked for once each, from the ledger's own thread; nothing may be known of it.
    std::function<DeviceInfo(const std::string& id)> describe = {};
    // US dollars an hour, by id, kind or name: Config::prices. For others the built-in estimate counts, except for simulated
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
  // Writes what there is, small or not. Returns when it is written, or could not be: false.
  bool flush();

  struct Writer;

 private:
  std::unique_ptr<Writer> writer_;
};

}  // namespace tenon
