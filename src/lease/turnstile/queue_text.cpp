#include "lease/turnstile/queue_text.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text/units.h"
#include "lease/turnstile/process_identity.h"

namespace tenon {
namespace {

std::string describe(const Turnstile::Position& place, std::string_view command) {
  if (!place.is_known) return fmt::format("ticket {}", place.ticket);
  return fmt::format("pid {}{} ({}, {})", place.pid, place.is_in_this_pid_namespace ? "" : " in another container",
                     user_name(place.uid), command);
}

std::string_view next_word(std::string_view& text) {
  const std::size_t end = std::min(text.find(' '), text.size());
  const std::string_view word = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return word.substr(word.rfind('/') + 1);
}

bool is_interpreter(std::string_view program) {
  constexpr std::string_view kNames[] = {"python", "node", "ruby", "perl", "julia", "Rscript"};
  return std::any_of(std::begin(kNames), std::end(kNames), [&](std::string_view name) { return program.starts_with(name); });
}

// An option of the interpreter may have code or a secret as its value: then nothing after it is a script for certain.
std::string program_of(std::string_view command) {
  const std::string_view program = next_word(command);
  if (!is_interpreter(program) || command.empty() || command.starts_with('-')) return std::string(program);
  return fmt::format("{} {}", program, next_word(command));
}

}  // namespace

std::string who(const Turnstile::Position& place) { return describe(place, place.command); }
std::string who_in_short(const Turnstile::Position& place) { return describe(place, program_of(place.command)); }

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
