// RowsText: what all parts of a rows kernel's text share.
#pragma once

#include <fmt/format.h>

#include <string>
#include <vector>

#include "codegen/c/body.h"
#include "codegen/c/loops/group.h"
#include "codegen/c/rows/passes.h"
#include "codegen/c/rows/shape.h"

namespace tenon::emit {

struct RowsText {
  RowsText(const KernelTarget& kernel_target, GroupReader& group_reader, const GroupPlacement& group_placement)
      : target(kernel_target),
        reader(group_reader),
        graph(group_reader.graph()),
        placement(group_placement),
        shape(rows_shape(target, reader, placement)),
        passes(target, reader, shape.per_lane),
        parameters(shape.wide_index),
        body(target, parameters) {
    for (const External& e : reader.externals()) pointers.push_back(parameters.input(e.from.stored, e.from.slot));
    columns = parameters.index(shape.columns);
  }
  RowsText(const RowsText&) = delete;

  const std::string& index_type() const { return parameters.index_type(); }
  // The variable that holds the value of |operand|; where it is an element of the row, that element.
  std::string variable(NodeId operand) {
    if (const auto member = reader.member(operand)) return reader.name(*member);
    if (reader.is_number(operand)) return reader.number(body, operand);
    return fmt::format("x{}", reader.external_index(operand));
  }
  std::string statement(NodeId member) {
    return reader.statement(body, member, [&](NodeId operand) { return variable(operand); });
  }
  // The array in which a value (passes.h) is kept between passes.
  std::string kept_name(NodeId value) const { return value < 0 ? fmt::format("kx{}", ~value) : "k" + reader.name(value); }

  const KernelTarget& target;
  GroupReader& reader;
  const Graph& graph;
  const GroupPlacement& placement;
  const RowsShape shape;
  const RowsPasses passes;
  Parameters parameters;
  Body body;
  std::vector<std::string> pointers;  // by external
  std::string columns;                // the parameter
  std::string shared;                 // declarations of the memory that a work-group shares
};

// One pass over a row, as parts in the order in which they stand. Without vectors of elements (RowsShape::width) there are no
// loads and stores apart from the loop's inside.
struct PassText {
  std::string before;
  std::string loads, inside, stores;
  std::string after;
};

}  // namespace tenon::emit
