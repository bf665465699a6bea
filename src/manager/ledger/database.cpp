// LedgerStore over SQLite. Without TENON_HAS_SQLITE every call throws unimplemented.
#include <fmt/format.h>

#include "manager/ledger/store.h"
#include "tenon/error.h"

#ifndef TENON_HAS_SQLITE

namespace tenon {

struct LedgerStore::Database {};

bool ledger_is_built() noexcept { return false; }

namespace {
[[noreturn]] void refuse() {
  throw Error(ErrorCode::unimplemented, "this build of Tenon has no ledger",
              "build Tenon with the SQLite library installed (libsqlite3-dev)");
}
}  // namespace

LedgerStore::LedgerStore(const std::string&, LedgerLimits, std::chrono::milliseconds) { refuse(); }
LedgerStore LedgerStore::open_existing(const std::string&) { refuse(); }
LedgerStore::LedgerStore(LedgerStore&&) noexcept = default;
LedgerStore& LedgerStore::operator=(LedgerStore&&) noexcept = default;
LedgerStore::~LedgerStore() = default;
void LedgerStore::append(std::span<const Use>) { refuse(); }
UseReport LedgerStore::sums(const UseQuery&) { refuse(); }
std::vector<Use> LedgerStore::latest(std::size_t) { refuse(); }
LedgerStore::Size LedgerStore::size() { refuse(); }
bool LedgerStore::is_intact() { refuse(); }

}  // namespace tenon

#else

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <map>
#include <thread>

#include "base/log.h"
#include "base/system/file_descriptor.h"
#include "base/system/state_directory.h"
#include "manager/ledger/sqlite.h"

namespace tenon {
namespace {

using namespace sqlite;
using std::chrono::milliseconds;

double to_unix(SystemTime time) { return std::chrono::duration<double>(time.time_since_epoch()).count(); }
SystemTime from_unix(double seconds) {
  return SystemTime(std::chrono::duration_cast<SystemTime::duration>(std::chrono::duration<double>(seconds)));
}

// Each brings the file from the version before to its own; versions are never edited once released.
constexpr const char* kMigrations[] = {
    R"(CREATE TABLE use (
         id INTEGER PRIMARY KEY, begin REAL NOT NULL, device TEXT NOT NULL, kind TEXT NOT NULL, program TEXT NOT NULL,
         result TEXT NOT NULL, epoch INTEGER NOT NULL, runs INTEGER NOT NULL, leases INTEGER NOT NULL, opens INTEGER NOT NULL, failures INTEGER NOT NULL,
         open_seconds REAL NOT NULL, held_seconds REAL NOT NULL, compute_seconds REAL NOT NULL, queued_seconds REAL NOT NULL,
         bytes INTEGER NOT NULL, price_per_hour REAL, price_is_estimate INTEGER NOT NULL);
       CREATE INDEX use_begin ON use (begin);)",
    R"(CREATE TABLE day (
         day TEXT NOT NULL, device TEXT NOT NULL, kind TEXT NOT NULL, program TEXT NOT NULL, result TEXT NOT NULL,
         begin REAL NOT NULL, runs INTEGER NOT NULL, leases INTEGER NOT NULL, opens INTEGER NOT NULL, failures INTEGER NOT NULL, open_seconds REAL NOT NULL,
         held_seconds REAL NOT NULL, compute_seconds REAL NOT NULL, queued_seconds REAL NOT NULL, bytes INTEGER NOT NULL,
         price_per_hour REAL, money REAL NOT NULL, money_is_estimate INTEGER NOT NULL, unpriced_open_seconds REAL NOT NULL,
         PRIMARY KEY (day, device, program, result)) WITHOUT ROWID;)",
};
static_assert(std::size(kMigrations) == LedgerStore::kVersion);

constexpr const char* kFold = R"(
INSERT INTO day
  SELECT date(begin, 'unixepoch', 'localtime') AS on_day, device, kind, program, result, min(begin), sum(runs), sum(leases),
         sum(opens), sum(failures), sum(open_seconds), sum(held_seconds), sum(compute_seconds), sum(queued_seconds), sum(bytes),
         max(price_per_hour), sum(open_seconds * coalesce(price_per_hour, 0) / 3600),
         max(price_is_estimate AND open_seconds * coalesce(price_per_hour, 0) > 0),
         sum(CASE WHEN price_per_hour IS NULL THEN open_seconds ELSE 0 END)
  FROM use WHERE id <= ?1 GROUP BY on_day, device, program, result
ON CONFLICT (day, device, program, result) DO UPDATE SET
  begin = min(begin, excluded.begin), runs = runs + excluded.runs, leases = leases + excluded.leases,
  opens = opens + excluded.opens, failures = failures + excluded.failures, open_seconds = open_seconds + excluded.open_seconds,
  held_seconds = held_seconds + excluded.held_seconds, compute_seconds = compute_seconds + excluded.compute_seconds,
  queued_seconds = queued_seconds + excluded.queued_seconds, bytes = bytes + excluded.bytes,
  price_per_hour = coalesce(excluded.price_per_hour, price_per_hour), money = money + excluded.money,
  money_is_estimate = max(money_is_estimate, excluded.money_is_estimate),
  unpriced_open_seconds = unpriced_open_seconds + excluded.unpriced_open_seconds)";

// Single uses and the sums of days as one table. ?1: since.
constexpr const char* kEverything = R"(
SELECT device, program, result, date(begin, 'unixepoch', 'localtime') AS day, begin, runs, leases, opens, failures, open_seconds,
       held_seconds, compute_seconds, queued_seconds, bytes, price_per_hour,
       open_seconds * coalesce(price_per_hour, 0) / 3600 AS money,
       price_is_estimate AND open_seconds * coalesce(price_per_hour, 0) > 0 AS money_is_estimate,
       CASE WHEN price_per_hour IS NULL THEN open_seconds ELSE 0 END AS unpriced_open_seconds
  FROM use WHERE begin >= ?1
UNION ALL
SELECT device, program, result, day, begin, runs, leases, opens, failures, open_seconds, held_seconds, compute_seconds, queued_seconds,
       bytes, price_per_hour, money, money_is_estimate, unpriced_open_seconds
  FROM day WHERE day >= date(?1, 'unixepoch', 'localtime'))";

struct Priced {
  double price_per_hour = 0;
  double first = 0;  // unix seconds
};

// Of every device with a price: the newest one, and when it was first used. A CPU without a price would have cost nothing either.
std::map<std::string, Priced> priced_devices(sqlite3* connection, double since) {
  std::map<std::string, Priced> devices;
  // SQLite gives the bare columns of the row that has the maximum.
  Statement prices(connection, fmt::format("SELECT device, price_per_hour, max(begin) FROM ({}) WHERE price_per_hour IS NOT NULL "
                                           "GROUP BY device",
                                           kEverything));
  prices.bind(1, since);
  while (prices.step()) devices[prices.text(0)].price_per_hour = prices.number(1);
  Statement firsts(connection, fmt::format("SELECT device, min(begin) FROM ({}) GROUP BY device", kEverything));
  firsts.bind(1, since);
  while (firsts.step())
    if (const auto found = devices.find(firsts.text(0)); found != devices.end())
      found->second.first = std::max(since, firsts.number(1));
  return devices;
}

double money_between(const Priced& device, double from, double until) {
  return std::max(0.0, until - std::max(from, device.first)) / 3600 * device.price_per_hour;
}

// Midnight of a day "2026-11-15" here, |later| days later.
double begin_of_day(const std::string& day, int later) {
  std::tm parts{};
  if (strptime(day.c_str(), "%Y-%m-%d", &parts) == nullptr) return 0;
  parts.tm_mday += later;
  parts.tm_isdst = -1;
  return static_cast<double>(std::mktime(&parts));
}

std::optional<double> always_open(const UseSum& sum, UseKey by, const std::map<std::string, Priced>& devices, double now) {
  if (by == UseKey::program) return std::nullopt;
  if (by == UseKey::device) {
    const auto found = devices.find(sum.key);
    if (found == devices.end()) return std::nullopt;
    return money_between(found->second, 0, now);
  }
  if (devices.empty()) return std::nullopt;
  double money = 0;
  const double from = begin_of_day(sum.key, 0), until = std::min(now, begin_of_day(sum.key, 1));
  for (const auto& [id, device] : devices) money += money_between(device, from, until);
  return money;
}

void add(UseSum& total, const UseSum& part) {
  total.runs += part.runs;
  total.leases += part.leases;
  total.opens += part.opens;
  total.failures += part.failures;
  total.bytes += part.bytes;
  total.open_seconds += part.open_seconds;
  total.held_seconds += part.held_seconds;
  total.compute_seconds += part.compute_seconds;
  total.queued_seconds += part.queued_seconds;
  total.money += part.money;
  total.money_is_estimate |= part.money_is_estimate;
  total.unpriced_open_seconds += part.unpriced_open_seconds;
}

// SQLite would make the file with the umask's permissions; its side files follow those of the file.
void make_private_file(const std::string& file) {
  make_private_directory(std::filesystem::path(file).parent_path().string());
  const FileDescriptor made(open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!made)
    throw Error(errno == EACCES || errno == EROFS ? ErrorCode::permission_denied : ErrorCode::unavailable,
                fmt::format("the ledger {} cannot be opened: {}", file, std::strerror(errno)),
                "set TENON_STATE_DIR to a folder that this user can write to");
}

std::uint64_t identity_of(const std::string& file) {
  struct stat status{};
  return stat(file.c_str(), &status) == 0 ? status.st_ino : 0;
}

void put_aside(const std::string& file, const char* problem) {
  const std::string aside = fmt::format("{}.damaged-{}", file, std::time(nullptr));
  logging::warn("{}; it is kept as {}", problem, aside);
  std::error_code ignored;
  std::filesystem::rename(file, aside, ignored);
  for (const char* side : {"-wal", "-shm"}) std::filesystem::remove(file + side, ignored);
}

}  // namespace

struct LedgerStore::Database {
  std::string file;
  LedgerLimits limits;
  sqlite3* connection = nullptr;

  Database(std::string path, LedgerLimits wanted, milliseconds patience) : file(std::move(path)), limits(wanted) {
    try {
      connect(patience);
    } catch (...) {
      sqlite3_close(connection);
      throw;
    }
  }
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;
  ~Database() { sqlite3_close(connection); }

  void connect(milliseconds patience) {
    if (sqlite3_open_v2(file.c_str(), &connection, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, nullptr) != SQLITE_OK)
      fail(connection, fmt::format("the ledger {} cannot be opened", file));
    sqlite3_extended_result_codes(connection, 1);
    sqlite3_busy_timeout(connection, static_cast<int>(patience.count()));
    // The last one to leave would wait for the disk; the log is merged into the file now and then anyway.
    sqlite3_db_config(connection, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, nullptr);
    use_write_ahead_log(patience);
    // A loss of power may take the latest rows, never the file.
    execute(connection, "PRAGMA synchronous = NORMAL; PRAGMA journal_size_limit = 1048576;");
    migrate();
  }

  // Several processes that find a new file at once get in each other's way here, and SQLite does not wait for this one.
  void use_write_ahead_log(milliseconds patience) {
    const auto deadline = std::chrono::steady_clock::now() + patience;
    for (;;) {
      const int result = sqlite3_exec(connection, "PRAGMA journal_mode = WAL", nullptr, nullptr, nullptr) & 0xff;
      if (result == SQLITE_OK) return;
      if ((result != SQLITE_BUSY && result != SQLITE_LOCKED) || std::chrono::steady_clock::now() > deadline)
        fail(connection, fmt::format("the ledger {} cannot be opened", file));
      std::this_thread::sleep_for(milliseconds(2));
    }
  }

  void migrate() {
    if (version() == kVersion) return;
    Transaction transaction(connection);
    // Another process may have done it meanwhile.
    for (int next = version(); next < kVersion; ++next) execute(connection, kMigrations[next]);
    if (version() < kVersion) execute(connection, fmt::format("PRAGMA user_version = {}", kVersion).c_str());
    transaction.commit();
  }

  int version() {
    const int found = static_cast<int>(ask(connection, "PRAGMA user_version"));
    if (found > kVersion || found < 0)
      throw Error(ErrorCode::failed_precondition,
                  fmt::format("the ledger {} has version {}, but this program supports up to {}", file, found, kVersion),
                  "use the newer tenon that wrote it");
    return found;
  }

  std::uint64_t row_count() {
    // Rows are only ever taken away at the old end, so that the ids tell.
    return ask(connection, "SELECT coalesce((SELECT max(id) FROM use) - (SELECT min(id) FROM use) + 1, 0)");
  }
  std::uint64_t used_bytes() {
    const std::uint64_t pages = ask(connection, "PRAGMA page_count"), unused = ask(connection, "PRAGMA freelist_count");
    return (pages - std::min(unused, pages)) * ask(connection, "PRAGMA page_size");
  }

  // Within a transaction. A tenth more than needed goes, so that this is not done at every write.
  void keep_within_limits() {
    const std::uint64_t rows = row_count(), bytes = used_bytes();
    const bool too_large = bytes > limits.bytes;
    if (rows <= limits.rows && !too_large) return;
    std::uint64_t kept = std::min(rows, limits.rows - limits.rows / 10);
    if (too_large) kept = std::min(kept, rows / 2);
    const std::uint64_t last = ask(connection, "SELECT coalesce(min(id), 1) FROM use") + rows - kept - 1;
    if (rows > kept) {
      Statement(connection, kFold).bind(1, last).run();
      Statement(connection, "DELETE FROM use WHERE id <= ?1").bind(1, last).run();
    }
    // What remains are days; the oldest of those are given up.
    std::uint64_t days = ask(connection, "SELECT count(*) FROM day");
    const std::uint64_t kept_days = too_large && used_bytes() > limits.bytes ? days / 2 : std::min(days, limits.rows);
    if (days > kept_days)
      Statement(connection,
                "DELETE FROM day WHERE (day, device, program, result) IN "
                "(SELECT day, device, program, result FROM day ORDER BY day LIMIT ?1)")
          .bind(1, days - kept_days)
          .run();
  }
};

bool ledger_is_built() noexcept { return true; }

LedgerStore::LedgerStore(const std::string& file, LedgerLimits limits, milliseconds patience) {
  if (file.empty())
    throw Error(ErrorCode::unavailable, "no folder for the ledger",
                "set TENON_STATE_DIR to a folder that this user can write to");
  make_private_file(file);
  const std::uint64_t tried = identity_of(file);
  try {
    database_ = std::make_unique<Database>(file, limits, patience);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::data_loss) throw;
    // Another process that met the same damage may have begun a new file already.
    if (identity_of(file) == tried) put_aside(file, error.what());
    make_private_file(file);
    database_ = std::make_unique<Database>(file, limits, patience);
  }
}

LedgerStore LedgerStore::open_existing(const std::string& file) {
  if (std::error_code ignored; file.empty() || !std::filesystem::exists(file, ignored))
    throw Error(ErrorCode::not_found, file.empty() ? "there is no ledger" : fmt::format("the ledger {} does not exist", file),
                "it is created when a device is first used");
  return LedgerStore(file, LedgerLimits::of_environment());
}

LedgerStore::LedgerStore(LedgerStore&&) noexcept = default;
LedgerStore& LedgerStore::operator=(LedgerStore&&) noexcept = default;
LedgerStore::~LedgerStore() = default;

void LedgerStore::append(std::span<const Use> uses) {
  if (uses.empty()) return;
  sqlite3* const connection = database_->connection;
  Transaction transaction(connection);
  Statement insert(connection,
                   "INSERT INTO use VALUES (NULL, ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17)");
  for (const Use& use : uses)
    insert.bind(1, to_unix(use.begin))
        .bind(2, use.device)
        .bind(3, use.kind)
        .bind(4, use.program)
        .bind(5, use.result)
        .bind(6, use.epoch)
        .bind(7, use.runs)
        .bind(8, use.leases)
        .bind(9, use.opens)
        .bind(10, use.failures)
        .bind(11, use.open_seconds)
        .bind(12, use.held_seconds)
        .bind(13, use.compute_seconds)
        .bind(14, use.queued_seconds)
        .bind(15, use.bytes)
        .bind(16, use.price_per_hour)
        .bind(17, std::uint64_t{use.price_is_estimate})
        .run();
  database_->keep_within_limits();
  transaction.commit();
}

UseReport LedgerStore::sums(const UseQuery& query) {
  sqlite3* const connection = database_->connection;
  const double since = std::max(0.0, to_unix(query.since)), now = to_unix(query.now);
  const std::map<std::string, Priced> devices = priced_devices(connection, since);
  Statement statement(
      connection,
      fmt::format("SELECT {0}, sum(runs), sum(leases), sum(opens), sum(failures), sum(bytes), sum(open_seconds), "
                  "sum(held_seconds), sum(compute_seconds), sum(queued_seconds), sum(money), max(money_is_estimate), "
                  "sum(unpriced_open_seconds), min(begin) FROM ({1}) GROUP BY {0} ORDER BY {2}",
                  name(query.by), kEverything, query.by == UseKey::day ? "day" : "sum(money) DESC, sum(open_seconds) DESC, 1"));
  statement.bind(1, since);
  UseReport report;
  report.total.key = "total";
  while (statement.step()) {
    UseSum sum{.key = statement.text(0),
               .runs = statement.count(1),
               .leases = statement.count(2),
               .opens = statement.count(3),
               .failures = statement.count(4),
               .bytes = statement.count(5),
               .open_seconds = statement.number(6),
               .held_seconds = statement.number(7),
               .compute_seconds = statement.number(8),
               .queued_seconds = statement.number(9),
               .money = statement.number(10),
               .money_is_estimate = statement.count(11) != 0,
               .unpriced_open_seconds = statement.number(12)};
    sum.always_open_money = always_open(sum, query.by, devices, now);
    const SystemTime first = from_unix(statement.number(13));
    report.first = report.first ? std::min(*report.first, first) : first;
    add(report.total, sum);
    report.groups.push_back(std::move(sum));
  }
  if (!devices.empty()) {
    report.total.always_open_money = 0;
    for (const auto& [id, device] : devices) *report.total.always_open_money += money_between(device, 0, now);
  }
  return report;
}

std::vector<Use> LedgerStore::latest(std::size_t count) {
  Statement statement(
      database_->connection,
      "SELECT begin, device, kind, program, result, epoch, runs, leases, opens, failures, open_seconds, held_seconds, "
      "compute_seconds, queued_seconds, bytes, price_per_hour, price_is_estimate FROM use ORDER BY id DESC LIMIT ?1");
  statement.bind(1, std::uint64_t{count});
  std::vector<Use> uses;
  while (statement.step()) {
    Use use{.begin = from_unix(statement.number(0)),
            .device = statement.text(1),
            .kind = statement.text(2),
            .program = statement.text(3),
            .result = statement.text(4),
            .epoch = statement.count(5),
            .runs = statement.count(6),
            .leases = statement.count(7),
            .opens = statement.count(8),
            .failures = statement.count(9),
            .open_seconds = statement.number(10),
            .held_seconds = statement.number(11),
            .compute_seconds = statement.number(12),
            .queued_seconds = statement.number(13),
            .bytes = statement.count(14),
            .price_per_hour = std::nullopt,
            .price_is_estimate = statement.count(16) != 0};
    if (!statement.is_null(15)) use.price_per_hour = statement.number(15);
    uses.push_back(std::move(use));
  }
  std::reverse(uses.begin(), uses.end());
  return uses;
}

LedgerStore::Size LedgerStore::size() {
  return {.rows = database_->row_count(),
          .days = ask(database_->connection, "SELECT count(*) FROM day"),
          .bytes = database_->used_bytes()};
}

bool LedgerStore::is_intact() {
  Statement statement(database_->connection, "PRAGMA integrity_check");
  return statement.step() && statement.text(0) == "ok";
}

}  // namespace tenon

#endif
