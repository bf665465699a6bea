// turnstile_client DIRECTORY DEVICE: does what it is told on standard input, a line at a time, and answers in lines.
//   enter | enter-shared      "waiting TICKET" if it must wait, then "granted EPOCH clean|dirty"
//   give-back | give-back-dirty | has-waiters | wait-for-waiter
//   fork                      a child that does nothing but live; "forked PID"
//   loop COUNT FILE PAUSES    enters COUNT times; FILE is a struct Log in shared memory; see turnstile_log.h
//   exit
#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <iostream>
#include <sstream>

#include "lease/turnstile/turnstile.h"
#include "lease/turnstile/turnstile_log.h"

namespace {

using tenon::TicketKind;
using tenon::Turnstile;

void say(const std::string& line) {
  std::cout << line << std::endl;  // flushed: somebody waits for it
}

double now_seconds() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

void loop(const Turnstile& turnstile, int count, const std::string& file, bool pauses) {
  const int fd = open(file.c_str(), O_RDWR | O_CLOEXEC);
  auto* log = static_cast<TurnstileLog*>(mmap(nullptr, sizeof(TurnstileLog), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0));
  if (log == MAP_FAILED) std::abort();
  double waited = 0;
  for (int i = 0; i < count; ++i) {
    std::uint64_t grants_before = 0;
    bool had_to_wait = false;
    const double begin = now_seconds();
    Turnstile::Pass pass = turnstile.enter({.on_wait = [&](tenon::TicketNumber) {
      had_to_wait = true;
      grants_before = log->grants.load();
      log->queued.fetch_add(1);
    }});
    waited += now_seconds() - begin;
    if (had_to_wait) log->queued.fetch_sub(1);
    if (log->inside.fetch_add(1) != 0) log->collisions.fetch_add(1);
    if (pass.epoch() <= log->last_epoch.exchange(pass.epoch())) log->overtakings.fetch_add(1);
    // Every grant is contended: all the others have taken their places before this one leaves.
    for (const double since = now_seconds(); log->queued.load() < log->left.load() - 1; sched_yield())
      if (now_seconds() - since > 60) std::abort();
    const std::uint64_t passed = log->grants.fetch_add(1) - grants_before;
    std::uint64_t most = log->most_grants_before.load();
    while (had_to_wait && passed > most && !log->most_grants_before.compare_exchange_weak(most, passed)) {
    }
    log->inside.fetch_sub(1);
    if (i + 1 == count) log->left.fetch_sub(1);
    pass.give_back();
    if (pauses) sched_yield();
  }
  std::ostringstream line;
  line << "looped " << waited / count;
  say(line.str());
}

int serve(const Turnstile& turnstile) {
  Turnstile::Pass pass;
  for (std::string line; std::getline(std::cin, line);) {
    std::istringstream words(line);
    std::string command;
    words >> command;
    if (command == "enter" || command == "enter-shared") {
      Turnstile::Options options{.kind = command == "enter" ? TicketKind::exclusive : TicketKind::shared};
      options.on_wait = [](tenon::TicketNumber ticket) { say("waiting " + std::to_string(ticket)); };
      pass = turnstile.enter(options);
      say("granted " + std::to_string(pass.epoch()) + (pass.is_dirty() ? " dirty" : " clean"));
    } else if (command == "give-back") {
      pass.give_back();
      say("given back");
    } else if (command == "give-back-dirty") {
      pass.give_back_dirty();
      say("given back");
    } else if (command == "has-waiters") {
      say(pass.has_waiters() ? "yes" : "no");
    } else if (command == "wait-for-waiter") {
      const Turnstile::Watch watch = turnstile.watch();
      pollfd events{watch.fd(), POLLIN, 0};
      say("watching");
      while (!pass.has_waiters()) {
        poll(&events, 1, -1);
        watch.clear();
      }
      say("somebody waits");
    } else if (command == "fork") {
      const pid_t child = fork();
      if (child == 0) {
        for (;;) pause();
      }
      say("forked " + std::to_string(child));
    } else if (command == "loop") {
      int count = 0, pauses = 0;
      std::string file;
      words >> count >> file >> pauses;
      loop(turnstile, count, file, pauses != 0);
    } else {
      return command == "exit" ? 0 : 2;
    }
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  try {
    return serve(Turnstile(tenon::RunDirectory::at(argv[1]), argv[2]));
  } catch (const std::exception&) {
    return 1;
  }
}
