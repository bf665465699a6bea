#include "arrays/buffer.h"

#include <cstring>
#include <memory>
#include <string>

#include "errors.h"
#include "runs/evaluation.h"

namespace tenon::python {
namespace {

struct Borrowed {
  Py_buffer view{};
  ~Borrowed() {
    // The last user of the memory may be any thread, and may end after the interpreter.
    if (const WithGil held; held) PyBuffer_Release(&view);
  }
};

DType integer_dtype(bool is_signed, Py_ssize_t bytes) {
  switch (bytes) {
    case 1: return is_signed ? DType::i8 : DType::u8;
    case 2: return is_signed ? DType::i16 : DType::u16;
    case 4: return is_signed ? DType::i32 : DType::u32;
    default: return is_signed ? DType::i64 : DType::u64;
  }
}

DType dtype_of_format(const Py_buffer& view) {
  std::string_view format = view.format ? view.format : "B";
  if (!format.empty() && std::string_view("@=<|").find(format[0]) != std::string_view::npos) format.remove_prefix(1);
  if (format.size() == 1) {
    switch (format[0]) {
      case '?': return DType::boolean;
      case 'b':
      case 'h':
      case 'i':
      case 'l':
      case 'q':
      case 'n': return integer_dtype(true, view.itemsize);
      case 'B':
      case 'H':
      case 'I':
      case 'L':
      case 'Q':
      case 'N': return integer_dtype(false, view.itemsize);
      case 'e': return DType::f16;
      case 'f': return DType::f32;
      case 'd': return DType::f64;
      default: break;
    }
  }
  PyErr_Format(PyExc_TypeError, "Tenon has no dtype for elements of the buffer format '%s'", view.format ? view.format : "");
  throw nb::python_error();
}

const char* format_of(DType dtype) {
  switch (dtype) {
    case DType::boolean: return "?";
    case DType::u8: return "B";
    case DType::u16: return "H";
    case DType::u32: return "I";
    case DType::u64: return "Q";
    case DType::i8: return "b";
    case DType::i16: return "h";
    case DType::i32: return "i";
    case DType::i64: return "q";
    case DType::f16: return "e";
    case DType::f32: return "f";
    case DType::f64: return "d";
    default: return nullptr;
  }
}

HostArray copied(const Py_buffer& view, DType dtype, const Shape& shape) {
  HostArray array = HostArray::empty(dtype, shape);
  if (array.bytes() != 0 && PyBuffer_ToContiguous(array.mutable_data(), &view, view.len, 'C') != 0) throw nb::python_error();
  if (dtype == DType::boolean)  // others may have bytes that are neither 0 nor 1
    for (std::uint8_t& value : array.mutable_view<std::uint8_t>()) value = value != 0;
  return array;
}

// What a view of an Array keeps.
struct Exported {
  HostArray array;
  std::vector<Py_ssize_t> shape, strides;
};

}  // namespace

std::optional<HostArray> from_buffer(PyObject* object, Copy copy) {
  if (!PyObject_CheckBuffer(object)) return std::nullopt;
  auto borrowed = std::make_shared<Borrowed>();
  Py_buffer& view = borrowed->view;
  if (PyObject_GetBuffer(object, &view, PyBUF_FULL_RO) != 0) {
    view.obj = nullptr;
    PyErr_Clear();
    return std::nullopt;
  }
  const DType dtype = dtype_of_format(view);
  const Shape shape(
      std::span<const std::int64_t>(reinterpret_cast<const std::int64_t*>(view.shape), static_cast<std::size_t>(view.ndim)));
  const bool is_aligned = reinterpret_cast<std::uintptr_t>(view.buf) % element_bytes(dtype) == 0;
  const bool may_borrow = is_aligned && dtype != DType::boolean && PyBuffer_IsContiguous(&view, 'C') != 0;
  if (copy == Copy::never && !may_borrow && shape.elements() != 0) {
    PyErr_SetString(PyExc_ValueError, "this array cannot be shared: it is not row-major and aligned, or an array of bools");
    throw nb::python_error();
  }
  if (copy == Copy::always || !may_borrow) return copied(view, dtype, shape);
  const void* const data = view.buf;
  return HostArray::borrow(dtype, shape, data, std::move(borrowed));
}

int get_buffer(PyObject* self, Py_buffer* view, int flags) noexcept {
  view->obj = nullptr;
  PyObject* const done = guarded([&]() -> PyObject* {
    const Tensor tensor = tensor_in(self);
    const char* const format = format_of(tensor.dtype());
    if (!format || (flags & PyBUF_WRITABLE) == PyBUF_WRITABLE) {
      PyErr_Format(PyExc_BufferError, format ? "the memory of a Tenon array is read-only; copy it with np.array(x)"
                                             : "the buffer protocol has no format for this dtype; convert it with astype()");
      return nullptr;
    }
    auto exported = std::make_unique<Exported>();
    exported->array = value_of(tensor);
    const Shape& shape = exported->array.shape();
    const Strides strides = contiguous_strides(shape);
    const auto item = static_cast<Py_ssize_t>(element_bytes(tensor.dtype()));
    for (int i = 0; i < shape.rank(); ++i) {
      exported->shape.push_back(shape[i]);
      exported->strides.push_back(strides[static_cast<std::size_t>(i)] * item);
    }
    static char nothing = 0;
    view->buf = exported->array.bytes() ? const_cast<std::byte*>(exported->array.data()) : static_cast<void*>(&nothing);
    view->len = static_cast<Py_ssize_t>(exported->array.bytes());
    view->itemsize = item;
    view->readonly = 1;
    view->ndim = shape.rank();
    view->format = (flags & PyBUF_FORMAT) ? const_cast<char*>(format) : nullptr;
    view->shape = (flags & PyBUF_ND) ? exported->shape.data() : nullptr;
    view->strides = (flags & PyBUF_STRIDES) == PyBUF_STRIDES ? exported->strides.data() : nullptr;
    view->suboffsets = nullptr;
    view->internal = exported.release();
    view->obj = self;
    Py_INCREF(self);
    return self;
  });
  return done ? 0 : -1;
}

void release_buffer(PyObject*, Py_buffer* view) noexcept { delete static_cast<Exported*>(view->internal); }

}  // namespace tenon::python
