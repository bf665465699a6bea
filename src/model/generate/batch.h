// GenerationBatch: several generations that advance together, one token at a time or, where the device chooses the tokens, a few
// at a time. They may begin and end at any step.
//
//   GenerationBatch batch(generator, manager);
//   batch.add(request, piece, done);
//   while (batch.size() > 0) batch.step(options);
//
// Lifetime: refers to the manager. Thread safety: none; callbacks are called within add() and step().
#pragma once

#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "model/decoder/sequences.h"
#include "model/generate/sampler.h"
#include "model/generate/text_stream.h"
#include "tenon/model/generator.h"

namespace tenon {

class GenerationBatch {
 public:
  // Rows of one batch. More gain little where weights fit the caches, and each needs memory for its keys and values.
  static constexpr std::size_t kMostRows = 16;

  GenerationBatch(const Generator& generator, DeviceManager& manager);

  // Called for every token, with an empty text while none is certain; false ends the generation.
  using Piece = std::function<bool(const std::string& text)>;
  using Done = std::function<void(Generation)>;

  // Throws invalid_argument for a request that cannot run; the others are not affected.
  void check(const GenerationRequest& request) const;
  // Reads the prompt and chooses the first token. If it throws, the others are as before.
  void add(const GenerationRequest& request, Piece piece, Done done, const RunOptions& options);
  // One token more for each, or a few.
  void step(const RunOptions& options);
  std::size_t size() const noexcept { return active_.size(); }
  // Ends all of them where they are. The batch cannot be used afterwards.
  void cancel();

 private:
  struct Active {
    Sampler sampler;
    TextStream text;
    Generation result;
    Piece piece;
    Done done;
    std::int64_t max_tokens;
    std::int32_t token = -1;  // chosen, not yet part of the sequence
    double started = 0;
  };
  // Tokens of the next step.
  std::int64_t step_tokens() const;
  // The next |count| tokens of each row: from row to row, |count| each. One: chosen here. Several: chosen by the device.
  std::vector<std::int32_t> next_tokens(std::int64_t count, const RunOptions& options);
  // Takes the next token; true if the generation has ended.
  bool accept(Active& active, std::int32_t token);
  void finish(Active& active);
  bool is_end(std::int32_t id) const;

  const std::shared_ptr<const GeneratorState> state_;
  decoder::Sequences sequences_;
  std::vector<std::unique_ptr<Active>> active_;                     // by row
  double token_seconds_ = std::numeric_limits<double>::infinity();  // of the fastest step of one token
};

}  // namespace tenon
