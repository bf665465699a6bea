// Whose threads compute where PoCL drives the processor.
//
// PoCL's own sleep between kernels, and to wake them takes about as long as to add a million numbers. Its device without threads
// computes in the thread that fills its queue: with that one, Tenon's pool (base/thread_pool.h) fills a queue from each of its
// threads, which are awake as long as work follows work. PoCL offers it where kDevicesVariable names it at its start. Programs of
// Tenon do; a library does not change its process's environment unasked, so others who want it set the variable themselves.
#pragma once

#include <map>
#include <string>
#include <string_view>

namespace tenon::opencl {

inline constexpr const char *kDevicesVariable = "POCL_DEVICES", *kDeviceWithoutThreads = "basic";

// Whether to set it: nobody said anything about PoCL's devices and threads, in the environment or among |more| variables that
// will be set.
bool should_bring_threads(const std::map<std::string, std::string>& more = {});
// Sets it where it should be. Before PoCL is loaded, and before there are other threads.
void bring_threads();

// Whether a device of PoCL, by its name, is the one without threads.
bool is_without_threads(std::string_view device);

}  // namespace tenon::opencl
