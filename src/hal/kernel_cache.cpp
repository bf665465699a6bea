#include "hal/kernel_cache.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "base/system/file_descriptor.h"

namespace tenon {
namespace {

namespace fs = std::filesystem;

constexpr char kMagic[8] = {'T', 'N', 'K', 'E', 'R', 'N', '0', '1'};
constexpr std::string_view kSuffix = ".kernel", kUnfinished = ".part";

struct Header {
  char magic[8];
  std::uint64_t key_bytes, binary_bytes, checksum;
};

// A multiply and a fold per 8 bytes: fast, and any flipped bit changes it.
std::uint64_t mix(std::uint64_t h, std::span<const std::byte> bytes, std::uint64_t factor) {
  const auto step = [&](std::uint64_t word) {
    const auto product = static_cast<unsigned __int128>(h ^ word) * factor;
    h = static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
  };
  std::size_t i = 0;
  for (; i + 8 <= bytes.size(); i += 8) {
    std::uint64_t word;
    std::memcpy(&word, bytes.data() + i, 8);
    step(word);
  }
  std::uint64_t rest = 0;
  std::memcpy(&rest, bytes.data() + i, bytes.size() - i);
  step(rest);
  step(bytes.size());
  return h;
}

std::string key_text(const KernelKey& key) {
  std::string text;
  for (const std::string* part : {&key.source, &key.options, &key.compiler, &key.device})
    text += fmt::format("{}:{}\n", part->size(), *part);
  return text;
}

std::span<const std::byte> bytes_of(const std::string& text) { return std::as_bytes(std::span(text.data(), text.size())); }

std::uint64_t checksum_of(const std::string& key, std::span<const std::byte> binary) {
  return mix(mix(0x9E3779B97F4A7C15u, bytes_of(key), 0xD6E8FEB86659FD93u), binary, 0xA0761D6478BD642Fu);
}

std::string file_name(const std::string& key) {
  return fmt::format("{:016x}{:016x}{}", mix(1, bytes_of(key), 0xE7037ED1A0B428DBu), mix(2, bytes_of(key), 0x8EBC6AF09C88C6E3u),
                     kSuffix);
}

// Code that other users could have written must not be run: owned by this user, and writable by no other.
bool is_ours(const FileDescriptor& file, mode_t type) {
  struct stat info{};
  return file && fstat(file.get(), &info) == 0 && (info.st_mode & S_IFMT) == type && info.st_uid == geteuid() &&
         (info.st_mode & 022) == 0;
}

// The folder itself, not its path: whoever owns a parent directory may exchange what the path names between two calls. Empty
// where it is not ours.
FileDescriptor open_folder(const std::string& folder) {
  FileDescriptor opened(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW));
  return is_ours(opened, S_IFDIR) ? std::move(opened) : FileDescriptor();
}

bool write_all(int fd, const void* data, std::size_t size) {
  const auto* at = static_cast<const char*>(data);
  while (size > 0) {
    const ssize_t written = ::write(fd, at, size);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    at += written;
    size -= static_cast<std::size_t>(written);
  }
  return true;
}

bool read_all(int fd, void* data, std::size_t size) {
  auto* at = static_cast<char*>(data);
  while (size > 0) {
    const ssize_t got = ::read(fd, at, size);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    at += got;
    size -= static_cast<std::size_t>(got);
  }
  return true;
}

std::optional<std::vector<std::byte>> read_entry(const FileDescriptor& folder, const std::string& name, const std::string& key) {
  const FileDescriptor file(::openat(folder.get(), name.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (!is_ours(file, S_IFREG)) return std::nullopt;
  struct stat info{};
  Header header{};
  const bool plausible = fstat(file.get(), &info) == 0 && info.st_size >= static_cast<off_t>(sizeof header) &&
                         read_all(file.get(), &header, sizeof header) && std::memcmp(header.magic, kMagic, sizeof kMagic) == 0;
  const auto rest = plausible ? static_cast<std::uint64_t>(info.st_size) - sizeof header : 0;
  if (!plausible || header.key_bytes > rest || header.binary_bytes != rest - header.key_bytes) {
    ::unlinkat(folder.get(), name.c_str(), 0);
    return std::nullopt;
  }
  std::string stored(header.key_bytes, '\0');
  std::vector<std::byte> binary(header.binary_bytes);
  if (!read_all(file.get(), stored.data(), stored.size()) || !read_all(file.get(), binary.data(), binary.size()) ||
      header.checksum != checksum_of(stored, binary)) {
    ::unlinkat(folder.get(), name.c_str(), 0);
    return std::nullopt;
  }
  if (stored != key) return std::nullopt;
  futimens(file.get(), nullptr);  // marks it as most recently used
  return binary;
}

struct Entry {
  fs::path path;
  std::uint64_t bytes = 0;
  fs::file_time_type used;
};

std::vector<Entry> entries_of(const std::string& folder) {
  std::vector<Entry> entries;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    std::error_code gone;
    Entry entry{it->path(), 0, fs::last_write_time(it->path(), gone)};
    if (!gone) entry.bytes = fs::file_size(it->path(), gone);
    if (!gone) entries.push_back(std::move(entry));
  }
  return entries;
}

std::string default_folder() {
  if (const char* own = std::getenv("TENON_CACHE_DIR")) return *own ? std::string(own) + "/kernels" : std::string();
  if (const char* cache = std::getenv("XDG_CACHE_HOME"); cache && *cache) return std::string(cache) + "/tenon/kernels";
  if (const char* home = std::getenv("HOME"); home && *home) return std::string(home) + "/.cache/tenon/kernels";
  return {};
}

}  // namespace

KernelCache::KernelCache(std::string folder, std::uint64_t max_bytes)
    : folder_(std::move(folder)),
      max_bytes_(max_bytes),
      written_(max_bytes) {}

KernelCache& KernelCache::process() {
  static KernelCache cache(default_folder());
  return cache;
}

std::optional<std::vector<std::byte>> KernelCache::find(const KernelKey& key) const noexcept {
  if (folder_.empty()) return std::nullopt;
  try {
    const FileDescriptor folder = open_folder(folder_);
    if (!folder) return std::nullopt;
    const std::string text = key_text(key);
    return read_entry(folder, file_name(text), text);
  } catch (const std::exception&) {
    return std::nullopt;
  }
}

void KernelCache::store(const KernelKey& key, std::span<const std::byte> binary) const noexcept {
  static std::atomic<std::uint64_t> counter{0};
  if (folder_.empty() || binary.size() > max_bytes_ / 2) return;
  try {
    std::error_code error;
    fs::create_directories(fs::path(folder_).parent_path(), error);
    if (::mkdir(folder_.c_str(), 0700) != 0 && errno != EEXIST) return;
    const FileDescriptor folder = open_folder(folder_);
    if (!folder) return;
    const std::string text = key_text(key), name = file_name(text);
    const std::string part = fmt::format("{}-{}{}", getpid(), counter.fetch_add(1), kUnfinished);
    {
      const FileDescriptor file(::openat(folder.get(), part.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
      if (!file) return;
      Header header{{}, text.size(), binary.size(), checksum_of(text, binary)};
      std::memcpy(header.magic, kMagic, sizeof kMagic);
      if (!write_all(file.get(), &header, sizeof header) || !write_all(file.get(), text.data(), text.size()) ||
          !write_all(file.get(), binary.data(), binary.size())) {
        ::unlinkat(folder.get(), part.c_str(), 0);
        return;
      }
    }
    if (::renameat(folder.get(), part.c_str(), folder.get(), name.c_str()) != 0) ::unlinkat(folder.get(), part.c_str(), 0);
    // Measuring reads the whole folder: at the first entry, then once in a while.
    if (written_.fetch_add(text.size() + binary.size()) < max_bytes_ / 16) return;
    written_ = 0;
    if (bytes() > max_bytes_) make_room(max_bytes_ / 4 * 3);
  } catch (const std::exception&) {
  }
}

std::uint64_t KernelCache::bytes() const noexcept {
  try {
    std::uint64_t total = 0;
    for (const Entry& entry : entries_of(folder_)) total += entry.bytes;
    return total;
  } catch (const std::exception&) {
    return 0;
  }
}

void KernelCache::make_room(std::uint64_t limit) const {
  std::vector<Entry> entries = entries_of(folder_);
  std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) { return a.used < b.used; });
  std::uint64_t total = 0;
  for (const Entry& entry : entries) total += entry.bytes;
  // An unfinished file of the last hour may still be in use.
  const auto fresh = fs::file_time_type::clock::now() - std::chrono::hours(1);
  for (const Entry& entry : entries) {
    if (total <= limit) return;
    if (entry.path.string().ends_with(kUnfinished) && entry.used > fresh) continue;
    std::error_code error;
    if (fs::remove(entry.path, error)) total -= entry.bytes;
  }
}

}  // namespace tenon
