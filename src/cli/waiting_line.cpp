#include "cli/waiting_line.h"

#include <fmt/format.h>

#include <utility>

namespace tenon::cli {

void WaitingLine::operator()(const std::string& device, const QueuePlace& place) {
  const auto ahead = place.ahead_here + place.ahead_elsewhere;
  if (ahead == 0) return;
  const std::string line = fmt::format("waiting for {}: {}{} before this one", device,
                                       place.holder.empty() ? "" : "held by " + place.holder + "; ", ahead);
  if (line == std::exchange(told_, line)) return;
  console_->err << "tenon: " << line << std::endl;
}

}  // namespace tenon::cli
