#include "arrays/convert.h"

#include <nanobind/stl/string.h>

#include <array>
#include <string>

#include "arrays/buffer.h"
#include "arrays/dlpack_capsule.h"
#include "tenon/error.h"
#include "tenon/tensor/apply.h"

namespace tenon::python {
namespace {

// A dtype as a Python object; there is one for each.
struct DTypeObject {
  DType value;
};

std::array<PyObject*, kDTypeCount> dtype_objects{};
PyTypeObject* dtype_type = nullptr;

[[noreturn]] void throw_type_error(const std::string& message) {
  PyErr_SetString(PyExc_TypeError, message.c_str());
  throw nb::python_error();
}

std::string type_name(PyObject* object) {
  return nb::cast<std::string>(nb::handle(reinterpret_cast<PyObject*>(Py_TYPE(object))).attr("__name__"));
}

bool is_plain_number(PyObject* object) { return PyFloat_Check(object) || PyLong_Check(object); }

// A Python integer: int64, or uint64 above that.
struct Whole {
  std::int64_t value = 0;
  bool is_unsigned = false;
};

Whole whole_from(PyObject* object) {
  int overflow = 0;
  const long long value = PyLong_AsLongLongAndOverflow(object, &overflow);
  if (overflow == 0) {
    if (value == -1 && PyErr_Occurred()) throw nb::python_error();
    return {value, false};
  }
  const unsigned long long large = PyLong_AsUnsignedLongLong(object);
  if (PyErr_Occurred()) throw nb::python_error();
  return {static_cast<std::int64_t>(large), true};
}

HostArray scalar_array(PyObject* object) {
  if (PyBool_Check(object)) return HostArray::full(DType::boolean, {}, object == Py_True ? 1 : 0);
  if (PyFloat_Check(object)) return HostArray::from<double>({}, {PyFloat_AsDouble(object)});
  const Whole whole = whole_from(object);
  if (whole.is_unsigned) return HostArray::from<std::uint64_t>({}, {static_cast<std::uint64_t>(whole.value)});
  return HostArray::from<std::int64_t>({}, {whole.value});
}

// A list of numbers at any depth. Stops at the first element that is an array itself.
class NestedReader {
 public:
  bool has_arrays = false;

  void read(PyObject* object, std::size_t depth) {
    if (has_arrays) return;
    if (!PyList_Check(object) && !PyTuple_Check(object)) return read_leaf(object, depth);
    const Py_ssize_t size = PySequence_Size(object);
    if (depth == extents_.size() && leaves_ == 0 && !closed_)
      extents_.push_back(size);
    else if (depth >= extents_.size() || extents_[depth] != size)
      uneven();
    for (Py_ssize_t i = 0; i < size; ++i)
      read(PyList_Check(object) ? PyList_GetItem(object, i) : PyTuple_GetItem(object, i), depth + 1);
    if (size == 0) closed_ = true;
  }

  HostArray array(std::optional<DType> dtype) const {
    const Shape shape(extents_);
    if (any_real_ || leaves_ == 0)
      return HostArray::from<double>(shape, std::span<const double>(reals_)).cast(dtype.value_or(DType::f32));
    if (any_unsigned_)
      return HostArray::from_bytes(DType::u64, shape, std::as_bytes(std::span(wholes_))).cast(dtype.value_or(DType::u64));
    const DType natural = all_bool_ ? DType::boolean : DType::i64;
    return HostArray::from<std::int64_t>(shape, std::span<const std::int64_t>(wholes_)).cast(dtype.value_or(natural));
  }

 private:
  [[noreturn]] static void uneven() {
    throw Error(ErrorCode::invalid_argument, "array: the rows of the list differ in length or depth");
  }

  void read_leaf(PyObject* object, std::size_t depth) {
    if (PyFloat_Check(object)) return add_real(PyFloat_AsDouble(object), depth);
    if (PyBool_Check(object)) return add_whole({object == Py_True ? 1 : 0, false}, true, depth);
    if (PyLong_Check(object)) return add_whole(whole_from(object), false, depth);
    if (is_array(object) || nb::hasattr(object, "shape")) {  // also NumPy's scalars
      has_arrays = true;
      return;
    }
    if (PyIndex_Check(object)) return add_whole(whole_from(nb::steal(PyNumber_Index(object)).ptr()), false, depth);
    throw_type_error("array: a list may contain numbers, lists and arrays, not " + type_name(object));
  }
  void add_real(double value, std::size_t depth) {
    count(depth);
    any_real_ = true;
    all_bool_ = false;
    wholes_.push_back(0);
    reals_.push_back(value);
  }
  void add_whole(Whole whole, bool is_bool, std::size_t depth) {
    count(depth);
    all_bool_ = all_bool_ && is_bool;
    any_unsigned_ = any_unsigned_ || whole.is_unsigned;
    wholes_.push_back(whole.value);
    reals_.push_back(whole.is_unsigned ? static_cast<double>(static_cast<std::uint64_t>(whole.value))
                                       : static_cast<double>(whole.value));
  }
  void count(std::size_t depth) {
    if (depth != extents_.size()) uneven();
    ++leaves_;
  }

  std::vector<std::int64_t> extents_, wholes_;
  std::vector<double> reals_;
  std::size_t leaves_ = 0;
  bool any_real_ = false, any_unsigned_ = false, all_bool_ = true;
  bool closed_ = false;  // an empty row was read: its axis is the last
};

Tensor from_list(PyObject* object, std::optional<DType> dtype) {
  NestedReader reader;
  reader.read(object, 0);
  if (!reader.has_arrays) return reader.array(dtype);
  std::vector<Tensor> rows;
  const Py_ssize_t size = PySequence_Size(object);
  for (Py_ssize_t i = 0; i < size; ++i)
    rows.push_back(
        make_array(PyList_Check(object) ? PyList_GetItem(object, i) : PyTuple_GetItem(object, i), dtype, Copy::always));
  return tenon::apply(find_op("stack"), rows)[0];
}

[[noreturn]] void throw_no_array(PyObject* object) {
  throw_type_error("expected an array, a number or a list of numbers, not " + type_name(object));
}

std::optional<Tensor> foreign_array(PyObject* object, Copy copy) {
  if (std::optional<HostArray> array = from_buffer(object, copy)) return Tensor(std::move(*array));
  if (nb::hasattr(object, "__dlpack__")) {
    Tensor tensor = from_dlpack_object(object, copy);
    return tensor;
  }
  if (nb::hasattr(object, "__array__"))
    if (std::optional<HostArray> array = from_buffer(nb::object(nb::handle(object).attr("__array__")()).ptr(), copy))
      return Tensor(std::move(*array));
  return std::nullopt;
}

}  // namespace

PyObject* wrap(Tensor tensor) {
  nb::object object = nb::inst_alloc(reinterpret_cast<PyObject*>(array_type));
  new (nb::inst_ptr<Tensor>(object)) Tensor(std::move(tensor));
  nb::inst_mark_ready(object);
  return object.release().ptr();
}

nb::object wrapped(Tensor tensor) { return nb::steal(wrap(std::move(tensor))); }

Tensor make_array(PyObject* object, std::optional<DType> dtype, Copy copy) {
  const auto typed = [&](Tensor tensor) -> Tensor {
    if (!dtype || tensor.dtype() == *dtype) return tensor;
    if (copy == Copy::never) {
      PyErr_SetString(PyExc_ValueError, "a conversion to another dtype needs a copy");
      throw nb::python_error();
    }
    return tensor.cast(*dtype);
  };
  if (is_array(object)) return typed(tensor_in(object));
  // numpy.float64 is a float, too, but has a dtype of its own.
  const bool has_dtype = PyFloat_Check(object) && !PyFloat_CheckExact(object) && PyObject_CheckBuffer(object);
  if (is_plain_number(object) && !has_dtype) {
    const HostArray array = scalar_array(object);
    return array.cast(dtype.value_or(PyFloat_Check(object) ? DType::f32 : array.dtype()));
  }
  if (PyList_Check(object) || PyTuple_Check(object)) return from_list(object, dtype);
  if (PyUnicode_Check(object)) throw_no_array(object);
  if (std::optional<Tensor> tensor = foreign_array(object, copy)) return typed(std::move(*tensor));
  if (PyIndex_Check(object)) return make_array(nb::steal(PyNumber_Index(object)).ptr(), dtype, copy);
  if (PySequence_Check(object)) return from_list(nb::steal(PySequence_List(object)).ptr(), dtype);
  throw_no_array(object);
}

std::optional<Tensor> operand(PyObject* object) {
  if (is_array(object)) return tensor_in(object);
  if (PyFloat_Check(object)) return Tensor(PyFloat_AsDouble(object));
  if (PyBool_Check(object)) return Tensor(object == Py_True);
  if (PyLong_Check(object)) {
    const Whole whole = whole_from(object);
    return whole.is_unsigned ? Tensor(static_cast<std::uint64_t>(whole.value)) : Tensor(whole.value);
  }
  if (object == Py_None || PyUnicode_Check(object) || PyDict_Check(object)) return std::nullopt;
  if (PyList_Check(object) || PyTuple_Check(object)) return from_list(object, std::nullopt);
  // The owner may change the memory before the expression is evaluated.
  return foreign_array(object, Copy::always);
}

Tensor operand_or_throw(PyObject* object, const char* name) {
  if (std::optional<Tensor> tensor = operand(object)) return std::move(*tensor);
  if (PyIndex_Check(object)) return make_array(object, std::nullopt, Copy::always);
  throw_type_error(std::string(name) + " must be an array, a number or a list of numbers, not " + type_name(object));
}

std::optional<DType> dtype_from(PyObject* object) {
  if (object == Py_None) return std::nullopt;
  if (Py_TYPE(object) == dtype_type) return nb::inst_ptr<DTypeObject>(object)->value;
  if (object == reinterpret_cast<PyObject*>(&PyBool_Type)) return DType::boolean;
  if (object == reinterpret_cast<PyObject*>(&PyLong_Type)) return DType::i64;
  if (object == reinterpret_cast<PyObject*>(&PyFloat_Type)) return DType::f32;
  std::string text;
  if (PyUnicode_Check(object))
    text = nb::cast<std::string>(nb::handle(object));
  else if (PyType_Check(object))
    text = nb::cast<std::string>(nb::handle(object).attr("__name__"));  // numpy.float32
  else if (nb::hasattr(object, "name"))
    text = nb::cast<std::string>(nb::str(nb::handle(object).attr("name")));  // numpy.dtype
  else
    text = nb::cast<std::string>(nb::str(nb::handle(object)));  // torch.float32
  if (const std::size_t dot = text.rfind('.'); dot != std::string::npos) text = text.substr(dot + 1);
  if (!text.empty() && text.back() == '_') text.pop_back();
  const std::optional<DType> dtype = parse_dtype(text);
  if (!dtype) throw_type_error("'" + text + "' is not a dtype of Tenon");
  return dtype;
}

nb::object dtype_object(DType dtype) { return nb::borrow(dtype_objects[static_cast<std::size_t>(dtype)]); }

std::vector<std::int64_t> integers_from(PyObject* object) {
  std::vector<std::int64_t> values;
  const auto add = [&](PyObject* item) {
    const Py_ssize_t value = PyNumber_AsSsize_t(item, PyExc_OverflowError);
    if (value == -1 && PyErr_Occurred()) throw nb::python_error();
    values.push_back(value);
  };
  if (PyIndex_Check(object) && !PyList_Check(object) && !PyTuple_Check(object)) {
    add(object);
    return values;
  }
  if (!PySequence_Check(object)) throw_type_error("expected an integer or a list of integers, not " + type_name(object));
  const Py_ssize_t size = PySequence_Size(object);
  if (size < 0) throw nb::python_error();
  for (Py_ssize_t i = 0; i < size; ++i) add(nb::steal(PySequence_GetItem(object, i)).ptr());
  return values;
}

Shape shape_from(PyObject* object) { return Shape(integers_from(object)); }

nb::object shape_tuple(const Shape& shape) {
  PyObject* tuple = PyTuple_New(shape.rank());
  if (!tuple) throw nb::python_error();
  for (int i = 0; i < shape.rank(); ++i) PyTuple_SetItem(tuple, i, PyLong_FromLongLong(shape[i]));
  return nb::steal(tuple);
}

void bind_dtypes(nb::module_& module) {
  auto type =
      nb::class_<DTypeObject>(module, "DType", nb::is_final(), "An element type. There is one object for each: tenon.float32.");
  type.def_prop_ro("name", [](const DTypeObject& self) { return std::string(name(self.value)); });
  type.def_prop_ro("itemsize", [](const DTypeObject& self) { return element_bytes(self.value); });
  type.def_prop_ro("kind", [](const DTypeObject& self) {
    if (self.value == DType::boolean) return std::string("bool");
    if (is_float(self.value)) return std::string("float");
    return std::string(is_signed_integer(self.value) ? "int" : "uint");
  });
  type.def("__repr__", [](const DTypeObject& self) { return "tenon." + std::string(name(self.value)); });
  type.def("__str__", [](const DTypeObject& self) { return std::string(name(self.value)); });
  type.def("__hash__", [](const DTypeObject& self) { return static_cast<Py_ssize_t>(self.value) + 1; });
  type.def(
      "__eq__",
      [](const DTypeObject& self, nb::handle other) {
        if (Py_TYPE(other.ptr()) == dtype_type) return nb::inst_ptr<DTypeObject>(other)->value == self.value;
        if (other.is_none()) return false;
        try {
          return dtype_from(other.ptr()) == self.value;
        } catch (nb::python_error&) {
          return false;
        }
      },
      nb::arg("other").none());
  dtype_type = reinterpret_cast<PyTypeObject*>(type.ptr());
  nb::list all;
  for (const DType dtype : all_dtypes()) {
    nb::object object = nb::cast(DTypeObject{dtype});
    dtype_objects[static_cast<std::size_t>(dtype)] = object.inc_ref().ptr();
    all.append(object);
  }
  module.attr("dtypes") = nb::tuple(all);
  module.def(
      "dtype",
      [](nb::handle like) {
        const std::optional<DType> found = dtype_from(like.ptr());
        if (!found) throw nb::type_error("None is not a dtype");
        return dtype_object(*found);
      },
      nb::arg("like").none());
  module.def("promote", [](nb::handle a, nb::handle b) {
    return dtype_object(promote(dtype_from(a.ptr()).value(), dtype_from(b.ptr()).value()));
  });
}

}  // namespace tenon::python
