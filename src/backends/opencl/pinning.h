// Where PoCL's threads run.
//
// Left alone, a system often puts two of them on one processor while another has nothing to do, and a run takes twice its time.
// PoCL keeps each on a processor of its own when kPinningVariable is 1 at its start. Programs of Tenon ask for that; a library
// does not change its process's environment unasked, so others who want it set the variable themselves.
#pragma once

#include <map>
#include <string>

namespace tenon::opencl {

inline constexpr const char* kPinningVariable = "POCL_AFFINITY";

// Whether to set it: nobody said anything about PoCL's threads, in the environment or among |more| variables that will be set,
// and every processor is ours to use, now (where one is not when PoCL starts, PoCL ends the process).
bool should_pin_threads(const std::map<std::string, std::string>& more = {});

bool asked_to_pin_threads() noexcept;

}  // namespace tenon::opencl
