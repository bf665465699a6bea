// Turnstile: processes queue for a device, strictly in order of arrival, without a daemon.
//
// Whoever enters takes the next ticket and holds a lock on that ticket's byte; its turn has come when no earlier ticket's byte is
// locked any more. The kernel drops the locks of a process that dies, however it dies, so the queue needs no cleaning up. The
// ticket number is the fencing epoch: it grows with every grant.
//
// Exclusive tickets wait for all earlier ones, shared tickets only for earlier exclusive ones, so that neither kind can starve
// the other. A holder that died without giving the device back makes the next exclusive grant *dirty*, and shared grants as well
// until an exclusive holder has given it back properly: check or reset the device first.
//
// Works for ordinary users, for users that share the directory through its group, and between containers that share nothing but
// the directory. Cooperative: it orders those who ask.
//
// Forks: a child of fork() does not have the parent's passes; its copies of them are empty, and it may enter by itself.
// Descriptors are closed on exec. What goes round the C library (a raw clone without exec) keeps the place alive until that child
// exits too.
//
// Lifetime: a Pass needs no Turnstile. A Turnstile keeps one file open between passes; its copies share that.
// Thread safety: a Turnstile may be used from several threads at once, a Pass by one at a time. A thread that enters again while
// it holds an exclusive pass waits for itself.
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
    // How long to wait at most; zero only tries. Without it there is no limit.
    std::optional<std::chrono::nanoseconds> timeout = std::nullopt;
    std::stop_token cancel = {};
    // Called once, by the entering thread, when it has a place in the queue and must wait.
    std::function<void(TicketNumber)> on_wait = {};
  };

  // Somebody in the queue.
  struct Position {
    TicketNumber ticket = 0;
    TicketKind kind = TicketKind::exclusive;
    bool is_holding = false;
    bool is_known = false;  // a record says who it is; without one the fields below are empty
    std::int32_t pid = 0;   // in its own pid namespace
    bool is_in_this_pid_namespace = false;
    std::uint32_t uid = 0;
    std::string command;                          // printable characters only
    std::chrono::system_clock::time_point since;  // holding, or waiting, since then
  };

  struct Queue {
    std::string device;
    std::vector<Position> places;  // holders first, then those who wait, in order
    bool is_dirty = false;         // the last holder died; the next grant will be dirty
  };

  // |device|: any text, the name of the queue. Touches nothing yet.
  Turnstile(RunDirectory directory, std::string device);

  // Blocks until it is this caller's turn. Throws deadline_exceeded, cancelled, and what RunDirectory throws; then the place is
  // given up.
  Pass enter(const Options& options) const;
  Pass enter() const;

  // Who holds the device and who waits, now. Takes no lock and makes no file.
  Queue queue() const;

  // Tells a holder at once that somebody came. Throws resource_exhausted.
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

// A descriptor for an event loop that becomes readable when the queue may have changed: clear it, then ask Pass::has_waiters().
// Somebody may have come before the watch was there, so ask once after making it. Make one for each device and keep it: the
// kernel takes milliseconds to end it.
class Turnstile::Watch {
 public:
  int fd() const noexcept { return fd_.get(); }
  void clear() const;

 private:
  friend class Turnstile;
  explicit Watch(FileDescriptor fd) : fd_(std::move(fd)) {}
  FileDescriptor fd_;
};

// The right to use the device, until given back or dropped. Movable.
class Turnstile::Pass {
 public:
  Pass() = default;  // empty
  Pass(Pass&& other) noexcept;
  Pass& operator=(Pass&& other) noexcept;
  ~Pass();

  explicit operator bool() const noexcept;
  TicketNumber epoch() const noexcept { return ticket_; }
  TicketKind kind() const noexcept { return kind_; }
  // The device may be in any state: somebody died holding it, or could not give it back properly.
  bool is_dirty() const noexcept { return is_dirty_; }

  // Whether somebody waits for this pass. Two system calls.
  bool has_waiters() const;

  // The device is closed, or in a state that the next holder can use. Nothing for an empty pass. Does not throw: what cannot be
  // recorded leaves the device dirty.
  void give_back() noexcept;
  // Gives the device back in a doubtful state: the next exclusive grant is dirty.
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
