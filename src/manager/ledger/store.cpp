#include "manager/ledger/store.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>

#include "base/system/state_directory.h"

namespace tenon {
namespace {

// Fewer rows or less space than this would fold everything at once.
constexpr std::uint64_t kFewestRows = 16;
constexpr std::uint64_t kFewestMebibytes = 1;

std::uint64_t number_in(const char* variable, std::uint64_t least, std::uint64_t otherwise) {
  const char* text = std::getenv(variable);
  if (text == nullptr) return otherwise;
  const std::string_view digits(text);
  std::uint64_t value = 0;
  const auto read = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  const bool whole = read.ec == std::errc() && read.ptr == digits.data() + digits.size();
  return whole && value >= least && value <= (std::uint64_t{1} << 40) ? value : otherwise;
}

}  // namespace

std::string_view name(UseKey key) noexcept {
  constexpr std::string_view names[] = {"device", "program", "day"};
  return names[static_cast<int>(key)];
}

std::optional<double> UseSum::efficiency() const {
  if (open_seconds <= 0) return std::nullopt;
  return std::min(1.0, compute_seconds / open_seconds);
}

LedgerLimits LedgerLimits::of_environment() {
  const LedgerLimits usual;
  return {.rows = number_in("TENON_LEDGER_ROWS", kFewestRows, usual.rows),
          .bytes = number_in("TENON_LEDGER_MIB", kFewestMebibytes, usual.bytes >> 20) << 20};
}

std::string ledger_file() {
  const std::string directory = state_directory();
  return directory.empty() ? "" : directory + "/ledger.db";
}

}  // namespace tenon
