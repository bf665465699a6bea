#include "lease/turnstile/turnstile.h"

#include <fmt/format.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>

#include "base/text/printable.h"
#include "lease/turnstile/fork_guard.h"
#include "lease/turnstile/lock_wait.h"
#include "lease/turnstile/process_identity.h"
#include "tenon/error.h"

namespace tenon {
namespace {

constexpr const char* kSuffix = ".turnstile";
// Longer limits than this are none; it keeps deadlines far from the end of the clock.
constexpr std::chrono::hours kLongest{24 * 365 * 10};

bool is_plain(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == ':' || c == '-' || c == '_';
}

std::string file_name_of(const std::string& device) {
  std::string name;
  for (const char c : device) name += is_plain(c) ? std::string(1, c) : fmt::format("%{:02x}", static_cast<unsigned char>(c));
  if (name.empty() || name.size() > 200)
    throw Error(ErrorCode::invalid_argument, "the name of a device's queue must have 1 to 200 characters");
  return name + kSuffix;
}

int hexadecimal(char c) { return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1; }

std::string device_of(std::string file_name) {
  file_name.resize(file_name.size() - std::strlen(kSuffix));
  std::string device;
  for (std::size_t i = 0; i < file_name.size(); ++i) {
    const int high = i + 2 < file_name.size() ? hexadecimal(file_name[i + 1]) : -1;
    const int low = high >= 0 ? hexadecimal(file_name[i + 2]) : -1;
    if (file_name[i] == '%' && low >= 0) {
      device += static_cast<char>(high * 16 + low);
      i += 2;
    } else {
      device += file_name[i];
    }
  }
  return device;
}

std::int64_t unix_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::system_clock::now().time_since_epoch()).count();
}

template <std::size_t N>
void copy_text(char (&to)[N], const std::string& text) {
  std::memcpy(to, text.data(), std::min(text.size(), N - 1));
}

TicketFile::Record record_of_this_process(TicketNumber ticket, TicketKind kind) {
  const ProcessIdentity& self = ProcessIdentity::of_this_process();
  TicketFile::Record record;
  record.ticket = ticket;
  record.kind = kind;
  record.arrived_unix_ns = unix_ns();
  record.pid = self.pid;
  record.uid = self.uid;
  record.pid_namespace = self.pid_namespace;
  record.start_ticks = self.start_ticks;
  copy_text(record.boot_id, self.boot_id);
  copy_text(record.command, self.command);
  return record;
}

void check(LockWait::Outcome outcome, const std::string& device) {
  if (outcome == LockWait::Outcome::timed_out)
    throw Error(ErrorCode::deadline_exceeded, fmt::format("{} did not become free in the time given", device),
                "wait for the current holder, or use another device");
  if (outcome == LockWait::Outcome::stopped)
    throw Error(ErrorCode::cancelled, fmt::format("the wait for {} was cancelled", device));
}

// Under the door: takes the next number, claims its byte, and only then moves the number on; that write is what tells the holder,
// who then finds the byte claimed. Whoever dies in between leaves no trace.
TicketNumber take_ticket(TicketFile& file, TicketKind kind) {
  TicketNumber ticket = file.read_header().next_ticket;
  // A new file, or one that was cut short while in use: then somebody may hold a number already: continue after the highest.
  if (ticket <= 1) {
    ticket = 1;
    for (const TicketKind other : {TicketKind::exclusive, TicketKind::shared})
      if (file.any_claimed(other, ticket)) ticket = file.claimed(other, ticket).back() + 1;
  }
  if (const int error = file.claim(ticket, kind); error != 0)
    throw Error(error == ENOLCK ? ErrorCode::resource_exhausted : ErrorCode::unknown,
                fmt::format("cannot take a ticket: {}", std::strerror(error)));
  file.write_next_ticket(ticket + 1);
  return ticket;
}

bool try_turn(TicketFile& file, TicketNumber ticket, TicketKind kind) {
  return file.try_all_before(ticket, TicketKind::exclusive) == 0 &&
         (kind == TicketKind::shared || file.try_all_before(ticket, TicketKind::shared) == 0);
}

// One request over all earlier tickets would be enough. With the one just before asked for first, a release wakes one waiter and
// not all of them; if that one left the queue early, the second request waits for the rest. No earlier ticket can come back, so
// the requests may follow one another.
LockWait::Outcome wait_turn(LockWait& wait, TicketFile& file, TicketNumber ticket, TicketKind kind) {
  using Outcome = LockWait::Outcome;
  Outcome outcome = Outcome::done;
  if (kind == TicketKind::exclusive) outcome = wait.run([&] { return file.wait_one_before(ticket, TicketKind::exclusive); });
  if (outcome == Outcome::done) outcome = wait.run([&] { return file.wait_all_before(ticket, TicketKind::exclusive); });
  if (outcome == Outcome::done && kind == TicketKind::exclusive)
    outcome = wait.run([&] { return file.wait_all_before(ticket, TicketKind::shared); });
  return outcome;
}

LockWait::Outcome enter_door(LockWait& wait, TicketFile& file, bool* had_to_wait = nullptr) {
  if (file.try_door() == 0) return LockWait::Outcome::done;
  if (had_to_wait != nullptr) *had_to_wait = true;
  return wait.run([&] { return file.wait_door(); });
}

}  // namespace

// One file without locks, open for whoever enters next: opening costs a quarter of an uncontended grant. An atomic word and no
// mutex, as a fork may come at any time; a word from before a fork names a descriptor that is closed.
class Turnstile::Spare {
 public:
  Spare() = default;
  Spare(const Spare&) = delete;
  Spare& operator=(const Spare&) = delete;
  ~Spare() {
    const std::uint64_t generation = fork_guard::generation();
    TicketFile file = take(generation);
    if (file.fd() >= 0) fork_guard::close(file.take(), generation);
  }
  TicketFile take(std::uint64_t generation) noexcept {
    const std::uint64_t word = word_.exchange(0);
    if (word == 0 || word >> 32 != generation) return TicketFile();
    return TicketFile(FileDescriptor(static_cast<int>(word & 0xffffffff)));
  }
  void put(FileDescriptor fd, std::uint64_t generation) noexcept {
    std::uint64_t none = 0;
    const std::uint64_t word = generation << 32 | static_cast<std::uint32_t>(fd.get());
    if (generation == fork_guard::generation() && word_.compare_exchange_strong(none, word))
      fd.release();
    else
      fork_guard::close(std::move(fd), generation);
  }

 private:
  std::atomic<std::uint64_t> word_{0};  // generation and descriptor; 0 for none
};

Turnstile::Turnstile(RunDirectory directory, std::string device)
    : directory_(std::move(directory)),
      device_(std::move(device)),
      file_name_(file_name_of(device_)),
      spare_(std::make_shared<Spare>()) {}

Turnstile::Pass Turnstile::enter(const Options& options) const {
  std::optional<LockWait::Clock::time_point> deadline;
  if (options.timeout && *options.timeout < kLongest) deadline = LockWait::Clock::now() + *options.timeout;
  LockWait wait(deadline, options.cancel);
  // Whatever ends this early, the pass gives its place up: without a ticket it has nothing to give back.
  Pass pass;
  TicketFile& file = pass.file_;
  pass.spare_ = spare_;
  pass.process_generation_ = fork_guard::generation();
  pass.kind_ = options.kind;
  file = spare_->take(pass.process_generation_);
  for (;;) {
    if (file.fd() >= 0 && file.is_unlinked()) fork_guard::close(file.take(), pass.process_generation_);
    if (file.fd() < 0) file = TicketFile(fork_guard::open([&] { return directory_.open_file(file_name_); }));
    bool had_to_wait = false;
    check(enter_door(wait, file, &had_to_wait), device_);
    if (!had_to_wait || !file.is_unlinked()) break;
  }
  const TicketNumber ticket = take_ticket(file, options.kind);
  file.leave_door();

  TicketFile::Record record = record_of_this_process(ticket, options.kind);
  if (!try_turn(file, ticket, options.kind)) {
    file.write_record(record);
    if (options.on_wait) options.on_wait(ticket);
    check(wait_turn(wait, file, ticket, options.kind), device_);
  }

  const bool is_exclusive = options.kind == TicketKind::exclusive;
  // An exclusive holder is alone with these words. Shared holders count themselves one at a time.
  if (!is_exclusive) check(enter_door(wait, file), device_);
  const TicketFile::Header header = file.read_header();
  pass.is_dirty_ = header.unreturned_exclusive != 0 || (is_exclusive && header.unreturned_shared != 0);
  if (is_exclusive) {
    file.write_unreturned(ticket, 0);
  } else {
    file.write_unreturned(header.unreturned_exclusive, header.unreturned_shared + 1);
    file.leave_door();
  }
  pass.ticket_ = ticket;
  record.granted_unix_ns = unix_ns();
  file.write_record(record);
  return pass;
}

Turnstile::Pass Turnstile::enter() const { return enter(Options{}); }

Turnstile::Queue Turnstile::queue() const {
  Queue queue{.device = device_};
  std::optional<FileDescriptor> fd = directory_.open_file_to_read(file_name_);
  if (!fd) return queue;
  const TicketFile file(std::move(*fd));
  for (const TicketKind kind : {TicketKind::exclusive, TicketKind::shared})
    for (const TicketNumber ticket : file.claimed(kind)) {
      Position place{.ticket = ticket, .kind = kind};
      queue.places.push_back(place);
    }
  std::sort(queue.places.begin(), queue.places.end(), [](const Position& a, const Position& b) { return a.ticket < b.ticket; });

  const std::uint64_t own_namespace = ProcessIdentity::of_this_process().pid_namespace;
  bool is_exclusive_before = false;
  for (std::size_t i = 0; i < queue.places.size(); ++i) {
    Position& place = queue.places[i];
    // The locks alone decide who holds: a ticket with no earlier one that it must wait for.
    place.is_holding = !is_exclusive_before && (i == 0 || place.kind == TicketKind::shared);
    is_exclusive_before = is_exclusive_before || place.kind == TicketKind::exclusive;
    const std::optional<TicketFile::Record> record = file.read_record(place.ticket, place.kind);
    if (!record) continue;
    place.is_known = true;
    place.pid = record->pid;
    place.uid = record->uid;
    place.is_in_this_pid_namespace = own_namespace != 0 && record->pid_namespace == own_namespace;
    place.command = printable(record->command);
    const std::int64_t since =
        place.is_holding && record->granted_unix_ns != 0 ? record->granted_unix_ns : record->arrived_unix_ns;
    place.since = std::chrono::system_clock::time_point(std::chrono::nanoseconds(since));
  }
  const TicketNumber unreturned = file.read_header().unreturned_exclusive;
  queue.is_dirty = unreturned != 0 && std::none_of(queue.places.begin(), queue.places.end(),
                                                   [&](const Position& place) { return place.ticket == unreturned; });
  return queue;
}

Turnstile::Watch Turnstile::watch() const {
  const FileDescriptor file = directory_.open_file(file_name_);
  FileDescriptor events(inotify_init1(IN_CLOEXEC | IN_NONBLOCK));
  // By its descriptor, so that the file watched is the file checked.
  const std::string path = fmt::format("/proc/self/fd/{}", file.get());
  if (!events || inotify_add_watch(events.get(), path.c_str(), IN_MODIFY) < 0)
    throw Error(ErrorCode::resource_exhausted, fmt::format("cannot watch the queue of {}: {}", device_, std::strerror(errno)),
                "raise fs.inotify.max_user_instances");
  return Watch(std::move(events));
}

void Turnstile::Watch::clear() const {
  std::array<char, 4096> buffer;
  while (read(fd_.get(), buffer.data(), buffer.size()) > 0) {
  }
}

std::vector<Turnstile> Turnstile::all(const RunDirectory& directory) {
  std::vector<Turnstile> turnstiles;
  for (const std::string& file : directory.files(kSuffix)) turnstiles.emplace_back(directory, device_of(file));
  return turnstiles;
}

Turnstile::Pass::Pass(Pass&& other) noexcept { *this = std::move(other); }

Turnstile::Pass& Turnstile::Pass::operator=(Pass&& other) noexcept {
  if (this == &other) return *this;
  give_back();
  file_ = TicketFile(other.file_.take());
  ticket_ = std::exchange(other.ticket_, 0);
  kind_ = other.kind_;
  is_dirty_ = std::exchange(other.is_dirty_, false);
  process_generation_ = other.process_generation_;
  spare_ = std::move(other.spare_);
  return *this;
}

Turnstile::Pass::~Pass() { give_back(); }

Turnstile::Pass::operator bool() const noexcept { return file_.fd() >= 0 && process_generation_ == fork_guard::generation(); }

bool Turnstile::Pass::has_waiters() const {
  if (!*this) return false;
  if (file_.any_claimed(TicketKind::exclusive, ticket_ + 1)) return true;
  // Later shared tickets share with a shared holder.
  return kind_ == TicketKind::exclusive && file_.any_claimed(TicketKind::shared, ticket_ + 1);
}

void Turnstile::Pass::give_back() noexcept {
  if (!*this || ticket_ == 0) return leave();
  try {
    if (kind_ == TicketKind::exclusive) {
      file_.write_unreturned(0, 0);
    } else {
      LockWait wait(std::nullopt, {});
      enter_door(wait, file_);
      const TicketFile::Header header = file_.read_header();
      file_.write_unreturned(header.unreturned_exclusive,
                             header.unreturned_shared - std::min<std::uint64_t>(1, header.unreturned_shared));
    }
  } catch (const std::exception&) {
    // What is not recorded as returned is dirty for the next one, which is the safe side.
  }
  leave();
}

void Turnstile::Pass::give_back_dirty() noexcept { leave(); }

void Turnstile::Pass::leave() noexcept {
  ticket_ = 0;
  if (file_.fd() < 0) return;
  // Unlocking, unlike closing, also holds when a child has a copy of the descriptor.
  if (*this) file_.drop_all_locks();
  spare_->put(file_.take(), process_generation_);
}

}  // namespace tenon
