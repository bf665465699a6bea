#include "mesh/plan/device_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace tenon::mesh {
namespace {

using Kind = GroupCall::Kind;
std::size_t index(int i) { return static_cast<std::size_t>(i); }

std::vector<int> reduced_axes(const Layout& from, const Layout& to) {
  std::vector<int> axes;
  for (std::size_t m = 0; m < from.partials.size(); ++m)
    if (from.partials[m] && !to.partials[m]) axes.push_back(static_cast<int>(m));
  return axes;
}

NodeId cut(Graph& graph, NodeId x, const Box& have, const Box& wanted) {
  std::vector<std::int64_t> start, extent, step;
  for (std::size_t i = 0; i < have.begin.size(); ++i) {
    start.push_back(wanted.begin[i] - have.begin[i]);
    extent.push_back(wanted.end[i] - wanted.begin[i]);
    step.push_back(1);
  }
  return graph.slice(x, start, extent, step);
}

// Whether |parts|, one after the other, are the bytes of |whole|, and equally many.
bool are_equal_rows(const std::vector<Box>& parts, const Box& whole) {
  if (whole.begin.empty()) return false;
  std::int64_t row = whole.begin[0];
  for (const Box& part : parts) {
    Box rows = whole;
    rows.begin[0] = row;
    rows.end[0] = row = part.end[0];
    if (!(part == rows) || part.elements() != parts[0].elements()) return false;
  }
  return row == whole.end[0];
}

struct Piece {
  NodeId node;
  Box box;
};
// Pieces of a box whose axes are each cut by themselves: along |axis| they are joined when those after it are.
NodeId joined(Graph& graph, std::vector<Piece> pieces, std::size_t axis) {
  if (pieces.size() == 1) return pieces[0].node;
  std::map<std::int64_t, std::vector<Piece>> slabs;
  for (Piece& piece : pieces) slabs[piece.box.begin[axis]].push_back(std::move(piece));
  std::vector<NodeId> parts;
  for (auto& [begin, slab] : slabs) parts.push_back(joined(graph, std::move(slab), axis + 1));
  return parts.size() == 1 ? parts[0] : graph.concat(parts, static_cast<int>(axis));
}

class Planner {
 public:
  Planner(const Graph& graph, const Mesh& mesh, const Layout& from, const Value& exchange, int rank, DType stored)
      : mesh_(mesh),
        from_(from),
        to_(exchange.layout),
        shape_(graph[exchange.origin].shape),
        dtype_(exchanged_type(graph, exchange)),
        rank_(rank),
        have_(have(rank)),
        is_stored_as_sent_(stored == dtype_) {
    part_ = pack_.input("part", stored, have_.shape());
  }

  DevicePlan reduce() {
    const std::vector<int> axes = reduced_axes(from_, to_);
    plan_.group = group_of(mesh_, rank_, axes);
    plan_.reduction = *from_.partials[index(axes[0])];
    plan_.received = {{dtype_, wanted(rank_).shape()}};
    std::vector<Box> parts;
    for (const int member : plan_.group) parts.push_back(wanted(member));
    if (have_ == parts[0])
      add(Kind::all_reduce, 0, sent(have_), 0);
    else if (are_equal_rows(parts, have_))
      add(Kind::reduce_scatter, 0, sent(have_), 0);
    else
      for (int place = 0; place < static_cast<int>(parts.size()); ++place)
        add(Kind::reduce, place, sent(parts[index(place)]),
            plan_.group[index(place)] == rank_ ? std::optional<std::size_t>(0) : std::nullopt);
    return take();
  }

  DevicePlan move() {
    plan_.group = sources_of(from_, mesh_, rank_);
    std::vector<Box> parts;
    for (const int member : plan_.group) parts.push_back(have(member));
    const bool all_want_all =
        std::all_of(plan_.group.begin(), plan_.group.end(), [&](int member) { return wanted(member) == wanted(rank_); });
    if (all_want_all && are_equal_rows(parts, wanted(rank_))) {
      plan_.received = {{dtype_, wanted(rank_).shape()}};
      add(Kind::all_gather, 0, sent(have_), 0);
      return take();
    }
    Graph join;
    std::vector<Piece> pieces;
    for (int place = 0; place < static_cast<int>(parts.size()); ++place) {
      const Box given = intersection(have_, wanted(plan_.group[index(place)]));
      if (given.elements() > 0) add(Kind::send, place, sent(given), std::nullopt);
      const Box got = intersection(parts[index(place)], wanted(rank_));
      if (got.elements() == 0) continue;
      add(Kind::receive, place, std::nullopt, plan_.received.size());
      plan_.received.push_back({dtype_, got.shape()});
      pieces.push_back({join.input(fmt::format("piece{}", place), dtype_, got.shape()), got});
    }
    if (pieces.size() > 1) {
      join.set_outputs({joined(join, std::move(pieces), 0)});
      plan_.join = std::move(join);
    }
    return take();
  }

 private:
  Box have(int rank) const { return box_of(from_, shape_, mesh_, rank); }
  Box wanted(int rank) const { return box_of(to_, shape_, mesh_, rank); }
  void add(Kind kind, int peer, std::optional<std::size_t> from, std::optional<std::size_t> to) {
    plan_.calls.push_back({kind, peer, from, to});
  }
  // The number of the buffer with this part of what the device has.
  std::size_t sent(const Box& box) {
    const auto number = static_cast<std::size_t>(std::find(sent_.begin(), sent_.end(), box) - sent_.begin());
    if (number == sent_.size()) sent_.push_back(box);
    return number;
  }
  DevicePlan take() {
    if (sent_.size() == 1 && sent_[0] == have_ && is_stored_as_sent_) return std::move(plan_);
    const NodeId whole = pack_.cast(part_, dtype_);
    std::vector<NodeId> outputs;
    for (const Box& box : sent_) outputs.push_back(cut(pack_, whole, have_, box));
    pack_.set_outputs(outputs);
    plan_.pack = std::move(pack_);
    return std::move(plan_);
  }

  const Mesh& mesh_;
  const Layout &from_, &to_;
  const Shape& shape_;
  const DType dtype_;
  const int rank_;
  const Box have_;
  const bool is_stored_as_sent_;
  Graph pack_;
  NodeId part_;
  std::vector<Box> sent_;
  DevicePlan plan_;
};

}  // namespace

bool is_for_devices(const Graph& graph, const Partition& partition, const Value& exchange) {
  if (exchange.kind == Value::Kind::move) return true;
  const Layout& from = partition.values[index(exchange.inputs[0])].layout;
  const std::vector<int> axes = reduced_axes(from, exchange.layout);
  return is_reducible(*from.partials[index(axes[0])], exchanged_type(graph, exchange));
}

DevicePlan device_plan(const Graph& graph, const Mesh& mesh, const Partition& partition, const Value& exchange, int rank,
                       DType stored) {
  Planner planner(graph, mesh, partition.values[index(exchange.inputs[0])].layout, exchange, rank, stored);
  return exchange.kind == Value::Kind::reduce ? planner.reduce() : planner.move();
}

}  // namespace tenon::mesh
