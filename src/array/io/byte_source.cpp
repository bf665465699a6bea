#include "array/io/byte_source.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "array/host_memory.h"
#include "tenon/error.h"

namespace tenon {
namespace {

// read(2) and write(2) move at most about 2 GiB at once.
constexpr std::size_t kLargestTransfer = std::size_t{1} << 30;

[[noreturn]] void fail(std::string_view doing, const std::filesystem::path& file, int error) {
  ErrorCode code = ErrorCode::unknown;
  if (error == ENOENT || error == ENOTDIR) code = ErrorCode::not_found;
  if (error == EACCES || error == EPERM || error == EROFS) code = ErrorCode::permission_denied;
  if (error == ENOSPC || error == EDQUOT || error == EFBIG || error == EMFILE) code = ErrorCode::resource_exhausted;
  if (error == EISDIR || error == ENAMETOOLONG) code = ErrorCode::invalid_argument;
  throw Error(code, fmt::format("cannot {} {}: {}", doing, file.string(), std::generic_category().message(error)));
}

class Descriptor {
 public:
  explicit Descriptor(int fd) noexcept : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const noexcept { return fd_; }

 private:
  int fd_;
};

struct stat status_of(const Descriptor& fd, const std::filesystem::path& file) {
  struct stat status{};
  if (::fstat(fd.get(), &status) != 0) fail("read", file, errno);
  return status;
}

class FileSource final : public ByteSource {
 public:
  FileSource(Descriptor fd, std::uint64_t size, std::string label) : fd_(std::move(fd)), size_(size), label_(std::move(label)) {}
  std::uint64_t size() const noexcept override { return size_; }
  const std::string& label() const noexcept override { return label_; }

  void read(std::uint64_t offset, std::span<std::byte> out) const override {
    while (!out.empty()) {
      const ssize_t got = ::pread(fd_.get(), out.data(), std::min(out.size(), kLargestTransfer), static_cast<off_t>(offset));
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) fail("read", label_, errno);
      if (got == 0) throw Error(ErrorCode::data_loss, fmt::format("{} was truncated while it was read", label_));
      offset += static_cast<std::uint64_t>(got);
      out = out.subspan(static_cast<std::size_t>(got));
    }
  }

 private:
  Descriptor fd_;
  std::uint64_t size_;
  std::string label_;
};

class StreamSource final : public ByteSource {
 public:
  StreamSource(const Descriptor& fd, std::string label) : label_(std::move(label)) {
    const std::size_t limit = host_memory::memory_limit() / 4;
    constexpr std::size_t kStep = std::size_t{64} << 10;
    for (std::size_t filled = 0;;) {
      if (bytes_.size() - filled < kStep) bytes_.resize(std::max(2 * bytes_.size(), kStep));
      const ssize_t got = ::read(fd.get(), bytes_.data() + filled, std::min(bytes_.size() - filled, kLargestTransfer));
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) fail("read", label_, errno);
      filled += static_cast<std::size_t>(got);
      if (filled > limit)
        throw Error(ErrorCode::resource_exhausted, fmt::format("{} has more than {} bytes", label_, limit),
                    "save it to a file first");
      if (got == 0) {
        bytes_.resize(filled);
        return;
      }
    }
  }
  std::uint64_t size() const noexcept override { return bytes_.size(); }
  const std::string& label() const noexcept override { return label_; }
  void read(std::uint64_t offset, std::span<std::byte> out) const override {
    if (!out.empty()) std::memcpy(out.data(), bytes_.data() + offset, out.size());
  }

 private:
  std::string label_;
  std::vector<std::byte> bytes_;
};

void write_all(const Descriptor& fd, std::span<const std::byte> bytes, const std::filesystem::path& file) {
  while (!bytes.empty()) {
    const ssize_t done = ::write(fd.get(), bytes.data(), std::min(bytes.size(), kLargestTransfer));
    if (done < 0 && errno == EINTR) continue;
    if (done < 0) fail("write", file, errno);
    bytes = bytes.subspan(static_cast<std::size_t>(done));
  }
}

// Removes the unfinished file unless the rename has made it the real one.
class Unfinished {
 public:
  explicit Unfinished(std::filesystem::path file) : file_(std::move(file)) {}
  ~Unfinished() {
    if (!file_.empty()) ::unlink(file_.c_str());
  }
  Unfinished(const Unfinished&) = delete;
  Unfinished& operator=(const Unfinished&) = delete;
  void rename_to(const std::filesystem::path& target) {
    if (::rename(file_.c_str(), target.c_str()) != 0) fail("write", target, errno);
    file_.clear();
  }

 private:
  std::filesystem::path file_;
};

std::filesystem::path unfinished_name(const std::filesystem::path& target) {
  static std::atomic<unsigned> counter{0};
  return target.parent_path() / fmt::format(".tenon-{}-{}.part", ::getpid(), counter.fetch_add(1));
}

}  // namespace

std::unique_ptr<ByteSource> open_source(const std::filesystem::path& file) {
  Descriptor fd(::open(file.c_str(), O_RDONLY | O_CLOEXEC));
  if (fd.get() < 0) fail("read", file, errno);
  const struct stat status = status_of(fd, file);
  if (S_ISDIR(status.st_mode)) fail("read", file, EISDIR);
  if (S_ISREG(status.st_mode))
    return std::make_unique<FileSource>(std::move(fd), static_cast<std::uint64_t>(status.st_size), file.string());
  return std::make_unique<StreamSource>(fd, file.string());
}

void write_file(const std::filesystem::path& file, std::span<const std::span<const std::byte>> parts) {
  struct stat status{};
  const bool exists = ::stat(file.c_str(), &status) == 0;
  if (exists && S_ISDIR(status.st_mode)) fail("write", file, EISDIR);
  if (exists && !S_ISREG(status.st_mode)) {
    const Descriptor fd(::open(file.c_str(), O_WRONLY | O_CLOEXEC));
    if (fd.get() < 0) fail("write", file, errno);
    for (std::span<const std::byte> part : parts) write_all(fd, part, file);
    return;
  }
  // A symbolic link stays a link; its target is replaced.
  std::error_code ignored;
  const std::filesystem::path resolved = exists ? std::filesystem::canonical(file, ignored) : file;
  const std::filesystem::path target = resolved.empty() ? file : resolved;
  const std::filesystem::path temporary = unfinished_name(target);
  const Descriptor fd(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
  if (fd.get() < 0) fail("write", file, errno);
  Unfinished unfinished(temporary);
  if (exists) (void)::fchmod(fd.get(), status.st_mode & 07777);
  for (std::span<const std::byte> part : parts) write_all(fd, part, file);
  unfinished.rename_to(target);
}

}  // namespace tenon
