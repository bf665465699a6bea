#include "lease/turnstile/queue_text.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/units.h"
#include "lease/turnstile/process_identity.h"

namespace tenon {

std::string who(const Turnstile::Position& place) {
  if (!place.is_known) return fmt::format("ticket {}", place.ticket);
  return fmt::format("pid {}{} ({}, {})", place.pid, place.is_in_this_pid_namespace ? "" : " in another container",
                     user_name(place.uid), place.command);
}

double seconds_since(const Turnstile::Position& place) {
  // As doubles: a record that somebody damaged can name any time, and the difference of two such does not fit.
  using Seconds = std::chrono::duration<double>;
  return std::max(
      0.0, (Seconds(std::chrono::system_clock::now().time_since_epoch()) - Seconds(place.since.time_since_epoch())).count());
}

std::string waiting_sentence(const Turnstile::Queue& queue, TicketNumber ticket) {
  std::string holders;
  int others_held = 0, before = 0;
  for (const Turnstile::Position& place : queue.places) {
    if (place.ticket >= ticket) break;
    if (!place.is_holding)
      ++before;
    else if (holders.empty())
      holders = fmt::format("{} for {}", who(place), format_seconds(seconds_since(place)));
    else
      ++others_held;
  }
  if (others_held > 0) holders += fmt::format(" and {} more", others_held);
  const std::string place = before == 0 ? "you are next" : fmt::format("{} ahead of you", before);
  // Between taking the ticket and looking, the holder may have left.
  if (holders.empty()) return fmt::format("waiting for {}: {}", queue.device, place);
  return fmt::format("waiting for {}: held by {}; {}", queue.device, holders, place);
}

}  // namespace tenon
