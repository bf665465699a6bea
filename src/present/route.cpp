#include "present/route.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text/units.h"

namespace tenon::present {
namespace {

std::string stage(double seconds) { return seconds > 0 ? format_seconds(seconds) : "-"; }

std::string cost_text(const Considered& one) { return one.dollars ? money_text(*one.dollars, false) : "?"; }

void write_considered(JsonWriter& json, const Considered& one) {
  const Stages& predicted = one.predicted;
  json.begin_object();
  json.member("device", one.candidate.device.id);
  json.member("eligible", one.is_eligible);
  json.text_or_null("remark", one.remark);
  json.seconds("queue_seconds", predicted.queue_seconds);
  json.seconds("open_seconds", predicted.open_seconds);
  json.seconds("compile_seconds", predicted.compile_seconds);
  json.seconds("transfer_seconds", predicted.transfer_seconds);
  json.seconds("compute_seconds", predicted.compute_seconds);
  json.seconds("predicted_seconds", predicted.total());
  json.member("measured", predicted.is_measured);
  json.member("dollars", one.dollars);
  json.end_object();
}

}  // namespace

void write_route(JsonWriter& json, std::string_view requested, const Decision& decision) {
  json.begin_object();
  json.member("requested", requested);
  json.member("device", decision.device.id);
  json.member("reason", decision.reason);
  json.text_or_null("warning", decision.warning);
  json.key("considered").begin_array();
  for (const Considered& one : decision.considered) write_considered(json, one);
  json.end_array();
  json.end_object();
}

std::string route_text(const Decision& decision, const TextStyle& style) {
  std::size_t widest = 6;
  for (const Considered& one : decision.considered) widest = std::max(widest, one.candidate.device.id.size());
  std::string text = style.bold(fmt::format("  {:<{}} {:>9} {:>9} {:>9} {:>9} {:>10} {:>9} {:>9}", "DEVICE", widest, "QUEUE",
                                            "OPEN", "COMPILE", "TRANSFER", "COMPUTE", "TOTAL", "COST")) +
                     "\n";
  bool has_guess = false;
  for (std::size_t i = 0; i < decision.considered.size(); ++i) {
    const Considered& one = decision.considered[i];
    const Stages& p = one.predicted;
    const std::string& id = one.candidate.device.id;
    if (!one.is_eligible && p.total() == 0) {
      text += fmt::format("  {:<{}} {}\n", id, widest, style.dim(one.remark));
      continue;
    }
    has_guess |= !p.is_measured;
    text +=
        fmt::format("{} {:<{}} {:>9} {:>9} {:>9} {:>9} {:>10} {:>9} {:>9}\n", i == 0 ? '*' : ' ', id, widest,
                    stage(p.queue_seconds), stage(p.open_seconds), stage(p.compile_seconds), stage(p.transfer_seconds),
                    (p.is_measured ? "" : "~") + format_seconds(p.compute_seconds), format_seconds(p.total()), cost_text(one));
    if (i > 0) text += fmt::format("  {:<{}} {}\n", "", widest, style.dim(one.remark));
  }
  text += fmt::format("{}: {}\n", decision.device.id, decision.reason);
  if (!decision.warning.empty()) text += fmt::format("warning: {}\n", decision.warning);
  if (has_guess) text += style.dim("~ estimated from other programs; measured once the program has run there") + "\n";
  return text;
}

}  // namespace tenon::present
