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
// Tokens of the smallest closed part on a device that is apart: reading keys that do not count costs less there than a program
// for one more size.
inline constexpr std::int64_t kLeastClosedApart = 256;

// A device that is *apart* is not the host. There, each tensor that is passed and each kernel that is started costs time, so the
// table of tokens is kept on it, attention is one op, and keys and values of a layer are one tensor: [rows, 2 * kv_heads, tokens,
// head_width], keys first. Only uniform architectures are run so (Architecture::is_uniform). Elsewhere keys and values are two
// tensors, [rows, kv_heads, tokens, head_width], which products read as they are.
std::int64_t cache_tensors(const Architecture& architecture, bool apart);
Shape cache_shape(const Architecture& architecture, bool apart, std::int64_t rows, std::int64_t tokens);

// |tokens| tokens of one sequence. Inputs: x f32 [tokens, width], or if |apart| the tokens i64 [tokens]; cos [tokens, 1, 1,
// angles], sin [tokens, 1, 2, angles], last i64 [1]; if |closed| > 0 also how many closed tokens count, i64 [1], and
// the closed part. Outputs: the logits after token |last|, [1, vocabulary], and keys and values of the tokens.
StepProgram prefill(const Architecture& architecture, const Weights& weights, std::int64_t tokens, std::int64_t closed,
                    bool apart);

// One token for each of |rows| sequences. Inputs: x [rows, width], cos, sin as above, how many closed tokens count
// i64 [rows], the place of the token in the open part i64 [rows], the closed part, the open part. Outputs: logits [rows,
// vocabulary] and the new open part.
StepProgram decode(const Architecture& architecture, const Weights& weights, std::int64_t rows, std::int64_t closed);

// The same on a device that is apart, with the tokens i64 [rows] in place of x.
StepProgram decode_apart(const Architecture& architecture, const Weights& weights, std::int64_t rows, std::int64_t closed);

// |tokens| steps of decode_apart(), each with the likeliest token after the one before. cos and sin have those of every row for
// the first step, then for the second, and so on. Outputs: the tokens that were chosen, i64 [rows, tokens], and the new open
// part.
StepProgram advance(const Architecture& architecture, const Weights& weights, std::int64_t rows, std::int64_t closed,
                    std::int64_t tokens);

// A closed part of |to| tokens: the first |closed| are those of the old one (none if 0), with |tokens| more written from a place
// on. Inputs: the place i64 [rows], the closed part, what is added. Outputs: the new closed part.
StepProgram append(const Architecture& architecture, std::int64_t rows, std::int64_t closed, std::int64_t to, std::int64_t tokens,
                   bool apart);

// A closed part of |rows| sequences and |to| tokens, taken from one of |from_rows| and |closed| tokens and, if |added| > 0, one
// sequence of |added| tokens after them. Inputs: the number of each row i64 [rows], the closed part, the added part.
StepProgram arrange(const Architecture& architecture, std::int64_t rows, std::int64_t to, std::int64_t from_rows,
                    std::int64_t closed, std::int64_t added, bool apart);

}  // namespace tenon::decoder
