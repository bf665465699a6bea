// The queue between processes, measured: bars of cost, fairness and crashes, next to one flock call in the same run.
//   bench_turnstile [--grants N] [--kills N] > bench/results/turnstile.md
#include <fcntl.h>
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <sched.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "lease/turnstile/turnstile.h"

namespace {

using tenon::RunDirectory;
using tenon::Turnstile;

constexpr int kClients = 8;
constexpr double kMicroseconds = 1e6;

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

double quantile(std::vector<double>& values, double share) {
  std::sort(values.begin(), values.end());
  return values.empty()
             ? 0
             : values[std::min(values.size() - 1, static_cast<std::size_t>(share * static_cast<double>(values.size())))];
}

std::vector<double> times_of(int calls, const std::function<void()>& call) {
  std::vector<double> seconds;
  for (int i = 0; i < calls; ++i) {
    const double begin = now();
    call();
    seconds.push_back(now() - begin);
  }
  return seconds;
}

template <class T>
T* shared_memory() {
  void* memory = mmap(nullptr, sizeof(T), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) std::abort();
  return reinterpret_cast<T*>(memory);  // zeros, which is what these types begin with
}

pid_t start(const std::function<void()>& work) {
  const pid_t pid = fork();
  if (pid != 0) return pid;
  work();
  _exit(0);
}

void uncontended(const Turnstile& turnstile, const std::string& directory) {
  const int fd = open((directory + "/flock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  const auto enter = [&] { turnstile.enter(); };
  times_of(1000, enter);
  auto ours = times_of(20'000, enter);
  auto plain = times_of(20'000, [&] {
    flock(fd, LOCK_EX);
    flock(fd, LOCK_UN);
  });
  const double median = quantile(ours, 0.5), p99 = quantile(ours, 0.99), theirs = quantile(plain, 0.5);
  fmt::print(
      "| enter and release, without contention | {:.1f} us median, {:.1f} us p99 | flock and unlock {:.2f} us median: {:.1f} "
      "times "
      "|\n",
      median * kMicroseconds, p99 * kMicroseconds, theirs * kMicroseconds, median / theirs);
  close(fd);
}

struct Contest {
  std::atomic<int> ready, inside, left;
  std::atomic<std::uint64_t> collisions, overtakings, last_epoch, grants, most_before;
  std::atomic<double> waited[kClients];
};

void compete(const Turnstile& turnstile, Contest& contest, int client, int grants) {
  contest.ready.fetch_add(1);
  while (contest.ready.load() < kClients) sched_yield();
  double waited = 0;
  for (int i = 0; i < grants; ++i) {
    std::uint64_t before = 0;
    bool had_to_wait = false;
    const double begin = now();
    Turnstile::Pass pass = turnstile.enter({.on_wait = [&](tenon::TicketNumber) {
      had_to_wait = true;
      before = contest.grants.load();
    }});
    waited += now() - begin;
    if (contest.inside.fetch_add(1) != 0) contest.collisions.fetch_add(1);
    if (contest.last_epoch.exchange(pass.epoch()) >= pass.epoch()) contest.overtakings.fetch_add(1);
    // Every grant is contended: it lasts until somebody waits for it.
    while (!pass.has_waiters() && contest.left.load() > 1) sched_yield();
    const std::uint64_t passed = contest.grants.fetch_add(1) - before;
    std::uint64_t most = contest.most_before.load();
    while (had_to_wait && passed > most && !contest.most_before.compare_exchange_weak(most, passed)) {
    }
    contest.inside.fetch_sub(1);
    if (i + 1 == grants) contest.left.fetch_sub(1);
    pass.give_back();
    // All but the first pause before they come back; the greedy one is there again at once.
    if (client != 0) sched_yield();
  }
  contest.waited[client] = waited / grants;
}

void contended(const Turnstile& turnstile, int grants) {
  auto* contest = shared_memory<Contest>();
  contest->left = kClients;
  std::vector<pid_t> clients;
  const double begin = now();
  for (int i = 0; i < kClients; ++i) clients.push_back(start([&, i] { compete(turnstile, *contest, i, grants / kClients); }));
  for (const pid_t client : clients) waitpid(client, nullptr, 0);
  const double seconds = now() - begin;
  double sum = 0, largest = 0;
  for (int i = 1; i < kClients; ++i) {
    sum += contest->waited[i];
    largest = std::max(largest, contest->waited[i].load());
  }
  const double mean = sum / (kClients - 1);
  fmt::print(
      "| {} grants to {} processes, one greedy | {:.1f} us per grant | {} overtakings, {} collisions, at most {} grants "
      "between taking a ticket and its grant |\n",
      contest->grants.load(), kClients, seconds * kMicroseconds / static_cast<double>(contest->grants.load()),
      contest->overtakings.load(), contest->collisions.load(), contest->most_before.load());
  fmt::print("| mean wait of the 7 equal processes | {:.1f} us | greedy process {:.1f} us; largest / mean {:.3f} |\n",
             mean * kMicroseconds, contest->waited[0].load() * kMicroseconds, largest / mean);
}

// A process of the queue that is going to be killed, and what it says of itself in shared memory.
struct Member {
  enum State { starting, waiting, holding };
  std::atomic<int> state;
  std::atomic<pid_t> pid;
  std::atomic<double> granted_at;
  std::atomic<bool> dirty;
};

void live(const Turnstile& turnstile, Member& member) {
  const Turnstile::Pass pass = turnstile.enter({.on_wait = [&](tenon::TicketNumber) { member.state = Member::waiting; }});
  member.dirty = pass.is_dirty();
  member.granted_at = now();
  member.state = Member::holding;
  for (;;) pause();
}

// Returns the child to wait for; member.pid is the one to kill, which is that child or, in a pid namespace of its own, its child.
pid_t start_member(const Turnstile& turnstile, Member& member, bool in_namespace) {
  return start([&, in_namespace] {
    if (!in_namespace || unshare(CLONE_NEWPID) != 0) {
      member.pid = getpid();
      live(turnstile, member);
    }
    const pid_t inner = start([&] {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      live(turnstile, member);
    });
    member.pid = inner;
    waitpid(inner, nullptr, 0);
  });
}

// Holders and waiters in any place of the queue are killed at random moments, a third of them in other pid namespaces. Measured:
// how long until the next in line has the device.
void killed(const Turnstile& turnstile, int kills) {
  constexpr std::size_t kLength = 4;
  constexpr int kMost = 20'000;
  kills = std::min(kills, kMost - static_cast<int>(kLength));
  auto* members = *shared_memory<Member[kMost]>();
  std::vector<std::pair<Member*, pid_t>> queue;
  int made = 0, holders_killed = 0, missed_dirty = 0, overtakings = 0;
  std::vector<double> seconds;
  std::mt19937 random(1);
  const auto is_in = [](const Member* member, Member::State state) {
    return member->state.load() == state && member->pid.load() != 0;
  };
  const auto append = [&] {
    Member* member = &members[made];
    const pid_t child = start_member(turnstile, *member, made % 3 == 2);
    ++made;
    while (!is_in(member, queue.empty() ? Member::holding : Member::waiting)) sched_yield();
    queue.emplace_back(member, child);
  };
  const auto kill_at = [&](std::size_t place) {
    kill(queue[place].first->pid, SIGKILL);
    const pid_t child = queue[place].second;
    queue.erase(queue.begin() + static_cast<std::ptrdiff_t>(place));
    return child;
  };
  for (std::size_t i = 0; i < kLength; ++i) append();
  for (int i = 0; i < kills; ++i) {
    usleep(static_cast<useconds_t>(random() % 200));
    const std::size_t place = random() % 2 == 0 ? 0 : random() % kLength;
    const double begin = now();
    const pid_t child = kill_at(place);
    if (place == 0) {
      while (!is_in(queue[0].first, Member::holding)) sched_yield();
      seconds.push_back(queue[0].first->granted_at - begin);
      ++holders_killed;
      missed_dirty += queue[0].first->dirty ? 0 : 1;
    }
    waitpid(child, nullptr, 0);
    for (std::size_t j = 1; j < queue.size(); ++j) overtakings += is_in(queue[j].first, Member::holding) ? 1 : 0;
    append();
  }
  while (!queue.empty()) waitpid(kill_at(queue.size() - 1), nullptr, 0);
  const double median = quantile(seconds, 0.5), p99 = quantile(seconds, 0.99);
  fmt::print(
      "| {} processes killed with SIGKILL, {} of them holding | {:.0f} us median, {:.0f} us p99 to the next grant | at most "
      "{:.0f} "
      "us; {} grants not marked dirty, {} out of order |\n",
      kills, holders_killed, median * kMicroseconds, p99 * kMicroseconds, seconds.back() * kMicroseconds, missed_dirty,
      overtakings);
}

int number_after(int argc, char** argv, const char* name, int otherwise) {
  for (int i = 1; i + 1 < argc; ++i)
    if (std::strcmp(argv[i], name) == 0) std::from_chars(argv[i + 1], argv[i + 1] + std::strlen(argv[i + 1]), otherwise);
  return otherwise;
}

double load_average() {
  double load = 0;
  return getloadavg(&load, 1) == 1 ? load : 0;
}

}  // namespace

int main(int argc, char** argv) {
  std::string directory = (std::filesystem::temp_directory_path() / "tenon-bench-XXXXXX").string();
  if (mkdtemp(directory.data()) == nullptr) return 1;
  const RunDirectory run = RunDirectory::at(directory);
  const int grants = number_after(argc, argv, "--grants", 100'000), kills = number_after(argc, argv, "--kills", 1000);
  fmt::print("# The queue between processes\n\n- {:%Y-%m-%d %H:%M} UTC, {} threads, load {:.1f} before the run\n",
             fmt::gmtime(std::time(nullptr)), sysconf(_SC_NPROCESSORS_ONLN), load_average());
  fmt::print("- command: `bench_turnstile --grants {} --kills {}`\n\n", grants, kills);
  fmt::print("| measurement | time | reference |\n|---|---|---|\n");
  std::fflush(stdout);
  uncontended(Turnstile(run, "alone"), directory);
  std::fflush(stdout);
  contended(Turnstile(run, "contended"), grants);
  std::fflush(stdout);
  killed(Turnstile(run, "killed"), kills);
  std::filesystem::remove_all(directory);
  return 0;
}
