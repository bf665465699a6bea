#include "arrays/array.h"

#include <fmt/format.h>
#include <nanobind/stl/string.h>

#include <sstream>
#include <string>

#include "arrays/buffer.h"
#include "arrays/convert.h"
#include "arrays/dlpack_capsule.h"
#include "arrays/indices.h"
#include "arrays/operations.h"
#include "errors.h"
#include "runs/evaluation.h"
#include "runs/waiting.h"
#include "tenon/error.h"
#include "tenon/tensor/apply.h"
#include "tenon/tensor/functions.h"
#include "tenon/tensor/indexing.h"
#include "tenon/tensor/program.h"

namespace tenon::python {
namespace {

// --- Operators, as slots of the type: Python calls them for a + b and for the reflected b + a alike ---

using Binary = Tensor (*)(const Tensor&, const Tensor&);

template <Binary op>
PyObject* binary_slot(PyObject* a, PyObject* b) {
  return guarded([&]() -> PyObject* {
    if (is_array(a) && is_array(b)) return wrap(op(tensor_in(a), tensor_in(b)));
    const std::optional<Tensor> left = operand(a), right = left ? operand(b) : std::nullopt;
    if (!right) Py_RETURN_NOTIMPLEMENTED;
    return wrap(op(*left, *right));
  });
}

Tensor add_op(const Tensor& a, const Tensor& b) { return a + b; }
Tensor sub_op(const Tensor& a, const Tensor& b) { return a - b; }
Tensor mul_op(const Tensor& a, const Tensor& b) { return a * b; }
Tensor div_op(const Tensor& a, const Tensor& b) { return a / b; }
Tensor mod_op(const Tensor& a, const Tensor& b) { return a % b; }
Tensor floor_div_op(const Tensor& a, const Tensor& b) { return floor_div(a, b); }
Tensor pow_op(const Tensor& a, const Tensor& b) { return pow(a, b); }
Tensor matmul_op(const Tensor& a, const Tensor& b) { return matmul(a, b); }
Tensor and_op(const Tensor& a, const Tensor& b) { return a & b; }
Tensor or_op(const Tensor& a, const Tensor& b) { return a | b; }
Tensor xor_op(const Tensor& a, const Tensor& b) { return a ^ b; }
Tensor left_op(const Tensor& a, const Tensor& b) { return a << b; }
Tensor right_op(const Tensor& a, const Tensor& b) { return a >> b; }

PyObject* pow_slot(PyObject* a, PyObject* b, PyObject* modulus) {
  if (modulus != Py_None) Py_RETURN_NOTIMPLEMENTED;
  return binary_slot<pow_op>(a, b);
}

// a += b changes the array, for everybody who has it; its dtype and shape stay. As in NumPy, a float does not become an integer.
template <Binary op>
PyObject* in_place_slot(PyObject* a, PyObject* b) {
  return guarded([&]() -> PyObject* {
    const std::optional<Tensor> right = operand(b);
    if (!right) Py_RETURN_NOTIMPLEMENTED;
    const Tensor before = tensor_in(a);
    Tensor after = op(before, *right);
    if (after.shape() != before.shape())
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("an array of shape {} cannot become one of shape {} in place", to_string(before.shape()),
                              to_string(after.shape())),
                  "write a = a + b");
    const auto kind = [](DType d) { return d == DType::boolean ? 0 : is_integer(d) ? 1 : 2; };
    if (kind(after.dtype()) > kind(before.dtype())) {
      PyErr_Format(PyExc_TypeError, "a result of %s does not fit an array of %s in place; write a = a + b",
                   std::string(name(after.dtype())).c_str(), std::string(name(before.dtype())).c_str());
      throw nb::python_error();
    }
    tensor_in(a) = after.dtype() == before.dtype() ? after : after.cast(before.dtype());
    Py_INCREF(a);
    return a;
  });
}

PyObject* in_place_pow_slot(PyObject* a, PyObject* b, PyObject*) { return in_place_slot<pow_op>(a, b); }

using Unary = Tensor (*)(const Tensor&);
template <Unary op>
PyObject* unary_slot(PyObject* a) {
  return guarded([&] { return wrap(op(tensor_in(a))); });
}
Tensor neg_op(const Tensor& a) { return -a; }
Tensor invert_op(const Tensor& a) { return ~a; }
Tensor abs_op(const Tensor& a) { return abs(a); }
Tensor positive_op(const Tensor& a) { return positive(a); }

PyObject* compare_slot(PyObject* a, PyObject* b, int how) {
  return guarded([&]() -> PyObject* {
    const std::optional<Tensor> right = operand(b);
    if (!right) Py_RETURN_NOTIMPLEMENTED;
    const Tensor& left = tensor_in(a);
    switch (how) {
      case Py_LT: return wrap(left < *right);
      case Py_LE: return wrap(left <= *right);
      case Py_EQ: return wrap(left == *right);
      case Py_NE: return wrap(left != *right);
      case Py_GT: return wrap(left > *right);
      default: return wrap(left >= *right);
    }
  });
}

// --- Values ---

HostArray only_element(const Tensor& tensor) {
  if (tensor.elements() != 1)
    throw Error(
        ErrorCode::invalid_argument,
        fmt::format("only an array of one element can become a Python number; this one has shape {}", to_string(tensor.shape())),
        "use tolist(), or any() or all() for a truth value");
  return value_of(tensor);
}

template <class T>
PyObject* integer_object(T value) {
  return std::is_signed_v<T> ? PyLong_FromLongLong(static_cast<long long>(value))
                             : PyLong_FromUnsignedLongLong(static_cast<unsigned long long>(value));
}

// An element as Python's bool, int or float.
PyObject* element_object(const HostArray& array, std::int64_t i) {
  const auto at = static_cast<std::size_t>(i);
  switch (array.dtype()) {
    case DType::boolean: return PyBool_FromLong(array.view<std::uint8_t>()[at]);
    case DType::u8: return integer_object(array.view<std::uint8_t>()[at]);
    case DType::u16: return integer_object(array.view<std::uint16_t>()[at]);
    case DType::u32: return integer_object(array.view<std::uint32_t>()[at]);
    case DType::u64: return integer_object(array.view<std::uint64_t>()[at]);
    case DType::i8: return integer_object(array.view<std::int8_t>()[at]);
    case DType::i16: return integer_object(array.view<std::int16_t>()[at]);
    case DType::i32: return integer_object(array.view<std::int32_t>()[at]);
    case DType::i64: return integer_object(array.view<std::int64_t>()[at]);
    case DType::f32: return PyFloat_FromDouble(static_cast<double>(array.view<float>()[at]));
    case DType::f64: return PyFloat_FromDouble(array.view<double>()[at]);
    default: return PyFloat_FromDouble(array.value(i));
  }
}

nb::object nested_list(const HostArray& array, int axis, std::int64_t& next) {
  if (axis == array.shape().rank()) return nb::steal(element_object(array, next++));
  nb::list list;
  for (std::int64_t i = 0; i < array.shape()[axis]; ++i) list.append(nested_list(array, axis + 1, next));
  return list;
}

nb::object to_list(const Tensor& tensor) {
  HostArray array = value_of(tensor);
  if (is_block(array.dtype())) array = array.cast(DType::f32);
  std::int64_t next = 0;
  return nested_list(array, 0, next);
}

int truth_slot(PyObject* self) {
  int truth = -1;
  guarded([&]() -> PyObject* {
    truth = only_element(tensor_in(self)).cast(DType::boolean).view<std::uint8_t>()[0];
    return nullptr;
  });
  return PyErr_Occurred() ? -1 : truth;
}

PyObject* int_slot(PyObject* self) {
  return guarded([&]() -> PyObject* {
    const HostArray value = only_element(tensor_in(self));
    const nb::object element = nb::steal(element_object(is_block(value.dtype()) ? value.cast(DType::f32) : value, 0));
    return PyNumber_Long(element.ptr());
  });
}

PyObject* float_slot(PyObject* self) {
  return guarded(
      [&]() -> PyObject* { return PyFloat_FromDouble(only_element(tensor_in(self)).cast(DType::f64).view<double>()[0]); });
}

PyObject* index_slot(PyObject* self) {
  return guarded([&]() -> PyObject* {
    const Tensor& tensor = tensor_in(self);
    if (!is_integer(tensor.dtype()) || tensor.rank() != 0) {
      PyErr_SetString(PyExc_TypeError, "only an integer array without axes can be used as an index");
      return nullptr;
    }
    return element_object(value_of(tensor), 0);
  });
}

Py_ssize_t length_slot(PyObject* self) {
  const Shape& shape = tensor_in(self).shape();
  if (shape.rank() == 0) {
    PyErr_SetString(PyExc_TypeError, "an array without axes has no len()");
    return -1;
  }
  return shape[0];
}

PyObject* get_item(PyObject* self, PyObject* key) {
  return guarded([&] { return wrap(get_index(tensor_in(self), key)); });
}

int set_item(PyObject* self, PyObject* key, PyObject* value) {
  const PyObject* const done = guarded([&]() -> PyObject* {
    if (!value) {
      PyErr_SetString(PyExc_TypeError, "elements of an array cannot be deleted");
      return nullptr;
    }
    Tensor& tensor = tensor_in(self);
    tensor = set_index(tensor, key, operand_or_throw(value, "the value"));
    return self;
  });
  return done ? 0 : -1;
}

// --- Text ---

std::string symbol(const Tensor& tensor) {
  return fmt::format("array(<computed from arguments of a traced function>, shape={}, dtype={})", to_string(tensor.shape()),
                     name(tensor.dtype()));
}

std::string values_text(const Tensor& tensor) {
  if (!has_value(tensor)) return symbol(tensor);
  evaluate(tensor);
  std::ostringstream out;
  out << tensor;
  std::string text = out.str();
  if (tensor.dtype() == DType::boolean)  // Python writes them with a capital
    for (char& c : text) c = c == 't' ? 'T' : c == 'f' ? 'F' : c;
  return text;
}

// "array([[1., 2.],\n       [3., 4.]], dtype=float32)": the text with commas and the margin of repr.
std::string representation(const Tensor& tensor) {
  const std::string values = values_text(tensor);
  if (values.starts_with("array(")) return values;
  std::string text;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const char c = values[i];
    const bool ends_value = i > 0 && std::string_view(" [\n,").find(values[i - 1]) == std::string_view::npos;
    if ((c == ' ' || c == '\n') && ends_value) text += ',';
    text += c;
    if (c == '\n') text += "      ";
  }
  const DType dtype = tensor.dtype();
  const bool is_plain = dtype == DType::i64 || dtype == DType::boolean;
  const std::string shape = tensor.elements() == 0 && tensor.rank() != 1 ? ", shape=" + to_string(tensor.shape()) : "";
  return fmt::format("array({}{}{})", text, shape,
                     is_plain && tensor.elements() > 0 ? "" : fmt::format(", dtype={}", name(dtype)));
}

PyType_Slot slots[] = {
    {Py_nb_add, reinterpret_cast<void*>(&binary_slot<add_op>)},
    {Py_nb_subtract, reinterpret_cast<void*>(&binary_slot<sub_op>)},
    {Py_nb_multiply, reinterpret_cast<void*>(&binary_slot<mul_op>)},
    {Py_nb_true_divide, reinterpret_cast<void*>(&binary_slot<div_op>)},
    {Py_nb_floor_divide, reinterpret_cast<void*>(&binary_slot<floor_div_op>)},
    {Py_nb_remainder, reinterpret_cast<void*>(&binary_slot<mod_op>)},
    {Py_nb_power, reinterpret_cast<void*>(&pow_slot)},
    {Py_nb_matrix_multiply, reinterpret_cast<void*>(&binary_slot<matmul_op>)},
    {Py_nb_and, reinterpret_cast<void*>(&binary_slot<and_op>)},
    {Py_nb_or, reinterpret_cast<void*>(&binary_slot<or_op>)},
    {Py_nb_xor, reinterpret_cast<void*>(&binary_slot<xor_op>)},
    {Py_nb_lshift, reinterpret_cast<void*>(&binary_slot<left_op>)},
    {Py_nb_rshift, reinterpret_cast<void*>(&binary_slot<right_op>)},
    {Py_nb_inplace_add, reinterpret_cast<void*>(&in_place_slot<add_op>)},
    {Py_nb_inplace_subtract, reinterpret_cast<void*>(&in_place_slot<sub_op>)},
    {Py_nb_inplace_multiply, reinterpret_cast<void*>(&in_place_slot<mul_op>)},
    {Py_nb_inplace_true_divide, reinterpret_cast<void*>(&in_place_slot<div_op>)},
    {Py_nb_inplace_floor_divide, reinterpret_cast<void*>(&in_place_slot<floor_div_op>)},
    {Py_nb_inplace_remainder, reinterpret_cast<void*>(&in_place_slot<mod_op>)},
    {Py_nb_inplace_power, reinterpret_cast<void*>(&in_place_pow_slot)},
    {Py_nb_inplace_matrix_multiply, reinterpret_cast<void*>(&in_place_slot<matmul_op>)},
    {Py_nb_inplace_and, reinterpret_cast<void*>(&in_place_slot<and_op>)},
    {Py_nb_inplace_or, reinterpret_cast<void*>(&in_place_slot<or_op>)},
    {Py_nb_inplace_xor, reinterpret_cast<void*>(&in_place_slot<xor_op>)},
    {Py_nb_inplace_lshift, reinterpret_cast<void*>(&in_place_slot<left_op>)},
    {Py_nb_inplace_rshift, reinterpret_cast<void*>(&in_place_slot<right_op>)},
    {Py_nb_negative, reinterpret_cast<void*>(&unary_slot<neg_op>)},
    {Py_nb_positive, reinterpret_cast<void*>(&unary_slot<positive_op>)},
    {Py_nb_absolute, reinterpret_cast<void*>(&unary_slot<abs_op>)},
    {Py_nb_invert, reinterpret_cast<void*>(&unary_slot<invert_op>)},
    {Py_nb_bool, reinterpret_cast<void*>(&truth_slot)},
    {Py_nb_int, reinterpret_cast<void*>(&int_slot)},
    {Py_nb_float, reinterpret_cast<void*>(&float_slot)},
    {Py_nb_index, reinterpret_cast<void*>(&index_slot)},
    {Py_mp_length, reinterpret_cast<void*>(&length_slot)},
    {Py_sq_length, reinterpret_cast<void*>(&length_slot)},
    {Py_mp_subscript, reinterpret_cast<void*>(&get_item)},
    {Py_mp_ass_subscript, reinterpret_cast<void*>(&set_item)},
    {Py_tp_richcompare, reinterpret_cast<void*>(&compare_slot)},
    {Py_tp_hash, reinterpret_cast<void*>(&PyObject_HashNotImplemented)},
    {Py_bf_getbuffer, reinterpret_cast<void*>(&get_buffer)},
    {Py_bf_releasebuffer, reinterpret_cast<void*>(&release_buffer)},
    {0, nullptr},
};

Copy copy_from(nb::handle copy) {
  if (copy.is_none()) return Copy::if_needed;
  return nb::cast<bool>(copy) ? Copy::always : Copy::never;
}

void bind_creation(nb::module_& module) {
  module.def(
      "_asarray",
      [](nb::handle object, nb::handle dtype, nb::handle copy) {
        return wrapped(make_array(object.ptr(), dtype_from(dtype.ptr()), copy_from(copy)));
      },
      nb::arg("object").none(), nb::arg("dtype").none(), nb::arg("copy").none());
  module.def(
      "_from_dlpack",
      [](nb::handle object, nb::handle copy) {
        if (is_array(object.ptr())) return wrapped(tensor_in(object.ptr()));
        return wrapped(from_dlpack_object(object.ptr(), copy_from(copy)));
      },
      nb::arg("object").none(), nb::arg("copy").none());
  module.def("_from_bytes", [](nb::bytes bytes, nb::handle dtype, nb::handle shape) {
    return wrapped(HostArray::from_bytes(dtype_from(dtype.ptr()).value(), shape_from(shape.ptr()),
                                         std::as_bytes(std::span(bytes.c_str(), bytes.size()))));
  });
  module.def("_nonzero", [](nb::handle array) {
    const Tensor tensor = tensor_in(array.ptr());
    evaluate(tensor);
    nb::list places;
    for (Tensor& place : nonzero(tensor)) places.append(wrapped(std::move(place)));
    return places;
  });
  module.def("_to_bytes", [](nb::handle array) {
    const HostArray value = value_of(tensor_in(array.ptr()));
    return nb::bytes(value.data(), value.bytes());
  });
}

}  // namespace

void bind_array(nb::module_& module) {
  auto array = nb::class_<Tensor>(module, "Array", nb::type_slots(slots), nb::is_weak_referenceable(),
                                  "A lazy array: operations are recorded, and computed together when a value is needed.");
  array_type = reinterpret_cast<PyTypeObject*>(array.ptr());
  array.def_prop_ro("shape", [](const Tensor& self) { return shape_tuple(self.shape()); });
  array.def_prop_ro("dtype", [](const Tensor& self) { return dtype_object(self.dtype()); });
  array.def_prop_ro("ndim", [](const Tensor& self) { return self.rank(); });
  array.def_prop_ro("size", [](const Tensor& self) { return self.elements(); });
  array.def_prop_ro("nbytes", [](const Tensor& self) { return storage_bytes(self.dtype(), self.shape()); });
  array.def_prop_ro("itemsize", [](const Tensor& self) { return element_bytes(self.dtype()); });
  array.def_prop_ro("T", [](const Tensor& self) { return wrapped(self.T()); });
  array.def_prop_ro("mT", [](const Tensor& self) {
    if (self.rank() < 2)
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("mT needs at least 2 axes; this array has shape {}", to_string(self.shape())));
    return wrapped(swapaxes(self, -2, -1));
  });
  array.def_prop_ro("is_evaluated", [](const Tensor& self) { return self.is_evaluated(); });
  array.def_prop_ro("device", [](const Tensor& self) { return device_of(self); });
  array.def("on", [](const Tensor& self, const std::string& device) { return wrapped(self.on(device)); }, nb::arg("device"));
  array.def("_to_device", [](const Tensor& self, const std::string& device) {
    Tensor there;
    wait([&](Waiting&) { there = self.to(device); });
    return wrapped(std::move(there));
  });
  array.def("item", [](nb::handle self, nb::args index) -> nb::object {
    const Tensor tensor = index.size() == 0 ? tensor_in(self.ptr()) : get_index(tensor_in(self.ptr()), index.ptr());
    HostArray value = only_element(tensor);
    if (is_block(value.dtype())) value = value.cast(DType::f32);
    return nb::steal(element_object(value, 0));
  });
  array.def("eval", [](nb::handle_t<Tensor> self) {
    evaluate(tensor_in(self.ptr()));
    return self;
  });
  // With options it is eval() of the module, for one array.
  array.def("eval", [](nb::handle_t<Tensor> self, nb::kwargs options) {
    nb::module_::import_("tenon").attr("eval")(self, **options);
    return self;
  });
  array.def("tolist", [](const Tensor& self) { return to_list(self); });
  array.def("tobytes", [](const Tensor& self) {
    const HostArray value = value_of(self);
    return nb::bytes(value.data(), value.bytes());
  });
  array.def("__repr__", &representation);
  array.def("__str__", [](const Tensor& self) { return values_text(self); });
  array.def(
      "__dlpack__",
      [](const Tensor& self, nb::handle stream, nb::handle max_version, nb::handle dl_device, nb::handle copy) {
        return to_dlpack_capsule(self, {stream, max_version, dl_device, copy_from(copy)});
      },
      nb::kw_only(), nb::arg("stream") = nb::none(), nb::arg("max_version") = nb::none(), nb::arg("dl_device") = nb::none(),
      nb::arg("copy") = nb::none());
  array.def("__dlpack_device__", &dlpack_device_of);
  array.def("_same", [](const Tensor& self) { return wrapped(self); });
  array.def("_rebind", [](Tensor& self, const Tensor& other) { self = other; });
  bind_methods(array);
  bind_creation(module);
}

}  // namespace tenon::python
