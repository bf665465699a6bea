#include "cpu/report.h"

#include <fmt/format.h>

namespace bench {
namespace {

// PyTorch as people write it: compared with us into fresh memory, which is what it uses.
constexpr std::string_view kEager = "eager";

std::string duration(double seconds) {
  if (seconds < 1e-6) return fmt::format("{:.0f} ns", seconds * 1e9);
  if (seconds < 1e-3) return fmt::format("{:.3g} us", seconds * 1e6);
  return fmt::format("{:.3g} ms", seconds * 1e3);
}

std::string best_and_median(const Contender* c) {
  return c == nullptr ? "-" : fmt::format("{} [{}]", duration(c->best()), duration(c->median()));
}

// Best over best; behind it the median of the ratios of equal rounds, which tells how far to trust it.
std::string ratio(const Contender* a, const Contender* b) {
  if (a == nullptr || b == nullptr) return "-";
  std::vector<double> rounds;
  for (std::size_t i = 0; i < std::min(a->rounds.size(), b->rounds.size()); ++i) rounds.push_back(a->rounds[i] / b->rounds[i]);
  std::sort(rounds.begin(), rounds.end());
  return fmt::format("{:.2f} [{:.2f}]", a->best() / b->best(), rounds[rounds.size() / 2]);
}

std::string verdict(bool met) { return met ? "yes" : "**no**"; }

std::string size_name(std::int64_t elements) { return fmt::format("{}M", elements >> 20); }

void elementwise_tables(std::string& out, const Session& s) {
  for (std::size_t i = 0; i < s.elementwise.size();) {
    const std::int64_t size = s.elementwise[i].size;
    out += fmt::format("\n## {} f32 elements\n\n", size_name(size));
    out += "| op | limit | tenon | tenon / limit | within 1.2 | fresh / given | within 1.3 |";
    for (const std::string& peer : s.peers) out += peer == kEager ? " torch eager / fresh |" : fmt::format(" {} / tenon |", peer);
    out += "\n|---|---|---|---|---|---|---|";
    for (std::size_t p = 0; p < s.peers.size(); ++p) out += "---|";
    out += "\n";
    for (; i < s.elementwise.size() && s.elementwise[i].size == size; ++i) {
      const Case& c = s.elementwise[i];
      const Contender *limit = c.find("limit"), *us = c.find("tenon"), *fresh = c.find("fresh");
      out += fmt::format("| {} | {} | {} | {} | {} | {} | {} |", c.name, best_and_median(limit), best_and_median(us),
                         ratio(us, limit), verdict(us->best() <= 1.2 * limit->best()), ratio(fresh, us),
                         verdict(fresh->best() <= 1.3 * us->best()));
      for (const std::string& peer : s.peers) out += fmt::format(" {} |", ratio(c.find(peer), peer == kEager ? fresh : us));
      out += "\n";
    }
  }
}

// What is compared with the peers only.
void peers_table(std::string& out, const std::string& title, const std::vector<Case>& cases,
                 const std::vector<std::string>& peers) {
  if (cases.empty()) return;
  out += fmt::format(
      "\n## {}\n\nTime of each library divided by Tenon's time; higher is better. Eager is compared with Tenon writing to fresh "
      "memory.\n\n| op | elements | tenon |",
      title);
  for (const std::string& peer : peers) out += fmt::format(" {} |", peer == kEager ? "torch eager" : peer);
  out += "\n|---|---|---|";
  for (std::size_t p = 0; p < peers.size(); ++p) out += "---|";
  out += "\n";
  for (const Case& c : cases) {
    const Contender *us = c.find("tenon"), *fresh = c.find("fresh");
    const std::string name = c.name.ends_with("_f64") ? c.name.substr(0, c.name.size() - 4) : c.name;
    out += fmt::format("| {} | {} | {} |", name, size_name(c.size), best_and_median(us));
    for (const std::string& peer : peers) out += fmt::format(" {} |", ratio(c.find(peer), peer == kEager ? fresh : us));
    out += "\n";
  }
}

void matmul_table(std::string& out, const Session& s) {
  if (s.matmul.empty()) return;
  out += "\n## Matrix product, f32, GFLOP/s best [median]\n\n| size |";
  for (const Contender& c : s.matmul[0].contenders) out += fmt::format(" {} |", c.name);
  out += " tenon / best BLAS | target | met |\n|---|";
  for (std::size_t i = 0; i < s.matmul[0].contenders.size(); ++i) out += "---|";
  out += "---|---|---|\n";
  for (const Case& c : s.matmul) {
    const double flops = 2.0 * static_cast<double>(c.size) * static_cast<double>(c.size) * static_cast<double>(c.size);
    out += fmt::format("| {} |", c.size);
    const Contender *us = c.find("tenon"), *best = nullptr;
    for (const Contender& contender : c.contenders) {
      out += contender.measured()
                 ? fmt::format(" {:.0f} [{:.0f}] |", flops / contender.best() / 1e9, flops / contender.median() / 1e9)
                 : " - |";
      const bool is_blas = contender.name.find("BL") != std::string::npos;
      if (is_blas && (best == nullptr || contender.best() < best->best())) best = &contender;
    }
    const double wanted = c.size <= 64 ? 0.75 : 0.95;
    out += best == nullptr
               ? " - | - | - |\n"
               : fmt::format(" {} | {} | {} |\n", ratio(best, us), wanted, verdict(best->best() >= wanted * us->best()));
  }
}

}  // namespace

std::string markdown(const Session& s) {
  std::string out = "# CPU: Tenon, hand-written loops and other libraries in one run\n\n";
  out += fmt::format("- {}, {}, {} threads, {} rounds\n- command: `{}`\n", s.date, s.cpu, s.threads, s.rounds, s.command);
  out += fmt::format("- limit: hand-written loops for {} (bench/cpu/hand/hand_loops.h); other libraries: {}\n", s.isa,
                     s.peer_versions.empty() ? "none" : s.peer_versions);
  if (s.load > 0.5)
    out += fmt::format(
        "- the machine was busy (load {:.1f} before the run): the figures are approximate; repeat the run on an idle machine\n",
        s.load);
  if (!s.missing.empty()) out += fmt::format("- not measured: {}\n", s.missing);
  out +=
      "\nTimes are the best of all rounds [median]. Ratios are best / best [median of the ratios within a round]. All contenders "
      "run\n"
      "in every round. Results are written to preallocated memory, except in the column *fresh*. softmax and transpose work on\n"
      "square matrices of the given number of elements; gelu is gelu(a * b + 0.5), gelu_tanh the same with the tanh formula.\n"
      "*torch* also writes to preallocated memory, except for reductions; *torch eager* is the expression as users write it. In "
      "the\n"
      "table of rows and columns, sum_products is sum(a * b) of each row, variance is of each row, minus_max is a - max(a) of "
      "each\n"
      "row, cumsum runs along rows; sum_columns and max_columns return one number per column.\n";
  elementwise_tables(out, s);
  peers_table(out, "Rows and columns of square matrices, f32", s.matrices, s.peers);
  peers_table(out, "float64", s.float64, s.peers);
  out += "\nHand-written copy:";
  for (const Case* c : {&s.copy_small, &s.copy_large})
    out += fmt::format(" {} in {}, {:.1f} GB/s read and written{}", size_name(c->size), best_and_median(&c->contenders[0]),
                       8e-9 * static_cast<double>(c->size) / c->contenders[0].best(), c == &s.copy_small ? ";" : ".\n");
  matmul_table(out, s);

  out += "\n## A prepared program on 16 elements\n\n| op | tenon | at most 0.5 us |";
  for (const std::string& peer : s.peers) out += fmt::format(" {} |", peer);
  out += "\n|---|---|---|";
  for (std::size_t p = 0; p < s.peers.size(); ++p) out += "---|";
  out += "\n";
  for (const Case& c : s.small) {
    const Contender* us = c.find("tenon");
    out += fmt::format("| {} | {} | {} |", c.name, best_and_median(us), verdict(us->best() <= 0.5e-6));
    for (const std::string& peer : s.peers) out += fmt::format(" {} |", best_and_median(c.find(peer)));
    out += "\n";
  }

  if (const Contender *us = s.cold_start.find("tenon run '1+1'"), *nothing = s.cold_start.find("/bin/true"); us && nothing) {
    const double more = us->best() - nothing->best();
    out += fmt::format("\n## Cold start\n\n`tenon run '1+1'` {}, `/bin/true` {}: {} more at best; under 30 ms: {}\n",
                       best_and_median(us), best_and_median(nothing), duration(more), verdict(more < 0.030));
  }
  return out;
}

}  // namespace bench
