#include "cli/queue_text.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/units.h"
#include "lease/process_identity.h"

namespace tenon::cli {
namespace {

namespace json = boost::json;

json::object to_json(const Turnstile::Place& place) {
  json::object object{{"ticket", place.ticket}, {"mode", place.kind == TicketKind::shared ? "shared" : "exclusive"}};
  if (!place.is_known) return object;
  object["pid"] = place.pid;
  object["same_pid_namespace"] = place.is_in_this_pid_namespace;
  object["uid"] = place.uid;
  object["user"] = user_name(place.uid);
  object["command"] = place.command;
  object["seconds"] = seconds_since(place);
  return object;
}

}  // namespace

std::string who(const Turnstile::Place& place) {
  if (!place.is_known) return fmt::format("ticket {}", place.ticket);
  return fmt::format("pid {}{} ({}, {})", place.pid, place.is_in_this_pid_namespace ? "" : " of another container",
                     user_name(place.uid), place.command);
}

double seconds_since(const Turnstile::Place& place) {
  return std::max(0.0, std::chrono::duration<double>(std::chrono::system_clock::now() - place.since).count());
}

json::object to_json(const Turnstile::Queue& queue) {
  json::array holders, waiters;
  for (const Turnstile::Place& place : queue.places) (place.is_holding ? holders : waiters).push_back(to_json(place));
  return {{"device", queue.device}, {"dirty", queue.is_dirty}, {"holders", std::move(holders)}, {"waiters", std::move(waiters)}};
}

std::string waiting_sentence(const Turnstile::Queue& queue, TicketNumber ticket) {
  std::string holders;
  int others_held = 0, before = 0;
  for (const Turnstile::Place& place : queue.places) {
    if (place.ticket >= ticket) break;
    if (!place.is_holding)
      ++before;
    else if (holders.empty())
      holders = fmt::format("{} for {}", who(place), format_seconds(seconds_since(place)));
    else
      ++others_held;
  }
  if (others_held > 0) holders += fmt::format(" and {} more", others_held);
  const std::string place = before == 0 ? "you are next" : fmt::format("{} before you", before);
  // Between taking the ticket and looking, the holder may have left.
  if (holders.empty()) return fmt::format("waiting for {}: {}", queue.device, place);
  return fmt::format("waiting for {}: held by {}; {}", queue.device, holders, place);
}

}  // namespace tenon::cli
