// The memory available to a process: the machine's, or its control group's limit if that is smaller.
#pragma once

#include <cstddef>
#include <filesystem>

namespace tenon {

// Read from /proc and /sys under |root|; the largest size_t if nothing can be read.
std::size_t read_memory_limit(const std::filesystem::path& root);
// The part of that limit that is still free, on the machine or in the most restrictive control group. The largest size_t if
// nothing can be read.
std::size_t read_memory_available(const std::filesystem::path& root);

}  // namespace tenon
