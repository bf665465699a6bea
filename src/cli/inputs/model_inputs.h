// The inputs of a model as a command gets them: values that the user wrote, a file, and made-up ones for the rest.
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "tenon/model.h"

namespace tenon::cli {

// NAME=VALUE with any name that the model has, identifiers or not ("images:0", "x.1"), converted to the type that the model
// takes: numbers typed as integers where it takes floats, doubles from files where it takes float32. Throws invalid_argument.
Model::Tensors given_inputs(std::span<const std::string> arguments, const ModelInfo& info);

// Adds every required input that |inputs| lacks, with the extents of |extents|, else those of the other inputs, else 1: NAME=N
// for an extent by its name in the model, INPUT[AXIS]=N for any. Floats are random; integers and bools are ones, which are valid
// indices and masks in most models. Throws invalid_argument for an extent that no input has.
void make_up_inputs(std::span<const std::string> extents, const ModelInfo& info, Model::Tensors& inputs);

}  // namespace tenon::cli
