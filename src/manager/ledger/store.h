// LedgerStore: the ledger's file, a SQLite database that many processes write concurrently.
//
// A row is one use of a device by a program: a lease, or the part of a long lease up to a write. Rows beyond the limits are
// merged into daily sums, oldest first. Every call is one transaction: if a process is killed, the file stays intact without that
// transaction. A file of an older version is upgraded when opened; a newer one is refused.
//
// Lifetime: holds the file open. Thread safety: one thread at a time; any number of processes. A child of fork() must not use it.
//
//   LedgerStore store(ledger_file());
//   store.append(rows);
//   for (const UseSum& sum : store.sums({.by = UseKey::program}).groups) print(sum.key, sum.money);
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tenon {

using SystemTime = std::chrono::system_clock::time_point;

struct Use {
  SystemTime begin;
  std::string device, kind, program;
  std::string result = "ok";  // or the failure: "open_failed", "run_failed", "close_failed", "lost", "exit 1"
  std::uint64_t epoch = 0;    // of the lease; 0 if the device is not shared between processes
  std::uint64_t runs = 0, leases = 0, opens = 0, failures = 0;
  double open_seconds = 0;     // the device was open, or being opened, for this program
  double held_seconds = 0;     // of leases
  double compute_seconds = 0;  // of the timeline's stages
  double queued_seconds = 0;
  std::uint64_t bytes = 0;               // up and down
  std::optional<double> price_per_hour;  // US dollars, at that time
  bool price_is_estimate = false;

  friend bool operator==(const Use&, const Use&) = default;
};

enum class UseKey : std::uint8_t { device, program, day };
std::string_view name(UseKey key) noexcept;

// The sums of all uses with one key.
struct UseSum {
  std::string key;  // an id, a program, "2026-11-15"
  std::uint64_t runs = 0, leases = 0, opens = 0, failures = 0, bytes = 0;
  double open_seconds = 0, held_seconds = 0, compute_seconds = 0, queued_seconds = 0;
  double money = 0;  // US dollars for the time open
  bool money_is_estimate = false;
  double unpriced_open_seconds = 0;  // open, at no known price
  // The cost of the same devices if they had been open all the time since their first use, or since |since| if that is later.
  // nullopt for a program and if no price is known.
  std::optional<double> always_open_money;

  // The computing share of the open time, 0 to 1; nullopt if never open.
  std::optional<double> efficiency() const;
};

struct UseQuery {
  SystemTime since{};  // the epoch: everything. Merged days are counted as a whole.
  SystemTime now = std::chrono::system_clock::now();
  UseKey by = UseKey::device;
};

struct UseReport {
  std::vector<UseSum> groups;  // by falling cost; days in order
  UseSum total;
  std::optional<SystemTime> first;  // the first use that was counted
};

struct LedgerLimits {
  std::uint64_t rows = 100'000;
  std::uint64_t bytes = std::uint64_t{64} << 20;

  // From TENON_LEDGER_ROWS and TENON_LEDGER_MIB; invalid or too small values count as unset.
  static LedgerLimits of_environment();
};

// Whether this build has a ledger, which needs SQLite.
bool ledger_is_built() noexcept;
// ledger.db in the state directory; "" if there is no state directory.
std::string ledger_file();

class LedgerStore {
 public:
  static constexpr int kVersion = 2;

  // Opens the file, or creates it for this user only (0600). A damaged file is renamed and a new one created. Waits at most
  // |patience| for other processes, here and in every call. Throws unavailable, permission_denied, failed_precondition for a
  // newer version, unimplemented if this build has no SQLite.
  explicit LedgerStore(const std::string& file, LedgerLimits limits = {},
                       std::chrono::milliseconds patience = std::chrono::seconds(2));
  // The same for a file that must exist; throws not_found.
  static LedgerStore open_existing(const std::string& file);
  LedgerStore(LedgerStore&&) noexcept;
  LedgerStore& operator=(LedgerStore&&) noexcept;
  ~LedgerStore();

  // Appends all of them or none. Throws unavailable.
  void append(std::span<const Use> uses);
  UseReport sums(const UseQuery& query);
  // The newest last.
  std::vector<Use> latest(std::size_t count);

  struct Size {
    std::uint64_t rows = 0, days = 0;  // single uses; sums of a day, device, program and result
    std::uint64_t bytes = 0;           // in use, of the file
  };
  Size size();
  // Whether SQLite's integrity check passes.
  bool is_intact();

 private:
  struct Database;
  std::unique_ptr<Database> database_;
};

}  // namespace tenon
