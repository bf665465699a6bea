// Python objects as tensors and back. All functions need the GIL and throw nb::python_error or tenon::Error.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "tenon/tensor.h"

namespace tenon::python {

namespace nb = nanobind;

// The class Array; an instance holds a Tensor, which assignment to elements replaces.
inline PyTypeObject* array_type = nullptr;

inline bool is_array(PyObject* object) { return Py_TYPE(object) == array_type || PyObject_TypeCheck(object, array_type); }
inline Tensor& tensor_in(PyObject* array) { return *nb::inst_ptr<Tensor>(nb::handle(array)); }
// A new reference.
PyObject* wrap(Tensor tensor);
nb::object wrapped(Tensor tensor);

enum class Copy : std::uint8_t { always, if_needed, never };

// Any array-like: an Array, numbers, nested lists, whatever has a buffer, __dlpack__ or __array__. Memory of others is borrowed
// unless |copy| is always. Throws TypeError for anything else, ValueError if |copy| is never and a copy is needed.
Tensor make_array(PyObject* object, std::optional<DType> dtype, Copy copy);
// An operand of an op: like make_array, but a Python number takes the dtype of what it meets. nullopt for what is no array-like.
std::optional<Tensor> operand(PyObject* object);
Tensor operand_or_throw(PyObject* object, const char* name);

// A dtype of Tenon, its name, NumPy's dtypes and scalar types, bool, int and float. nullopt for None. Throws TypeError.
std::optional<DType> dtype_from(PyObject* object);
nb::object dtype_object(DType dtype);

std::vector<std::int64_t> integers_from(PyObject* object);
Shape shape_from(PyObject* object);
nb::object shape_tuple(const Shape& shape);

void bind_dtypes(nb::module_& module);

}  // namespace tenon::python
