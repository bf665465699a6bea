// The memory a process may use: the machine's, or its control group's limit where that is smaller.
#pragma once

#include <cstddef>
#include <filesystem>

namespace tenon {

// Read from the /proc and /sys under |root|; the largest size_t when nothing can be read.
std::size_t read_memory_limit(const std::filesystem::path& root);
// The bytes of that limit which are still free: what the machine has available, or what the tightest control group leaves. The
// largest size_t when nothing can be read.
std::size_t read_memory_available(const std::filesystem::path& root);

}  // namespace tenon
