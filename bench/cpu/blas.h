// The BLAS libraries of the machine, each with its own threads, side by side in one process.
#pragma once

#include <string>
#include <vector>

namespace bench {

struct Blas {
  std::string name;
  // c = a * b, square row-major matrices of |size|.
  void (*sgemm)(int order, int transpose_a, int transpose_b, int m, int n, int k, float alpha, const float* a, int lda,
                const float* b, int ldb, float beta, float* c, int ldc) = nullptr;

  void multiply(int size, const float* a, const float* b, float* c) const {
    constexpr int kRowMajor = 101, kNoTranspose = 111;
    sgemm(kRowMajor, kNoTranspose, kNoTranspose, size, size, size, 1.0f, a, size, b, size, 0.0f, c, size);
  }
};

// Those that are installed; loaded for the rest of the process.
std::vector<Blas> load_blas(int threads);

}  // namespace bench
