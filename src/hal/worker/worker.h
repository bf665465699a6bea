// Devices opened in a process of their own.
//
// A runtime that crashes, hangs on to its device until its process ends, or takes every card it sees, is hosted in a worker: a
// small program, tenon-worker, that opens one device of one backend and does what its parent asks. Commands go over a socket,
// tensors through shared memory. Ending the worker is closing the device. A worker that dies is a lost device, and an error;
// nothing of it stays behind, whichever of the two dies first, and however.
//
// The program is looked for in TENON_WORKER, beside the running executable, beside the library, and in ../libexec/tenon of both.
//
// Thread safety: as Backend and OpenDevice promise; calls of one device are made one after the other.
//
//   auto backend = isolate(cuda::make_backend());
//   auto device = backend->open(info, {});             // in a worker
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "hal/registry.h"
#include "tenon/backend.h"

namespace tenon {

struct WorkerOptions {
  // Set in the worker, over what it inherits.
  std::map<std::string, std::string> environment;
};

// Starts a worker and opens |device| of the backend called |backend| in it. Throws unavailable when there is no worker program or
// it ends before the device is open, else what opening throws. Blocks until the device is open.
std::unique_ptr<OpenDevice> open_in_worker(std::string_view backend, const DeviceInfo& device, const OpenOptions& options,
                                           const WorkerOptions& worker = {});

// The same backend, its devices opened in workers, which know it by its name. Everything but open() is answered here.
std::unique_ptr<Backend> isolate(std::unique_ptr<Backend> backend);

// The file of the worker program; throws unavailable naming the places where it is not.
std::string worker_program();

// Whether this process is a worker: there a backend opens what it is asked for, whatever it would do elsewhere.
bool is_worker() noexcept;

// The whole of the worker program: serves the parent on descriptor 3 until it goes. Returns the exit status.
int run_worker(const BackendRegistry& registry);

}  // namespace tenon
