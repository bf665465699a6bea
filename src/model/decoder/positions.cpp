#include "model/decoder/positions.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "tenon/error.h"

namespace tenon::decoder {
namespace {

void check(const Stretch& s, bool fits) {
  if (!(s.base > 1 && s.factor > 0 && s.original > 0 && s.rotated > 0 && s.rotated <= (1 << 21) && fits))
    throw Error(ErrorCode::invalid_argument, "the factors of rotary positions do not fit");
}

// |kept|: how much of the frequency of a pair is not divided, from 0 to 1.
template <class Kept>
std::vector<double> divisors(const Stretch& s, Kept kept) {
  std::vector<double> out;
  for (std::int64_t i = 0; i < s.rotated / 2; ++i) {
    const double part = std::clamp(kept(static_cast<double>(i)), 0.0, 1.0);
    out.push_back(1 / ((1 - part) / s.factor + part));
  }
  return out;
}

}  // namespace

std::vector<double> llama3_divisors(const Stretch& s, double low, double high) {
  check(s, high > low);
  return divisors(s, [&](double i) {
    const double frequency = std::pow(s.base, -2 * i / static_cast<double>(s.rotated));
    return (s.original * frequency / (2 * std::numbers::pi) - low) / (high - low);
  });
}

std::vector<double> yarn_divisors(const Stretch& s, double fast, double slow, bool is_exact) {
  check(s, fast > 0 && slow > 0);
  const double rotated = static_cast<double>(s.rotated);
  const auto pair_with = [&](double turns) {
    return rotated * std::log(s.original / (turns * 2 * std::numbers::pi)) / (2 * std::log(s.base));
  };
  double first = pair_with(fast), last = pair_with(slow);
  if (!is_exact) {
    first = std::floor(first);
    last = std::ceil(last);
  }
  first = std::max(first, 0.0);
  last = std::min(last, rotated - 1);
  if (first == last) last += 0.001;
  return divisors(s, [&](double i) { return 1 - std::clamp((i - first) / (last - first), 0.0, 1.0); });
}

double yarn_scale(double factor, double weight) { return factor <= 1 ? 1 : 0.1 * weight * std::log(factor) + 1; }

}  // namespace tenon::decoder
