#include "lease/turnstile/ticket_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <limits>

#include "tenon/error.h"

namespace tenon {
namespace {

constexpr std::uint64_t kMagic = 0x3130516e6f6e6554;  // "TenonQ01"
constexpr std::int64_t kRecords = 4096;               // where the ring of records begins
constexpr std::uint64_t kRecordSlots = 4096;

constexpr std::int64_t kDoor = 0;
constexpr std::size_t kMostTickets = 100'000;  // listed at once; more locks than any machine has processes in one queue
constexpr std::int64_t kRange = std::int64_t{1} << 61;
constexpr std::int64_t kExclusiveBytes = kRange;
constexpr std::int64_t kSharedBytes = 2 * kRange;

constexpr std::int64_t first_byte(TicketKind kind) { return kind == TicketKind::exclusive ? kExclusiveBytes : kSharedBytes; }
std::int64_t byte_of(TicketNumber ticket, TicketKind kind) {
  // Only a file that somebody wrote nonsense to gets here.
  if (ticket >= static_cast<TicketNumber>(kRange))
    throw Error(ErrorCode::data_loss, fmt::format("ticket {} of a device's queue is out of range", ticket),
                "remove the file while the device is not in use");
  return first_byte(kind) + static_cast<std::int64_t>(ticket);
}

std::int64_t record_offset(TicketNumber ticket) {
  return kRecords + static_cast<std::int64_t>((ticket % kRecordSlots) * sizeof(TicketFile::Record));
}

std::string path_of(int fd) {
  std::error_code unknown;
  const std::filesystem::path path = std::filesystem::read_symlink(fmt::format("/proc/self/fd/{}", fd), unknown);
  return unknown ? "its file" : path.string();
}

void write_at(int fd, const void* data, std::size_t bytes, std::int64_t offset) {
  ssize_t written = 0;
  do written = pwrite(fd, data, bytes, offset);
  while (written < 0 && errno == EINTR);
  if (written != static_cast<ssize_t>(bytes))
    throw Error(ErrorCode::resource_exhausted,
                fmt::format("cannot write to the queue file of a device, {}: {}", path_of(fd),
                            written < 0 ? std::strerror(errno) : "no space left"),
                "free some space, or set TENON_RUN_DIR to another directory");
}

// Bytes past the end of the file read as zeros.
void read_at(int fd, void* data, std::size_t bytes, std::int64_t offset) {
  std::memset(data, 0, bytes);
  ssize_t got = 0;
  do got = pread(fd, data, bytes, offset);
  while (got < 0 && errno == EINTR);
  if (got < 0) throw Error(ErrorCode::unknown, fmt::format("cannot read a device's queue: {}", std::strerror(errno)));
}

}  // namespace

bool TicketFile::is_unlinked() const {
  struct stat info{};
  return fstat(fd_.get(), &info) == 0 && info.st_nlink == 0;
}

TicketFile::Header TicketFile::read_header() const {
  Header header;
  read_at(fd_.get(), &header, sizeof header, 0);
  if (header.magic == 0) return Header{.magic = kMagic, .next_ticket = 1};
  if (header.magic != kMagic)
    throw Error(ErrorCode::failed_precondition,
                "a file in the run directory is not a device queue, or belongs to another version of Tenon",
                "use the same version of Tenon everywhere, or remove the file while the device is not in use");
  return header;
}

void TicketFile::write_next_ticket(TicketNumber next) {
  const std::uint64_t words[2] = {kMagic, next};
  write_at(fd_.get(), words, sizeof words, 0);
}

void TicketFile::write_unreturned(TicketNumber exclusive, std::uint64_t shared) {
  const std::uint64_t words[2] = {exclusive, shared};
  write_at(fd_.get(), words, sizeof words, offsetof(Header, unreturned_exclusive));
}

void TicketFile::write_record(const Record& record) { write_at(fd_.get(), &record, sizeof record, record_offset(record.ticket)); }

std::optional<TicketFile::Record> TicketFile::read_record(TicketNumber ticket, TicketKind kind) const {
  Record record;
  read_at(fd_.get(), &record, sizeof record, record_offset(ticket));
  if (record.ticket != ticket || record.kind != kind) return std::nullopt;
  record.boot_id[sizeof record.boot_id - 1] = '\0';
  record.command[sizeof record.command - 1] = '\0';
  return record;
}

int TicketFile::lock(int command, short type, std::int64_t start, std::int64_t length) const {
  struct flock request{};
  request.l_type = type;
  request.l_whence = SEEK_SET;
  request.l_start = start;
  request.l_len = length;
  return fcntl(fd_.get(), command, &request) == 0 ? 0 : errno;
}

int TicketFile::try_door() { return lock(F_OFD_SETLK, F_WRLCK, kDoor, 1); }
int TicketFile::wait_door() { return lock(F_OFD_SETLKW, F_WRLCK, kDoor, 1); }
void TicketFile::leave_door() { lock(F_OFD_SETLK, F_UNLCK, kDoor, 1); }

int TicketFile::claim(TicketNumber ticket, TicketKind kind) { return lock(F_OFD_SETLK, F_WRLCK, byte_of(ticket, kind), 1); }

int TicketFile::try_all_before(TicketNumber ticket, TicketKind kind) {
  return lock(F_OFD_SETLK, F_RDLCK, first_byte(kind), static_cast<std::int64_t>(ticket));
}
int TicketFile::wait_all_before(TicketNumber ticket, TicketKind kind) {
  return lock(F_OFD_SETLKW, F_RDLCK, first_byte(kind), static_cast<std::int64_t>(ticket));
}
int TicketFile::wait_one_before(TicketNumber ticket, TicketKind kind) {
  return lock(F_OFD_SETLKW, F_RDLCK, byte_of(ticket - 1, kind), 1);
}

void TicketFile::drop_all_locks() noexcept { lock(F_OFD_SETLK, F_UNLCK, 0, 0); }

// The first locked range the kernel meets in [start, end), which need not be the lowest, cut to [start, end). Asking for a read
// lock makes the kernel report claims (write locks) and ignore the read locks of waiters.
std::optional<std::pair<std::int64_t, std::int64_t>> TicketFile::conflict(std::int64_t start, std::int64_t end) const {
  struct flock request{};
  request.l_type = F_RDLCK;
  request.l_whence = SEEK_SET;
  request.l_start = start;
  request.l_len = end - start;
  if (fcntl(fd_.get(), F_OFD_GETLK, &request) != 0)
    throw Error(ErrorCode::unknown, fmt::format("cannot inspect a device's queue: {}", std::strerror(errno)));
  if (request.l_type == F_UNLCK) return std::nullopt;
  const std::int64_t first = std::clamp<std::int64_t>(request.l_start, start, end - 1);
  const std::int64_t last = request.l_len == 0 ? end : std::clamp<std::int64_t>(request.l_start + request.l_len, first + 1, end);
  return std::pair(first, last);
}

// A claim is a lock of one byte. A longer lock is not ours: whoever may open the file could take one of any length, and it counts
// as one ticket, so that it blocks the queue (as it does in the kernel) without making those who look at the queue count its
// bytes.
std::vector<TicketNumber> TicketFile::claimed(TicketKind kind, TicketNumber first) const {
  std::vector<TicketNumber> tickets;
  std::vector<std::pair<std::int64_t, std::int64_t>> open{{byte_of(first, kind), first_byte(kind) + kRange}};
  while (!open.empty()) {
    const auto [start, end] = open.back();
    open.pop_back();
    if (start >= end) continue;
    const auto found = conflict(start, end);
    if (!found) continue;
    tickets.push_back(static_cast<TicketNumber>(found->first - first_byte(kind)));
    if (tickets.size() >= kMostTickets) break;
    open.emplace_back(start, found->first);
    open.emplace_back(found->second, end);
  }
  std::sort(tickets.begin(), tickets.end());
  return tickets;
}

bool TicketFile::any_claimed(TicketKind kind, TicketNumber first) const {
  return conflict(byte_of(first, kind), first_byte(kind) + kRange).has_value();
}

}  // namespace tenon
