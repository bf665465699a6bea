// tenon::Error as Python exceptions: tn.Error with code, hint and place, and the built-in exception that people expect.
//
// The classes are made in tenon/_errors.py, which hands them over at import. All functions need the GIL.
#pragma once

#include <nanobind/nanobind.h>

#include <exception>
#include <string_view>

namespace tenon::python {

namespace nb = nanobind;

void bind_errors(nb::module_& module);

// Sets the Python exception for |error|, which may be any C++ exception, among them one of Python that passed through C++.
void set_python_error(const std::exception_ptr& error) noexcept;

// Calls |body|; an exception becomes a Python exception and null.
template <class Body>
PyObject* guarded(Body&& body) noexcept {
  try {
    return body();
  } catch (...) {
    set_python_error(std::current_exception());
    return nullptr;
  }
}

}  // namespace tenon::python
