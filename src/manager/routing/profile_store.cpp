#include "manager/routing/profile_store.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <thread>

#include "base/log.h"
#include "base/system/file_descriptor.h"
#include "base/system/state_directory.h"
#include "tenon/error.h"

namespace tenon {
namespace {

constexpr std::size_t kMaxBytes = 4 << 20;  // several times what the bounds of a profile allow
constexpr std::size_t kMaxPending = 4096;
constexpr auto kBetweenWrites = std::chrono::seconds(30);
constexpr auto kPatience = std::chrono::milliseconds(200);

std::int64_t now() { return static_cast<std::int64_t>(std::time(nullptr)); }

// "" for a file that is missing, unreadable or too large.
std::string read_all(const std::string& path) {
  const FileDescriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  struct stat info{};
  if (!file || fstat(file.get(), &info) != 0 || !S_ISREG(info.st_mode)) return "";
  if (info.st_size <= 0 || static_cast<std::size_t>(info.st_size) > kMaxBytes) return "";
  std::string text(static_cast<std::size_t>(info.st_size), '\0');
  std::size_t have = 0;
  while (have < text.size()) {
    const ssize_t got = read(file.get(), text.data() + have, text.size() - have);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    have += static_cast<std::size_t>(got);
  }
  text.resize(have);
  return text;
}

bool write_all(int file, const std::string& text) {
  std::size_t done = 0;
  while (done < text.size()) {
    const ssize_t put = write(file, text.data() + done, text.size() - done);
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) return false;
    done += static_cast<std::size_t>(put);
  }
  return true;
}

// In one step: whoever opens |path| sees the old text or the new one.
bool replace_file(const std::string& path, const std::string& text) {
  const std::string passing = fmt::format("{}.{}", path, getpid());
  FileDescriptor file(open(passing.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!file) return false;
  const bool is_written = write_all(file.get(), text);
  file = FileDescriptor();
  if (is_written && rename(passing.c_str(), path.c_str()) == 0) return true;
  unlink(passing.c_str());
  return false;
}

// Waits for a while only: a process that was stopped while it had the lock must not stop the others.
FileDescriptor take_lock(const std::string& path, std::chrono::milliseconds patience) {
  FileDescriptor file(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!file) return file;
  const auto end = std::chrono::steady_clock::now() + patience;
  while (flock(file.get(), LOCK_EX | LOCK_NB) != 0) {
    if ((errno != EWOULDBLOCK && errno != EINTR) || std::chrono::steady_clock::now() >= end) return FileDescriptor();
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return file;
}

}  // namespace

std::shared_ptr<ProfileStore> ProfileStore::of_process() {
  // Never destroyed, as devices may be used until the very end; written by the handler instead.
  static const auto* const store = [] {
    const std::string folder = state_directory();
    auto* made =
        new std::shared_ptr<ProfileStore>(std::make_shared<ProfileStore>(folder.empty() ? "" : folder + "/profile.json"));
    std::atexit([] { ProfileStore::of_process()->flush(); });
    return made;
  }();
  return *store;
}

ProfileStore::ProfileStore(std::string file)
    : file_(std::move(file)),
      process_(getpid()),
      written_(std::chrono::steady_clock::now()) {}

ProfileStore::~ProfileStore() { flush(); }

void ProfileStore::Change::apply(Profile& profile) const {
  switch (kind) {
    case Kind::open: return profile.add_open(*device, seconds, when);
    case Kind::close: return profile.add_close(*device, seconds, when);
    case Kind::hold: return profile.add_hold(*device, seconds, when);
    case Kind::run: return profile.add_run(*device, work, times, when);
  }
}

const std::shared_ptr<const DeviceKey>& ProfileStore::key_of(const DeviceInfo& device) {
  for (const Known& known : known_)
    if (known.id == device.id && known.name == device.name && known.details == device.details) return known.key;
  if (known_.size() >= 2 * Profile::kMaxDevices) known_.erase(known_.begin());
  known_.push_back({device.id, device.name, device.details, std::make_shared<const DeviceKey>(device)});
  return known_.back().key;
}

void ProfileStore::read_once() const {
  if (std::exchange(was_read_, true) || file_.empty()) return;
  Profile known = Profile::from_text(read_all(file_));
  for (const Change& change : pending_) change.apply(known);
  profile_ = std::move(known);
}

void ProfileStore::record(const DeviceInfo& device, Change change) {
  change.when = now();
  const std::lock_guard lock(mutex_);
  change.device = key_of(device);
  change.apply(profile_);
  if (file_.empty()) return;
  if (pending_.size() < kMaxPending) pending_.push_back(std::move(change));
  is_full_ = pending_.size() >= kMaxPending;
  // Whoever computes must not wait for another process; there is a next time.
  if (std::chrono::steady_clock::now() - written_ > kBetweenWrites) write(std::chrono::milliseconds(0));
}

void ProfileStore::record_open(const DeviceInfo& device, double seconds) {
  record(device, {.kind = Change::Kind::open, .seconds = seconds});
}

void ProfileStore::record_close(const DeviceInfo& device, double seconds) {
  record(device, {.kind = Change::Kind::close, .seconds = seconds});
}

void ProfileStore::record_hold(const DeviceInfo& device, double seconds) {
  record(device, {.kind = Change::Kind::hold, .seconds = seconds});
}

void ProfileStore::record_run(const DeviceInfo& device, const Work& work, bool was_compiled, const Timeline& timeline) {
  record(device, {.kind = Change::Kind::run, .work = work, .times = RunTimes::of(timeline, was_compiled)});
}

Stages ProfileStore::predict(const Candidate& candidate, const Work& work) const {
  const std::lock_guard lock(mutex_);
  read_once();
  return profile_.predict(candidate, work);
}

Latency ProfileStore::latency(const DeviceInfo& device, const Latency& declared) const {
  const std::lock_guard lock(mutex_);
  read_once();
  return profile_.latency(device, declared);
}

Profile ProfileStore::profile() const {
  const std::lock_guard lock(mutex_);
  read_once();
  return profile_;
}

bool ProfileStore::flush() noexcept {
  try {
    const std::lock_guard lock(mutex_);
    return pending_.empty() || write(kPatience);
  } catch (...) {
    return false;  // out of memory at the end of a process: nobody is left to care
  }
}

bool ProfileStore::write(std::chrono::milliseconds patience) {
  written_ = std::chrono::steady_clock::now();
  if (file_.empty() || getpid() != process_) return false;
  try {
    make_private_directory(file_.substr(0, file_.find_last_of('/')));
  } catch (const Error& error) {
    logging::debug("profiles are not saved: {}", error.what());
    read_once();
    pending_.clear();
    is_full_ = false;
    return false;
  }
  const FileDescriptor lock = take_lock(file_ + ".lock", patience);
  if (!lock) return false;
  Profile known = Profile::from_text(read_all(file_));
  for (const Change& change : pending_) change.apply(known);
  if (!replace_file(file_, known.to_text())) {
    logging::debug("profiles cannot be written to {}", file_);
    return false;
  }
  profile_ = std::move(known);
  was_read_ = true;
  pending_.clear();
  is_full_ = false;
  return true;
}

}  // namespace tenon
