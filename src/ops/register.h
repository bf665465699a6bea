// How a file of ops puts its ops into the catalogue: one function per file, all named in catalogue.cpp.
#pragma once

#include <vector>

#include "tenon/ops.h"

namespace tenon {

using OpList = std::vector<OpInfo>;

void register_elementwise_ops(OpList& ops);     // elementwise.cpp
void register_reduction_ops(OpList& ops);       // reduction.cpp: sum mean ... argmax, softmax family, norms
void register_linear_algebra_ops(OpList& ops);  // linear_algebra.cpp: matmul dot linear outer einsum attention distances
void register_convolution_ops(OpList& ops);     // convolution.cpp: conv, pooling
void register_shape_ops(OpList& ops);           // shape.cpp: transpose reshape slice pad concat gather sort ...
void register_creation_ops(OpList& ops);        // creation.cpp: arange linspace zeros rand eye ...
void register_neural_ops(OpList& ops);          // neural.cpp: rope embedding one_hot quantize ...

// The dtype sets ops accept.
std::vector<DType> float_dtypes();  // f16 bf16 f32 f64 and the block formats
std::vector<DType> integer_dtypes();
std::vector<DType> number_dtypes();  // both
std::vector<DType> every_dtype();    // and bool

}  // namespace tenon
