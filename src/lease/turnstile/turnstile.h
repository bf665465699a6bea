// Turnstile: processes queue for a device, strictly in order of arrival, without a daemon.
//
// A process that enters takes the next ticket and locks that ticket's byte; its turn comes when no byte of an earlier ticket is
// locked any more. The kernel releases the locks of a process that dies, however it dies, so the queue needs no clean-up. The
// ticket number is the fencing epoch: it grows with every grant.
//
// Exclusive tickets wait for all earlier ones, shared tickets only for earlier exclusive ones, so that neither kind can starve
// the other. After a holder died without releasing the device, the next exclusive grant is *dirty*, and so are shared grants
// until an exclusive holder has released it cleanly: check or reset the device first.
//
// Works for ordinary users, for users that share the directory through its group, and between containers that share only the
// directory. It is cooperative: it orders the processes that use it.
//
// Forks: a child of fork() does not have the parent's passes; its copies are empty, and it may enter on its own. Descriptors are
// closed on exec. A child created without the C library (a raw clone without exec) keeps the place until that child
// exits too.
//
// Lifetime: a Pass does not need its Turnstile. A Turnstile keeps one file open between passes; its copies share it.
// Thread safety: a Turnstile may be used by several threads at once, a Pass by one at a time. A thread that enters again while it
// holds an exclusive pass deadlocks.
//
//   Turnstile turnstile(RunDirectory::open(), "cuda:0");
//   Turnstile::Pass pass = turnstile.enter({.timeout = std::chrono::seconds(30)});
//   if (pass.is_dirty()) reset(device);
//   while (work && !pass.has_waiters()) step();     // or watch() in an event loop
//   pass.give_back();
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "lease/turnstile/run_directory.h"
#include "lease/turnstile/ticket_file.h"

namespace tenon {

class Turnstile {
 public:
  class Pass;
  class Watch;

  struct Options {
    TicketKind kind = TicketKind::exclusive;
    // How long to wait; zero: fail if others are ahead. nullopt: no limit.
    std::optional<std::chrono::nanoseconds> timeout = std::nullopt;
    std::stop_token cancel = {};
    // Called once by the entering thread when it is in the queue and must wait.
    std::function<void(TicketNumber)> on_wait = {};
  };

  // A process in the queue.
  struct Position {
    TicketNumber ticket = 0;
    TicketKind kind = TicketKind::exclusive;
    bool is_holding = false;
    bool is_known = false;  // whether a record identifies it; otherwise the fields below are empty
    std::int32_t pid = 0;   // in its own pid namespace
    bool is_in_this_pid_namespace = false;
    std::uint32_t uid = 0;
    std::string command;                          // printable characters only
    std::chrono::system_clock::time_point since;  // when it started to hold or wait
  };

  struct Queue {
    std::string device;
    std::vector<Position> places;  // holders first, then waiters in order
    bool is_dirty = false;         // the last holder died; the next grant will be dirty
  };

  // |device|: any text, the name of the queue. Does not touch the file system yet.
  Turnstile(RunDirectory directory, std::string device);

  // Blocks until it is this caller's turn. Throws deadline_exceeded, cancelled, and the errors of RunDirectory, after which the
  // caller is no longer in the queue.
  Pass enter(const Options& options) const;
  Pass enter() const;

  // The current holders and waiters of the device. Takes no lock and creates no file.
  Queue queue() const;

  // Notifies a holder at once of a new waiter. Throws resource_exhausted.
  Watch watch() const;

  const std::string& device() const noexcept { return device_; }

  // Every device that has a queue in |directory|, in the order of their names.
  static std::vector<Turnstile> all(const RunDirectory& directory);

 private:
  class Spare;

  RunDirectory directory_;
  std::string device_, file_name_;
  std::shared_ptr<Spare> spare_;
};

// A descriptor for an event loop that becomes readable when the queue may have changed: clear it, then call Pass::has_waiters().
// A waiter may have arrived before the watch existed, so call it once after creating the watch. Create one watch per device and
// keep it: the kernel takes milliseconds to remove one.
class Turnstile::Watch {
 public:
  int fd() const noexcept { return fd_.get(); }
  void clear() const;

 private:
  friend class Turnstile;
  explicit Watch(FileDescriptor fd) : fd_(std::move(fd)) {}
  FileDescriptor fd_;
};

// The right to use the device until it is released or destroyed. Movable.
class Turnstile::Pass {
 public:
  Pass() = default;  // empty
  Pass(Pass&& other) noexcept;
  Pass& operator=(Pass&& other) noexcept;
  ~Pass();

  explicit operator bool() const noexcept;
  TicketNumber epoch() const noexcept { return ticket_; }
  TicketKind kind() const noexcept { return kind_; }
  // The device may be in any state: a holder died or could not release it cleanly.
  bool is_dirty() const noexcept { return is_dirty_; }

  // Whether a process waits for this pass. Two system calls.
  bool has_waiters() const;

  // Releases the device, which is closed or in a state that the next holder can use. Does nothing for an empty pass. Does not
  // throw: if the release cannot be recorded, the device stays dirty.
  void give_back() noexcept;
  // Releases the device as dirty: the next exclusive grant is dirty.
  void give_back_dirty() noexcept;

 private:
  friend class Turnstile;
  void leave() noexcept;

  TicketFile file_;
  TicketNumber ticket_ = 0;
  TicketKind kind_{};
  bool is_dirty_ = false;
  std::uint64_t process_generation_ = 0;
  std::shared_ptr<Spare> spare_;
};

}  // namespace tenon
