// Profiles: what was measured is predicted, what was not is guessed from it, and all of it survives.
#include "manager/routing/profile.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>
#include <thread>

#include "eventually.h"
#include "manager/routing/profile_store.h"
#include "temporary_folder.h"
#include "tenon/expression.h"

namespace tenon {
namespace {

DeviceInfo device(std::string id, DeviceKind kind, std::string model = "model") {
  DeviceInfo info;
  info.id = std::move(id);
  info.kind = kind;
  info.name = std::move(model);
  return info;
}

Candidate closed(DeviceInfo info) {
  Candidate candidate;
  candidate.device = std::move(info);
  return candidate;
}

Candidate ready(DeviceInfo info) {
  Candidate candidate = closed(std::move(info));
  candidate.is_open = candidate.is_compiled = true;
  return candidate;
}

Work work(std::uint64_t program, double bytes = 1e6, double flops = 1e6) {
  return {{program, 0}, bytes, flops, static_cast<std::uint64_t>(bytes / 2), static_cast<std::uint64_t>(bytes / 2)};
}

Timeline took(double compute, double upload = 0, double download = 0, double compile = 0) {
  return {{"compiling", compile}, {"uploading", upload}, {"computing", compute}, {"downloading", download}};
}

using Folder = test::TemporaryFolder;

std::string text_of(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

const DeviceInfo kCpu = device("cpu:0", DeviceKind::cpu);
const DeviceInfo kGpu = device("cuda:0", DeviceKind::gpu);

TEST(TimeModel, LearnsALatencyAndTwoRates) {
  TimeModel model({.fixed = 1e-5, .per_x = 1e-10, .per_y = 1e-11});
  const TimeRates truth{3e-5, 2e-9, 5e-12};
  std::mt19937 random(1);
  std::uniform_real_distribution<double> exponent(2, 9), noise(0.95, 1.05);
  for (int i = 0; i < 60; ++i) {
    const double x = std::pow(10, exponent(random)), y = std::pow(10, exponent(random) + 2);
    model.add(x, y, (truth.fixed + truth.per_x * x + truth.per_y * y) * noise(random));
  }
  for (const auto& [x, y] : {std::pair(1e2, 1e4), {1e9, 1e4}, {1e4, 1e11}, {1e6, 1e8}}) {
    const double expected = truth.fixed + truth.per_x * x + truth.per_y * y;
    EXPECT_NEAR(model.predict(x, y), expected, 0.15 * expected) << x << " " << y;
  }
}

TEST(TimeModel, OneObservationMovesTheGuessWhereItSpeaks) {
  TimeModel model({.fixed = 1e-5, .per_x = 1e-10, .per_y = 1e-11});
  EXPECT_DOUBLE_EQ(model.predict(0, 0), 1e-5);
  model.add(1e9, 0, 1.0);  // ten times slower than guessed
  EXPECT_NEAR(model.predict(1e9, 0), 1.0, 0.1);
  EXPECT_NEAR(model.predict(0, 0), 1e-5, 1e-6);
  EXPECT_NEAR(model.predict(0, 1e9), 0.01, 1e-3);
}

TEST(TimeModel, NeverPredictsANegativeTime) {
  TimeModel model({.fixed = 1e-5, .per_x = 1e-10, .per_y = 1e-11});
  model.add(1e6, 1e3, 1e-3);
  model.add(1e3, 1e9, 1e-9);
  model.add(1e9, 1e9, 1e-6);
  for (const double x : {0.0, 1e3, 1e9})
    for (const double y : {0.0, 1e3, 1e12}) EXPECT_GE(model.predict(x, y), 0) << x << " " << y;
}

TEST(TimeModel, WhatIsNoNumberChangesNothing) {
  TimeModel model({.fixed = 1e-5, .per_x = 1e-10}), same = model;
  model.add(std::nan(""), 0, 1);
  model.add(1, 0, -1);
  model.add(1, INFINITY, 1);
  EXPECT_EQ(model, same);
  model.restore(std::vector<double>{1, 2, 3});
  model.restore(std::vector<double>(TimeModel::kNumbers, -1));
  model.restore(std::vector<double>(TimeModel::kNumbers, 40));
  EXPECT_EQ(model, same);
}

TEST(TimeModel, ForgetsWhatIsNoLongerSo) {
  TimeModel model({.fixed = 1e-5});
  for (int i = 0; i < 100; ++i) model.add(0, 0, 1e-3);
  for (int i = 0; i < 300; ++i) model.add(0, 0, 1e-2);
  EXPECT_NEAR(model.predict(0, 0), 1e-2, 2e-3);
}

TEST(Profile, AMeasuredProgramIsPredictedByItsBestLateRun) {
  Profile profile;
  for (const double seconds : {0.5, 0.2, 0.3, 0.4}) profile.add_run(kCpu, work(7), RunTimes::of(took(seconds), true), 100);
  const Stages stages = profile.predict(ready(kCpu), work(7));
  EXPECT_TRUE(stages.is_measured);
  EXPECT_EQ(stages.compute_seconds, 0.2);
  for (int i = 0; i < 4; ++i) profile.add_run(kCpu, work(7), RunTimes::of(took(0.9), true), 100);
  EXPECT_EQ(profile.predict(ready(kCpu), work(7)).compute_seconds, 0.9);
}

TEST(Profile, AFirstRunThatWasSlowGetsASecondChance) {
  Profile profile;
  for (std::uint64_t i = 1; i <= 20; ++i)
    for (int run = 0; run < 2; ++run) profile.add_run(kCpu, work(i, 1e6, 1e6), RunTimes::of(took(1e-4), true), 1);
  profile.add_run(kCpu, work(99, 1e6, 1e6), RunTimes::of(took(0.5), true), 1);
  EXPECT_LT(profile.predict(ready(kCpu), work(99, 1e6, 1e6)).compute_seconds, 1e-3);
  profile.add_run(kCpu, work(99, 1e6, 1e6), RunTimes::of(took(0.5), true), 1);
  EXPECT_EQ(profile.predict(ready(kCpu), work(99, 1e6, 1e6)).compute_seconds, 0.5);
}

TEST(Profile, AnUnseenProgramIsGuessedFromTheOthersOfTheDevice) {
  Profile profile;
  for (std::uint64_t i = 1; i <= 20; ++i) {
    const double bytes = 1e4 * std::pow(2.0, static_cast<double>(i));
    profile.add_run(kGpu, work(i, bytes, bytes / 4), RunTimes::of(took(5e-5 + bytes * 1e-11), true), 1);
  }
  const Stages stages = profile.predict(ready(kGpu), work(999, 1e9, 2.5e8));
  EXPECT_FALSE(stages.is_measured);
  EXPECT_NEAR(stages.compute_seconds, 0.01, 0.003);
}

TEST(Profile, OpeningCountsWhenClosedAndCompilingWhenNew) {
  Profile profile;
  profile.add_open(kGpu, 0.2, 1);
  profile.add_run(kGpu, work(7), RunTimes::of(took(1e-3, 0, 0, 0.05), false), 1);
  const Stages cold = profile.predict(closed(kGpu), work(7)), warm = profile.predict(ready(kGpu), work(7));
  EXPECT_EQ(cold.open_seconds, 0.2);
  EXPECT_EQ(cold.compile_seconds, 0.05);
  EXPECT_EQ(warm.open_seconds, 0);
  EXPECT_EQ(warm.compile_seconds, 0);
  EXPECT_EQ(profile.predict(closed(kGpu), work(8)).compile_seconds, 0.05);
}

TEST(Profile, AFoundProgramSaysNothingAboutCompiling) {
  Profile profile;
  profile.add_run(kGpu, work(7), RunTimes::of(took(1e-3, 0, 0, 0.05), false), 1);
  profile.add_run(kGpu, work(7), RunTimes::of(took(1e-3, 0, 0, 1e-6), true), 1);
  EXPECT_EQ(profile.predict(closed(kGpu), work(7)).compile_seconds, 0.05);
}

TEST(Profile, BeforeAnyMeasurementTheBackendsLatencyCountsAndThenTheMeasuredOne) {
  Profile profile;
  Candidate candidate = closed(kGpu);
  candidate.latency = Latency{0.18, 0.02};
  EXPECT_EQ(profile.predict(candidate, work(1)).open_seconds, 0.18);
  EXPECT_EQ(profile.latency(kGpu, *candidate.latency).close_seconds, 0.02);
  profile.add_open(kGpu, 0.4, 1);
  profile.add_close(kGpu, 0.1, 1);
  EXPECT_EQ(profile.predict(candidate, work(1)).open_seconds, 0.4);
  EXPECT_EQ(profile.latency(kGpu, *candidate.latency).open_seconds, 0.4);
  EXPECT_EQ(profile.latency(kGpu, *candidate.latency).close_seconds, 0.1);
}

TEST(Profile, AQueueIsAsLongAsItsLeasesWere) {
  Profile profile;
  profile.add_hold(kGpu, 3, 1);
  Candidate waiting = ready(kGpu);
  waiting.ahead = 2;
  EXPECT_EQ(profile.predict(waiting, work(1)).queue_seconds, 6);
  waiting.queue_seconds = 0.5;
  EXPECT_EQ(profile.predict(waiting, work(1)).queue_seconds, 0.5);
}

TEST(Profile, TransfersAreLearntAndOnlyWhatMovesCounts) {
  Profile profile;
  for (int i = 0; i < 10; ++i) {
    const double bytes = 1e5 * std::pow(4.0, i % 5);
    profile.add_run(kGpu, work(static_cast<std::uint64_t>(i), 2 * bytes),
                    RunTimes::of(took(1e-3, 1e-4 + bytes * 1e-9, 1e-4 + bytes * 1e-9), true), 1);
  }
  EXPECT_NEAR(profile.predict(ready(kGpu), work(1, 2e8)).transfer_seconds, 0.2, 0.03);
  Candidate resident = ready(kGpu);
  resident.upload_bytes = 0;
  EXPECT_NEAR(profile.predict(resident, work(1, 2e8)).transfer_seconds, 0.1, 0.02);
}

TEST(Profile, AnAcceleratorThatCouldBeFasterIsGuessedToBe) {
  const Profile profile;
  const Work large = work(1, 1e9, 1e12);
  EXPECT_LT(profile.predict(closed(kGpu), large).total(), profile.predict(closed(kCpu), large).total());
  const Work tiny = work(1, 64, 16);
  EXPECT_GT(profile.predict(closed(kGpu), tiny).total(), profile.predict(closed(kCpu), tiny).total());
}

TEST(Profile, AnotherCardUnderTheSameIdIsAnotherDevice) {
  Profile profile;
  profile.add_open(device("cuda:0", DeviceKind::gpu, "A"), 0.5, 1);
  EXPECT_EQ(profile.predict(closed(device("cuda:0", DeviceKind::gpu, "A")), work(1)).open_seconds, 0.5);
  EXPECT_NE(profile.predict(closed(device("cuda:0", DeviceKind::gpu, "B")), work(1)).open_seconds, 0.5);
}

TEST(Profile, EqualProgramsHaveEqualHashesAndOthersNot) {
  const auto program = [](const char* text, std::int64_t size) {
    return work_of(parse_expression(text, {{"x", DType::f32, {size}}})).program;
  };
  EXPECT_EQ(program("x + 1", 8), program("x + 1", 8));
  EXPECT_NE(program("x + 1", 8), program("x + 1", 9));
  EXPECT_NE(program("x + 1", 8), program("x + 2", 8));
}

TEST(Profile, WorkCountsBytesThatMove) {
  const Work counted = work_of(parse_expression("sum(x * y)", {{"x", DType::f32, {100}}, {"y", DType::f32, {100}}}));
  EXPECT_EQ(counted.upload_bytes, 800u);
  EXPECT_EQ(counted.download_bytes, 4u);
  EXPECT_EQ(counted.flops, 200);
}

TEST(Profile, TextGivesBackTheSameProfile) {
  Profile profile;
  profile.add_open(kGpu, 0.123456789, 1700000000);
  for (std::uint64_t i = 0; i < 5; ++i)
    profile.add_run(kGpu, work(i << 60 | i), RunTimes::of(took(1e-3 / 3, 1e-5, 1e-4, 0.05), false), 1700000001);
  profile.add_run(kCpu, work(1), RunTimes::of(took(1e-6), true), 1700000002);
  const Profile read = Profile::from_text(profile.to_text());
  ASSERT_EQ(read.devices().size(), 2u);
  for (std::uint64_t i = 0; i < 7; ++i) {
    const Stages before = profile.predict(closed(kGpu), work(i << 60 | i)), after = read.predict(closed(kGpu), work(i << 60 | i));
    EXPECT_EQ(after.is_measured, before.is_measured);
    EXPECT_NEAR(after.total(), before.total(), 1e-12) << i;
    EXPECT_NEAR(after.transfer_seconds, before.transfer_seconds, 1e-12);
  }
  for (const auto& [key, known] : profile.devices()) {
    EXPECT_EQ(read.devices().at(key).used, known.used);
    EXPECT_EQ(read.devices().at(key).open.count(), known.open.count());
  }
}

TEST(Profile, IsBounded) {
  Profile profile;
  for (std::uint64_t i = 0; i < 3 * Profile::kMaxPrograms; ++i)
    profile.add_run(kCpu, work(i), RunTimes::of(took(1e-3), true), static_cast<std::int64_t>(i));
  EXPECT_EQ(profile.devices().begin()->second.programs.size(), Profile::kMaxPrograms);
  EXPECT_FALSE(profile.predict(ready(kCpu), work(0)).is_measured);
  EXPECT_TRUE(profile.predict(ready(kCpu), work(3 * Profile::kMaxPrograms - 1)).is_measured);
  for (int i = 0; i < 100; ++i) profile.add_open(device("cuda:" + std::to_string(i), DeviceKind::gpu), 1, 10000 + i);
  EXPECT_EQ(profile.devices().size(), Profile::kMaxDevices);
}

TEST(Profile, TheProgramThatJustRanStaysWhenAllAreEquallyOld) {
  Profile profile;
  for (std::uint64_t i = 2 * Profile::kMaxPrograms; i > 0; --i) {
    profile.add_run(kCpu, work(i), RunTimes::of(took(1e-3), true), 5);
    EXPECT_TRUE(profile.predict(ready(kCpu), work(i)).is_measured) << i;
  }
}

TEST(Profile, DamagedTextIsNoProfileAndNoCrash) {
  Profile profile;
  profile.add_open(kGpu, 0.5, 1);
  profile.add_run(kGpu, work(7), RunTimes::of(took(1e-3), true), 1);
  const std::string good = profile.to_text();
  for (std::size_t length = 0; length < good.size(); ++length) EXPECT_EQ(Profile::from_text(good.substr(0, length)), Profile());
  std::mt19937 random(3);
  for (int i = 0; i < 2000; ++i) {
    std::string bad = good;
    bad[random() % bad.size()] = static_cast<char>(random() % 256);
    const Profile read = Profile::from_text(bad);
    const Stages stages = read.predict(closed(kGpu), work(7));
    EXPECT_TRUE(std::isfinite(stages.total()) && stages.total() >= 0) << bad;
  }
  for (const char* text :
       {"[]", "null", "{}", R"({"schema":2,"devices":{}})", R"({"schema":1,"devices":[1]})",
        R"({"schema":1,"devices":{"gpu|a|b":{"open":["x",1],"programs":{"zz":1,"00000000000000000000000000000001":[]}}}})"})
    EXPECT_NO_THROW(Profile::from_text(text)) << text;
}

TEST(ProfileStore, WhatOneProcessLearntTheNextOneKnows) {
  const Folder folder;
  const std::string file = folder / "deeper/profile.json";
  {
    ProfileStore store(file);
    for (int i = 0; i < 2; ++i) store.record_run(kGpu, work(7), true, took(0.25));
    store.record_open(kGpu, 0.5);
    EXPECT_EQ(store.predict(ready(kGpu), work(7)).compute_seconds, 0.25);
  }
  const ProfileStore next(file);
  EXPECT_EQ(next.predict(ready(kGpu), work(7)).compute_seconds, 0.25);
  EXPECT_EQ(next.predict(closed(kGpu), work(7)).open_seconds, 0.5);
}

TEST(ProfileStore, WhatWasRecordedBeforeTheFirstLookIsNotForgottenByReading) {
  const Folder folder;
  const std::string file = folder / "profile.json";
  ProfileStore(file).record_open(kGpu, 0.5);
  ProfileStore store(file);
  for (int i = 0; i < 2; ++i) store.record_run(kGpu, work(9), true, took(0.125));
  EXPECT_EQ(store.predict(closed(kGpu), work(9)).open_seconds, 0.5);
  EXPECT_EQ(store.predict(closed(kGpu), work(9)).compute_seconds, 0.125);
}

TEST(ProfileStore, ManyProcessesLoseNothingOfEachOther) {
  const Folder folder;
  const std::string file = folder / "profile.json";
  constexpr int kProcesses = 8, kPrograms = 10;
  std::vector<pid_t> children;
  for (int p = 0; p < kProcesses; ++p) {
    const pid_t child = fork();
    if (child == 0) {
      bool written = true;
      for (int i = 0; i < kPrograms; ++i) {
        ProfileStore store(file);
        store.record_run(kCpu, work(static_cast<std::uint64_t>(100 * p + i)), true, took(1e-3));
        // Giving up on the lock is allowed; the next try has it.
        written = written && test::becomes_true(std::chrono::seconds(60), [&] { return store.flush(); });
      }
      _exit(written ? 0 : 1);
    }
    children.push_back(child);
  }
  for (const pid_t child : children) {
    int status = 0;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
  }
  const ProfileStore store(file);
  for (int p = 0; p < kProcesses; ++p)
    for (int i = 0; i < kPrograms; ++i)
      EXPECT_TRUE(store.predict(ready(kCpu), work(static_cast<std::uint64_t>(100 * p + i))).is_measured) << p << " " << i;
  for (const std::string& name : folder.files()) EXPECT_TRUE(name == "profile.json" || name == "profile.json.lock") << name;
}

TEST(ProfileStore, ABusyProcessLearnsFromOneRunInMany) {
  const Folder folder;
  ProfileStore store(folder / "profile.json");
  for (int i = 0; i < 10'000; ++i) store.record_run(kCpu, work(7), true, took(1e-3));
  int wanted = 0;
  for (int i = 0; i < 640; ++i) wanted += store.wants_run() ? 1 : 0;
  EXPECT_EQ(wanted, 10);
  EXPECT_TRUE(store.flush());
  EXPECT_TRUE(store.wants_run());
}

TEST(ProfileStore, AChildOfForkWritesNothing) {
  const Folder folder;
  const std::string file = folder / "profile.json";
  ProfileStore store(file);
  store.record_open(kGpu, 0.5);
  const pid_t child = fork();
  if (child == 0) _exit(store.flush() ? 1 : 0);
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_FALSE(std::filesystem::exists(file));
}

TEST(ProfileStore, ADamagedFileIsReplaced) {
  const Folder folder;
  const std::string file = folder / "profile.json";
  std::ofstream(file) << "{\"schema\":1,\"devi";
  {
    ProfileStore store(file);
    EXPECT_EQ(store.profile(), Profile());
    store.record_open(kGpu, 0.5);
  }
  EXPECT_EQ(Profile::from_text(text_of(file)).devices().size(), 1u);
}

TEST(ProfileStore, WhereNothingCanBeWrittenItLastsAsLongAsTheProcess) {
  const Folder folder;
  std::ofstream(folder / "file") << "no folder";
  ProfileStore store(folder / "file/profile.json");
  for (int i = 0; i < 2; ++i) store.record_run(kGpu, work(7), true, took(0.25));
  EXPECT_FALSE(store.flush());
  EXPECT_EQ(store.predict(ready(kGpu), work(7)).compute_seconds, 0.25);
  ProfileStore nowhere("");
  for (int i = 0; i < 2; ++i) nowhere.record_run(kGpu, work(7), true, took(0.25));
  EXPECT_EQ(nowhere.predict(ready(kGpu), work(7)).compute_seconds, 0.25);
}

TEST(ProfileStore, ThreadsRecordAndPredictSideBySide) {
  const Folder folder;
  ProfileStore store(folder / "profile.json");
  std::vector<std::thread> threads;
  for (std::uint64_t t = 0; t < 4; ++t)
    threads.emplace_back([&store, t] {
      for (std::uint64_t i = 0; i < 50; ++i) {
        store.record_run(kCpu, work(100 * t + i), true, took(1e-3));
        EXPECT_TRUE(store.predict(ready(kCpu), work(100 * t + i)).is_measured);
        if (i % 20 == 0) store.flush();
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(store.profile().devices().begin()->second.programs.size(), 200u);
}

}  // namespace
}  // namespace tenon
