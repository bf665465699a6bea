#include "cli/inputs/vector_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstring>
#include <fstream>
#include <system_error>

#include "tenon/error.h"

namespace tenon::cli {
namespace {

constexpr std::size_t kHeader = 128;

// NumPy's format 1.0, padded to kHeader bytes whatever the numbers.
std::string header_of(std::int64_t rows, std::int64_t width) {
  std::string text = fmt::format("{{'descr': '<f4', 'fortran_order': False, 'shape': ({}, {}), }}", rows, width);
  text.resize(kHeader - 11, ' ');
  const std::size_t length = kHeader - 10;
  return std::string("\x93NUMPY\x01\x00", 8) + static_cast<char>(length & 0xff) + static_cast<char>(length >> 8) + text + '\n';
}

[[noreturn]] void fail(const std::filesystem::path& file, const char* what) {
  throw Error(errno == EACCES || errno == EPERM ? ErrorCode::permission_denied : ErrorCode::unavailable,
              fmt::format("'{}' cannot be {}: {}", file.string(), what, std::strerror(errno)));
}

}  // namespace

VectorFile::VectorFile(std::filesystem::path file, std::string origin, std::int64_t rows)
    : file_(std::move(file)),
      part_(file_.string() + ".part"),
      from_(file_.string() + ".part.from"),
      origin_(std::move(origin)),
      rows_(rows) {
  // The first line is the width of a row, which is known once one was computed.
  std::string width, known;
  std::ifstream from(from_);
  const bool is_same =
      static_cast<bool>(std::getline(from, width)) && static_cast<bool>(std::getline(from, known)) && known == origin_;
  if (is_same) std::from_chars(width.data(), width.data() + width.size(), width_);
  descriptor_ = FileDescriptor(::open(part_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666));
  if (!descriptor_) fail(part_, "written");
  if (::flock(descriptor_.get(), LOCK_EX | LOCK_NB) != 0)
    throw Error(ErrorCode::unavailable, fmt::format("'{}' is being written by another process", part_.string()),
                "wait until it has ended, or choose another output");
  struct stat status{};
  if (::fstat(descriptor_.get(), &status) != 0) fail(part_, "read");
  if (width_ > 0 && status.st_size >= static_cast<off_t>(kHeader))
    done_ = std::min<std::int64_t>(rows_, (status.st_size - static_cast<off_t>(kHeader)) / (4 * width_));
  const off_t keep = done_ > 0 ? static_cast<off_t>(kHeader) + done_ * 4 * width_ : 0;
  if (done_ == 0) width_ = 0;
  if (::ftruncate(descriptor_.get(), keep) != 0 || ::lseek(descriptor_.get(), keep, SEEK_SET) < 0) fail(part_, "written");
}

void VectorFile::append(const HostArray& vectors) {
  const std::int64_t width = vectors.shape()[1];
  if (width_ == 0) {
    width_ = width;
    // Before the first row: a part without its origin would be started again.
    std::ofstream from(from_, std::ios::trunc);
    from << width_ << '\n' << origin_ << '\n';
    from.close();
    if (!from) fail(from_, "written");
    const std::string header = header_of(rows_, width_);
    write(header.data(), header.size());
  }
  if (width != width_) throw Error(ErrorCode::internal, fmt::format("vectors of {} elements after vectors of {}", width, width_));
  write(vectors.data(), vectors.bytes());
  done_ += vectors.shape()[0];
}

void VectorFile::write(const void* data, std::size_t bytes) {
  const auto* from = static_cast<const char*>(data);
  while (bytes > 0) {
    const ssize_t written = ::write(descriptor_.get(), from, bytes);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) fail(part_, "written");
    from += written;
    bytes -= static_cast<std::size_t>(written);
  }
}

void VectorFile::finish() {
  if (done_ != rows_) throw Error(ErrorCode::internal, fmt::format("'{}' has {} of {} rows", part_.string(), done_, rows_));
  if (::fsync(descriptor_.get()) != 0 || ::rename(part_.c_str(), file_.c_str()) != 0) fail(file_, "written");
  std::error_code ignored;
  std::filesystem::remove(from_, ignored);
}

}  // namespace tenon::cli
