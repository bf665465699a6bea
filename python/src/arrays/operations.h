// Every op of the catalogue as a Python function, and as a method of Array.
//
// There is no list of ops here and no generated code: the functions are made from the catalogue when the module is imported. A
// function's arguments are those of functions.h, in the same order, by position or by name; its signature and docstring come from
// the catalogue, too.
#pragma once

#include <nanobind/nanobind.h>

namespace tenon::python {

namespace nb = nanobind;

// Adds "ops", a dict of name (and alias) -> function.
void bind_operations(nb::module_& module);
// Adds a method to Array for each op whose first argument is an array, under its name and aliases.
void bind_methods(nb::handle array_class);

}  // namespace tenon::python
