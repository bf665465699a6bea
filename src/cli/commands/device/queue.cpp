#include <fmt/format.h>

#include <algorithm>

#include "base/text/units.h"
#include "cli/commands/commands.h"
#include "cli/json.h"
#include "lease/turnstile/process_identity.h"
#include "lease/turnstile/queue_text.h"
#include "present/device/device_status.h"
#include "tenon/manager.h"

namespace tenon::cli {
namespace {

// Every device there is, and every other one that has a queue.
std::vector<Turnstile::Queue> all_queues(const Session& session) {
  std::vector<Turnstile::Queue> queues;
  for (const DeviceInfo& device : process_manager().devices()) queues.push_back({.device = device.id});
  const std::optional<RunDirectory> directory = RunDirectory::open_existing(session.console.environment);
  if (!directory) return queues;
  for (const Turnstile& turnstile : Turnstile::all(*directory)) {
    const auto known =
        std::find_if(queues.begin(), queues.end(), [&](const auto& queue) { return queue.device == turnstile.device(); });
    if (known != queues.end())
      *known = turnstile.queue();
    else
      queues.push_back(turnstile.queue());
  }
  return queues;
}

int show_queues(const Session& session) {
  const std::vector<Turnstile::Queue> queues = all_queues(session);
  std::ostream& out = session.console.out;
  if (session.json) {
    print_document(out, 1, [&](JsonWriter& json) {
      json.key("devices").begin_array();
      for (const Turnstile::Queue& queue : queues) present::write_queue(json, queue);
      json.end_array();
    });
    return 0;
  }
  const std::string head =
      fmt::format("{:<16}{:<16}{:>8}  {:<12}{:>10}  {}", "DEVICE", "STATE", "PID", "USER", "SINCE", "COMMAND");
  out << session.console.bold(head) << '\n';
  for (const Turnstile::Queue& queue : queues) {
    if (queue.places.empty()) out << fmt::format("{:<16}{}\n", queue.device, queue.is_dirty ? "free, left dirty" : "free");
    int waiting = 0;
    for (const Turnstile::Position& place : queue.places) {
      const std::string state = fmt::format("{}{}", place.is_holding ? "holds" : fmt::format("waits, {}", ++waiting),
                                            place.kind == TicketKind::shared ? ", shared" : "");
      if (!place.is_known) {
        out << fmt::format("{:<16}{:<16}\n", queue.device, state);
        continue;
      }
      out << fmt::format("{:<16}{:<16}{:>8}  {:<12}{:>10}  {}\n", queue.device, state, place.pid, user_name(place.uid),
                         format_seconds(seconds_since(place)), place.command);
    }
  }
  return 0;
}

}  // namespace

void add_queue_command(Command& app, Session& session) {
  Command* command = app.add_subcommand("queue", "Show the holders and waiters of each device without opening it");
  add_output_options(*command, session);
  command->footer("Examples:\n  tenon queue\n  tenon queue --json");
  command->callback([&session] { session.action = [&session] { return show_queues(session); }; });
}

}  // namespace tenon::cli
