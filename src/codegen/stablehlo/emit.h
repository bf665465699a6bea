// Graph -> StableHLO: the whole program as the text of one MLIR module, function @main.
//
// Arguments and results are those of the graph, in order: bool as i1, f16 and bf16 as themselves, the block formats as f32
// (whoever uploads and downloads converts). Computed as the graph prescribes: f16, bf16 and the blocks in f32, rounded where a
// value leaves the program or a cast says so.
//
//   Emitted program = emit(graph);
//   plugin.compile(program.text);
#pragma once

#include <string>

#include "codegen/stablehlo/writer.h"
#include "tenon/graph.h"

namespace tenon::stablehlo {

struct Emitted {
  std::string text;
  // There is one result more, an i1: true when an index was outside of what it selects from, and the others mean nothing.
  bool checks_indices = false;
};

Emitted emit(const Graph& graph, const Target& target = {});

}  // namespace tenon::stablehlo
