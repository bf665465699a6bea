// Translates a Graph to StableHLO: the text of one MLIR module with the function @main.
//
// Arguments and results are those of the graph, in order: bool as i1, f16 and bf16 unchanged, block formats as f32 (upload and
// download convert them). f16, bf16 and the block formats are computed in f32 and rounded where a value leaves the program or at
// a cast.
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
  // There is an extra i1 result; if it is true, an index was out of range and the other results are invalid.
  bool checks_indices = false;
};

Emitted emit(const Graph& graph, const Target& target = {});

}  // namespace tenon::stablehlo
