#include "codegen/stablehlo/emit.h"

#include <fmt/format.h>

#include "codegen/stablehlo/conversion.h"
#include "codegen/stablehlo/elementwise.h"
#include "codegen/stablehlo/nodes.h"
#include "graph/optimize/simplify.h"
#include "tenon/error.h"

namespace tenon::stablehlo {
namespace {

// The dtype of an argument or a result.
DType passed_dtype(DType dtype) { return is_block(dtype) ? DType::f32 : dtype; }

class Emitter {
 public:
  Emitter(const Graph& graph, const Target& target) : graph_(graph), writer_(target) {
    values_.resize(static_cast<std::size_t>(graph.size()));
  }

  Emitted run() {
    for (const NodeId id : graph_.inputs()) {
      const Node& node = graph_[id];
      const Term passed = writer_.argument(passed_dtype(node.dtype), node.shape);
      values_[static_cast<std::size_t>(id)] = convert(passed, compute_dtype(node.dtype));
    }
    for (NodeId id = 0; id < graph_.size(); ++id)
      if (graph_[id].prim != Prim::input) values_[static_cast<std::size_t>(id)] = value_of(graph_[id]);

    std::vector<Term> results;
    for (const NodeId id : graph_.outputs()) results.push_back(stored(values_[static_cast<std::size_t>(id)], graph_[id].dtype));
    if (!checks_.empty()) {
      Term any = checks_[0];
      for (std::size_t i = 1; i < checks_.size(); ++i) any = any | checks_[i];
      results.push_back(any);
    }
    return {module_text(results), !checks_.empty()};
  }

 private:
  std::string module_text(const std::vector<Term>& results) const {
    std::string names, types;
    for (const Term& result : results) {
      names += (names.empty() ? "" : ", ") + writer_.name(result);
      types += (types.empty() ? "" : ", ") + type_text(result);
    }
    return fmt::format(
        "module @tenon {{\n"
        "  func.func public @main({}) -> ({}) {{\n"
        "{}"
        "    \"func.return\"({}) : ({}) -> ()\n"
        "  }}\n"
        "}}\n",
        writer_.arguments(), types, writer_.lines(), names, types);
  }

  Term value_of(const Node& node) {
    std::vector<Term> in;
    for (const NodeId id : node.inputs) in.push_back(values_[static_cast<std::size_t>(id)]);
    switch (node.prim) {
      case Prim::input: break;
      case Prim::constant: return writer_.constant(node.as<ConstantAttr>().value.cast(compute_dtype(node.dtype)));
      case Prim::elementwise: return elementwise(node, in);
      case Prim::cast: return cast(in[0], graph_[node.inputs[0]].dtype, node.dtype);
      case Prim::broadcast:
      case Prim::reshape:
      case Prim::transpose:
      case Prim::slice: return emit_view(node, in[0]);
      case Prim::pad: return emit_pad(node, in[0]);
      case Prim::concat: return emit_concat(node, in);
      case Prim::take: return emit_take(node, in[0], in[1], checks_);
      case Prim::gather: return emit_gather(node, in[0], in[1], checks_);
      case Prim::scatter: return emit_scatter(node, in[0], in[1], in[2], checks_);
      case Prim::iota: return iota(writer_, DType::i64, node.shape, node.as<AxisAttr>().axis);
      case Prim::reduce: return emit_reduce(node, in[0]);
      case Prim::arg_reduce: return emit_arg_reduce(node, in[0]);
      case Prim::matmul: return emit_matmul(node, in[0], in[1]);
      case Prim::conv: return emit_conv(node, in[0], in[1]);
      case Prim::window: return emit_window(node, in[0]);
      case Prim::arg_sort: return emit_arg_sort(node, in[0]);
      case Prim::cumulative: return emit_cumulative(node, in[0]);
      case Prim::random: return emit_random(writer_, node);
      case Prim::region: break;
    }
    throw Error(ErrorCode::internal, "StableHLO does not support this primitive");
  }

  const Graph& graph_;
  Writer writer_;
  std::vector<Term> values_;
  Checks checks_;
};

}  // namespace

Emitted emit(const Graph& graph, const Target& target) {
  const Graph simple = simplify(graph);
  return Emitter(simple, target).run();
}

}  // namespace tenon::stablehlo
