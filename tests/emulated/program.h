// A plan for CUDA, run on this machine.
//
// Every buffer is as long as it has to be: what is read or written after its end, or of what earlier kernels computed before it
// is waited for, ends the run. Outputs, temporaries and local memory are filled with a pattern that is no number. A plan runs
// twice: with temporaries apart, each in a buffer of its own, and with them where the plan puts them. Thread safety: none.
//
//   std::vector<HostArray> y = run_plan(plan, library, inputs, Temporaries::apart);
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "emulated/kernel_library.h"
#include "hal/kernel_plan.h"
#include "tenon/array.h"

namespace tenon::emulated {

enum class Temporaries : std::uint8_t { apart, as_planned };

// Throws internal, naming the step, for what a kernel must not do; what throw_status() throws.
std::vector<HostArray> run_plan(const KernelPlan& plan, KernelLibrary& library, std::span<const HostArray> inputs,
                                Temporaries temporaries);

}  // namespace tenon::emulated
