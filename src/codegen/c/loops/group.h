// What the kernels of all groups have in common: the values a group reads, and the statements of its nodes.
#pragma once

#include <map>
#include <optional>

#include "codegen/c/loops/geometry.h"
#include "codegen/c/loops/loop.h"

namespace tenon::emit {

// A value read from memory outside the group.
struct External {
  NodeId operand = -1;
  StoredValue from;
  ValueView view;
  bool is_row = false;  // has the row shape, in a rows group
};

// The axes of a group's domain: those before the reduced ones, the reduced, those after.
struct GroupAxes {
  std::vector<int> outer, reduced, inner;
};
GroupAxes group_axes(const Group& group);

// How two partial results of a reduction are joined, and what it starts from.
std::string combine_text(ReduceKind kind, DType dtype, const std::string& a, const std::string& b);
std::string identity_text(ReduceKind kind, DType dtype);
// CUDA: joins |value| of |lanes| neighbouring work-items (a power of two, at most 32); all of them have the result.
std::string across_warp_text(ReduceKind kind, DType dtype, const std::string& value, int lanes);

// The largest or smallest of floats as a processor's compiler vectorises it: as integers in the same order, NaN noted apart.
// |key| names the running value, |result| what is defined |after| the loop.
void extreme_text(Body& body, ReduceKind kind, DType dtype, const std::string& key, const std::string& result,
                  const std::string& value, std::string& before, std::string& inside, std::string& after);
// A sum of f64 and beside it the sum of its rounding errors (Neumaier): statements, and the total.
std::string compensated_add_text(const std::string& sum, const std::string& lost, const std::string& value);
std::string compensated_total_text(const std::string& sum, const std::string& lost);

class GroupReader {
 public:
  GroupReader(const Graph& graph, const Plan& plan, int group, const GroupPlacement& placement);

  const Graph& graph() const { return graph_; }
  const Group& group() const { return group_; }
  std::span<const External> externals() const { return externals_; }
  // A number instead of memory: a constant of one element.
  bool is_number(NodeId operand) const;
  std::optional<double> number_value(NodeId operand) const;
  std::optional<NodeId> member(NodeId operand) const { return member_behind(graph_, plan_, index_, operand); }
  int external_index(NodeId operand) const;
  bool is_row(NodeId member) const;
  std::string name(NodeId member) const;

  // Statements that define name(id). Operands are the variables |variable| gives.
  std::string statement(Body& body, NodeId id, const std::function<std::string(NodeId)>& variable);
  std::string number(Body& body, NodeId operand);

 private:
  const Graph& graph_;
  const Plan& plan_;
  int index_;
  const Group& group_;
  std::vector<External> externals_;
  std::map<NodeId, std::vector<std::string>> params_;
  std::map<NodeId, std::string> numbers_;
};

// Statements that compute the nodes of an elementwise group for one element, within a kernel of something else; |load| gives the
// value of what is read from outside. Nodes of |known| have that value instead of their op's, or none if it is empty.
std::string element_text(GroupReader& reader, Body& body, const std::function<std::string(const External&)>& load,
                         const std::map<NodeId, std::string>& known = {});

std::vector<Launch> emit_rows(const KernelTarget& target, GroupReader& reader, GroupPlacement& placement);
std::vector<Launch> emit_reduction(const KernelTarget& target, GroupReader& reader, GroupPlacement& placement);

}  // namespace tenon::emit
