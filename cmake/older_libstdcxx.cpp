// std::condition_variable::wait() as libstdc++ before 12 had it.
//
// Headers of GCC 12 refer to a version of this function (GLIBCXX_3.4.30) that systems with glibc 2.34 do not have, and it is the
// only such symbol in libtenon.so. Only its exception specification changed.
#include <condition_variable>
#include <mutex>

#if defined(_GLIBCXX_RELEASE) && _GLIBCXX_RELEASE >= 12
void std::condition_variable::wait(std::unique_lock<std::mutex>& lock) { _M_cond.wait(*lock.mutex()); }
#endif
