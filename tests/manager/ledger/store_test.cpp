#include "manager/ledger/store.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <fstream>

#if __has_include(<sqlite3.h>)
#include <sqlite3.h>
#endif

#include "base/log.h"
#include "manager/ledger/testing.h"
#include "tenon/error.h"

namespace tenon {
namespace {

using testing::at;
using testing::kDay;
using testing::kHour;
using testing::LedgerFolder;
using testing::use_of;

// Behind the store's back.
void execute([[maybe_unused]] const std::string& file, [[maybe_unused]] const char* sql) {
#if __has_include(<sqlite3.h>)
  sqlite3* connection = nullptr;
  ASSERT_EQ(sqlite3_open(file.c_str(), &connection), SQLITE_OK);
  EXPECT_EQ(sqlite3_exec(connection, sql, nullptr, nullptr, nullptr), SQLITE_OK);
  sqlite3_close(connection);
#endif
}

class LedgerStoreTest : public ::testing::Test {
 protected:
  void SetUp() override {
    TENON_NEEDS_LEDGER();
    setenv("TZ", "UTC", 1);
    tzset();
  }
  // A row every hour, so that each day has 24.
  static std::vector<Use> hourly(int count, double from = 0) {
    std::vector<Use> uses;
    for (int i = 0; i < count; ++i) uses.push_back(use_of("cuda:0", "train", from + i * kHour, 10, 5));
    return uses;
  }

  LedgerFolder folder;
};

TEST_F(LedgerStoreTest, KeepsWhatWasWrittenForThisUserAlone) {
  const Use use = use_of("cuda:0", "train", 0, 10, 5, std::nullopt);
  {
    LedgerStore store(folder.file());
    store.append({&use, 1});
  }
  EXPECT_EQ(LedgerStore::open_existing(folder.file()).latest(10), std::vector<Use>{use});
  struct stat status{};
  for (const char* side : {"", "-wal", "-shm"})
    if (stat((folder.file() + side).c_str(), &status) == 0) EXPECT_EQ(status.st_mode & 0777, 0600U) << side;
  ASSERT_EQ(stat((folder.path() / "state").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0700U);
}

TEST_F(LedgerStoreTest, AMissingFileIsNotMadeByLooking) {
  try {
    LedgerStore::open_existing(folder.file());
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::not_found);
  }
  EXPECT_FALSE(std::filesystem::exists(folder.file()));
}

TEST_F(LedgerStoreTest, SumsByDeviceWithMoneyAndWhatAnAlwaysOpenDeviceWouldHaveCost) {
  LedgerStore store(folder.file());
  store.append(std::vector<Use>{use_of("cuda:0", "train", 0, 1800, 900, 2.0), use_of("cuda:0", "serve", kHour, 900, 90, 2.0),
                                use_of("tpu:0", "train", kHour, 360, 36, std::nullopt)});
  const UseReport report = store.sums({.now = at(10 * kHour)});
  ASSERT_EQ(report.groups.size(), 2U);
  const UseSum& gpu = report.groups[0];
  EXPECT_EQ(gpu.key, "cuda:0");
  EXPECT_EQ(gpu.runs, 2U);
  EXPECT_DOUBLE_EQ(gpu.open_seconds, 2700);
  EXPECT_DOUBLE_EQ(gpu.money, 1.5);
  EXPECT_DOUBLE_EQ(gpu.compute_seconds, 990);
  EXPECT_DOUBLE_EQ(gpu.efficiency().value(), 990.0 / 2700);
  EXPECT_DOUBLE_EQ(gpu.always_open_money.value(), 20);
  EXPECT_FALSE(gpu.money_is_estimate);
  const UseSum& tpu = report.groups[1];
  EXPECT_EQ(tpu.money, 0);
  EXPECT_DOUBLE_EQ(tpu.unpriced_open_seconds, 360);
  EXPECT_EQ(tpu.always_open_money, std::nullopt);
  EXPECT_DOUBLE_EQ(report.total.open_seconds, 3060);
  EXPECT_DOUBLE_EQ(report.total.always_open_money.value(), 20);
  EXPECT_EQ(report.first, at(0));
}

TEST_F(LedgerStoreTest, APriceOfThatTimeStaysWithItsUse) {
  LedgerStore store(folder.file());
  store.append(std::vector<Use>{use_of("cuda:0", "train", 0, 3600, 1, 2.0), use_of("cuda:0", "train", kDay, 3600, 1, 3.0)});
  const UseReport report = store.sums({.now = at(2 * kDay)});
  EXPECT_DOUBLE_EQ(report.total.money, 5);
  EXPECT_DOUBLE_EQ(report.total.always_open_money.value(), 48 * 3);  // at the newest price
}

TEST_F(LedgerStoreTest, SumsByProgramAndByDay) {
  LedgerStore store(folder.file());
  store.append(std::vector<Use>{use_of("cuda:0", "train", 0, 3600, 1), use_of("cuda:0", "serve", kDay, 1800, 1),
                                use_of("cuda:1", "train", kDay, 1800, 1)});
  const UseReport programs = store.sums({.now = at(2 * kDay), .by = UseKey::program});
  ASSERT_EQ(programs.groups.size(), 2U);
  EXPECT_EQ(programs.groups[0].key, "train");
  EXPECT_DOUBLE_EQ(programs.groups[0].money, 3);
  EXPECT_EQ(programs.groups[0].always_open_money, std::nullopt);
  const UseReport days = store.sums({.now = at(2 * kDay), .by = UseKey::day});
  ASSERT_EQ(days.groups.size(), 2U);
  EXPECT_EQ(days.groups[0].key, "2026-11-01");
  EXPECT_EQ(days.groups[1].key, "2026-11-02");
  EXPECT_DOUBLE_EQ(days.groups[1].money, 2);
  // Noon to midnight of one device; a day of that one and noon to midnight of the other.
  EXPECT_DOUBLE_EQ(days.groups[0].always_open_money.value(), 12 * 2);
  EXPECT_DOUBLE_EQ(days.groups[1].always_open_money.value(), (24 + 12) * 2);
}

TEST_F(LedgerStoreTest, SinceLeavesOutWhatWasBefore) {
  LedgerStore store(folder.file());
  store.append(hourly(48));
  const UseReport report = store.sums({.since = at(24 * kHour), .now = at(48 * kHour)});
  EXPECT_EQ(report.total.runs, 24U);
  EXPECT_DOUBLE_EQ(report.total.always_open_money.value(), 48);
}

TEST_F(LedgerStoreTest, RowsBeyondTheLimitAreFoldedIntoDaysAndTheSumsStay) {
  LedgerStore store(folder.file(), {.rows = 100});
  for (int i = 0; i < 40; ++i) store.append(hourly(12, i * 12 * kHour));
  EXPECT_LE(store.size().rows, 100U);
  EXPECT_GE(store.size().rows, 90U);
  EXPECT_GE(store.size().days, 15U);
  const UseReport report = store.sums({.now = at(30 * kDay)});
  EXPECT_EQ(report.total.runs, 480U);
  EXPECT_DOUBLE_EQ(report.total.open_seconds, 4800);
  EXPECT_NEAR(report.total.money, 4800 * 2.0 / 3600, 1e-9);
  EXPECT_EQ(report.first, at(0));
  EXPECT_DOUBLE_EQ(report.total.always_open_money.value(), 30 * 24 * 2);
  const UseReport days = store.sums({.now = at(30 * kDay), .by = UseKey::day});
  EXPECT_EQ(days.groups.size(), 21U);
  EXPECT_EQ(days.groups[1].runs, 24U);
}

TEST_F(LedgerStoreTest, TheFileStaysWithinItsSize) {
  constexpr std::uint64_t kLimit = 1 << 20;
  LedgerStore store(folder.file(), {.rows = 1'000'000, .bytes = kLimit});
  for (int i = 0; i < 60; ++i) {
    std::vector<Use> uses;
    for (int j = 0; j < 200; ++j)
      uses.push_back(use_of("cuda:0", "program " + std::to_string(200 * i + j) + std::string(100, 'x'), i * kHour, 1, 1));
    store.append(uses);
    // One write more than the limit may be there when it is noticed.
    ASSERT_LE(store.size().bytes, kLimit + (200 << 10)) << i;
  }
  EXPECT_TRUE(store.is_intact());
  EXPECT_LE(std::filesystem::file_size(folder.file()), 2 * kLimit);
  EXPECT_GT(store.sums({}).total.runs, 1000U);
}

TEST_F(LedgerStoreTest, AnOlderFileIsBroughtUpToDateWithItsRows) {
  {
    LedgerStore store(folder.file());
    store.append(hourly(3));
  }
  // Version 1 had no sums of days.
  execute(folder.file(), "DROP TABLE day; PRAGMA user_version = 1;");
  LedgerStore store(folder.file(), {.rows = 16});
  EXPECT_EQ(store.sums({.now = at(kDay)}).total.runs, 3U);
  store.append(hourly(20, kDay));
  EXPECT_EQ(store.sums({.now = at(3 * kDay)}).total.runs, 23U);
  EXPECT_GT(store.size().days, 0U);
}

TEST_F(LedgerStoreTest, ANewerFileIsLeftAlone) {
  {
    LedgerStore store(folder.file());
  }
  execute(folder.file(), "PRAGMA user_version = 99;");
  try {
    LedgerStore store(folder.file());
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::failed_precondition);
    EXPECT_NE(std::string(error.what()).find("version 99"), std::string::npos);
  }
}

TEST_F(LedgerStoreTest, ADamagedFileIsPutAsideAndANewOneMade) {
  std::filesystem::create_directories(folder.path() / "state");
  std::ofstream(folder.file()) << "this is no database, and it is longer than a header of a hundred bytes would have to be to be "
                                  "taken for one by a reader";
  const logging::Capture lines;
  LedgerStore store(folder.file());
  store.append(hourly(1));
  EXPECT_EQ(store.sums({}).total.runs, 1U);
  EXPECT_TRUE(lines.has("it is kept as"));
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder.path() / "state"))
    files += entry.path().string().find(".damaged-") != std::string::npos ? 1 : 0;
  EXPECT_EQ(files, 1);
}

TEST_F(LedgerStoreTest, AFolderThatCannotBeMadeIsAnErrorThatNamesIt) {
  std::ofstream(folder.path() / "state") << "a file";
  try {
    LedgerStore store(folder.file());
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("/state"), std::string::npos) << error.what();
    EXPECT_NE(error.hint().find("TENON_STATE_DIR"), std::string::npos);
  }
}

// Appends |writes| times three rows, telling |progress| after each; for ever when |writes| is negative.
[[noreturn]] void write_as_child(const std::string& file, const std::string& program, int writes, int progress) {
  try {
    LedgerStore store(file, {.rows = 5000}, std::chrono::seconds(30));
    for (int i = 0; writes < 0 || i < writes; ++i) {
      const Use use = use_of("cuda:0", program, i, 1, 0.5);
      store.append(std::vector<Use>{use, use, use});
      if (write(progress, "x", 1) != 1) _exit(2);
    }
  } catch (const std::exception&) {
    _exit(1);
  }
  _exit(0);
}

TEST_F(LedgerStoreTest, EightProcessesWriteAtOnceAndOneIsKilledInTheMiddle) {
  constexpr int kWriters = 7, kWrites = 60;
  std::array<int, 2> other{}, doomed{};
  ASSERT_EQ(pipe(other.data()), 0);
  ASSERT_EQ(pipe(doomed.data()), 0);
  std::vector<pid_t> writers;
  for (int i = 0; i < kWriters; ++i) {
    writers.push_back(fork());
    if (writers.back() == 0) write_as_child(folder.file(), "writer " + std::to_string(i), kWrites, other[1]);
  }
  const pid_t victim = fork();
  if (victim == 0) write_as_child(folder.file(), "victim", -1, doomed[1]);
  close(doomed[1]);
  char byte = 0;
  int acknowledged = 0;
  for (; acknowledged < 20; ++acknowledged) ASSERT_EQ(read(doomed[0], &byte, 1), 1);
  kill(victim, SIGKILL);
  while (read(doomed[0], &byte, 1) == 1) ++acknowledged;
  waitpid(victim, nullptr, 0);
  for (const pid_t writer : writers) {
    int status = 0;
    waitpid(writer, &status, 0);
    EXPECT_EQ(status, 0);
  }
  for (const int end : {other[0], other[1], doomed[0]}) close(end);

  LedgerStore store = LedgerStore::open_existing(folder.file());
  EXPECT_TRUE(store.is_intact());
  const UseReport report = store.sums({.now = at(kDay), .by = UseKey::program});
  EXPECT_EQ(report.groups.size(), 8U);
  for (const UseSum& sum : report.groups) {
    if (sum.key != "victim") {
      EXPECT_EQ(sum.runs, 3U * kWrites) << sum.key;
      continue;
    }
    EXPECT_EQ(sum.runs % 3, 0U);  // all rows of a write or none
    EXPECT_GE(sum.runs, 3U * static_cast<unsigned>(acknowledged));
    EXPECT_LE(sum.runs, 3U * static_cast<unsigned>(acknowledged) + 3);
  }
}

TEST(LedgerLimits, ComeFromTheEnvironment) {
  setenv("TENON_LEDGER_ROWS", "500", 1);
  setenv("TENON_LEDGER_MIB", "8", 1);
  EXPECT_EQ(LedgerLimits::of_environment().rows, 500U);
  EXPECT_EQ(LedgerLimits::of_environment().bytes, std::uint64_t{8} << 20);
  setenv("TENON_LEDGER_ROWS", "many", 1);
  setenv("TENON_LEDGER_MIB", "0", 1);
  EXPECT_EQ(LedgerLimits::of_environment().rows, LedgerLimits().rows);
  EXPECT_EQ(LedgerLimits::of_environment().bytes, LedgerLimits().bytes);
  unsetenv("TENON_LEDGER_ROWS");
  unsetenv("TENON_LEDGER_MIB");
}

}  // namespace
}  // namespace tenon
