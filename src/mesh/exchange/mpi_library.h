// MpiLibrary: the calls of MPI that a mesh needs, from whichever libmpi started the process.
//
// Loaded at run time, never linked. Open MPI's handles are pointers to objects of the library, MPICH's are numbers fixed by its
// binary interface; here both are hidden behind ids. All communication is non-blocking: the caller decides how long to wait.
// Thread safety: any thread, one at a time.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "tenon/array/dtype.h"
#include "tenon/graph.h"

namespace tenon::mesh {

class MpiLibrary {
 public:
  using Group = int;    // 0: all processes
  using Request = int;  // valid until test() has returned true

  // Whether this process was started by an MPI launcher.
  static bool started_this_process();
  // Initialises MPI, for which all processes of the job are needed: without them the process ends at the deadline with an error
  // message. Throws unavailable if the library that the launcher belongs to cannot be loaded.
  static std::unique_ptr<MpiLibrary> load(std::chrono::nanoseconds deadline);
  virtual ~MpiLibrary() = default;

  virtual std::string version() const = 0;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  // Collective: the processes with the same |color|, ordered by rank. Waits for all processes of the job.
  virtual Group split(int color) = 0;
  virtual Request send(const void* data, std::size_t bytes, int to, int tag) = 0;
  virtual Request receive(void* data, std::size_t bytes, int from, int tag) = 0;
  // False if the library has no operation for it.
  virtual bool can_reduce(DType dtype, ReduceKind kind) const = 0;
  virtual Request all_reduce(const void* from, void* to, std::int64_t elements, DType dtype, ReduceKind kind, Group group) = 0;
  virtual bool test(Request request) = 0;
  // Ends MPI in an orderly way. Not called after an error: it waits for processes that may be gone.
  virtual void finish() = 0;
};

}  // namespace tenon::mesh
