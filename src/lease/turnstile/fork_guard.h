// ForkGuard: descriptors whose locks must not live on in a forked child.
//
// A lock belongs to the open file description, which fork() shares: a child that merely goes on running would keep the parent's
// place after the parent's death. So the child closes these descriptors first thing, before fork() returns in it. Thread safety:
// all functions may be called from any thread.
#pragma once

#include <cstdint>
#include <functional>

#include "base/file_descriptor.h"

namespace tenon::fork_guard {

// Opens a descriptor with |open| so that no fork comes between its opening and its being known here.
FileDescriptor open(const std::function<FileDescriptor()>& open);
// Closes a descriptor opened above. One from before a fork is already closed, and its number may mean something else by now.
void close(FileDescriptor fd, std::uint64_t generation) noexcept;
// Counts the forks between the first process and this one.
std::uint64_t generation() noexcept;

}  // namespace tenon::fork_guard
