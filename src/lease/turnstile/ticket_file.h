// TicketFile: one device's queue as bytes and locks. What Turnstile is made of.
//
// Bytes: a header (the next ticket, and who has not given the device back) and a ring of records that say who holds which ticket.
// Locks (open file description locks, beyond the end of the file): the *door*, held while a ticket is taken, and one byte for
// each ticket, in one range for exclusive and one for shared tickets. A lock ends with its description, so with its process,
// however that dies; bytes tell only what a lock confirms.
//
// Offsets are 63 bits wide and each range has 2^61 bytes: a million tickets a second last for 73,000 years.
//
// Lifetime: owns its open file description. Thread safety: none, each ticket has a TicketFile of its own.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/system/file_descriptor.h"

namespace tenon {

using TicketNumber = std::uint64_t;

enum class TicketKind : std::uint32_t { exclusive, shared };

class TicketFile {
 public:
  struct Header {
    std::uint64_t magic = 0;
    TicketNumber next_ticket = 0;
    // The exclusive ticket that was granted and not given back; 0 for none. Left behind by a holder that died.
    TicketNumber unreturned_exclusive = 0;
    // How many shared tickets were granted and not given back.
    std::uint64_t unreturned_shared = 0;
  };

  struct Record {
    TicketNumber ticket = 0;
    std::int64_t arrived_unix_ns = 0;
    std::int64_t granted_unix_ns = 0;  // 0 while waiting
    std::uint64_t start_ticks = 0;
    std::uint64_t pid_namespace = 0;
    std::int32_t pid = 0;
    std::uint32_t uid = 0;
    TicketKind kind{};
    std::uint32_t reserved = 0;
    char boot_id[40] = {};
    char command[160] = {};
  };

  TicketFile() = default;
  explicit TicketFile(FileDescriptor fd) noexcept : fd_(std::move(fd)) {}

  int fd() const noexcept { return fd_.get(); }
  // Gives the descriptor away; the locks stay with it.
  FileDescriptor take() noexcept { return std::move(fd_); }
  // The file has lost its name: others meet in another one.
  bool is_unlinked() const;

  // Throws failed_precondition when the file is not one of ours.
  Header read_header() const;
  void write_next_ticket(TicketNumber next);
  void write_unreturned(TicketNumber exclusive, std::uint64_t shared);
  void write_record(const Record& record);
  // The record of a ticket; nothing when another ticket has taken its place since.
  std::optional<Record> read_record(TicketNumber ticket, TicketKind kind) const;

  // Locks. A request returns 0 or an errno; those that wait may end with EINTR.
  int try_door();
  int wait_door();
  void leave_door();
  // The write lock on a ticket's own byte: says that its owner lives and has not left.
  int claim(TicketNumber ticket, TicketKind kind);
  // A read lock over the bytes of all tickets of |kind| before |ticket|: granted when the last of them has left.
  int try_all_before(TicketNumber ticket, TicketKind kind);
  int wait_all_before(TicketNumber ticket, TicketKind kind);
  // The same for the one ticket just before.
  int wait_one_before(TicketNumber ticket, TicketKind kind);
  void drop_all_locks() noexcept;

  // Tickets of |kind| from |first| on whose byte somebody else has claimed, in order. Takes no lock.
  std::vector<TicketNumber> claimed(TicketKind kind, TicketNumber first = 0) const;
  bool any_claimed(TicketKind kind, TicketNumber first) const;

 private:
  int lock(int command, short type, std::int64_t start, std::int64_t length) const;
  std::optional<std::pair<std::int64_t, std::int64_t>> conflict(std::int64_t start, std::int64_t end) const;

  FileDescriptor fd_;
};

static_assert(sizeof(TicketFile::Record) == 256);
static_assert(sizeof(TicketFile::Header) == 32);

}  // namespace tenon
