#include "tenon/system_root.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <charconv>
#include <cstdlib>

namespace tenon {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// Compares digits inside names as numbers.
bool natural_less(std::string_view a, std::string_view b) {
  std::size_t i = 0, j = 0;
  while (i < a.size() && j < b.size()) {
    if (!is_digit(a[i]) || !is_digit(b[j])) {
      if (a[i] != b[j]) return a[i] < b[j];
      ++i, ++j;
      continue;
    }
    while (i < a.size() && a[i] == '0') ++i;
    while (j < b.size() && b[j] == '0') ++j;
    std::size_t end_a = i, end_b = j;
    while (end_a < a.size() && is_digit(a[end_a])) ++end_a;
    while (end_b < b.size() && is_digit(b[end_b])) ++end_b;
    if (end_a - i != end_b - j) return end_a - i < end_b - j;
    if (const int order = a.substr(i, end_a - i).compare(b.substr(j, end_b - j)); order != 0) return order < 0;
    i = end_a, j = end_b;
  }
  if (a.size() - i != b.size() - j) return a.size() - i < b.size() - j;
  return a < b;  // "a01" and "a1" are different names
}

bool is_text(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return (byte >= 0x20 && byte < 0x7f) || c == '\t';
  });
}

std::string_view trimmed(std::string_view text) {
  const auto space = [](char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\0'; };
  while (!text.empty() && space(text.front())) text.remove_prefix(1);
  while (!text.empty() && space(text.back())) text.remove_suffix(1);
  return text;
}

struct File {
  int descriptor;
  ~File() {
    if (descriptor >= 0) close(descriptor);
  }
};

}  // namespace

SystemRoot::SystemRoot(StandIn machine) : root_(machine.root), stand_in_(std::move(machine)) {}

std::filesystem::path SystemRoot::real(std::string_view path) const {
  return root_ / std::filesystem::path(path).relative_path();
}

bool SystemRoot::exists(std::string_view path) const noexcept try {
  struct stat status;
  return !path.empty() && stat(real(path).c_str(), &status) == 0;
} catch (...) {
  return false;
}

bool SystemRoot::is_folder(std::string_view path) const noexcept try {
  struct stat status;
  return !path.empty() && stat(real(path).c_str(), &status) == 0 && S_ISDIR(status.st_mode);
} catch (...) {
  return false;
}

bool SystemRoot::may_use(std::string_view path) const noexcept try {
  if (stand_in_)
    return exists(path) && std::find(stand_in_->denied.begin(), stand_in_->denied.end(), path) == stand_in_->denied.end();
  return faccessat(AT_FDCWD, real(path).c_str(), R_OK | W_OK, AT_EACCESS) == 0;
} catch (...) {
  return false;
}

std::optional<std::string> SystemRoot::read(std::string_view path, std::size_t max_bytes) const noexcept try {
  const std::filesystem::path file_path = real(path);
  struct stat status;
  // Opening a device node may wake the device or block, so check the type of the file first.
  if (stat(file_path.c_str(), &status) != 0 || !S_ISREG(status.st_mode)) return std::nullopt;
  const File file{open(file_path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)};
  if (file.descriptor < 0) return std::nullopt;
  std::string content;
  char block[4096];
  while (content.size() < max_bytes) {
    const ssize_t got = ::read(file.descriptor, block, std::min(sizeof block, max_bytes - content.size()));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && content.empty()) return std::nullopt;
    if (got <= 0) break;
    content.append(block, static_cast<std::size_t>(got));
  }
  return content;
} catch (...) {
  return std::nullopt;
}

std::optional<std::string> SystemRoot::line(std::string_view path) const noexcept try {
  const std::optional<std::string> content = read(path, 4096);
  if (!content) return std::nullopt;
  const std::string_view first = trimmed(std::string_view(*content).substr(0, content->find('\n')));
  if (first.empty() || !is_text(first)) return std::nullopt;
  return std::string(first);
} catch (...) {
  return std::nullopt;
}

std::optional<std::int64_t> SystemRoot::number(std::string_view path) const noexcept try {
  const std::optional<std::string> text = line(path);
  if (!text) return std::nullopt;
  std::string_view digits = *text;
  const bool hexadecimal = digits.starts_with("0x");
  if (hexadecimal) digits.remove_prefix(2);
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value, hexadecimal ? 16 : 10);
  if (error != std::errc{} || end != digits.data() + digits.size()) return std::nullopt;
  return value;
} catch (...) {
  return std::nullopt;
}

std::vector<std::string> SystemRoot::list(std::string_view path) const noexcept try {
  std::vector<std::string> names;
  std::error_code error;
  std::filesystem::directory_iterator folder(real(path), std::filesystem::directory_options::skip_permission_denied, error);
  for (; !error && folder != std::filesystem::directory_iterator(); folder.increment(error))
    names.push_back(folder->path().filename().string());
  std::sort(names.begin(), names.end(), natural_less);
  return names;
} catch (...) {
  return {};
}

std::optional<std::string> SystemRoot::link(std::string_view path) const noexcept try {
  std::error_code error;
  const std::filesystem::path target = std::filesystem::read_symlink(real(path), error);
  if (error) return std::nullopt;
  return target.string();
} catch (...) {
  return std::nullopt;
}

std::optional<std::string> SystemRoot::link_name(std::string_view path) const noexcept try {
  const std::optional<std::string> target = link(path);
  if (!target) return std::nullopt;
  std::string name = std::filesystem::path(*target).filename().string();
  if (name.empty() || !is_text(name)) return std::nullopt;
  return name;
} catch (...) {
  return std::nullopt;
}

std::string SystemRoot::environment(std::string_view name) const {
  const std::string key(name);
  if (stand_in_) {
    const auto found = stand_in_->environment.find(key);
    return found == stand_in_->environment.end() ? "" : found->second;
  }
  const char* value = std::getenv(key.c_str());
  return value ? value : "";
}

}  // namespace tenon
