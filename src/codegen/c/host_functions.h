// Functions of double precision in this process, which kernels on processors call by their addresses (target.cpp): those the
// processors' OpenCL has no fast form of. There the C library is up to twelve times as fast. (Of exp it has one, but only in
// loops that are vectorised, which those with calls are not.)
#pragma once

#include <cstdint>
#include <string_view>

namespace tenon::emit {

struct HostFunction {
  std::string_view name;
  std::intptr_t of_one = 0;      // double(double) or double(double, double)
  std::intptr_t of_vectors = 0;  // the same of eight doubles in a register, for AVX-512; 0 where there is none or ours is used
};
// nullptr where there is none of that name.
const HostFunction* find_host_function(std::string_view name);

}  // namespace tenon::emit
