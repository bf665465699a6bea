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

// Adds it to |variables|, which will be set before PoCL is loaded, unless somebody said something else about PoCL's devices or
// its threads, there or in the environment.
void ask_for_device_without_threads(std::map<std::string, std::string>& variables);
// Sets it now, under the same condition; while there are no other threads.
void ask_for_device_without_threads();

// Whether a device of PoCL, by its name, is the one without threads.
bool is_without_threads(std::string_view device);

}  // namespace tenon::opencl
