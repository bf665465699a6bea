// By how much the frequencies of rotary positions are divided, for models that were stretched to longer texts.
//
// Pair i of |rotated| / 2 turns by base^(-2i / rotated) for each position, divided by what these functions have for it.
// Thread safety: pure functions.
#pragma once

#include <cstdint>
#include <vector>

namespace tenon::decoder {

struct Stretch {
  double base = 10000;
  std::int64_t rotated = 0;  // at most 2^21
  double factor = 1;         // how much longer texts became
  double original = 0;       // tokens of the longest text before
};

// Llama 3.1: slow frequencies are divided by the factor, fast ones are kept, and between them there is a ramp. |low|, |high|:
// turns within the original text. Throws invalid_argument for numbers that do not fit.
std::vector<double> llama3_divisors(const Stretch& stretch, double low, double high);

// YaRN (Peng et al. 2023): the same with a ramp over the numbers of the pairs, whose ends are rounded unless |is_exact|. |fast|,
// |slow|: turns within the original text.
std::vector<double> yarn_divisors(const Stretch& stretch, double fast, double slow, bool is_exact);
// What YaRN multiplies cosines and sines by; |weight| is 1 but for some models.
double yarn_scale(double factor, double weight);

}  // namespace tenon::decoder
