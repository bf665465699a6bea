// ForkGuard: descriptors whose locks must not survive in a forked child.
//
// A lock belongs to the open file description, which fork() shares: a running child would keep the parent's place in the queue
// after the parent's death. The child therefore closes these descriptors before fork() returns in it. Thread safety: all
// functions may be called from any thread.
#pragma once

#include <cstdint>
#include <functional>

#include "base/system/file_descriptor.h"

namespace tenon::fork_guard {

// Opens a descriptor with |open| so that no fork happens between opening and registering it.
FileDescriptor open(const std::function<FileDescriptor()>& open);
// Closes a descriptor opened above. One from before a fork is already closed, and its number may have been reused.
void close(FileDescriptor fd, std::uint64_t generation) noexcept;
// Counts the forks between the first process and this one.
std::uint64_t generation() noexcept;

}  // namespace tenon::fork_guard
