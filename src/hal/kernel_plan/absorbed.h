// Absorbed groups: what the kernels of products of few rows, and of attention, compute besides their own result (CUDA).
//
// A step that generates a token is a chain of such products, each of which reads a matrix once, with small groups between them
// that take as long as a kernel takes to start. A product of few rows computes the group that alone reads it as it stores its
// result (a tail: the sum with the residual, the product of a gate), and the root mean square norm of its own rows before it
// begins (a head). Attention of few queries computes the group that turns them and the group that puts the newest among the last
// keys and values, and stores its result in the type that it is rounded to.
// Random numbers that one elementwise group alone reads are drawn by that group's kernel.
//
// Thread safety: pure functions.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <vector>

#include "codegen/c/loops/group.h"
#include "codegen/c/primitives/primitives.h"
#include "graph/optimize/fusion.h"

namespace tenon {

// An elementwise group over columns of a product that nothing else reads.
struct ProductTail {
  NodeId product = -1, result = -1;
  int group = -1;
  std::int64_t segments = 1;  // the group reads columns i, i + n, ... of the product as elements i
};

// A group that is the root mean square norm of rows, times a weight, rounded for the product that alone reads it.
struct ProductHead {
  NodeId x = -1, weight = -1;  // operands of the group
  int group = -1;
  double eps = 0;
};

// A group where(is_new, ..., old) [n, heads, keys, ...] whose heads are the last keys and values of attention.
struct RenewedKeys {
  int group = -1;
  NodeId is_new = -1, old = -1;         // operands of the group
  std::int64_t k_head = 0, v_head = 0;  // the first of the keys' and of the values'
};

struct Absorbed {
  std::map<int, ProductTail> tails;       // by group
  std::map<NodeId, ProductHead> heads;    // by product
  std::map<NodeId, NodeId> rounded;       // by attention: the cast to 16 bits that alone reads it
  std::map<NodeId, int> queries;          // by attention of few queries: the group that computes them for nothing else
  std::map<NodeId, RenewedKeys> renewed;  // by attention of few queries
  std::map<int, NodeId> random;           // by group: the random numbers that it alone reads, element for element
};

// Moves sums with a product of few rows out of the groups of norms, so that they can be tails. Before PlanValues is made.
Plan with_sums_apart(const Graph& graph, Plan fused);
// Joins elementwise groups of the same domain that read the same values, none of them a product, and each compute one part of the
// same concatenation: what they read is then loaded once, and neighbouring parts are stored together.
Plan with_parts_together(const Graph& graph, Plan fused);
Absorbed find_absorbed(const Graph& graph, const Plan& fused);

// For AttentionOperands::query, from the group whose |reader| this is, which must live as long as the result.
std::function<std::string(emit::Body&, const std::string&, const std::string&, const std::string&, std::string&)> query_text(
    emit::GroupReader& reader);

// For AttentionOperands::Rest::Renewal::element, likewise.
std::function<std::string(emit::Body&, const std::string&, const std::string&, const std::string&, const std::string&,
                          std::string&)>
renewed_text(emit::GroupReader& reader);

}  // namespace tenon
