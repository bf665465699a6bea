// The Python classes of models, encoders and tokenizers.
#pragma once

#include <nanobind/nanobind.h>

#include "tenon/model.h"

namespace tenon::python {

// format, producer, opset, nodes, ops, parameters, weight_bytes, metadata
nanobind::dict model_info_dict(const ModelInfo& info);

void bind_model(nanobind::module_& module);

}  // namespace tenon::python
