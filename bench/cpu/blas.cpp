#include "cpu/blas.h"

#include <dlfcn.h>

namespace bench {
namespace {

struct Candidate {
  const char* name;
  const char* path;
  const char* set_threads;
  bool wide;  // the thread count is 64 bits
};
constexpr Candidate kCandidates[] = {
    {"BLIS (OpenMP)", "/usr/lib/x86_64-linux-gnu/blis-openmp/libblis.so.4", "bli_thread_set_num_threads", true},
    {"BLIS (pthread)", "/usr/lib/x86_64-linux-gnu/blis-pthread/libblis.so.4", "bli_thread_set_num_threads", true},
    {"OpenBLAS (pthread)", "/usr/lib/x86_64-linux-gnu/openblas-pthread/libopenblas.so.0", "openblas_set_num_threads", false},
    {"OpenBLAS (OpenMP)", "/usr/lib/x86_64-linux-gnu/openblas-openmp/libopenblas.so.0", "openblas_set_num_threads", false},
};

}  // namespace

std::vector<Blas> load_blas(int threads) {
  std::vector<Blas> found;
  for (const Candidate& candidate : kCandidates) {
    // DEEPBIND: both libraries, and perhaps the one Tenon uses, define the same names; each must call its own.
    void* library = dlopen(candidate.path, RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND);
    if (library == nullptr) continue;
    void* set_threads = dlsym(library, candidate.set_threads);
    void* sgemm = dlsym(library, "cblas_sgemm");
    if (set_threads == nullptr || sgemm == nullptr) continue;
    if (candidate.wide)
      reinterpret_cast<void (*)(long)>(set_threads)(threads);
    else
      reinterpret_cast<void (*)(int)>(set_threads)(threads);
    found.push_back({candidate.name, reinterpret_cast<decltype(Blas::sgemm)>(sgemm)});
  }
  return found;
}

}  // namespace bench
