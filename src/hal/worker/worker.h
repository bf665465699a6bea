// Devices opened in a separate process.
//
// A runtime that crashes, keeps its device until its process ends, or takes every card it sees is hosted in a worker: a small
// program, tenon-worker, that opens one device of one backend and executes its parent's requests. Commands go over a socket,
// tensors through shared memory. Closing the device ends the worker. If the worker dies, the device is lost and calls fail;
// nothing is left behind, whichever of the two processes dies first. When the StopScope of the calling thread is met, the worker
// is told to stop what it runs. A worker that does not answer in time is killed: a moment after that, after the limits below, or
// by OpenDevice::abandon().
//
// The program is looked up in TENON_WORKER, next to the running executable, next to the library, and in ../libexec/tenon of both.
//
// Thread safety: as for Backend and OpenDevice; calls on one device are serialized.
//
//   auto backend = isolate(cuda::make_backend());
//   auto device = backend->open(info, {});             // in a worker
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "hal/registry.h"
#include "tenon/backend.h"

namespace tenon {

// How long a worker may take. Compiling and running have no limit of their own, only the caller's StopScope.
struct WorkerLimits {
  std::chrono::milliseconds open{300'000};
  std::chrono::milliseconds transfer{120'000};  // allocate, upload, download
  std::chrono::milliseconds close{8'000};
  std::chrono::milliseconds stop{2'000};  // after it was told to stop; a run that ends in this time costs nobody the device
};

struct WorkerOptions {
  // Variables set in the worker in addition to its inherited environment; one with an empty value is removed from it.
  std::map<std::string, std::string> environment = {};
  WorkerLimits limits = {};
};

// A worker that is another program than tenon-worker and has no graphs: it is sent programs that this process has translated.
// It speaks the same protocol (channel.h) but for two commands. open: the protocol's number, the device's id -> its name, its
// memory in bytes or 0, details. compile: program number, TranslatedProgram::bytes ->.
struct TranslatedProgram {
  std::vector<std::byte> bytes;
  std::vector<TensorType> input_types, output_types;
  std::string tier;  // see Tiered (hosted.h)
  // Which of its ops run in which tier, if it says so.
  std::map<std::string, std::vector<std::string>> ops_by_tier = {};
  // The tier to which the worker may change if the runtime refuses the program; the last byte of an answer to run says 1 then.
  std::string other_tier = {};
};
struct TranslatingWorker {
  std::vector<std::string> command;  // the program and its arguments
  // Called with the device as it was opened. Throws unimplemented.
  std::function<TranslatedProgram(const Graph& graph, const DeviceInfo& device)> translate;
};
std::unique_ptr<OpenDevice> open_in_worker(const TranslatingWorker& program, const DeviceInfo& device, const OpenOptions& options,
                                           const WorkerOptions& worker = {});

// Starts a worker and opens |device| of the backend |backend| in it. Throws unavailable if there is no worker program or it exits
// before the device is open, and otherwise the errors of opening. Blocks until the device is open.
std::unique_ptr<OpenDevice> open_in_worker(std::string_view backend, const DeviceInfo& device, const OpenOptions& options,
                                           const WorkerOptions& worker = {});

// Wraps a backend so that its devices are opened in workers, which find it by name. Only open() is redirected. When a device of
// a Preloadable backend has closed, another worker is held ready for the next open; it holds no device.
std::unique_ptr<Backend> isolate(std::unique_ptr<Backend> backend);
// The same, but where no worker program is installed, devices are opened in this process after a warning; and without one where
// another library of the process uses the device already (hal/memory_exchange.h).
std::unique_ptr<Backend> isolate_if_possible(std::unique_ptr<Backend> backend);

// The file of the worker program; throws unavailable listing the places that were searched.
std::string worker_program();
// The same for another file that is installed with it. |variable| names one that may give its path.
std::string worker_file(const char* name, const char* variable);

// Whether this process is a worker. In a worker, backends open devices directly.
bool is_worker() noexcept;

// The main loop of the worker program: serves the parent on descriptor 3 until it exits. Returns the exit status.
int run_worker(const BackendRegistry& registry);

}  // namespace tenon
