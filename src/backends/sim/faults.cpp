#include "backends/sim/faults.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "tenon/error.h"

namespace tenon::sim {
namespace {

constexpr std::array<std::pair<std::string_view, Call>, 6> kCalls{{{"open", Call::open},
                                                                   {"close", Call::close},
                                                                   {"allocate", Call::allocate},
                                                                   {"upload", Call::upload},
                                                                   {"download", Call::download},
                                                                   {"run", Call::run}}};

struct Named {
  std::string_view name;
  Fault fault;
  double FaultRates::* rate;
};
// The order in which they are drawn if several apply to a call.
constexpr std::array<Named, 7> kFaults{{{"dirty_refuses", Fault::dirty_refuses, &FaultRates::dirty_refuses},
                                        {"open_fails", Fault::open_fails, &FaultRates::open_fails},
                                        {"open_hangs", Fault::open_hangs, &FaultRates::open_hangs},
                                        {"close_fails", Fault::close_fails, &FaultRates::close_fails},
                                        {"out_of_memory", Fault::out_of_memory, &FaultRates::out_of_memory},
                                        {"lost_mid_run", Fault::lost_mid_run, &FaultRates::lost_mid_run},
                                        {"run_hangs", Fault::run_hangs, &FaultRates::run_hangs}}};

bool can_strike(Fault fault, Call call) {
  switch (fault) {
    case Fault::none: return true;
    case Fault::open_fails:
    case Fault::open_hangs:
    case Fault::dirty_refuses: return call == Call::open;
    case Fault::close_fails: return call == Call::close;
    case Fault::out_of_memory: return call == Call::allocate || call == Call::upload;
    case Fault::run_hangs: return call == Call::run;
    case Fault::lost_mid_run: return call == Call::upload || call == Call::download || call == Call::run;
  }
  return false;
}

std::uint64_t mix(std::uint64_t x) {  // the finaliser of SplitMix64
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9U;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebU;
  return x ^ (x >> 31);
}

}  // namespace

Faults::Faults(const SimulatedDevice& device, std::string_view salt) : rates_(device.faults), random_(mix(device.seed + 1)) {
  for (const char c : salt) random_ = mix(random_ ^ static_cast<unsigned char>(c));
  for (const Named& named : kFaults) {
    const double rate = rates_.*named.rate;
    if (!(rate >= 0 && rate <= 1))
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("{}: {} = {} is not a probability from 0 to 1", salt, named.name, rate));
  }
  for (const std::string& entry : device.script) script_.push_back(parse(entry));
}

Faults::Entry Faults::parse(std::string_view text) {
  const std::size_t colon = text.find(':');
  const std::string_view what = text.substr(0, colon);
  const auto bad = [&] {
    return Error(ErrorCode::invalid_argument, fmt::format("'{}' is not a valid entry of a simulated device's script", text),
                 "use ok or the name of a fault, optionally followed by :open, :close, :allocate, :upload, :download or :run");
  };
  Entry entry;
  if (what != "ok") {
    const auto* named = std::find_if(kFaults.begin(), kFaults.end(), [&](const Named& known) { return known.name == what; });
    if (named == kFaults.end()) throw bad();
    entry.fault = named->fault;
  }
  if (colon != std::string_view::npos) {
    const auto* call =
        std::find_if(kCalls.begin(), kCalls.end(), [&](const auto& known) { return known.first == text.substr(colon + 1); });
    if (call == kCalls.end() || !can_strike(entry.fault, call->second)) throw bad();
    entry.call = call->second;
  }
  return entry;
}

Fault Faults::next(Call call, bool is_dirty) {
  const std::lock_guard lock(mutex_);
  if (done_ < script_.size()) {
    const Entry& entry = script_[done_];
    if (entry.call ? *entry.call != call : !can_strike(entry.fault, call)) return Fault::none;
    ++done_;
    return entry.fault;
  }
  for (const Named& named : kFaults) {
    if (!can_strike(named.fault, call) || (named.fault == Fault::dirty_refuses && !is_dirty)) continue;
    if (draw(rates_.*named.rate)) return named.fault;
  }
  return Fault::none;
}

bool Faults::draw(double rate) {
  if (rate <= 0) return false;
  random_ += 0x9e3779b97f4a7c15U;
  return static_cast<double>(mix(random_) >> 11) * 0x1p-53 < rate;
}

}  // namespace tenon::sim
