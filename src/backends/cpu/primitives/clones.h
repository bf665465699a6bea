// TENON_CLONES: a function that the compiler makes for several instruction sets; the loader takes the best that the CPU has.
// The thread sanitizer is not there yet when the loader chooses, so there is one only.
#pragma once

#include "base/system/sanitizers.h"

#if defined(__x86_64__) && !TENON_THREAD_SANITIZER
#define TENON_CLONES [[gnu::target_clones("default", "arch=x86-64-v3", "arch=x86-64-v4")]]
#else
#define TENON_CLONES
#endif

// Before a loop that is not worth being unrolled: several versions of it would be long.
#if defined(__clang__)
#define TENON_ROLLED _Pragma("clang loop unroll(disable)")
#else
#define TENON_ROLLED
#endif
