#include "arrays/dlpack_capsule.h"

#include <nanobind/stl/string.h>

#include <cstdint>
#include <optional>
#include <string>

#include "runs/evaluation.h"
#include "tenon/array/dlpack.h"
#include "tenon/error.h"
#include "tenon/tensor/functions.h"
#include "tenon/tensor/program.h"

namespace tenon::python {
namespace {

constexpr const char* kPlain = "dltensor";
constexpr const char* kVersioned = "dltensor_versioned";

// A capsule that nobody took frees its tensor.
template <class Managed>
void drop(PyObject* capsule, const char* name) {
  if (!PyCapsule_IsValid(capsule, name)) return;
  auto* tensor = static_cast<Managed*>(PyCapsule_GetPointer(capsule, name));
  if (tensor->deleter) tensor->deleter(tensor);
}

template <class Managed>
nb::object capsule_of(Managed* tensor, const char* name, PyCapsule_Destructor destructor) {
  PyObject* capsule = PyCapsule_New(tensor, name, destructor);
  if (!capsule) {
    tensor->deleter(tensor);
    throw nb::python_error();
  }
  return nb::steal(capsule);
}

// Raises tenon.ExchangeRefused, which is also a BufferError as the standard demands.
[[noreturn]] void refuse(const std::string& message, const std::string& hint) {
  const nb::object type = nb::module_::import_("tenon._errors").attr("ExchangeRefused");
  nb::object error = type(message);
  error.attr("hint") = hint;
  PyErr_SetObject(type.ptr(), error.ptr());
  throw nb::python_error();
}

// DLPack's device types whose memory the CPU can read: its own, and what CUDA and ROCm pinned for transfers.
constexpr int kPinnedByCuda = 3, kPinnedByRocm = 11;
bool is_in_host_memory(int type) { return type == dlpack::kCpu || type == kPinnedByCuda || type == kPinnedByRocm; }

std::string device_text(int type, int id) {
  const char* name = type == 2    ? "CUDA"
                     : type == 4  ? "OpenCL"
                     : type == 8  ? "Metal"
                     : type == 10 ? "ROCm"
                     : type == 14 ? "oneAPI"
                                  : nullptr;
  return (name ? std::string(name) : "DLPack type " + std::to_string(type)) + " device " + std::to_string(id);
}

struct Place {
  int type = dlpack::kCpu, id = 0;
};

Place place_in(nb::handle pair) {
  const nb::tuple parts(nb::borrow(pair));
  if (parts.size() != 2) throw nb::value_error("a DLPack device is a pair (type, id)");
  return {nb::cast<int>(nb::int_(parts[0])), nb::cast<int>(nb::int_(parts[1]))};
}

Place place_of(PyObject* object) {
  if (!nb::hasattr(object, "__dlpack_device__")) return {};
  return place_in(nb::object(nb::handle(object).attr("__dlpack_device__")()));
}

// |stream|: what the caller reads after, for memory of a device.
nb::object ask_for_capsule(PyObject* object, nb::object stream = nb::none()) {
  nb::object method = nb::handle(object).attr("__dlpack__");
  nb::dict arguments, with_version;
  if (!stream.is_none()) {
    arguments["stream"] = stream;
    with_version["stream"] = stream;
  }
  with_version["max_version"] = nb::make_tuple(dlpack::kMajorVersion, dlpack::kMinorVersion);
  try {
    return method(**with_version);
  } catch (nb::python_error& error) {
    if (!error.matches(PyExc_TypeError)) throw;
    return method(**arguments);  // from before version 1
  }
}

// The producer knows its streams: it copies when what was submitted before has ended.
nb::object ask_for_copy_on_host(PyObject* object, Place place) {
  nb::object method = nb::handle(object).attr("__dlpack__");
  const std::string where = device_text(place.type, place.id);
  const char* const hint = "copy it to host memory first: x.cpu() in PyTorch, cupy.asnumpy(x), numpy.asarray(x) in JAX";
  try {
    return method(nb::arg("max_version") = nb::make_tuple(dlpack::kMajorVersion, dlpack::kMinorVersion),
                  nb::arg("dl_device") = nb::make_tuple(dlpack::kCpu, 0), nb::arg("copy") = true);
  } catch (nb::python_error& error) {
    const bool is_older = error.matches(PyExc_TypeError);
    if (!is_older && !error.matches(PyExc_BufferError)) throw;
    refuse(is_older ? "the array is on " + where + ", and its library is from before DLPack 1.0, which lets it copy to the CPU"
                    : "the array is on " + where + ", and its library refuses a copy on the CPU: " + std::string(error.what()),
           hint);
  }
}

bool is_readable(const dlpack::ManagedTensor&) { return true; }
bool is_readable(const dlpack::ManagedTensorVersioned& managed) { return managed.version.major == dlpack::kMajorVersion; }
bool is_a_copy(const dlpack::ManagedTensor&) { return false; }
bool is_a_copy(const dlpack::ManagedTensorVersioned& managed) { return (managed.flags & dlpack::kIsCopied) != 0; }

template <class Managed>
Tensor take(nb::handle capsule, const char* name, const char* used_name, Copy copy) {
  auto* managed = static_cast<Managed*>(PyCapsule_GetPointer(capsule.ptr(), name));
  PyCapsule_SetName(capsule.ptr(), used_name);
  const bool can_look = is_readable(*managed), is_own = can_look && is_a_copy(*managed);
  const std::byte* const data =
      can_look ? static_cast<const std::byte*>(managed->tensor.data) + managed->tensor.byte_offset : nullptr;
  Tensor tensor = Tensor::from_dlpack(managed);
  if (copy == Copy::if_needed || (copy == Copy::always && is_own)) return tensor;
  HostArray own = tensor.to_host();
  if (copy == Copy::always) {
    own.mutable_data();
    return own;
  }
  if (own.bytes() > 0 && own.data() != data)
    refuse("the array cannot be shared without a copy: it is not row-major, not aligned, or of bool",
           "leave copy=False out, or make it contiguous first");
  return tensor;
}

// The last user of a foreign tensor may be the thread that closes its device, which holds locks that a thread with the GIL may
// wait for; and a deleter may need the GIL. So it is called when nothing is locked.
template <class Managed>
Managed* released_later(Managed* theirs) {
  auto* const ours = new Managed(*theirs);
  ours->manager_context = theirs;
  ours->deleter = [](Managed* self) {
    void* const tensor = self->manager_context;
    delete self;
    const auto release = [](void* one) {
      auto* const managed = static_cast<Managed*>(one);
      if (managed->deleter) managed->deleter(managed);
      return 0;
    };
    // After the interpreter has ended its memory is nobody's concern any more.
    if (Py_IsInitialized() && Py_AddPendingCall(release, tensor) != 0) release(tensor);
  };
  return ours;
}

template <class Managed>
Tensor take_on_device(nb::handle capsule, const char* name, const char* used_name) {
  auto* const managed = static_cast<Managed*>(PyCapsule_GetPointer(capsule.ptr(), name));
  PyCapsule_SetName(capsule.ptr(), used_name);
  Managed* const ours = released_later(managed);
  Tensor tensor;
  wait([&](Waiting&) { tensor = Tensor::from_dlpack(ours); });
  return tensor;
}

Tensor own_copy(const Tensor& tensor) {
  Tensor own = clone(tensor);
  evaluate(own);
  return own;
}

// The array where it is, on a device that this process has open or can open. None if that is not possible.
std::optional<Tensor> borrow_on_device(PyObject* object, Place place, Copy copy) {
  if (!Tensor::can_use_in_place({place.type, place.id})) return std::nullopt;
  try {
    const nb::object capsule = ask_for_capsule(object, nb::int_(1));  // the default stream, which Tenon's follows
    Tensor tensor;
    if (PyCapsule_IsValid(capsule.ptr(), kVersioned))
      tensor = take_on_device<dlpack::ManagedTensorVersioned>(capsule, kVersioned, "used_dltensor_versioned");
    else if (PyCapsule_IsValid(capsule.ptr(), kPlain))
      tensor = take_on_device<dlpack::ManagedTensor>(capsule, kPlain, "used_dltensor");
    else
      throw nb::type_error("__dlpack__ did not return a DLPack capsule");
    return copy == Copy::always ? own_copy(tensor) : tensor;
  } catch (const Error& error) {
    if (error.code() != ErrorCode::unimplemented) throw;
  } catch (nb::python_error& error) {
    if (!error.matches(PyExc_BufferError)) throw;
  }
  return std::nullopt;
}

// Tenon's memory on a device of this process. |stream|: of the receiver.
nb::object lend_on_device(const Tensor& tensor, std::int64_t stream, bool knows_versions, Copy copy) {
  const Tensor lent = copy == Copy::always ? own_copy(tensor) : tensor;
  const auto gone = [&] {
    refuse("__dlpack__: the array was moved to host memory meanwhile, because its device was closed",
           "ask again, or hold a lease of the device");
  };
  if (!knows_versions) {
    dlpack::ManagedTensor* const managed = lent.lend_dlpack(stream);
    if (!managed) gone();
    return capsule_of(managed, kPlain, [](PyObject* capsule) { drop<dlpack::ManagedTensor>(capsule, kPlain); });
  }
  dlpack::ManagedTensorVersioned* const managed = lent.lend_dlpack_versioned(stream);
  if (!managed) gone();
  if (copy == Copy::always) managed->flags = dlpack::kIsCopied;
  return capsule_of(managed, kVersioned, [](PyObject* capsule) { drop<dlpack::ManagedTensorVersioned>(capsule, kVersioned); });
}

// The stream that the receiver of an array on a GPU gave, by DLPack's rules for CUDA.
std::int64_t stream_in(nb::handle stream) {
  if (stream.is_none()) return 1;
  const auto number = nb::cast<std::int64_t>(nb::int_(stream));
  if (number == 0 || number < -1)
    throw Error(ErrorCode::invalid_argument, "__dlpack__: stream " + std::to_string(number) + " is not one of CUDA's",
                "pass None or 1 for the default stream, 2 for the thread's default stream, -1 for none, or a stream's handle");
  return number;
}

}  // namespace

nb::object dlpack_device_of(const Tensor& tensor) {
  dlpack::Device place{dlpack::kCpu, 0};
  if (has_value(tensor)) {
    evaluate(tensor);
    place = tensor.dlpack_device();
  }
  return nb::make_tuple(place.type, place.id);
}

Tensor from_dlpack_object(PyObject* object, Copy copy) {
  const Place place = place_of(object);
  const bool is_here = is_in_host_memory(place.type);
  if (!is_here)
    if (std::optional<Tensor> there = borrow_on_device(object, place, copy)) return *std::move(there);
  if (!is_here && copy == Copy::never)
    refuse("the array is on " + device_text(place.type, place.id) + " and comes by a copy in host memory",
           "leave copy=False out");
  const nb::object capsule = is_here ? ask_for_capsule(object) : ask_for_copy_on_host(object, place);
  const Copy then = is_here ? copy : Copy::if_needed;  // what was made for us needs no second copy
  if (PyCapsule_IsValid(capsule.ptr(), kVersioned))
    return take<dlpack::ManagedTensorVersioned>(capsule, kVersioned, "used_dltensor_versioned", then);
  if (PyCapsule_IsValid(capsule.ptr(), kPlain)) return take<dlpack::ManagedTensor>(capsule, kPlain, "used_dltensor", then);
  throw nb::type_error("__dlpack__ did not return a DLPack capsule");
}

nb::object to_dlpack_capsule(const Tensor& tensor, const DlpackRequest& request) {
  const bool knows_versions = !request.max_version.is_none() && nb::cast<int>(nb::int_(request.max_version[0])) >= 1;
  evaluate(tensor);
  const dlpack::Device place = tensor.dlpack_device();
  const Place wanted = request.device.is_none() ? Place{place.type, place.id} : place_in(request.device);
  if (place.type != dlpack::kCpu && wanted.type == place.type && wanted.id == place.id)
    return lend_on_device(tensor, stream_in(request.stream), knows_versions, request.copy);
  // -1: the consumer synchronizes by itself.
  if (!request.stream.is_none() && nb::cast<std::int64_t>(nb::int_(request.stream)) != -1)
    throw Error(ErrorCode::invalid_argument, "__dlpack__: a stream was given, but the array is in host memory, which has none",
                "pass stream=None");
  if (wanted.type != dlpack::kCpu || wanted.id != 0)
    refuse("__dlpack__: the array cannot be exported to " + device_text(wanted.type, wanted.id) + ", where it is not",
           "ask for dl_device=(1, 0), host memory, and copy from there");
  HostArray array = value_of(tensor);
  if (request.copy == Copy::never) {
    const std::string device = tensor.device();
    if (!device.empty() && !device.starts_with("cpu"))
      refuse("__dlpack__: the array is on " + device + " and leaves it by a copy in host memory", "leave copy=False out");
    if (!knows_versions)
      refuse("__dlpack__: only DLPack 1.0 and later can say that the memory is read-only, so that earlier ones get a copy",
             "pass max_version=(1, 0), or leave copy=False out");
  }
  if (request.copy == Copy::always && array.is_shared()) array.mutable_data();
  if (!knows_versions)
    return capsule_of(to_dlpack(std::move(array)), kPlain,
                      [](PyObject* capsule) { drop<dlpack::ManagedTensor>(capsule, kPlain); });
  dlpack::ManagedTensorVersioned* managed = to_dlpack_versioned(std::move(array));
  if (request.copy == Copy::always) managed->flags |= dlpack::kIsCopied;
  return capsule_of(managed, kVersioned, [](PyObject* capsule) { drop<dlpack::ManagedTensorVersioned>(capsule, kVersioned); });
}

}  // namespace tenon::python
