// Values in memory of another library of this process, used in place by the device they are on.
#pragma once

#include <memory>

#include "lease/storage.h"
#include "tenon/array/dlpack.h"
#include "tenon/manager.h"

namespace tenon {

// Whether borrow() may find a device at |place|. Opens nothing.
bool can_borrow(DeviceManager& manager, const dlpack::Device& place);

// |data| of |type|, row-major, on the device at |place|, after all work submitted to its default stream so far. Opens the device,
// waiting for its lease. Null if no device of |manager| is there, or if it is hosted in another process, or if it cannot use this
// memory in place.
std::shared_ptr<Storage> borrow(DeviceManager& manager, const dlpack::Device& place, const TensorType& type, void* data,
                                std::shared_ptr<const void> owner);

}  // namespace tenon
