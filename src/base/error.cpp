#include "tenon/error.h"

#include <array>
#include <cstddef>
#include <utility>

namespace tenon {
namespace {

struct Row {
  std::string_view name;
  int exit_status;
  int http_status;
};

// In the order of ErrorCode. To a script, a timeout while waiting for a device means "busy".
constexpr std::array<Row, 16> kRows{{
    {"ok", 0, 200},
    {"cancelled", 1, 499},
    {"unknown", 1, 500},
    {"invalid_argument", 2, 400},
    {"deadline_exceeded", 4, 504},
    {"not_found", 3, 404},
    {"already_exists", 1, 409},
    {"permission_denied", 1, 403},
    {"resource_exhausted", 1, 429},
    {"failed_precondition", 1, 409},
    {"aborted", 4, 409},
    {"out_of_range", 2, 400},
    {"unimplemented", 1, 501},
    {"internal", 1, 500},
    {"unavailable", 4, 503},
    {"data_loss", 1, 500},
}};
static_assert(kRows.size() == static_cast<std::size_t>(ErrorCode::data_loss) + 1);

const Row& row(ErrorCode code) noexcept {
  const auto index = static_cast<std::size_t>(code);
  return kRows[index < kRows.size() ? index : static_cast<std::size_t>(ErrorCode::unknown)];
}

}  // namespace

std::string_view to_string(ErrorCode code) noexcept { return row(code).name; }
int exit_status(ErrorCode code) noexcept { return row(code).exit_status; }
int http_status(ErrorCode code) noexcept { return row(code).http_status; }

Error::Error(ErrorCode code, const std::string& message, std::string hint)
    : std::runtime_error(message),
      code_(code),
      hint_(std::move(hint)) {}

}  // namespace tenon
