// Every op of the catalogue as a C++ function of Tensors: the text of include/tenon/tensor/functions.h and
// src/tensor/functions.cpp.
#pragma once

namespace tenon::describe {

void print_functions_header();
void print_functions_source();

}  // namespace tenon::describe
