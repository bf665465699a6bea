#include "cli/queue_json.h"

#include "lease/turnstile/process_identity.h"
#include "lease/turnstile/queue_text.h"

namespace tenon::cli {
namespace {

namespace json = boost::json;

json::object to_json(const Turnstile::Position& place) {
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

json::object to_json(const Turnstile::Queue& queue) {
  json::array holders, waiters;
  for (const Turnstile::Position& place : queue.places) (place.is_holding ? holders : waiters).push_back(to_json(place));
  return {{"device", queue.device}, {"dirty", queue.is_dirty}, {"holders", std::move(holders)}, {"waiters", std::move(waiters)}};
}

}  // namespace tenon::cli
