#include "manager/ledger/ledger.h"

#include <algorithm>
#include <array>
#include <condition_variable>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <mutex>
#include <optional>
#include <thread>

#include "base/log.h"
#include "base/threads/fork_mutex.h"
#include "device/cost.h"
#include "lease/turnstile/fork_guard.h"
#include "manager/ledger/accounts.h"
#include "tenon/device/simulated.h"
#include "tenon/error.h"

namespace tenon {
namespace {

constexpr std::chrono::seconds kOpenBookedEvery{60};
constexpr std::chrono::seconds kRetryAfter{5};

std::string last_part(const std::string& path) { return std::filesystem::path(path).filename().string(); }

bool is_interpreter(const std::string& name) {
  constexpr std::array<std::string_view, 8> names = {"python", "sh", "bash", "dash", "perl", "ruby", "node", "env"};
  return std::any_of(names.begin(), names.end(), [&](std::string_view interpreter) {
    return name == interpreter || (interpreter == "python" && name.starts_with(interpreter));
  });
}

}  // namespace

std::string program_of(std::span<const std::string> command_line) {
  if (command_line.empty() || command_line[0].empty()) return "unknown";
  const std::string own = last_part(command_line[0]);
  if (!is_interpreter(own)) return own;
  for (std::size_t i = 1; i < command_line.size(); ++i) {
    const std::string& word = command_line[i];
    if (word == "-m" && i + 1 < command_line.size()) return command_line[i + 1];
    // What follows -c is a program text, which is no name.
    if (word == "-c" || word == "-e" || word == "-") return own;
    if (!word.starts_with('-') && !word.empty()) return last_part(word);
  }
  return own;
}

std::string program_of_this_process() {
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  std::vector<std::string> words;
  for (std::size_t from = 0; from < text.size();) {
    const std::size_t end = std::min(text.find('\0', from), text.size());
    words.push_back(text.substr(from, end - from));
    from = end + 1;
  }
  return program_of(words);
}

DeviceInfo with_price(DeviceInfo device, const std::map<std::string, double>& prices) {
  if (is_simulated(device))
    device.cost_per_hour.reset();
  else
    estimate_cost(device);
  apply_prices(device, prices);
  return device;
}

struct Ledger::Writer {
  Options options;
  std::mutex mutex;
  std::condition_variable changed;  // for the writer
  std::condition_variable written;  // for flush()
  std::optional<LedgerAccounts> accounts;
  std::thread thread;
  bool is_stopping = false, has_given_up = false;
  std::uint64_t flushes_wanted = 0, flushes_done = 0;
  bool last_write_worked = true, has_complained = false;
  std::uint64_t generation = fork_guard::generation();

  Writer() = default;
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;

  // Only the writer's thread uses these.
  std::optional<LedgerStore> store;
  std::map<std::string, DeviceInfo> known;

  bool is_in_child() const noexcept { return generation != fork_guard::generation(); }

  LedgerAccounts& gathered() {
    // The name of this process is looked up when something is written: most processes write nothing.
    if (!accounts) accounts.emplace(options.program);
    return *accounts;
  }

  void start() {
    if (thread.joinable() || has_given_up) return;
    try {
      thread = std::thread([this] { work(); });
    } catch (const std::system_error& error) {
      has_given_up = true;
      logging::warn("cannot start the ledger's writer thread: {}", error.what());
    }
  }

  void complain(const char* what) {
    if (std::exchange(has_complained, true)) return;
    logging::warn("the use of devices is temporarily not recorded: {}", what);
  }

  void price(std::vector<Use>& uses) {
    if (options.program.empty()) options.program = program_of_this_process();
    for (Use& use : uses) {
      if (use.program.empty()) use.program = options.program;
      auto found = known.find(use.device);
      if (found == known.end()) {
        DeviceInfo info;
        info.kind = use.device.starts_with("cpu:") ? DeviceKind::cpu : DeviceKind::other;
        if (options.describe) try {
            info = options.describe(use.device);
          } catch (const std::exception& error) {
            logging::info("the ledger has no record of {}: {}", use.device, error.what());
          }
        info.id = use.device;
        found = known.emplace(use.device, with_price(std::move(info), options.prices)).first;
      }
      use.kind = name(found->second.kind);
      use.price_per_hour = found->second.cost_per_hour;
      use.price_is_estimate = found->second.cost_is_estimate;
    }
  }

  bool write(std::vector<Use>& uses) {
    if (uses.empty()) return true;
    try {
      price(uses);
      if (!store) store.emplace(options.file, options.limits, options.patience);
      store->append(uses);
      return true;
    } catch (const std::exception& error) {
      // A file that was moved away or has filled its disk may be fine when opened again.
      store.reset();
      complain(error.what());
      return false;
    }
  }

  void work() {
    std::unique_lock lock(mutex);
    auto next_write = std::chrono::steady_clock::now() + options.every;
    const auto is_asked = [&] { return is_stopping || flushes_wanted > flushes_done; };
    for (;;) {
      if (!is_asked()) {
        if (gathered().is_worth_writing())
          changed.wait_until(lock, next_write, is_asked);
        else if (gathered().has_open_device())
          changed.wait_for(lock, kOpenBookedEvery, [&] { return is_asked() || gathered().is_worth_writing(); });
        else
          changed.wait(lock, [&] { return is_asked() || gathered().is_worth_writing(); });
      }
      const bool is_last = is_stopping;
      const std::uint64_t wanted = flushes_wanted;
      const auto now = std::chrono::steady_clock::now();
      if (!is_asked() && gathered().is_worth_writing() && now < next_write) continue;
      gathered().book_open_time(std::chrono::system_clock::now());
      if (wanted > flushes_done || gathered().is_worth_writing()) {
        std::vector<Use> uses = gathered().take();
        lock.unlock();
        const bool worked = write(uses);
        lock.lock();
        last_write_worked = worked;
        if (!worked) gathered().give_back(std::move(uses));
        next_write = std::chrono::steady_clock::now() + (worked ? options.every : milliseconds_to_retry());
      }
      flushes_done = wanted;
      written.notify_all();
      if (is_last) return;
    }
  }

  // Writes what is left and ends the thread. May be called again.
  void finish() {
    {
      const std::lock_guard lock(mutex);
      is_stopping = has_given_up = true;
    }
    changed.notify_all();
    if (thread.joinable()) thread.join();
  }

  std::chrono::milliseconds milliseconds_to_retry() const {
    return std::max<std::chrono::milliseconds>(options.every, kRetryAfter);
  }

  static void finish_at_exit(Writer& writer);
  static void forget(Writer& writer);
};

namespace {

// All ledgers. The process's manager is never destroyed, so that its ledger would not be asked to finish. This lock is taken
// before a ledger's own.
struct AtExit {
  ForkMutex mutex;
  std::vector<Ledger::Writer*> writers;
};
AtExit& at_exit() {
  static AtExit* const instance = new AtExit;
  return *instance;
}

}  // namespace

void Ledger::Writer::finish_at_exit(Writer& writer) {
  const std::lock_guard lock(at_exit().mutex);
  static const int registered = std::atexit([] {
    const std::lock_guard all(at_exit().mutex);
    for (Writer* each : at_exit().writers)
      if (!each->is_in_child()) each->finish();
  });
  if (registered == 0) at_exit().writers.push_back(&writer);
}

void Ledger::Writer::forget(Writer& writer) {
  const std::lock_guard lock(at_exit().mutex);
  std::erase(at_exit().writers, &writer);
}

Ledger::Ledger() : Ledger(Options{}) {}

Ledger::Ledger(Options options) : writer_(std::make_unique<Writer>()) {
  writer_->options = std::move(options);
  Writer::finish_at_exit(*writer_);
}

Ledger::~Ledger() {
  Writer& writer = *writer_;
  if (writer.is_in_child()) {
    // The thread is the parent's, and so may be the locks and the file.
    (void)writer_.release();
    return;
  }
  Writer::forget(writer);
  writer.finish();
}

void Ledger::record(const DeviceEvent& event) noexcept {
  Writer& writer = *writer_;
  if (writer.is_in_child() || !ledger_is_built()) return;
  try {
    const std::lock_guard lock(writer.mutex);
    const bool was_worth = writer.gathered().is_worth_writing();
    writer.gathered().add(event);
    if (was_worth || !writer.gathered().is_worth_writing()) return;
    writer.start();
    writer.changed.notify_all();
  } catch (...) {
    // Out of memory: the computation matters more than its record.
  }
}

bool Ledger::flush() {
  Writer& writer = *writer_;
  if (writer.is_in_child() || !ledger_is_built()) return false;
  std::unique_lock lock(writer.mutex);
  writer.gathered();
  writer.start();
  if (writer.has_given_up) return false;
  const std::uint64_t mine = ++writer.flushes_wanted;
  writer.changed.notify_all();
  writer.written.wait(lock, [&] { return writer.flushes_done >= mine; });
  return writer.last_write_worked;
}

}  // namespace tenon
