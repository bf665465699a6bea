#include <nanobind/stl/string.h>

#include <optional>
#include <string>

#include "devices.h"
#include "runs/evaluation.h"
#include "runs/waiting.h"
#include "tenon/error.h"
#include "tenon/lease.h"
#include "tenon/manager.h"

namespace tenon::python {
namespace {

// A lease with the options with which it is taken; `with` takes and releases it.
struct LeaseObject {
  LeaseOptions options;
  nb::object on_wait = nb::none();
  Lease lease;
  std::stop_source cancel;  // of the acquisition, by cancel()

  void acquire() {
    if (lease)
      throw Error(ErrorCode::failed_precondition, "this lease is already held", "a lease is held by one 'with' at a time");
    cancel = std::stop_source();
    wait([this](Waiting& waiting) {
      LeaseOptions asked = options;
      asked.cancel = waiting.token();
      asked.on_wait = [&](const QueuePlace& place) { tell(place, waiting); };
      const Forward forward(cancel.get_token(), waiting);
      lease = process_manager().lease(asked);
    });
  }

  void release() {
    WithoutGil free;
    lease.release();
  }

  void tell(const QueuePlace& place, Waiting& waiting) const {
    waiting.may_wait();
    if (on_wait.ptr() == Py_None) return;
    const WithGil held;
    if (!held) return;
    try {
      on_wait(place.ahead_here, place.ahead_elsewhere, place.holder);
    } catch (nb::python_error& error) {
      waiting.fail(std::move(error));
    }
  }
};

void make_lease(LeaseObject* lease, const std::string& device, nb::handle timeout, int priority, nb::handle on_wait) {
  new (lease) LeaseObject;
  lease->options.device = device;
  lease->options.priority = priority;
  if (!timeout.is_none())
    lease->options.timeout = std::chrono::duration_cast<std::chrono::nanoseconds>(
        std::chrono::duration<double>(nb::cast<double>(nb::float_(timeout))));
  lease->on_wait = nb::borrow(on_wait);
}

}  // namespace

void bind_lease(nb::module_& module) {
  nb::class_<LeaseObject>(module, "_Lease", nb::is_weak_referenceable())
      .def("__init__", &make_lease, nb::arg("device"), nb::arg("timeout").none(), nb::arg("priority"), nb::arg("on_wait").none())
      .def("acquire", &LeaseObject::acquire)
      .def("release", &LeaseObject::release)
      .def("cancel", [](LeaseObject& self) { self.cancel.request_stop(); })
      .def_prop_ro("held", [](const LeaseObject& self) { return static_cast<bool>(self.lease); })
      .def_prop_ro("device", [](const LeaseObject& self) { return self.lease ? self.lease.device().id : self.options.device; })
      .def_prop_ro("epoch", [](const LeaseObject& self) { return self.lease.epoch(); })
      .def_prop_ro("should_yield", [](const LeaseObject& self) { return self.lease.should_yield(); });
}

}  // namespace tenon::python
