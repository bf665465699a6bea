// What a file says about its model, for people and programs.
#pragma once

#include "model/onnx/import/importer.h"
#include "tenon/model.h"

namespace tenon {

ModelInfo info_of(const onnx::LoadedModel& model);
// As Model::nodes.
std::vector<ModelNode> nodes_of(const onnx::LoadedModel& model, std::size_t first, std::size_t count);

}  // namespace tenon
