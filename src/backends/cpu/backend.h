// The CPU as a device: always present, and opening it takes no time.
#pragma once

#include <memory>

#include "base/threads/thread_pool.h"
#include "tenon/backend.h"

namespace tenon::cpu {

std::unique_ptr<Backend> make_backend();
// Opens the CPU with the given pool, which must outlive it and everything compiled on it.
std::unique_ptr<OpenDevice> open_with(ThreadPool& pool);

}  // namespace tenon::cpu
