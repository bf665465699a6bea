// Routing `fastest`: is the device it chooses the one that is fastest in truth?
//
// 60 programs from 16 elements to 64M (five expressions, twelve sizes) on all devices. Each runs three times where the
// router sends it, which is how the router learns; then its choice is compared with what every device really takes, the best of
// some runs, with devices closed (opening counts) and again with all of them open. Right is the fastest device, or one within 10
// % of it.
//
//   bench_routing [--sim TEXT]... [--largest ELEMENTS]     (all devices that can be used here, and the simulated ones)
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "base/text/units.h"
#include "tenon/error.h"
#include "tenon/expression.h"
#include "tenon/manager.h"

namespace {

using namespace tenon;

struct Program {
  std::string name;
  Graph graph;
  std::vector<HostArray> inputs;
};

std::int64_t square_side(std::int64_t elements) {
  std::int64_t side = 1;
  while (4 * side * side <= elements) side *= 2;
  return side;
}

// Products of matrices grow faster than their elements: beyond this side one run takes seconds.
constexpr std::int64_t kLargestProduct = 1024;

std::vector<Program> programs_of(std::int64_t elements) {
  const std::int64_t side = square_side(elements), product = std::min(side, kLargestProduct);
  const std::vector<std::pair<std::string, Shape>> all{{"x * 2 + 1", {elements}},
                                                       {"gelu(x)", {elements}},
                                                       {"sum(x * x)", {elements}},
                                                       {"softmax(x)", {side, elements / side}},
                                                       {"x @ x", {product, product}}};
  std::vector<Program> programs;
  for (const auto& [text, shape] : all)
    programs.push_back({fmt::format("{} {}", text, to_string(shape)),
                        parse_expression(text, {{"x", DType::f32, shape}}),
                        {HostArray::full(DType::f32, shape, 0.5)}});
  return programs;
}

// Without waiting for others: the queue is not what is measured here.
double total(const Timeline& timeline) {
  double seconds = 0;
  for (const Span& span : timeline)
    if (span.stage != "queued") seconds += span.seconds;
  return seconds;
}

// What each device takes, the best of some runs. In turns, so that what disturbs the machine disturbs them all.
std::map<std::string, double> truth(DeviceManager& manager, const Program& program, const std::vector<std::string>& devices,
                                    bool cold) {
  std::map<std::string, double> best;
  double spent = 0;
  const int least = cold ? 2 : 4, most = cold ? 2 : 50;
  for (int i = 0; i < least || (i < most && spent < 0.05); ++i)
    for (const std::string& device : devices) {
      if (cold) manager.close(device);
      const double seconds = total(manager.run(program.graph, program.inputs, {.device = device}).timeline);
      spent += seconds;
      const auto [known, is_new] = best.try_emplace(device, seconds);
      known->second = std::min(known->second, seconds);
    }
  return best;
}

struct Score {
  int right = 0, programs = 0;
};

void judge(DeviceManager& manager, const Program& program, const std::vector<std::string>& devices, bool cold, Score& score) {
  if (cold)
    for (const std::string& device : devices) manager.close(device);
  const Decision decision = manager.explain(program.graph);
  const std::map<std::string, double> real = truth(manager, program, devices, cold);
  const auto fastest =
      std::min_element(real.begin(), real.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  const double chosen = real.count(decision.device.id) ? real.at(decision.device.id) : std::numeric_limits<double>::infinity();
  const bool is_right = chosen <= 1.1 * fastest->second;
  score.right += is_right ? 1 : 0;
  ++score.programs;
  if (is_right) return;
  fmt::print("  wrong, {}: {}\n", cold ? "closed" : "open", program.name);
  for (const Considered& one : decision.considered) {
    const Stages& p = one.predicted;
    if (!one.is_eligible) continue;
    fmt::print("    {:<10} {:>9}   predicted {:>9}: open {}, compile {}, transfer {}, compute {}{}\n", one.candidate.device.id,
               format_seconds(real.at(one.candidate.device.id)), format_seconds(p.total()), format_seconds(p.open_seconds),
               format_seconds(p.compile_seconds), format_seconds(p.transfer_seconds), format_seconds(p.compute_seconds),
               p.is_measured ? "" : " (guessed)");
  }
}

int run(int count, char** words) {
  Config config;
  config.routing = RoutingMode::fastest;
  config.allow_simulated = true;
  config.profile = false;
  config.ledger = false;
  config.keep_open = KeepOpenPolicy::always;
  std::vector<std::string> devices;
  std::int64_t largest = std::int64_t{1} << 26;
  for (int i = 1; i + 1 < count; i += 2) {
    const std::string word = words[i];
    if (word == "--sim") config.simulated.push_back(parse_simulated(words[i + 1]));
    if (word == "--largest") largest = std::atoll(words[i + 1]);
  }
  DeviceManager manager(config);
  for (const DeviceInfo& device : manager.devices())
    if (device.available) devices.push_back(device.id);
  fmt::print("devices: {}\n", fmt::join(devices, ", "));

  Score closed, open;
  for (std::int64_t elements = 16; elements <= largest; elements *= 4)
    for (const Program& program : programs_of(elements)) {
      for (int i = 0; i < 3; ++i) manager.run(program.graph, program.inputs);
      judge(manager, program, devices, true, closed);
      // With everything open and compiled each device shows what it can do; now it has been measured.
      judge(manager, program, devices, false, open);
    }
  const auto percent = [](const Score& score) { return 100.0 * score.right / score.programs; };
  fmt::print("closed: {} of {} right, {:.1f} %\nopen:   {} of {} right, {:.1f} %\n", closed.right, closed.programs,
             percent(closed), open.right, open.programs, percent(open));
  // Open devices that are the same silicon differ by less than the machine does from one moment to the next: shown, not judged.
  return percent(closed) >= 95 ? 0 : 1;
}

}  // namespace

int main(int count, char** words) {
  try {
    return run(count, words);
  } catch (const std::exception& error) {
    fmt::print(stderr, "bench_routing: {}\n", error.what());
    return 2;
  }
}
