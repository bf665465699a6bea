// Sampler: chooses the next token from logits.
//
// The choice depends on the logits, the options and the number of tokens chosen before: the random numbers are counted, not drawn
// from a shared generator. Thread safety: none.
#pragma once

#include <cstdint>
#include <deque>
#include <span>
#include <vector>

#include "tenon/model/generator.h"

namespace tenon {

class Sampler {
 public:
  // Throws invalid_argument for options that are out of range. |prompt|: the tokens so far, for the penalty of repetitions.
  Sampler(const SamplingOptions& options, std::span<const std::int32_t> prompt);

  std::int32_t choose(std::span<const float> logits);
  // Whether choose() takes the first of the largest logits, and nothing else changes it: then the device may do it.
  bool is_greedy() const noexcept { return options_.temperature == 0 && options_.repeat_penalty == 1; }

 private:
  struct Candidate {
    std::int32_t id;
    float logit;
  };
  std::int32_t draw(std::vector<Candidate>& candidates);

  const SamplingOptions options_;
  std::deque<std::int32_t> recent_;
  std::uint64_t count_ = 0;
  std::vector<float> penalised_;
  std::vector<Candidate> candidates_;
};

}  // namespace tenon
