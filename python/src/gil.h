// The GIL: released while C++ waits or computes, and taken again unless the interpreter is ending.
//
// CPython up to 3.13 ends a daemon thread that takes the GIL while the interpreter ends by unwinding its stack, which aborts the
// process if there is C++ on it. Therefore a hook of atexit marks the end: from then on, threads that come back from C++ sleep
// until the process exits, and others are told that there is no GIL for them. The thread that ends the interpreter goes on.
#pragma once

#include <nanobind/nanobind.h>

namespace tenon::python {

namespace nb = nanobind;

// Releases the GIL, which the thread has, for its scope.
class WithoutGil {
 public:
  WithoutGil() : state_(PyEval_SaveThread()) {}
  ~WithoutGil();
  WithoutGil(const WithoutGil&) = delete;
  WithoutGil& operator=(const WithoutGil&) = delete;

 private:
  PyThreadState* state_;
};

// Takes the GIL for its scope, whether or not the thread has it. False if the interpreter is ending: then nothing of Python may
// be touched.
class WithGil {
 public:
  WithGil();
  ~WithGil();
  WithGil(const WithGil&) = delete;
  WithGil& operator=(const WithGil&) = delete;

  explicit operator bool() const noexcept { return is_held_; }

 private:
  bool is_held_;
  PyGILState_STATE state_{};
};

// Registers the hook.
void bind_gil(nb::module_& module);

}  // namespace tenon::python
