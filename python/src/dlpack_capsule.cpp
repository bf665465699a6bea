#include "dlpack_capsule.h"

#include <cstring>

#include "evaluation.h"
#include "tenon/dlpack.h"

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

nb::object ask_for_capsule(PyObject* object) {
  nb::object method = nb::handle(object).attr("__dlpack__");
  try {
    return method(nb::arg("max_version") = nb::make_tuple(dlpack::kMajorVersion, dlpack::kMinorVersion));
  } catch (nb::python_error& error) {
    if (!error.matches(PyExc_TypeError)) throw;
    return method();  // from before version 1
  }
}

}  // namespace

Tensor from_dlpack_object(PyObject* object, Copy copy) {
  nb::object capsule = ask_for_capsule(object);
  Tensor tensor;
  if (PyCapsule_IsValid(capsule.ptr(), kVersioned)) {
    auto* managed = static_cast<dlpack::ManagedTensorVersioned*>(PyCapsule_GetPointer(capsule.ptr(), kVersioned));
    PyCapsule_SetName(capsule.ptr(), "used_dltensor_versioned");
    tensor = Tensor::from_dlpack(managed);
  } else if (PyCapsule_IsValid(capsule.ptr(), kPlain)) {
    auto* managed = static_cast<dlpack::ManagedTensor*>(PyCapsule_GetPointer(capsule.ptr(), kPlain));
    PyCapsule_SetName(capsule.ptr(), "used_dltensor");
    tensor = Tensor::from_dlpack(managed);
  } else {
    throw nb::type_error("__dlpack__ did not return a DLPack capsule");
  }
  if (copy != Copy::always) return tensor;
  HostArray own = tensor.to_host();
  own.mutable_data();
  return own;
}

nb::object to_dlpack_capsule(const Tensor& tensor, nb::handle max_version, Copy copy) {
  HostArray array = value_of(tensor);
  if (copy == Copy::always && array.is_shared()) array.mutable_data();
  const bool knows_versions = !max_version.is_none() && nb::cast<int>(max_version[0]) >= 1;
  if (!knows_versions)
    return capsule_of(to_dlpack(std::move(array)), kPlain,
                      [](PyObject* capsule) { drop<dlpack::ManagedTensor>(capsule, kPlain); });
  dlpack::ManagedTensorVersioned* managed = to_dlpack_versioned(std::move(array));
  if (copy == Copy::always) managed->flags |= dlpack::kIsCopied;
  return capsule_of(managed, kVersioned, [](PyObject* capsule) { drop<dlpack::ManagedTensorVersioned>(capsule, kVersioned); });
}

}  // namespace tenon::python
