#include "cli/explain.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/units.h"

namespace tenon::cli {
namespace {

namespace json = boost::json;

std::string stage(double seconds) { return seconds > 0 ? format_seconds(seconds) : "-"; }

std::string dollars(const Considered& one) {
  if (!one.dollars) return "?";
  if (*one.dollars == 0) return "0 $";
  return *one.dollars >= 0.01 ? fmt::format("{:.2f} $", *one.dollars) : fmt::format("{:.2g} $", *one.dollars);
}

}  // namespace

std::string explanation(const Decision& decision, const Console& console) {
  std::size_t widest = 6;
  for (const Considered& one : decision.considered) widest = std::max(widest, one.candidate.device.id.size());
  std::string text = console.bold(fmt::format("  {:<{}} {:>9} {:>9} {:>9} {:>9} {:>10} {:>9} {:>9}", "DEVICE", widest, "QUEUE",
                                              "OPEN", "COMPILE", "TRANSFER", "COMPUTE", "TOTAL", "COST")) +
                     "\n";
  bool has_guess = false;
  for (std::size_t i = 0; i < decision.considered.size(); ++i) {
    const Considered& one = decision.considered[i];
    const Stages& p = one.predicted;
    const std::string& id = one.candidate.device.id;
    if (!one.is_eligible && p.total() == 0) {
      text += fmt::format("  {:<{}} {}\n", id, widest, console.dim(one.remark));
      continue;
    }
    has_guess |= !p.is_measured;
    text += fmt::format("{} {:<{}} {:>9} {:>9} {:>9} {:>9} {:>10} {:>9} {:>9}\n", i == 0 ? '*' : ' ', id, widest,
                        stage(p.queue_seconds), stage(p.open_seconds), stage(p.compile_seconds), stage(p.transfer_seconds),
                        (p.is_measured ? "" : "~") + format_seconds(p.compute_seconds), format_seconds(p.total()), dollars(one));
    if (i > 0) text += fmt::format("  {:<{}} {}\n", "", widest, console.dim(one.remark));
  }
  text += fmt::format("{}: {}\n", decision.device.id, decision.reason);
  if (!decision.warning.empty()) text += fmt::format("warning: {}\n", decision.warning);
  if (has_guess) text += console.dim("~ guessed from other programs; it is measured when it has run there") + "\n";
  return text;
}

json::object explanation_json(const Decision& decision) {
  json::array candidates;
  for (const Considered& one : decision.considered) {
    const Stages& p = one.predicted;
    candidates.push_back(json::object{{"id", one.candidate.device.id},
                                      {"queue_seconds", p.queue_seconds},
                                      {"open_seconds", p.open_seconds},
                                      {"compile_seconds", p.compile_seconds},
                                      {"transfer_seconds", p.transfer_seconds},
                                      {"compute_seconds", p.compute_seconds},
                                      {"total_seconds", p.total()},
                                      {"measured", p.is_measured},
                                      {"dollars", one.dollars ? json::value(*one.dollars) : json::value()},
                                      {"eligible", one.is_eligible},
                                      {"remark", one.remark}});
  }
  return {{"device", decision.device.id},
          {"reason", decision.reason},
          {"warning", decision.warning.empty() ? json::value() : json::value(decision.warning)},
          {"candidates", std::move(candidates)}};
}

}  // namespace tenon::cli
