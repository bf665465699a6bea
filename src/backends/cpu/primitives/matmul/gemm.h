// Single-threaded products of two matrices, or of a matrix and a vector; the basis of matmul and conv.
//
// c = a x b overwrites c, which may hold anything before. Infinities and NaNs of a and b reach c as IEEE arithmetic says. A
// product that is cut into parts gives the same bits as the whole. Thread safety: functions touch only their arguments; side by
// side they may run in any number of threads.
#pragma once

#include <cstdint>

namespace tenon::cpu {

// Element (i, j) is data[i * row_stride + j * col_stride].
template <class T>
struct Matrix {
  const T* data = nullptr;
  std::int64_t rows = 0, cols = 0, row_stride = 0, col_stride = 0;

  Matrix transposed() const { return {data, cols, rows, col_stride, row_stride}; }
  // Rows [begin, end).
  Matrix band(std::int64_t begin, std::int64_t end) const {
    return {data + begin * row_stride, end - begin, cols, row_stride, col_stride};
  }
};

// True for a matrix in BLAS layout: unit stride along one axis, lines that do not overlap along the other.
bool is_blas_matrix(std::int64_t rows, std::int64_t cols, std::int64_t row_stride, std::int64_t col_stride);

// c[i * ldc + j]; a and b must satisfy is_blas_matrix(). Fast where the CPU has AVX2; a plain loop elsewhere.
void gemm(const Matrix<float>& a, const Matrix<float>& b, float* c, std::int64_t ldc);
void gemm(const Matrix<double>& a, const Matrix<double>& b, double* c, std::int64_t ldc);

// y[i] = sum over j of a(i, j) * x[j * x_stride]. Sums are formed in short runs of T that are added in double.
void gemv(const Matrix<float>& a, const float* x, std::int64_t x_stride, float* y);
void gemv(const Matrix<double>& a, const double* x, std::int64_t x_stride, double* y);

}  // namespace tenon::cpu
