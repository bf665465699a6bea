// Values of arrays: evaluated without the GIL, on the device of Python's context.
#pragma once

#include <nanobind/nanobind.h>

#include <optional>
#include <string>

#include "runs/waiting.h"
#include "tenon/tensor.h"
#include "tenon/tensor/use_device.h"

namespace tenon::python {

namespace nb = nanobind;

struct CallOptions;

// Within its scope this thread evaluates on the device of the innermost `with tenon.device(...)`. Needs the GIL to be made.
class ContextDevice {
 public:
  ContextDevice();
  // A call that says how to choose a device goes before the context.
  explicit ContextDevice(const CallOptions& options);

 private:
  void enter();

  std::optional<UseDevice> use_;
};

// Options under which |waiting| can end a run.
RunOptions run_options(Waiting& waiting);

// Most small programs run on this CPU and are compiled already: they need no progress and nothing that could end them, which
// would be a good part of their time. try_run(work) calls |work(options)| so, without waiting for anything; false if that is not
// possible now, and nothing was done.
class AtOnce {
 public:
  template <class Work>
  static bool try_run(const Work& work) {
    if (!is_likely()) return false;
    try {
      work(options());
    } catch (const Error& error) {
      if (error.code() != ErrorCode::unavailable && error.code() != ErrorCode::deadline_exceeded) throw;
      failed();
      return false;
    }
    worked();
    return true;
  }

 private:
  static const RunOptions& options();
  // Programs that run elsewhere follow each other: after a failure some are not tried.
  static bool is_likely() noexcept;
  static void failed() noexcept;
  static void worked() noexcept;
};

void evaluate(const Tensor& tensor);
HostArray value_of(const Tensor& tensor);

// Where the value is, or will be: "host" if there is no request for a device.
std::string device_of(const Tensor& tensor);

// An Evaluation as a tuple (device id, [(stage, seconds)], programs).
nb::object evaluation_tuple(const Evaluation& evaluation);

// The options that functions share: device, routing, prefer, timeout, priority, on_progress. Callbacks run with the GIL.
struct CallOptions {
  std::string device = "auto";
  std::optional<RoutingMode> routing;
  std::string prefer;
  std::optional<double> timeout;
  int priority = 0;
  nb::object on_progress = nb::none();
  std::stop_token cancel;

  static CallOptions from(nb::handle device, nb::handle timeout, int priority, nb::handle on_progress, nb::handle cancel);
  // With the names of a routing mode and of a preferred device; None: as configured. Throws invalid_argument if there is a
  // device.
  CallOptions& choose(nb::handle routing, nb::handle prefer);
  RunOptions with(Waiting& waiting) const;
};

// An object with which another thread cancels a call.
struct CancelObject {
  std::stop_source source;
};

void bind_evaluation(nb::module_& module);

}  // namespace tenon::python
