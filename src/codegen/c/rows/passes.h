// RowsPasses: which pass over a row computes what, and which values are kept from one pass to a later one.
//
// Reductions need the whole row: a value that depends on p of them, one after another, has level p and exists after p passes over
// the row. Pass p computes what the reductions of level p + 1 read, and stores outputs of level p.
//
// Values are members of the group, by their node, and operands from memory, external k as ~k.
#pragma once

#include <map>
#include <set>
#include <vector>

#include "codegen/c/loops/group.h"

namespace tenon::emit {

class RowsPasses {
 public:
  // Of one value, by a work-item of a GPU.
  static constexpr int kMostKept = 32;

  // |per_lane|: elements of a row that a work-item of a GPU would keep, per value.
  RowsPasses(const KernelTarget& target, const GroupReader& reader, int per_lane);

  int last() const { return last_; }  // passes are 0 ... last()
  int level(NodeId member) const { return levels_.at(member); }

  // Reductions that |pass| feeds and outputs, of an element each, that it stores.
  std::vector<NodeId> goals_of(int pass) const;
  // Values of an element each that |pass| computes or reads, given what earlier passes kept; operands first.
  std::set<NodeId> needed_in(int pass) const;

  const std::map<NodeId, int>& kept() const { return kept_; }  // value -> the pass that computes it
  bool is_kept_from(int pass, NodeId value) const;
  bool is_kept_before(int pass, NodeId value) const;
  // How many values are kept at the same time.
  int most_kept() const;

 private:
  bool is_expensive(NodeId member) const;
  bool reads(NodeId user, NodeId value) const;
  void find_levels();
  void find_kept(bool is_cpu, int per_lane);

  const GroupReader& reader_;
  const Graph& graph_;
  const Group& group_;
  std::map<NodeId, int> levels_;
  int last_ = 0;
  std::map<NodeId, int> kept_;
};

}  // namespace tenon::emit
