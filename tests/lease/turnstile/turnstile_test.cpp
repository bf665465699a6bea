// The queue between processes: real processes, really killed.
#include "lease/turnstile/turnstile.h"

#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <future>
#include <memory>
#include <thread>

#include "lease/turnstile/queue_text.h"
#include "lease/turnstile/turnstile_log.h"
#include "lease/turnstile/turnstile_testing.h"
#include "tenon/error.h"

namespace tenon::testing {
namespace {

using namespace std::chrono_literals;

class TurnstileTest : public ::testing::Test {
 protected:
  Client client(const std::vector<std::string>& launcher = {}) { return Client(directory_.path().string(), "sim:0", launcher); }
  Turnstile turnstile() const { return Turnstile(RunDirectory::at(directory_.path().string()), "sim:0"); }
  std::string file() const { return directory_ / "sim:0.turnstile"; }
  // A client that has its place in the queue and waits.
  Client waiter(const std::string& how = "enter", const std::vector<std::string>& launcher = {}) {
    Client made = client(launcher);
    EXPECT_EQ(made.ask(how).substr(0, 8), "waiting ");
    return made;
  }
  static bool is_granted(const std::string& answer, const std::string& state) {
    return answer.starts_with("granted ") && answer.ends_with(" " + state);
  }

  test::TemporaryFolder directory_;
};

ErrorCode code_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.code();
  }
  return ErrorCode::ok;
}

TEST_F(TurnstileTest, EpochsGrowWithEveryGrant) {
  const Turnstile queue = turnstile();
  TicketNumber last = 0;
  for (int i = 0; i < 10; ++i) {
    const Turnstile::Pass pass = queue.enter();
    EXPECT_GT(pass.epoch(), last);
    EXPECT_FALSE(pass.is_dirty());
    last = pass.epoch();
  }
}

TEST_F(TurnstileTest, WaitersAreServedInTheOrderTheyCame) {
  Client holder = client();
  ASSERT_TRUE(is_granted(holder.ask("enter"), "clean"));
  std::vector<Client> waiters;
  for (int i = 0; i < 5; ++i) waiters.push_back(waiter());
  holder.ask("give-back");
  for (std::size_t i = 0; i < waiters.size(); ++i) {
    EXPECT_TRUE(is_granted(waiters[i].hear(), "clean"));
    for (std::size_t later = i + 1; later < waiters.size(); ++later) EXPECT_TRUE(waiters[later].is_silent());
    waiters[i].ask("give-back");
  }
}

TEST_F(TurnstileTest, AGreedyReacquirerOvertakesNobody) {
  constexpr int kClients = 8, kRounds = 400;
  const std::string log_file = directory_ / "log";
  const FileDescriptor fd(open(log_file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  ASSERT_EQ(ftruncate(fd.get(), sizeof(TurnstileLog)), 0);
  auto* log = static_cast<TurnstileLog*>(mmap(nullptr, sizeof(TurnstileLog), PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0));
  ASSERT_NE(log, MAP_FAILED);
  log->left = kClients;
  std::vector<Client> clients;
  for (int i = 0; i < kClients; ++i) clients.push_back(client());
  // The first comes back at once, the others let somebody else run first.
  for (int i = 0; i < kClients; ++i)
    clients[static_cast<std::size_t>(i)].tell("loop " + std::to_string(kRounds) + " " + log_file + (i == 0 ? " 0" : " 1"));
  for (Client& each : clients) EXPECT_EQ(each.hear().substr(0, 7), "looped ");
  EXPECT_EQ(log->grants.load(), std::uint64_t{kClients} * kRounds);
  EXPECT_EQ(log->collisions.load(), 0u);
  EXPECT_EQ(log->overtakings.load(), 0u);
  // Between taking a place and being served, each of the others is served once.
  EXPECT_EQ(log->most_grants_before.load(), std::uint64_t{kClients} - 1);
  munmap(log, sizeof(TurnstileLog));
}

TEST_F(TurnstileTest, AKilledHolderHandsADirtyDeviceToTheNextInLine) {
  Client holder = client();
  holder.ask("enter");
  Client next = waiter(), last = waiter();
  holder.kill();
  EXPECT_TRUE(is_granted(next.hear(), "dirty"));
  EXPECT_TRUE(last.is_silent());
  next.ask("give-back");
  EXPECT_TRUE(is_granted(last.hear(), "clean"));
}

TEST_F(TurnstileTest, ADirtyDeviceStaysDirtyUntilSomebodyGivesItBackProperly) {
  for (int i = 0; i < 2; ++i) {
    Client holder = client();
    EXPECT_TRUE(is_granted(holder.ask("enter"), i == 0 ? "clean" : "dirty"));
    holder.kill();
    EXPECT_TRUE(turnstile().queue().is_dirty);
  }
  Client doubtful = client();
  EXPECT_TRUE(is_granted(doubtful.ask("enter"), "dirty"));
  EXPECT_FALSE(turnstile().queue().is_dirty);  // it is held, by somebody who knows
  doubtful.ask("give-back-dirty");
  EXPECT_TRUE(turnstile().enter().is_dirty());
  EXPECT_FALSE(turnstile().enter().is_dirty());
}

TEST_F(TurnstileTest, AWaiterKilledInTheMiddleOfTheQueueIsPassedOver) {
  Client holder = client();
  holder.ask("enter");
  Client first = waiter(), middle = waiter(), last = waiter();
  middle.kill();
  EXPECT_TRUE(first.is_silent());
  EXPECT_TRUE(last.is_silent());
  holder.ask("give-back");
  EXPECT_TRUE(is_granted(first.hear(), "clean"));
  EXPECT_TRUE(last.is_silent());
  first.ask("give-back");
  // Who was killed waiting had not touched the device.
  EXPECT_TRUE(is_granted(last.hear(), "clean"));
}

TEST_F(TurnstileTest, HoldersAndWaitersKilledInAnyOrderLeaveTheQueueWhole) {
  std::uint32_t state = 1;
  const auto draw = [&](std::uint32_t below) { return (state = state * 1664525 + 1013904223) / 65536 % below; };
  for (int round = 0; round < 10; ++round) {
    std::vector<Client> queue;
    queue.push_back(client());
    ASSERT_TRUE(is_granted(queue[0].ask("enter"), round == 0 ? "clean" : "dirty"));
    for (int i = 0; i < 4; ++i) queue.push_back(waiter());
    for (std::uint32_t kills = draw(3); kills > 0; --kills)
      queue.erase(queue.begin() + 1 + draw(static_cast<std::uint32_t>(queue.size() - 1)));
    while (!queue.empty()) {
      queue.erase(queue.begin());
      if (!queue.empty()) EXPECT_TRUE(is_granted(queue[0].hear(), "dirty"));
    }
  }
}

TEST_F(TurnstileTest, AWaitEndsWhenItsTimeIsUp) {
  const Turnstile::Pass held = turnstile().enter();
  EXPECT_EQ(code_of([&] { turnstile().enter({.timeout = 0ns}); }), ErrorCode::deadline_exceeded);
  EXPECT_EQ(code_of([&] { turnstile().enter({.timeout = 5ms}); }), ErrorCode::deadline_exceeded);
  // The place was given up.
  EXPECT_EQ(turnstile().queue().places.size(), 1u);
  EXPECT_FALSE(held.has_waiters());
}

TEST_F(TurnstileTest, AFreeDeviceIsGrantedWithoutTimeToWait) {
  EXPECT_TRUE(turnstile().enter({.timeout = 0ns}));
  EXPECT_TRUE(turnstile().enter({.timeout = std::chrono::hours(24 * 365 * 200)}));
}

TEST_F(TurnstileTest, AWaitIsCancelledFromAnotherThread) {
  const Turnstile::Pass held = turnstile().enter();
  for (int i = 0; i < 50; ++i) {
    std::stop_source source;
    std::promise<void> waiting;
    std::thread canceller([&] {
      waiting.get_future().wait();
      source.request_stop();
    });
    EXPECT_EQ(code_of([&] {
                turnstile().enter({.cancel = source.get_token(), .on_wait = [&](TicketNumber) { waiting.set_value(); }});
              }),
              ErrorCode::cancelled);
    canceller.join();
  }
  EXPECT_EQ(turnstile().queue().places.size(), 1u);
}

TEST_F(TurnstileTest, AThreadThatBlocksAllSignalsCanBeCancelledAndKeepsItsMask) {
  const Turnstile::Pass held = turnstile().enter();
  std::thread([&] {
    sigset_t all, before, after;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, nullptr);
    pthread_sigmask(SIG_SETMASK, nullptr, &before);
    EXPECT_EQ(code_of([&] { turnstile().enter({.timeout = 5ms}); }), ErrorCode::deadline_exceeded);
    pthread_sigmask(SIG_SETMASK, nullptr, &after);
    for (int signal = 1; signal < 65; ++signal) EXPECT_EQ(sigismember(&before, signal), sigismember(&after, signal));
  }).join();
}

TEST_F(TurnstileTest, AWaiterThatGivesUpLetsTheOthersKeepTheirPlaces) {
  Client holder = client();
  holder.ask("enter");
  Client first = waiter();
  EXPECT_EQ(code_of([&] { turnstile().enter({.timeout = 1ms}); }), ErrorCode::deadline_exceeded);
  Client last = waiter();
  holder.ask("give-back");
  EXPECT_TRUE(is_granted(first.hear(), "clean"));
  first.ask("give-back");
  EXPECT_TRUE(is_granted(last.hear(), "clean"));
}

TEST_F(TurnstileTest, ThreadsOfOneProcessQueueLikeProcesses) {
  const Turnstile queue = turnstile();
  std::atomic<int> inside = 0, collisions = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < 100; ++i) {
        const Turnstile::Pass pass = queue.enter();
        if (inside.fetch_add(1) != 0) ++collisions;
        inside.fetch_sub(1);
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(collisions.load(), 0);
}

TEST_F(TurnstileTest, TheListSaysWhoHoldsAndWhoWaits) {
  EXPECT_TRUE(turnstile().queue().places.empty());
  EXPECT_FALSE(std::filesystem::exists(file()));  // looking makes no file
  Client holder = client();
  holder.ask("enter");
  Client first = waiter(), second = waiter("enter-shared");
  const Turnstile::Queue queue = turnstile().queue();
  ASSERT_EQ(queue.places.size(), 3u);
  const pid_t pids[] = {holder.pid(), first.pid(), second.pid()};
  for (std::size_t i = 0; i < 3; ++i) {
    const Turnstile::Position& place = queue.places[i];
    EXPECT_TRUE(place.is_known);
    EXPECT_EQ(place.is_holding, i == 0);
    EXPECT_EQ(place.pid, pids[i]);
    EXPECT_TRUE(place.is_in_this_pid_namespace);
    EXPECT_EQ(place.uid, geteuid());
    EXPECT_TRUE(place.command.starts_with("turnstile_client ")) << place.command;
    EXPECT_EQ(place.kind, i == 2 ? TicketKind::shared : TicketKind::exclusive);
    EXPECT_LE(place.since, std::chrono::system_clock::now());
  }
  // A record counts only while its ticket's byte is locked.
  first.kill();
  EXPECT_EQ(turnstile().queue().places.size(), 2u);
}

// A member of the group writes what it likes into its record; U+009B is the C1 form of ESC [.
TEST_F(TurnstileTest, ControlCharactersOfOthersRecordsAreNotShown) {
  Client holder = client();
  holder.ask("enter");
  const TicketNumber ticket = turnstile().queue().places.at(0).ticket;
  TicketFile records(FileDescriptor(open(file().c_str(), O_RDWR | O_CLOEXEC)));
  std::optional<TicketFile::Record> record = records.read_record(ticket, TicketKind::exclusive);
  ASSERT_TRUE(record);
  constexpr std::string_view kHostile = "a\u009b2Jb\x1b]0;c\xff\n";
  std::fill(std::begin(record->command), std::end(record->command), '\0');
  std::copy(kHostile.begin(), kHostile.end(), record->command);
  records.write_record(*record);
  EXPECT_EQ(turnstile().queue().places.at(0).command, "a?2Jb?]0;c??");
}

TEST_F(TurnstileTest, EveryQueueOfTheDirectoryIsFoundUnderItsDevicesName) {
  const RunDirectory directory = RunDirectory::at(directory_.path().string());
  Turnstile(directory, "cuda:0").enter();
  Turnstile(directory, "../odd name%.turnstile").enter();
  const std::vector<Turnstile> all = Turnstile::all(directory);
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0].device(), "../odd name%.turnstile");
  EXPECT_EQ(all[1].device(), "cuda:0");
  EXPECT_EQ(code_of([&] { Turnstile(directory, ""); }), ErrorCode::invalid_argument);
}

TEST_F(TurnstileTest, TheHolderLearnsOfAWaiterAtOnce) {
  if (code_of([&] { turnstile().watch(); }) != ErrorCode::ok) GTEST_SKIP() << "other programs of this user have all its watches";
  Client holder = client();
  holder.ask("enter");
  EXPECT_EQ(holder.ask("has-waiters"), "no");
  EXPECT_EQ(holder.ask("wait-for-waiter"), "watching");
  EXPECT_TRUE(holder.is_silent());
  Client next = waiter();
  EXPECT_EQ(holder.hear(), "somebody waits");
  EXPECT_EQ(holder.ask("has-waiters"), "yes");
  next.kill();
  EXPECT_EQ(holder.ask("has-waiters"), "no");
}

TEST_F(TurnstileTest, SharedHoldersAreInsideTogetherAndExclusiveOnesAlone) {
  Client a = client(), b = client();
  EXPECT_TRUE(is_granted(a.ask("enter-shared"), "clean"));
  EXPECT_TRUE(is_granted(b.ask("enter-shared"), "clean"));
  EXPECT_EQ(a.ask("has-waiters"), "no");
  Client exclusive = waiter();
  EXPECT_EQ(a.ask("has-waiters"), "yes");
  // Who comes to share after one who wants it alone waits behind it.
  Client late = waiter("enter-shared");
  a.ask("give-back");
  EXPECT_TRUE(exclusive.is_silent());
  b.ask("give-back");
  EXPECT_TRUE(is_granted(exclusive.hear(), "clean"));
  EXPECT_TRUE(late.is_silent());
  exclusive.ask("give-back");
  EXPECT_TRUE(is_granted(late.hear(), "clean"));
}

TEST_F(TurnstileTest, ASharedHolderThatDiedMakesTheNextExclusiveGrantDirty) {
  Client a = client(), b = client();
  a.ask("enter-shared");
  b.ask("enter-shared");
  Client exclusive = waiter();
  a.kill();
  b.ask("give-back");
  EXPECT_TRUE(is_granted(exclusive.hear(), "dirty"));
  exclusive.ask("give-back");
  EXPECT_FALSE(turnstile().enter().is_dirty());
}

TEST_F(TurnstileTest, SharedGrantsAreDirtyUntilAnExclusiveHolderHasCleanedUp) {
  Client holder = client();
  holder.ask("enter");
  holder.kill();
  EXPECT_TRUE(turnstile().enter({.kind = TicketKind::shared}).is_dirty());
  EXPECT_TRUE(turnstile().enter({.kind = TicketKind::shared}).is_dirty());
  EXPECT_TRUE(turnstile().enter().is_dirty());
  EXPECT_FALSE(turnstile().enter({.kind = TicketKind::shared}).is_dirty());
}

TEST_F(TurnstileTest, AForkedChildDoesNotKeepItsParentsPlace) {
  Client holder = client();
  holder.ask("enter");
  const std::string answer = holder.ask("fork");
  ASSERT_TRUE(answer.starts_with("forked "));
  const pid_t child = std::stoi(answer.substr(7));
  Client next = waiter();
  holder.kill();
  EXPECT_TRUE(is_granted(next.hear(), "dirty"));
  EXPECT_EQ(kill(child, 0), 0) << "the child was to be alive";
  kill(child, SIGKILL);
}

TEST_F(TurnstileTest, APassIsEmptyInAForkedChildAndWholeInTheParent) {
  Turnstile::Pass pass = turnstile().enter();
  const pid_t child = fork();
  if (child == 0) {
    const bool was_empty = !pass;
    pass.give_back();
    // By itself the child queues behind its parent.
    const bool waits =
        code_of([&] { turnstile().enter({.timeout = std::chrono::nanoseconds(0)}); }) == ErrorCode::deadline_exceeded;
    _exit(was_empty && waits ? 0 : 1);
  }
  int status = -1;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_TRUE(pass);
  EXPECT_EQ(code_of([&] { turnstile().enter({.timeout = 0ns}); }), ErrorCode::deadline_exceeded);
  pass.give_back();
  EXPECT_FALSE(turnstile().enter().is_dirty());
}

TEST_F(TurnstileTest, AForkedChildEntersByItself) {
  const Turnstile queue = turnstile();
  queue.enter();
  const pid_t child = fork();
  if (child == 0) {
    queue.enter({.timeout = std::chrono::nanoseconds(0)});
    const TicketNumber epoch = queue.enter().epoch();
    _exit(epoch == 3 ? 0 : 1);
  }
  int status = -1;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_FALSE(queue.enter().is_dirty());
}

TEST_F(TurnstileTest, PassesMoveAndAreGivenBackOnce) {
  Turnstile::Pass a = turnstile().enter();
  Turnstile::Pass b = std::move(a);
  EXPECT_FALSE(a);
  a.give_back();
  EXPECT_EQ(code_of([&] { turnstile().enter({.timeout = 0ns}); }), ErrorCode::deadline_exceeded);
  b = Turnstile::Pass();
  EXPECT_TRUE(turnstile().enter({.timeout = 0ns}));
}

TEST_F(TurnstileTest, TicketNumbersGoFarBeyond32Bits) {
  turnstile().enter();
  const FileDescriptor fd(open(file().c_str(), O_RDWR | O_CLOEXEC));
  const std::uint64_t far = std::uint64_t{1} << 60;
  ASSERT_EQ(pwrite(fd.get(), &far, sizeof far, 8), static_cast<ssize_t>(sizeof far));
  Client holder = client();
  EXPECT_EQ(holder.ask("enter"), "granted " + std::to_string(far) + " clean");
  Client next = waiter();
  EXPECT_EQ(turnstile().queue().places.back().ticket, far + 1);
  holder.ask("give-back");
  EXPECT_EQ(next.hear(), "granted " + std::to_string(far + 1) + " clean");
}

TEST_F(TurnstileTest, AFileCutShortWhileInUseStillExcludes) {
  Client holder = client();
  for (int i = 0; i < 5; ++i) {
    holder.ask("enter");
    if (i < 4) holder.ask("give-back");
  }
  ASSERT_EQ(truncate(file().c_str(), 0), 0);
  Client next = waiter();
  EXPECT_EQ(turnstile().queue().places.at(1).ticket, 6u);
  holder.ask("give-back");
  EXPECT_TRUE(next.hear().starts_with("granted 6 "));
}

TEST_F(TurnstileTest, AFileRemovedWhileNobodyUsedItIsMadeAgain) {
  const Turnstile queue = turnstile();
  queue.enter();
  std::filesystem::remove(file());
  const Turnstile::Pass pass = queue.enter();
  EXPECT_EQ(code_of([&] { turnstile().enter({.timeout = 0ns}); }), ErrorCode::deadline_exceeded) << "two meet in two files";
}

TEST_F(TurnstileTest, AForeignFileIsRefused) {
  const FileDescriptor fd(open(file().c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  ASSERT_EQ(write(fd.get(), "something else", 14), 14);
  EXPECT_EQ(code_of([&] { turnstile().enter(); }), ErrorCode::failed_precondition);
}

TEST_F(TurnstileTest, EnteringLeavesNoDescriptorsBehind) {
  const auto descriptors = [] {
    return std::distance(std::filesystem::directory_iterator("/proc/self/fd"), std::filesystem::directory_iterator());
  };
  const Turnstile queue = turnstile();
  queue.enter();
  const auto before = descriptors();
  for (int i = 0; i < 200; ++i) {
    Turnstile::Pass pass = queue.enter();
    pass.has_waiters();
    EXPECT_EQ(code_of([&] { queue.enter({.timeout = 0ns}); }), ErrorCode::deadline_exceeded);
  }
  EXPECT_EQ(descriptors(), before);
}

std::vector<std::string> new_pid_namespace() {
  std::vector<std::string> launcher{"unshare", "--pid", "--fork", "--kill-child"};
  if (geteuid() != 0) launcher.insert(launcher.begin() + 1, {"--user", "--map-root-user"});
  std::string test;
  for (const std::string& word : launcher) test += word + " ";
  if (std::system((test + "true 2>/dev/null").c_str()) != 0) return {};
  return launcher;
}

TEST_F(TurnstileTest, ProcessesOfAnotherPidNamespaceQueueAndDieLikeOthers) {
  const std::vector<std::string> launcher = new_pid_namespace();
  if (launcher.empty()) GTEST_SKIP() << "this system does not permit a new pid namespace";
  Client holder = client(launcher);
  ASSERT_TRUE(is_granted(holder.ask("enter"), "clean"));
  const Turnstile::Position place = turnstile().queue().places.at(0);
  EXPECT_EQ(place.pid, 1);
  EXPECT_FALSE(place.is_in_this_pid_namespace);
  Client inner = waiter("enter", launcher), outer = waiter();
  holder.kill();
  EXPECT_TRUE(is_granted(inner.hear(), "dirty"));
  inner.kill();
  EXPECT_TRUE(is_granted(outer.hear(), "dirty"));
}

TEST_F(TurnstileTest, UsersOfOneGroupShareAQueue) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can start processes of other users";
  if (std::system("setpriv --reuid 61001 --regid 61000 --clear-groups true 2>/dev/null") != 0)
    GTEST_SKIP() << "setpriv is not there or not permitted";
  if (std::system("setpriv --reuid 61001 --regid 61000 --clear-groups test -x " TURNSTILE_CLIENT) != 0)
    GTEST_SKIP() << "other users may not run the program";
  const std::string shared = directory_ / "run";
  ASSERT_EQ(chmod(directory_.path().c_str(), 0755), 0);
  if (std::system(("setpriv --reuid 61001 --regid 61000 --clear-groups test -x " + directory_.path().string()).c_str()) != 0)
    GTEST_SKIP() << "other users may not enter the folder for temporary files";
  ASSERT_EQ(mkdir(shared.c_str(), 0700), 0);
  ASSERT_EQ(chown(shared.c_str(), 0, 61000), 0);
  ASSERT_EQ(chmod(shared.c_str(), 0770), 0);
  const auto user = [](const std::string& uid, const std::string& gid) {
    return std::vector<std::string>{"setpriv", "--reuid", uid, "--regid", gid, "--clear-groups"};
  };
  Client anna(shared, "sim:0", user("61001", "61000")), ben(shared, "sim:0", user("61002", "61000"));
  EXPECT_TRUE(is_granted(anna.ask("enter"), "clean"));
  EXPECT_EQ(ben.ask("enter").substr(0, 8), "waiting ");
  Client root(shared, "sim:0");
  EXPECT_EQ(root.ask("enter").substr(0, 8), "waiting ");
  anna.ask("give-back");
  EXPECT_TRUE(is_granted(ben.hear(), "clean"));
  ben.kill();
  EXPECT_TRUE(is_granted(root.hear(), "dirty"));
  Client stranger(shared, "sim:0", user("61003", "61003"));
  EXPECT_EQ(stranger.hear(), "");
}

TEST(QueueText, ADamagedRecordsTimeIsLongAgoOrNowAndNeverNegative) {
  using Time = std::chrono::system_clock::time_point;
  EXPECT_GT(seconds_since({.since = Time::min()}), 9e9);
  EXPECT_EQ(seconds_since({.since = Time::max()}), 0);
}

}  // namespace
}  // namespace tenon::testing
