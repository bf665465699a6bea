// The programs of a decoder: graphs for fixed sizes, with the weights that they take.
//
// Keys and values of earlier tokens are tensors on the device. A step cannot change a tensor, so the cache has two parts: a long
// one, *closed*, and a short one, *open*, which a step copies to add its token. When the open part is full it is appended to the
// closed one. Both have fixed sizes, and a mask hides what is not filled yet, so a sequence that grows needs a new program only
// when the closed part must become larger.
//
// Thread safety: pure functions.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "lease/storage.h"
#include "model/decoder/architecture.h"
#include "model/decoder/weights.h"
#include "tenon/graph.h"

namespace tenon::decoder {

struct StepProgram {
  Graph graph;
  std::vector<std::shared_ptr<Storage>> feeds;  // null for what each run brings
  std::vector<std::size_t> open;                // the places of those, in order
};

inline constexpr std::int64_t kOpen = 32;  // tokens of the open part

// Keys and values of one layer after the other: k0, v0, k1, v1, ... Each is [rows, kv_heads, tokens, head_width].

// |tokens| tokens of one sequence. Inputs: x [tokens, width], cos [tokens, 1, 1, angles], sin [tokens, 1, 2, angles],
// last i64 [1]; if |closed| > 0 also how many closed tokens count, i64 [1], and the closed part. Outputs: the logits after token
// |last|, [1, vocabulary], and keys and values of the tokens.
StepProgram prefill(const Architecture& architecture, const Weights& weights, std::int64_t tokens, std::int64_t closed);

// One token for each of |rows| sequences. Inputs: x [rows, width], cos, sin as above, how many closed tokens count i64 [rows],
// the place of the token in the open part i64 [rows], the closed part, the open part. Outputs: logits [rows, vocabulary] and the
// new open part. |whole_attention|: with the op of that name, which devices with many cores have as one step but which wants both
// parts in one tensor; otherwise as products with each of them, which copies nothing.
StepProgram decode(const Architecture& architecture, const Weights& weights, std::int64_t rows, std::int64_t closed,
                   bool whole_attention);

// A closed part of |to| tokens: the first |closed| are those of the old one (none if 0), with |tokens| more written from a place
// on. Inputs: the place i64 [rows], the closed part, what is added. Outputs: the new closed part.
StepProgram append(const Architecture& architecture, std::int64_t rows, std::int64_t closed, std::int64_t to,
                   std::int64_t tokens);

// A closed part of |rows| sequences and |to| tokens, taken from one of |from_rows| and |closed| tokens and, if |added| > 0, one
// sequence of |added| tokens after them. Inputs: the number of each row i64 [rows], the closed part, the added part.
StepProgram arrange(const Architecture& architecture, std::int64_t rows, std::int64_t to, std::int64_t from_rows,
                    std::int64_t closed, std::int64_t added);

}  // namespace tenon::decoder
