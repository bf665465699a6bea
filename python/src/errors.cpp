#include "errors.h"

#include <nanobind/stl/string.h>

#include "tenon/error.h"
#include "tenon/expression.h"

namespace tenon::python {
namespace {

PyObject* classes = nullptr;  // a dict: the code's name -> the class. Never released: errors occur until the process ends

nb::object place_of(const Error& error) {
  const auto* in_text = dynamic_cast<const ExpressionError*>(&error);
  if (!in_text) return nb::none();
  return nb::make_tuple(in_text->place().line, in_text->place().column, in_text->place().length);
}

std::string message_of(const Error& error) {
  const auto* in_text = dynamic_cast<const ExpressionError*>(&error);
  return in_text ? std::string(error.what()) + "\n" + in_text->excerpt() : std::string(error.what());
}

void set_error(const Error& error) {
  const std::string_view code = to_string(error.code());
  PyObject* type = classes ? PyDict_GetItemString(classes, std::string(code).c_str()) : nullptr;
  if (!type) {
    PyErr_SetString(PyExc_RuntimeError, error.what());
    return;
  }
  nb::object exception = nb::handle(type)(message_of(error));
  exception.attr("hint") = error.hint();
  exception.attr("place") = place_of(error);
  PyErr_SetObject(type, exception.ptr());
}

}  // namespace

void set_python_error(const std::exception_ptr& error) noexcept {
  try {
    try {
      std::rethrow_exception(error);
    } catch (nb::python_error& e) {
      e.restore();
    } catch (const nb::builtin_exception& e) {
      PyErr_SetString(e.type() == nb::exception_type::type_error ? PyExc_TypeError : PyExc_ValueError, e.what());
    } catch (const Error& e) {
      set_error(e);
    } catch (const std::bad_alloc&) {
      PyErr_NoMemory();
    } catch (const std::exception& e) {
      PyErr_SetString(PyExc_RuntimeError, e.what());
    }
  } catch (nb::python_error& e) {
    e.restore();
  } catch (...) {
    PyErr_SetString(PyExc_RuntimeError, "an error could not be described");
  }
}

void bind_errors(nb::module_& module) {
  module.def("_set_errors", [](nb::dict given) { classes = given.release().ptr(); });
  nb::register_exception_translator([](const std::exception_ptr& error, void*) {
    try {
      std::rethrow_exception(error);
    } catch (const Error& e) {
      set_error(e);
    }
  });
}

}  // namespace tenon::python
