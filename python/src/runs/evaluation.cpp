#include "runs/evaluation.h"

#include <nanobind/stl/string.h>

#include <algorithm>
#include <atomic>

#include "arrays/convert.h"
#include "tenon/error.h"
#include "tenon/expression.h"
#include "tenon/tensor/program.h"

namespace tenon::python {
namespace {

PyObject* device_variable = nullptr;  // a contextvars.ContextVar; never released
std::atomic<int> contexts_entered{0};

std::chrono::nanoseconds nanoseconds(double seconds) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::duration<double>(seconds));
}

nb::object progress_tuple(const Progress& progress) {
  return nb::make_tuple(progress.stage, progress.device, progress.place.ahead_here, progress.place.ahead_elsewhere,
                        progress.place.holder);
}

RoutingMode routing_named(const std::string& text) {
  for (const RoutingMode mode : {RoutingMode::prefer, RoutingMode::fastest, RoutingMode::cheapest, RoutingMode::pinned})
    if (text == name(mode)) return mode;
  throw Error(ErrorCode::invalid_argument, "routing must be 'prefer', 'fastest', 'cheapest' or 'pinned', not '" + text + "'");
}

std::vector<Tensor> tensors_of(nb::sequence arrays) {
  std::vector<Tensor> tensors;
  for (nb::handle array : arrays) tensors.push_back(tensor_in(nb::cast<nb::object>(array).ptr()));
  return tensors;
}

// eval(a, b, ...): one program for all.
nb::object eval_arrays(nb::sequence arrays, nb::handle device, nb::handle timeout, int priority, nb::handle on_progress,
                       nb::handle cancel, nb::handle routing, nb::handle prefer) {
  const std::vector<Tensor> tensors = tensors_of(arrays);
  const CallOptions options = CallOptions::from(device, timeout, priority, on_progress, cancel).choose(routing, prefer);
  const ContextDevice context(options);
  Evaluation evaluation;
  wait([&](Waiting& waiting) {
    const Forward forward(options.cancel, waiting);
    evaluation = eval(tensors, options.with(waiting));
  });
  return evaluation_tuple(evaluation);
}

// run('softmax(x @ w)', x=..): the expression becomes a program of the named arrays.
nb::object run_expression(const std::string& source, nb::dict named, nb::handle device, nb::handle timeout, int priority,
                          nb::handle on_progress, nb::handle cancel, nb::handle routing, nb::handle prefer) {
  std::vector<NamedType> types;
  std::vector<HostArray> inputs;
  std::vector<Tensor> tensors;
  for (const auto& [name, value] : named) {
    tensors.push_back(make_array(nb::handle(value).ptr(), std::nullopt, Copy::if_needed));
    types.push_back({nb::cast<std::string>(name), tensors.back().dtype(), tensors.back().shape()});
  }
  const CallOptions options = CallOptions::from(device, timeout, priority, on_progress, cancel).choose(routing, prefer);
  const ContextDevice context(options);
  std::vector<Tensor> results;
  wait([&](Waiting& waiting) {
    const Forward forward(options.cancel, waiting);
    const Graph graph = parse_expression(source, types);
    results = Program::of_graph(graph).run(tensors, options.with(waiting));
  });
  if (results.size() == 1) return wrapped(std::move(results[0]));
  nb::list list;
  for (Tensor& result : results) list.append(wrapped(std::move(result)));
  return nb::tuple(list);
}

}  // namespace

ContextDevice::ContextDevice() { enter(); }

void ContextDevice::enter() {
  if (contexts_entered.load(std::memory_order_relaxed) == 0) return;
  const nb::object device = nb::handle(device_variable).attr("get")();
  if (!device.is_none()) use_.emplace(nb::cast<std::string>(device));
}

ContextDevice::ContextDevice(const CallOptions& options) {
  if (!options.routing && options.prefer.empty()) enter();
}

RunOptions run_options(Waiting& waiting) {
  RunOptions options;
  if (!waiting.is_interruptible()) return options;
  options.cancel = waiting.token();
  options.on_progress = [&waiting](const Progress& progress) { waiting.at(progress); };
  return options;
}

namespace {
constexpr int kMostSkipped = 64;
thread_local int skipped = 0, to_skip = 0;
}  // namespace

const RunOptions& AtOnce::options() {
  static const auto* const at_once = [] {
    auto* const made = new RunOptions;
    made->at_once = true;
    return made;
  }();
  return *at_once;
}

bool AtOnce::is_likely() noexcept {
  if (skipped >= to_skip) return true;
  ++skipped;
  return false;
}

void AtOnce::failed() noexcept {
  skipped = 0;
  to_skip = std::min(kMostSkipped, 2 * to_skip + 1);
}

void AtOnce::worked() noexcept { to_skip = 0; }

void evaluate(const Tensor& tensor) {
  if (tensor.is_evaluated()) return;
  const ContextDevice device;
  const auto now = [&] {
    WithoutGil free;
    return AtOnce::try_run([&](const RunOptions& options) { tensor.eval(options); });
  };
  if (now()) return;
  wait([&](Waiting& waiting) { tensor.eval(run_options(waiting)); });
}

HostArray value_of(const Tensor& tensor) {
  evaluate(tensor);
  WithoutGil free;
  return tensor.to_host();
}

std::string device_of(const Tensor& tensor) {
  const std::string device = tensor.device();
  return device.empty() ? "host" : device;
}

nb::object evaluation_tuple(const Evaluation& evaluation) {
  nb::list spans;
  for (const Span& span : evaluation.timeline) spans.append(nb::make_tuple(span.stage, span.seconds));
  return nb::make_tuple(evaluation.device.id, spans, evaluation.programs);
}

CallOptions CallOptions::from(nb::handle device, nb::handle timeout, int priority, nb::handle on_progress, nb::handle cancel) {
  CallOptions options;
  if (!device.is_none()) options.device = nb::cast<std::string>(nb::str(device));
  if (options.device == "host") options.device = "auto";
  if (!timeout.is_none()) options.timeout = nb::cast<double>(nb::float_(timeout));
  options.priority = priority;
  options.on_progress = nb::borrow(on_progress);
  if (!cancel.is_none()) options.cancel = nb::cast<CancelObject&>(cancel).source.get_token();
  return options;
}

CallOptions& CallOptions::choose(nb::handle how, nb::handle preferred) {
  if (!how.is_none()) routing = routing_named(nb::cast<std::string>(nb::str(how)));
  if (!preferred.is_none()) prefer = nb::cast<std::string>(nb::str(preferred));
  if (device != "auto" && (routing || !prefer.empty()))
    throw Error(ErrorCode::invalid_argument, "routing and prefer choose a device, but this call names one: " + device,
                "leave the device out, or the others");
  return *this;
}

RunOptions CallOptions::with(Waiting& waiting) const {
  RunOptions options;
  options.device = device;
  options.routing = routing;
  options.prefer = prefer;
  if (timeout) options.timeout = nanoseconds(*timeout);
  options.priority = priority;
  options.cancel = waiting.token();
  options.on_progress = [this, &waiting](const Progress& progress) {
    waiting.at(progress);
    if (on_progress.ptr() == Py_None) return;
    const WithGil held;
    if (!held) return;
    try {
      on_progress(*progress_tuple(progress));
    } catch (nb::python_error& error) {
      waiting.fail(std::move(error));
    }
  };
  return options;
}

void bind_evaluation(nb::module_& module) {
  nb::class_<CancelObject>(module, "_Cancel").def(nb::init<>()).def("cancel", [](CancelObject& self) {
    self.source.request_stop();
  });
  module.def("_eval", &eval_arrays, nb::arg("arrays"), nb::arg("device").none(), nb::arg("timeout").none(), nb::arg("priority"),
             nb::arg("on_progress").none(), nb::arg("cancel").none() = nb::none(), nb::arg("routing").none() = nb::none(),
             nb::arg("prefer").none() = nb::none());
  module.def("_run", &run_expression, nb::arg("source"), nb::arg("named"), nb::arg("device").none(), nb::arg("timeout").none(),
             nb::arg("priority"), nb::arg("on_progress").none(), nb::arg("cancel").none() = nb::none(),
             nb::arg("routing").none() = nb::none(), nb::arg("prefer").none() = nb::none());
  module.def("_set_device_variable", [](nb::object variable) { device_variable = variable.release().ptr(); });
  module.def("_enter_device", [](int by) { contexts_entered += by; });
  module.def("free_names", [](const std::string& source) {
    nb::list names;
    for (const std::string& name : free_names(source)) names.append(name);
    return names;
  });
}

}  // namespace tenon::python
