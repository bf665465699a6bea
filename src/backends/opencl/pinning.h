// Where PoCL's threads run.
//
// Left alone, a system often puts two of them on one processor while another has nothing to do, and a run takes twice its time.
// PoCL keeps each on a processor of its own when POCL_AFFINITY is 1 at its start. Programs of Tenon ask for that; a library must
// not change its process's environment, so others who want it set the variable themselves.
#pragma once

namespace tenon::opencl {

// For main(), before there are other threads: sets POCL_AFFINITY, unless it is set or some processors are not ours to use.
void pin_threads() noexcept;

bool asked_to_pin_threads() noexcept;

}  // namespace tenon::opencl
