#include "model/generate/sampler.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "tenon/error.h"

namespace tenon {
namespace {

constexpr std::size_t kPenaltyWindow = 64;

// In [0, 1), from a seed and a count (SplitMix64; Steele, Lea and Flood, 2014).
double uniform(std::uint64_t seed, std::uint64_t count) {
  std::uint64_t z = seed * 0x9e3779b97f4a7c15u + (count + 1) * 0xd1342543de82ef95u;
  for (int round = 0; round < 2; ++round) {
    z += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    z ^= z >> 31;
  }
  return static_cast<double>(z >> 11) * 0x1p-53;
}

void require(bool condition, std::string_view what) {
  if (!condition) throw Error(ErrorCode::invalid_argument, std::string(what));
}

}  // namespace

Sampler::Sampler(const SamplingOptions& options, std::span<const std::int32_t> prompt) : options_(options) {
  require(options.max_tokens >= 1, "max_tokens must be at least 1");
  require(options.temperature >= 0 && options.temperature <= 100, "temperature must be between 0 and 100");
  require(options.top_k >= 0, "top_k must not be negative");
  require(options.top_p > 0 && options.top_p <= 1, "top_p must be above 0 and at most 1");
  require(options.repeat_penalty > 0 && options.repeat_penalty <= 100, "repeat_penalty must be above 0 and at most 100");
  for (const std::string& stop : options.stop) require(!stop.empty(), "a stop text must not be empty");
  const std::size_t first = prompt.size() > kPenaltyWindow ? prompt.size() - kPenaltyWindow : 0;
  recent_.assign(prompt.begin() + static_cast<std::ptrdiff_t>(first), prompt.end());
}

std::int32_t Sampler::choose(std::span<const float> logits) {
  std::span<const float> values = logits;
  if (options_.repeat_penalty != 1) {
    penalised_.assign(logits.begin(), logits.end());
    const auto penalty = static_cast<float>(options_.repeat_penalty);
    for (const std::int32_t id : std::set<std::int32_t>(recent_.begin(), recent_.end())) {
      float& value = penalised_[static_cast<std::size_t>(id)];
      value = value > 0 ? value / penalty : value * penalty;
    }
    values = penalised_;
  }
  std::int32_t id = 0;
  if (options_.temperature == 0) {
    id = static_cast<std::int32_t>(std::max_element(values.begin(), values.end()) - values.begin());
  } else {
    candidates_.clear();
    for (std::size_t i = 0; i < values.size(); ++i) candidates_.push_back({static_cast<std::int32_t>(i), values[i]});
    id = draw(candidates_);
  }
  ++count_;
  recent_.push_back(id);
  if (recent_.size() > kPenaltyWindow) recent_.pop_front();
  return id;
}

std::int32_t Sampler::draw(std::vector<Candidate>& candidates) {
  const auto is_better = [](const Candidate& a, const Candidate& b) {
    return a.logit != b.logit ? a.logit > b.logit : a.id < b.id;
  };
  std::size_t kept = candidates.size();
  if (options_.top_k > 0) kept = std::min(kept, static_cast<std::size_t>(options_.top_k));
  if (kept < candidates.size() || options_.top_p < 1) {
    // A long tail takes most of the time to sort and is rarely reached.
    std::size_t sorted = std::min<std::size_t>(kept, 512);
    std::partial_sort(candidates.begin(), candidates.begin() + static_cast<std::ptrdiff_t>(sorted), candidates.end(), is_better);
    double total = 0, sum = 0;
    const double largest = candidates[0].logit;
    const auto weight = [&](const Candidate& c) { return std::exp((c.logit - largest) / options_.temperature); };
    if (kept > sorted)
      for (const Candidate& c : candidates) total += weight(c);
    else
      for (std::size_t i = 0; i < kept; ++i) total += weight(candidates[i]);
    if (options_.top_p < 1) {
      for (std::size_t i = 0; i < kept; ++i) {
        if (i == sorted) {
          std::sort(candidates.begin() + static_cast<std::ptrdiff_t>(sorted), candidates.end(), is_better);
          sorted = candidates.size();
        }
        sum += weight(candidates[i]);
        if (sum >= options_.top_p * total) {
          kept = i + 1;
          break;
        }
      }
    } else if (kept > sorted) {
      std::sort(candidates.begin(), candidates.end(), is_better);
    }
  }
  double largest = candidates[0].logit, total = 0;
  for (std::size_t i = 0; i < kept; ++i) largest = std::max(largest, static_cast<double>(candidates[i].logit));
  for (std::size_t i = 0; i < kept; ++i) total += std::exp((candidates[i].logit - largest) / options_.temperature);
  double left = uniform(options_.seed, count_) * total;
  for (std::size_t i = 0; i < kept; ++i) {
    left -= std::exp((candidates[i].logit - largest) / options_.temperature);
    if (left < 0) return candidates[i].id;
  }
  return candidates[kept - 1].id;
}

}  // namespace tenon
