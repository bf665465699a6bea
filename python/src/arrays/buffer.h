// The buffer protocol: memory of other objects as arrays, and arrays as memory for others.
//
// The limited API of Python 3.10 lacks it, though its layout has been the same since 3.3 and is part of the stable ABI from 3.11
// on; where the headers leave it out it is declared here.
#pragma once

#include <nanobind/nanobind.h>

#include <optional>

#include "arrays/convert.h"
#include "tenon/array.h"

#if defined(Py_LIMITED_API) && Py_LIMITED_API < 0x030B0000
extern "C" {
struct Py_buffer {
  void* buf;
  PyObject* obj;
  Py_ssize_t len;
  Py_ssize_t itemsize;
  int readonly;
  int ndim;
  char* format;
  Py_ssize_t* shape;
  Py_ssize_t* strides;
  Py_ssize_t* suboffsets;
  void* internal;
};
int PyObject_CheckBuffer(PyObject*);
int PyObject_GetBuffer(PyObject*, Py_buffer*, int);
int PyBuffer_ToContiguous(void*, const Py_buffer*, Py_ssize_t, char);
int PyBuffer_IsContiguous(const Py_buffer*, char);
void PyBuffer_Release(Py_buffer*);
}
#define PyBUF_WRITABLE 0x0001
#define PyBUF_FORMAT 0x0004
#define PyBUF_ND 0x0008
#define PyBUF_STRIDES (0x0010 | PyBUF_ND)
#define PyBUF_INDIRECT (0x0100 | PyBUF_STRIDES)
#define PyBUF_FULL_RO (PyBUF_INDIRECT | PyBUF_FORMAT)
#define Py_bf_getbuffer 1
#define Py_bf_releasebuffer 2
#endif

namespace tenon::python {

// The array in |object|'s buffer: borrowed if it is row-major and aligned, unless |copy| is always. nullopt if the object has no
// buffer. Throws TypeError for a format that Tenon lacks, ValueError if |copy| is never and a copy is needed.
std::optional<HostArray> from_buffer(PyObject* object, Copy copy);

// The slots of Array.
int get_buffer(PyObject* self, Py_buffer* view, int flags) noexcept;
void release_buffer(PyObject* self, Py_buffer* view) noexcept;

}  // namespace tenon::python
