// Attention as one step on NVIDIA GPUs: the scores are never in memory.
//
// Many queries: a work-group keeps its rows of q and their results, and walks over the keys in blocks; products of 16-bit types
// run on the matrix units (tiles.cpp; tiles_hopper.cpp on cards of compute capability 9.0), those of f32 do not (tiles_f32.cpp).
// Few queries: every key is read once, so the keys of a head are divided between work-groups, whose results a second kernel joins
// (few_queries.cpp; few_queries_matrix.cpp in 16-bit types on the matrix units). Both keep a running largest score for each row,
// and scale what they have by it.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "codegen/c/primitives/primitives.h"

namespace tenon::emit {

// Whether rows start at multiples of 16 bytes in 16-bit types; others are copied before.
bool has_aligned_rows(const Access& x);

// q [n, h, l, e], k [n, g, s, e], v [n, g, s, d] in one dtype, with a last axis of unit stride; the mask [n, h, l, s], if there
// is one, in any stored type.
struct AttentionOperands {
  Shape q_shape, k_shape, v_shape;
  Access q, k, v;
  // The last keys and values, if they are tensors of their own (k_shape counts all): only where takes_two_parts().
  struct Rest {
    std::int64_t from = 0;  // the number of the first of them
    Access k, v;
    // If the kernel renews them, and stores them in |out| [n, heads, keys, e], f32, as its heads |k_head| and |v_head| on: k and
    // v are what was there, of which keys for which |is_new| are replaced.
    struct Renewal {
      Dense out;
      std::int64_t k_head = 0, v_head = 0;
      std::function<std::string(Body& body, const std::string& batch, const std::string& key)> is_new;
      // Statements that define |result|, an element.
      std::function<std::string(Body& body, const std::string& batch, const std::string& head, const std::string& key,
                                const std::string& place, std::string& result)>
          element;
    };
    std::optional<Renewal> renewal;
  };
  std::optional<Rest> rest;
  std::optional<Access> mask;
  bool mask_is_bool = false;
  // In place of q: statements that define |result|, for the batch, head and place in a row of these names. Only of few queries of
  // one row, in f32.
  std::function<std::string(Body& body, const std::string& batch, const std::string& head, const std::string& place,
                            std::string& result)>
      query;
  bool is_given = false;  // k and v, without |rest|, are inputs of the program, which no kernel of it writes
};

struct AttentionRule {
  double scale = 1;
  bool causal = false;  // row i uses keys 0 to i
};

bool can_attention(const KernelTarget& target, DType dtype, const Shape& q, const Shape& k, const Shape& v);
// |out| is dense.
std::vector<Launch> emit_attention(const KernelTarget& target, const AttentionOperands& x, const AttentionRule& rule,
                                   const Dense& out, const Scratch& scratch);

// --- The ways ---
bool has_few_queries(const Shape& q, const Shape& k, const Shape& v);
// Whether keys and values may be in two parts, as those of a text are to which each step adds one.
inline bool takes_two_parts(const Shape& q, const Shape& k, const Shape& v) { return has_few_queries(q, k, v); }
std::vector<Launch> emit_few_queries(const KernelTarget& target, const AttentionOperands& x, const AttentionRule& rule,
                                     const Dense& out, const Scratch& scratch);
bool can_few_queries_matrix(const KernelTarget& target, const AttentionOperands& x);
std::vector<Launch> emit_few_queries_matrix(const KernelTarget& target, const AttentionOperands& x, const AttentionRule& rule,
                                            const Dense& out, const Scratch& scratch);
Launch emit_attention_tiles(const KernelTarget& target, const AttentionOperands& x, const AttentionRule& rule, const Dense& out);
bool can_attention_tiles_hopper(const KernelTarget& target, const AttentionOperands& x, const AttentionRule& rule,
                                const Dense& out);
Launch emit_attention_tiles_hopper(const KernelTarget& target, const AttentionOperands& x, const AttentionRule& rule,
                                   const Dense& out);
Launch emit_attention_tiles_f32(const KernelTarget& target, const AttentionOperands& x, const AttentionRule& rule,
                                const Dense& out);

// Adds the operand to the parameters: NAME, NAME_OFFSET, NAME_BATCH, NAME_HEAD and NAME_ROW.
void add_operand(std::map<std::string, std::string>& names, Parameters& parameters, const std::string& name, const Access& a);
// The mask's value for the batch n, head h, row and key of the text.
std::string mask_value(Body& body, Parameters& parameters, const AttentionOperands& x);
// A score, in powers of two, with the mask's value, by default that, added.
std::string masked_score(const AttentionOperands& x, const std::string& score, const std::string& value);
std::string masked_score(Body& body, Parameters& parameters, const AttentionOperands& x, const std::string& score);

}  // namespace tenon::emit
