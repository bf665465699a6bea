// Copies an array with arbitrary strides into row-major order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "tenon/array/shape.h"

namespace tenon {

// |byte_strides| has shape.rank() entries, which may be negative or zero. |element_size| is 1, 2, 4 or 8.
void copy_strided(const std::byte* in, const Shape& shape, std::span<const std::int64_t> byte_strides, std::size_t element_size,
                  std::byte* out);

}  // namespace tenon
