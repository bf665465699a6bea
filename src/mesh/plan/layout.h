// Layout: how one value lies on a mesh. Each axis of the tensor is whole or split over axes of the mesh; along each of the
// remaining axes of the mesh the value is replicated, or partial: the whole is the reduction of what the devices hold.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tenon/graph.h"
#include "tenon/mesh.h"

namespace tenon::mesh {

// One axis of a tensor. Part i of product(sizes of |over|) is [cuts[i], cuts[i + 1]).
struct Split {
  std::vector<int> over;  // axes of the mesh, outermost first; empty: whole
  std::vector<std::int64_t> cuts;
  friend bool operator==(const Split&, const Split&) = default;
};

struct Layout {
  std::vector<Split> splits;                        // per axis of the tensor
  std::vector<std::optional<ReduceKind>> partials;  // per axis of the mesh

  static Layout replicated(int rank, const Mesh& mesh);
  bool splits_over(int mesh_axis) const;
  bool is_partial() const;
  friend bool operator==(const Layout&, const Layout&) = default;
};

// The part of a tensor that one device holds.
struct Box {
  std::vector<std::int64_t> begin, end;
  Shape shape() const;
  std::int64_t elements() const;
  friend bool operator==(const Box&, const Box&) = default;
};
Box box_of(const Layout& layout, const Shape& shape, const Mesh& mesh, int rank);
Box intersection(const Box& a, const Box& b);  // with begin == end along an axis where they do not meet

int parts_of(const Split& split, const Mesh& mesh);
// The part of |split| that a device holds.
int part_of(const Split& split, const Mesh& mesh, int rank);
// Cuts of |extent| over |over| in proportion to the speeds of the devices; equal parts if there are none.
std::vector<std::int64_t> cuts_for(std::int64_t extent, const std::vector<int>& over, const Mesh& mesh,
                                   const std::vector<double>& speeds);

// The devices that hold the other terms of a reduction over |axes|, in order, |rank| itself included.
std::vector<int> group_of(const Mesh& mesh, int rank, const std::vector<int>& axes);
// The devices from which |rank| can get every part of a value: itself and those that differ along the split axes.
std::vector<int> sources_of(const Layout& from, const Mesh& mesh, int rank);

std::string text_of(const Layout& layout, const Mesh& mesh);

// Bytes that devices send to each other to turn |from| into |to|, over all devices; the partial axes of |to| are among those of
// |from|. A reduction sends every device's terms to those that add them up, then the sums to all that need them.
std::uint64_t moved_bytes(const Layout& from, const Layout& to, const Shape& shape, std::uint64_t element_bytes,
                          const Mesh& mesh);
// The layout after the reductions that |from| needs to become |to|: scattered where |to| splits an axis that is whole in |from|.
Layout reduced(const Layout& from, const Layout& to);
// Whether every device already holds what it needs.
bool is_local(const Layout& from, const Layout& to, const Shape& shape, const Mesh& mesh);

}  // namespace tenon::mesh
