// The CPU as a device: always there, opened in no time.
#pragma once

#include <memory>

#include "base/thread_pool.h"
#include "tenon/backend.h"

namespace tenon::cpu {

std::unique_ptr<Backend> make_backend();
// The CPU opened with a pool of its own choice, which must outlive it and everything compiled on it.
std::unique_ptr<OpenDevice> open_with(ThreadPool& pool);

}  // namespace tenon::cpu
