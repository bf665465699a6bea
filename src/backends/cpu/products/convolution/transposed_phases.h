// Transposed convolution as one ordinary convolution for each phase (conv_phases.h), whose results are then joined.
//
// The products of a phase are formed by the kernels of ordinary convolutions, f32 or bf16, and only those that reach the result:
// nothing is added up in memory. Weights are put into the order of the phases first. Thread safety and scratch memory as
// primitives.h.
#pragma once

#include <span>
#include <vector>

#include "backends/cpu/primitives/primitives.h"

namespace tenon::cpu {

class TransposedPhases {
 public:
  // |dtype|: of x and of the weight, f32 or bf16.
  TransposedPhases(const Shape& x, const Shape& weight, const ConvTransposeAttr& attr, const Shape& out, DType dtype);

  // Whether it is the better way, and there are kernels for all phases; it does not depend on the number of images.
  bool is_better() const { return is_better_; }

  // Floats that the weights take in the order of the phases.
  std::int64_t weight_elements() const { return weight_elements_; }
  // False if the weights are not finite: they cannot be multiplied with padding. |weight| is dense.
  bool order_weights(const void* weight, float* ordered) const;

  std::size_t scratch_bytes(const ThreadPool& pool) const;
  // x is dense, |out| f32.
  void run(ThreadPool& pool, const View& x, const float* ordered, const Target& out, std::span<std::byte> scratch) const;

 private:
  struct Phase {
    Spatial count{1, 1, 1}, taps{1, 1, 1}, tap{}, tap_step{1, 1, 1};
    ConvAttr attr;
    Shape weight, out;         // out: of one image
    std::int64_t weights = 0;  // where its weights begin, in floats
    std::int64_t results = 0;  // where its results begin, in those of all phases of an image

    bool is_empty() const { return taps[0] * taps[1] * taps[2] == 0; }
  };

  Phase phase_of(const Spatial& number, Spatial* first) const;
  bool has_kernel(const Phase& phase) const;
  template <class T>
  void copy_weights(const Phase& phase, const T* weight, T* to) const;
  std::int64_t images_at_once(const ThreadPool& pool) const;
  std::size_t conv_bytes(const ThreadPool& pool, std::int64_t images) const;
  void convolve(ThreadPool& pool, const Phase& phase, const View& x, const float* ordered, float* to,
                std::span<std::byte> scratch) const;
  void join(ThreadPool& pool, const float* results, std::int64_t images, float* out) const;

  Shape x_, weight_, out_;  // x_ and out_: of one image
  std::int64_t images_;
  ConvAttr attr_;
  DType dtype_;
  Spatial extents_{1, 1, 1}, steps_{1, 1, 1};  // of the result
  std::vector<Phase> phases_;                  // by the place of their first result
  std::int64_t weight_elements_ = 0;
  bool is_better_ = false;
};

}  // namespace tenon::cpu
