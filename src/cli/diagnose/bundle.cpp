#include "cli/diagnose/bundle.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <gnu/libc-version.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <boost/beast/zlib/deflate_stream.hpp>
#include <boost/crc.hpp>
#include <cerrno>
#include <cstring>
#include <ctime>

#include "base/system/file_descriptor.h"
#include "tenon/error.h"
#include "tenon/system_root.h"

namespace tenon::cli {
namespace {

constexpr std::size_t kBlock = 512;

// The ustar header of POSIX.1-1988: fixed fields, numbers in octal, a checksum over itself.
std::string tar_header(const std::string& name, std::uint64_t size, std::int64_t unix_seconds) {
  std::string header(kBlock, '\0');
  const auto put = [&](std::size_t at, const std::string& text) { header.replace(at, text.size(), text); };
  put(0, name);
  put(100, "0000600");
  put(108, "0000000");
  put(116, "0000000");
  put(124, fmt::format("{:011o}", size));
  put(136, fmt::format("{:011o}", unix_seconds));
  put(148, "        ");
  put(156, "0");
  put(257, "ustar");
  put(263, "00");
  unsigned sum = 0;
  for (const char c : header) sum += static_cast<unsigned char>(c);
  put(148, fmt::format("{:06o}", sum) + std::string("\0 ", 2));
  return header;
}

std::string little_endian(std::uint32_t value) {
  std::string bytes;
  for (int shift = 0; shift < 32; shift += 8) bytes += static_cast<char>(value >> shift & 0xff);
  return bytes;
}

// RFC 1952: a header, deflated data, the checksum and the length.
std::string gzip(const std::string& data) {
  namespace zlib = boost::beast::zlib;
  zlib::deflate_stream stream;
  stream.reset(9, 15, 8, zlib::Strategy::normal);
  std::string deflated(stream.upper_bound(data.size()) + 64, '\0');
  zlib::z_params parameters{};
  parameters.next_in = data.data();
  parameters.avail_in = data.size();
  parameters.next_out = deflated.data();
  parameters.avail_out = deflated.size();
  boost::beast::error_code error;
  stream.write(parameters, zlib::Flush::finish, error);
  if (error && error != zlib::error::end_of_stream)
    throw Error(ErrorCode::internal, fmt::format("compression failed: {}", error.message()));
  deflated.resize(parameters.total_out);
  boost::crc_32_type checksum;
  checksum.process_bytes(data.data(), data.size());
  return std::string("\x1f\x8b\x08\0\0\0\0\0\x02\x03", 10) + deflated + little_endian(checksum.checksum()) +
         little_endian(static_cast<std::uint32_t>(data.size()));
}

bool is_relevant(const std::string& name) {
  constexpr std::array prefixes = {"TENON_",  "COMPUTE_",  "CUDA_", "NVIDIA_", "NCCL_", "TT_",     "TPU_",
                                   "LIBTPU_", "XLA_",      "JAX_",  "PJRT_",   "OCL_",  "POCL_",   "HIP_",
                                   "HSA_",    "ROCM_",     "ROCR_", "ZE_",     "SYCL_", "OMP_",    "MKL_",
                                   "BLIS_",   "OPENBLAS_", "GOMP_", "LC_",     "XDG_",  "PYTORCH_"};
  constexpr std::array names = {"PATH", "LD_LIBRARY_PATH", "LD_PRELOAD",  "LANG",
                                "TERM", "PYTHONPATH",      "VIRTUAL_ENV", "CONDA_PREFIX"};
  return std::any_of(prefixes.begin(), prefixes.end(), [&](const char* prefix) { return name.starts_with(prefix); }) ||
         std::find(names.begin(), names.end(), name) != names.end();
}

}  // namespace

std::string make_tar_gz(const std::string& folder, const std::vector<BundleFile>& files, std::int64_t unix_seconds) {
  std::string archive;
  for (const BundleFile& file : files) {
    archive += tar_header(folder + "/" + file.name, file.text.size(), unix_seconds) + file.text;
    archive.resize((archive.size() + kBlock - 1) / kBlock * kBlock, '\0');
  }
  return gzip(archive + std::string(2 * kBlock, '\0'));
}

std::string relevant_environment(const std::vector<std::pair<std::string, std::string>>& variables, const Redactor& redactor) {
  std::vector<std::string> lines;
  for (const auto& [name, value] : variables)
    if (is_relevant(name)) lines.push_back(name + "=" + (is_secret_name(name) ? Redactor::kMark : redactor.redact(value)));
  std::sort(lines.begin(), lines.end());
  return fmt::format("{}\n", fmt::join(lines, "\n"));
}

std::vector<BundleFile> system_files() {
  utsname kernel{};
  uname(&kernel);
  const std::string versions = fmt::format("tenon {}\ncompiler {}\nC library {}\nkernel {} {} {}\nboost {}.{}.{}\nfmt {}.{}.{}\n",
                                           TENON_VERSION, __VERSION__, gnu_get_libc_version(), kernel.sysname, kernel.release,
                                           kernel.machine, BOOST_VERSION / 100000, BOOST_VERSION / 100 % 1000,
                                           BOOST_VERSION % 100, FMT_VERSION / 10000, FMT_VERSION / 100 % 100, FMT_VERSION % 100);
  return {{"versions.txt", versions}, {"os-release", SystemRoot().read("/etc/os-release").value_or("unknown\n")}};
}

std::uint64_t write_bundle(const std::string& path, std::vector<BundleFile> files, const Redactor& redactor) {
  for (BundleFile& file : files) file.text = redactor.redact(file.text);
  const std::string archive = make_tar_gz("tenon-bundle", files, std::time(nullptr));
  const auto refuse = [&](const char* what) {
    const ErrorCode code = errno == ENOENT   ? ErrorCode::not_found
                           : errno == ENOSPC ? ErrorCode::resource_exhausted
                                             : ErrorCode::permission_denied;
    throw Error(code, fmt::format("{} cannot be {}: {}", path, what, std::strerror(errno)));
  };
  // Beside its place and then renamed: there is never half a bundle of that name.
  const std::string beside = fmt::format("{}.{}", path, getpid());
  // A file of that name, or a link planted there, is not written through.
  unlink(beside.c_str());
  const FileDescriptor file(open(beside.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!file) refuse("made");
  for (std::size_t at = 0; at < archive.size();) {
    const ssize_t written = write(file.get(), archive.data() + at, archive.size() - at);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) {
      const int reason = errno;
      unlink(beside.c_str());
      errno = reason;
      refuse("written");
    }
    at += static_cast<std::size_t>(written);
  }
  if (rename(beside.c_str(), path.c_str()) != 0) {
    const int reason = errno;
    unlink(beside.c_str());
    errno = reason;
    refuse("written");
  }
  return archive.size();
}

}  // namespace tenon::cli
