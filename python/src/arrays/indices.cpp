#include "arrays/indices.h"

#include <vector>

#include "arrays/convert.h"
#include "tenon/tensor/indexing.h"

namespace tenon::python {
namespace {

std::optional<std::int64_t> bound(PyObject* slice, const char* name) {
  const nb::object value = nb::handle(slice).attr(name);
  if (value.is_none()) return std::nullopt;
  // Bounds beyond an int64 are clipped, as everywhere in Python.
  const Py_ssize_t at = PyNumber_AsSsize_t(value.ptr(), nullptr);
  if (at == -1 && PyErr_Occurred()) throw nb::python_error();
  return at;
}

Index index_from(PyObject* key) {
  if (key == Py_None) return new_axis;
  if (key == Py_Ellipsis) return ellipsis;
  if (PySlice_Check(key)) return Slice(bound(key, "start"), bound(key, "stop"), bound(key, "step").value_or(1));
  if (PyBool_Check(key)) return Tensor(key == Py_True);
  if (is_array(key)) return tensor_in(key);
  if (PyIndex_Check(key) && !nb::hasattr(key, "shape")) {
    const Py_ssize_t place = PyNumber_AsSsize_t(key, PyExc_IndexError);
    if (place == -1 && PyErr_Occurred()) throw nb::python_error();
    return static_cast<std::int64_t>(place);
  }
  Tensor indices = operand_or_throw(key, "an index");
  // An empty list is one of floats, but an index that selects nothing.
  if (indices.elements() == 0 && is_float(indices.dtype())) indices = indices.cast(DType::i64);
  return indices;
}

std::vector<Index> indices_from(PyObject* key) {
  std::vector<Index> indices;
  if (!PyTuple_Check(key)) {
    indices.push_back(index_from(key));
    return indices;
  }
  const Py_ssize_t size = PyTuple_Size(key);
  for (Py_ssize_t i = 0; i < size; ++i) indices.push_back(index_from(PyTuple_GetItem(key, i)));
  return indices;
}

}  // namespace

Tensor get_index(const Tensor& x, PyObject* key) { return index(x, indices_from(key)); }
Tensor set_index(const Tensor& x, PyObject* key, const Tensor& value) { return with_index(x, indices_from(key), value); }

}  // namespace tenon::python
