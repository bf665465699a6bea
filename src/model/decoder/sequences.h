// Sequences: several sequences that grow in step, with their keys and values on a device.
//
//   Sequences batch(decoder, manager, "cpu:0");
//   HostArray logits = batch.add(prompt, options);          // [vocabulary]; the sequence is the last row
//   batch.step(std::array{token}, options);                 // one token for each row: logits [rows, vocabulary]
//   batch.advance(std::array{token}, 8, options);           // the token and the seven likeliest after it; which ones
//   batch.remove(0, options);
//
// A sequence may be added or removed between any two steps. Results of a row do not depend on the other rows.
// Lifetime: refers to the manager. Thread safety: none; calls of different objects over one Decoder may run concurrently.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "model/decoder/programs.h"
#include "tenon/manager.h"

namespace tenon::decoder {

// What programs are made for.
struct DecoderTarget {
  WeightForm form = WeightForm::as_stored;
  bool apart = false;                // the device is not the host: see programs.h
  std::int64_t tokens_together = 1;  // steps that one program may do; above 1 only if the device is apart
};

// A model in memory, with the programs that were needed so far.
class Decoder {
 public:
  Decoder(gguf::Source source, Architecture architecture, const DecoderTarget& target);

  const Architecture& architecture() const noexcept { return architecture_; }
  const DecoderTarget& target() const noexcept { return target_; }
  std::uint64_t weight_bytes() const noexcept { return weights_.bytes; }
  // What programs take for tokens at these positions: their numbers, i64 [tokens], or what the table has for them, f32 [tokens,
  // width]. Throws invalid_argument for a number that is not in the vocabulary.
  HostArray embed(std::span<const std::int32_t> ids, std::span<const std::int64_t> positions) const;

  using Key = std::array<std::int64_t, 6>;  // which program, and its sizes
  std::shared_ptr<const StepProgram> program(const Key& key);

 private:
  StepProgram build(const Key& key) const;

  const gguf::Source source_;
  const Architecture architecture_;
  const DecoderTarget target_;
  const Weights weights_;
  std::mutex mutex_;
  std::map<Key, std::shared_ptr<const StepProgram>> programs_;
};

class Sequences {
 public:
  Sequences(std::shared_ptr<Decoder> decoder, DeviceManager& manager) : decoder_(std::move(decoder)), manager_(manager) {}

  std::size_t rows() const noexcept { return lengths_.size(); }
  std::int64_t length(std::size_t row) const { return lengths_[row]; }
  // Whether advance() may add |count| tokens to the row: they fit, and positions are counted in one way for all of them.
  bool may_advance(std::size_t row, std::int64_t count) const;

  // Computes the keys and values of |ids|, at least one, and returns the logits after the last, f32 [vocabulary]. If it throws,
  // the other sequences are as before.
  HostArray add(std::span<const std::int32_t> ids, const RunOptions& options);
  // Removes a row; the last row takes its place.
  void remove(std::size_t row, const RunOptions& options);
  // Adds one token to each row. f32 [rows or more, vocabulary].
  HostArray step(std::span<const std::int32_t> ids, const RunOptions& options);
  // Adds |count| tokens to each row: its id, then the likeliest after each but the last, whose own likeliest is the last result.
  // i64 [rows or more, count]. At most kOpen tokens, and only if the device is apart.
  HostArray advance(std::span<const std::int32_t> ids, std::int64_t count, const RunOptions& options);

 private:
  using Tensors = std::vector<std::shared_ptr<Storage>>;
  Tensors run(const Decoder::Key& key, std::vector<HostArray> arrays, std::initializer_list<const Tensors*> caches,
              const RunOptions& options);
  // The keys and values of the first tokens of a sequence that has, or will have, |total|.
  struct Computed {
    HostArray logits;
    Tensors cache;
    std::int64_t capacity = 0;
  };
  Computed compute(std::span<const std::int32_t> ids, std::int64_t total, const RunOptions& options);
  // Sequences that are about to become long are computed again, if that changes how positions are counted.
  void recompute_long(std::int64_t count, const RunOptions& options);
  // Appends the open part to the closed one. Its tensors stay: the next tokens replace what they have.
  void close_open_part(const RunOptions& options);
  // Room in the open part for |count| tokens, and what a step takes: tokens, angles, how many are closed, places.
  std::vector<HostArray> prepare(std::span<const std::int32_t> ids, std::int64_t count, const RunOptions& options);
  // Of the results of a step: the first, once the others are the open part.
  HostArray take_results(Tensors results, std::int64_t count);
  void rearrange(std::span<const std::int64_t> from, const Computed* added, const RunOptions& options);

  const std::shared_ptr<Decoder> decoder_;
  DeviceManager& manager_;
  std::vector<std::int64_t> lengths_;           // tokens of each row, those of the open part included
  std::vector<std::int64_t> open_;              // of which in the open part
  std::vector<std::vector<std::int32_t>> ids_;  // the tokens of each row, if they may be needed again: recompute_long()
  std::int64_t stored_rows_ = 0;                // rows of the tensors, at least rows()
  std::int64_t capacity_ = 0;                   // of the closed part
  Tensors closed_, opened_;                     // empty if there are none
};

}  // namespace tenon::decoder
