// Whether this is compiled for the thread sanitizer: TENON_THREAD_SANITIZER is 1 or 0.
#pragma once

#if defined(__SANITIZE_THREAD__)
#define TENON_THREAD_SANITIZER 1
#elif defined(__has_feature)
#define TENON_THREAD_SANITIZER __has_feature(thread_sanitizer)
#else
#define TENON_THREAD_SANITIZER 0
#endif
