// DLPack: tensors of other libraries and tensors for them, in host memory and on devices.
#include <fmt/format.h>

#include <optional>

#include "array/io/dlpack_parts.h"
#include "manager/exchange.h"
#include "tenon/error.h"
#include "tensor/node.h"

namespace tenon {
namespace {

Tensor tensor_with(std::shared_ptr<Storage> storage) {
  auto node = std::make_shared<TensorNode>();
  node->graph_dtype = storage->type().dtype;
  node->shape = storage->type().shape;
  node->requested = storage->device();  // what is computed from it stays there
  node->set_storage(std::move(storage));
  return tensor_of(std::move(node));
}

bool is_on_cuda(const dlpack::ManagedTensor* managed) { return managed && managed->tensor.device.type == dlpack::kCuda; }
bool is_on_cuda(const dlpack::ManagedTensorVersioned* managed) {
  return managed && managed->version.major == dlpack::kMajorVersion && managed->tensor.device.type == dlpack::kCuda;
}

template <class Managed>
Tensor import_any(Managed* managed) {
  if (!is_on_cuda(managed)) return from_dlpack(managed);
  const std::shared_ptr<Managed> owner = dlpack::adopt(managed);
  const dlpack::Tensor& tensor = owner->tensor;
  const TensorType type{dlpack::dtype_of(tensor.dtype), dlpack::shape_of(tensor)};
  if (type.shape.elements() == 0) return HostArray::empty(type.dtype, type.shape);
  std::shared_ptr<Storage> storage;
  if (dlpack::is_row_major(tensor, type.shape) && type.dtype != DType::boolean)
    storage = borrow(current_manager(), tensor.device, type, static_cast<std::byte*>(tensor.data) + tensor.byte_offset, owner);
  if (!storage)
    throw Error(
        ErrorCode::unimplemented,
        fmt::format("the DLPack tensor on CUDA device {} cannot be used in place: the device is not open in this process, or "
                    "the tensor is not row-major, not aligned to 256 bytes, or of bool",
                    tensor.device.id),
        "copy it to the host first, or set isolate to false so that the device is opened in this process");
  return tensor_with(std::move(storage));
}

template <class Managed>
Managed* lend(const Tensor& tensor, std::int64_t stream) {
  const std::shared_ptr<Storage> storage = node_of(tensor.eval())->storage();
  const std::optional<dlpack::Device> place = storage ? storage->place() : std::nullopt;
  std::optional<MemoryExchange::Lent> lent = place ? storage->lend(stream) : std::nullopt;
  if (!lent) return nullptr;
  return dlpack::export_memory<Managed>(tensor.dtype(), tensor.shape(), lent->address, *place, std::move(lent->hold));
}

}  // namespace

Tensor Tensor::from_dlpack(dlpack::ManagedTensor* tensor) { return import_any(tensor); }
Tensor Tensor::from_dlpack(dlpack::ManagedTensorVersioned* tensor) { return import_any(tensor); }

bool Tensor::can_use_in_place(const dlpack::Device& place) { return can_borrow(current_manager(), place); }

dlpack::ManagedTensor* Tensor::to_dlpack() const { return tenon::to_dlpack(to_host()); }
dlpack::ManagedTensorVersioned* Tensor::to_dlpack_versioned() const { return tenon::to_dlpack_versioned(to_host()); }

dlpack::Device Tensor::dlpack_device() const {
  const std::shared_ptr<Storage> storage = node_of(eval())->storage();
  return (storage ? storage->place() : std::nullopt).value_or(dlpack::Device{dlpack::kCpu, 0});
}

dlpack::ManagedTensor* Tensor::lend_dlpack(std::int64_t stream) const { return lend<dlpack::ManagedTensor>(*this, stream); }

dlpack::ManagedTensorVersioned* Tensor::lend_dlpack_versioned(std::int64_t stream) const {
  dlpack::ManagedTensorVersioned* const lent = lend<dlpack::ManagedTensorVersioned>(*this, stream);
  if (!lent) return nullptr;
  lent->version = {dlpack::kMajorVersion, dlpack::kMinorVersion};
  lent->flags = dlpack::kReadOnly;
  return lent;
}

}  // namespace tenon
