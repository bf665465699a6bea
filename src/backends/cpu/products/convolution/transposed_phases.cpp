#include "backends/cpu/products/convolution/transposed_phases.h"

#include <algorithm>
#include <cstring>

#include "backends/cpu/primitives/clones.h"
#include "backends/cpu/primitives/split.h"
#include "backends/cpu/products/convolution/conv_packed.h"
#include "backends/cpu/products/convolution/conv_phases.h"

namespace tenon::cpu {
namespace {

constexpr std::int64_t kMostPhases = 64;

std::int64_t product(const Spatial& s) { return s[0] * s[1] * s[2]; }
std::int64_t number_of(const Spatial& place, const Spatial& steps) {
  return (place[0] * steps[1] + place[1]) * steps[2] + place[2];
}

View dense(const void* data, DType dtype, const Shape& shape) { return dense_view(data, dtype, shape); }

// to[0], to[2] ... and to[1], to[3] ...
TENON_CLONES void interleave(const float* even, const float* odd, std::int64_t pairs, float* __restrict to) {
  for (std::int64_t i = 0; i < pairs; ++i) {
    to[2 * i] = even[i];
    to[2 * i + 1] = odd[i];
  }
}

// Otherwise every element of the result is one product, or there are long rows to add them to: both fast.
bool has_overlaps(const Shape& weight, const ConvTransposeAttr& attr) {
  bool overlaps = false;
  for (int i = 2; i < weight.rank(); ++i) overlaps = overlaps || weight[i] > attr.stride[static_cast<std::size_t>(i - 2)];
  return overlaps && weight.rank() > 3;
}

std::size_t aligned(std::int64_t floats) { return (static_cast<std::size_t>(floats) * sizeof(float) + 63) / 64 * 64; }

}  // namespace

TransposedPhases::TransposedPhases(const Shape& x, const Shape& weight, const ConvTransposeAttr& attr, const Shape& out,
                                   DType dtype)
    : x_(x.with(0, 1)),
      weight_(weight),
      out_(out.with(0, 1)),
      images_(x[0]),
      attr_{attr.stride, attr.dilation, attr.pad_low, attr.pad_high, attr.groups},
      dtype_(dtype) {
  if (out.elements() == 0 || x.elements() == 0 || weight.elements() == 0 || !has_overlaps(weight, attr)) return;
  for (int i = 2; i < x.rank(); ++i) {
    const auto axis = static_cast<std::size_t>(i - 2);
    extents_[axis] = out[i];
    steps_[axis] = attr.stride[axis];
    if (steps_[axis] > kMostPhases) return;
  }
  if (product(steps_) > kMostPhases) return;
  phases_.resize(static_cast<std::size_t>(product(steps_)));
  Spatial number{};
  for (number[0] = 0; number[0] < steps_[0]; ++number[0])
    for (number[1] = 0; number[1] < steps_[1]; ++number[1])
      for (number[2] = 0; number[2] < steps_[2]; ++number[2]) {
        Spatial first{};
        const Phase phase = phase_of(number, &first);
        phases_[static_cast<std::size_t>(number_of(first, steps_))] = phase;
        const std::int64_t elements = phase.is_empty()      ? 0
                                      : dtype == DType::f32 ? packed_conv_elements(phase.weight, phase.attr)
                                                            : phase.weight.elements();
        weight_elements_ += (elements + 15) / 16 * 16;
      }
  std::int64_t results = 0;
  for (Phase& phase : phases_) {
    phase.results = results;
    results += phase.out.elements();
  }
  is_better_ = std::ranges::all_of(phases_, [&](const Phase& phase) { return has_kernel(phase); });
}

TransposedPhases::Phase TransposedPhases::phase_of(const Spatial& number, Spatial* first) const {
  Phase phase;
  phase.attr.groups = attr_.groups;
  phase.weights = weight_elements_;
  phase.out = out_;
  phase.weight = weight_.with(0, weight_[1] * attr_.groups).with(1, weight_[0] / attr_.groups);
  for (int i = 2; i < x_.rank(); ++i) {
    const auto axis = static_cast<std::size_t>(i - 2);
    const PhaseAxis p = transposed_phase(attr_, axis, weight_[i], out_[i], number[axis]);
    (*first)[axis] = p.first;
    phase.count[axis] = p.count;
    phase.taps[axis] = p.taps;
    phase.tap[axis] = p.tap;
    phase.tap_step[axis] = p.tap_step;
    phase.attr.dilation[axis] = p.dilation;
    phase.attr.pad_low[axis] = p.pad;
    phase.out = phase.out.with(i, p.count);
    phase.weight = phase.weight.with(i, p.taps);
  }
  return phase;
}

bool TransposedPhases::has_kernel(const Phase& phase) const {
  if (phase.is_empty() || phase.out.elements() == 0) return true;
  if (dtype_ == DType::f32) return has_packed_conv(phase.weight, phase.attr);
  return has_conv16(dtype_, dense(nullptr, dtype_, x_), dense(nullptr, dtype_, phase.weight), phase.attr, phase.out);
}

template <class T>
void TransposedPhases::copy_weights(const Phase& phase, const T* weight, T* to) const {
  Spatial size{1, 1, 1};
  for (int i = 2; i < weight_.rank(); ++i) size[static_cast<std::size_t>(i - 2)] = weight_[i];
  const std::int64_t outs = weight_[1], ins = weight_[0] / attr_.groups, window = product(size);
  for (std::int64_t group = 0; group < attr_.groups; ++group)
    for (std::int64_t o = 0; o < outs; ++o)
      for (std::int64_t i = 0; i < ins; ++i) {
        const T* const kernel = weight + ((group * ins + i) * outs + o) * window;
        for (std::int64_t a = 0; a < phase.taps[0]; ++a)
          for (std::int64_t b = 0; b < phase.taps[1]; ++b) {
            const std::int64_t row = (phase.tap[0] + a * phase.tap_step[0]) * size[1] + phase.tap[1] + b * phase.tap_step[1];
            const T* from = kernel + row * size[2] + phase.tap[2];
            for (std::int64_t c = 0; c < phase.taps[2]; ++c, from += phase.tap_step[2]) *to++ = *from;
          }
      }
}

bool TransposedPhases::order_weights(const void* weight, float* ordered) const {
  if (dtype_ == DType::f32 && !is_finite(static_cast<const float*>(weight), weight_.elements())) return false;
  std::vector<float> plain;
  for (const Phase& phase : phases_) {
    if (phase.is_empty()) continue;
    float* const to = ordered + phase.weights;
    if (dtype_ != DType::f32) {
      copy_weights(phase, static_cast<const std::uint16_t*>(weight), reinterpret_cast<std::uint16_t*>(to));
    } else if (is_depthwise(phase.weight, phase.attr)) {
      copy_weights(phase, static_cast<const float*>(weight), to);
    } else {
      plain.resize(static_cast<std::size_t>(phase.weight.elements()));
      copy_weights(phase, static_cast<const float*>(weight), plain.data());
      pack_conv(plain.data(), phase.weight, phase.attr, to);
    }
  }
  return true;
}

// The results of all phases stay in the caches until they are joined; each phase has work for all threads.
std::int64_t TransposedPhases::images_at_once(const ThreadPool& pool) const {
  const std::int64_t most = std::int64_t{1024 * 1024} * pool.threads();
  return phases_.size() == 1 ? images_ : std::clamp<std::int64_t>(most / out_.elements(), 1, images_);
}

std::size_t TransposedPhases::conv_bytes(const ThreadPool& pool, std::int64_t images) const {
  const View x = dense(nullptr, dtype_, x_.with(0, images));
  std::size_t most = 0;
  for (const Phase& phase : phases_) {
    if (phase.is_empty() || phase.out.elements() == 0) continue;
    const Shape out = phase.out.with(0, images);
    most = std::max(most, dtype_ == DType::f32
                              ? packed_conv_scratch_bytes(pool, x, phase.weight, phase.attr, out)
                              : conv16_scratch_bytes(pool, x, dense(nullptr, dtype_, phase.weight), phase.attr, out));
  }
  return (most + 63) / 64 * 64;
}

std::size_t TransposedPhases::scratch_bytes(const ThreadPool& pool) const {
  const std::int64_t images = images_at_once(pool), rest = images_ % images;
  const std::size_t results = phases_.size() == 1 ? 0 : aligned(images * out_.elements());
  return results + std::max(conv_bytes(pool, images), rest > 0 ? conv_bytes(pool, rest) : 0);
}

void TransposedPhases::convolve(ThreadPool& pool, const Phase& phase, const View& x, const float* ordered, float* to,
                                std::span<std::byte> scratch) const {
  const Target out = dense_target(to, DType::f32, phase.out.with(0, x.shape[0]));
  if (phase.is_empty()) return fill(pool, out, 0);
  const float* const weights = ordered + phase.weights;
  if (dtype_ == DType::f32) return packed_conv(pool, x, weights, phase.weight, phase.attr, out, {}, scratch);
  conv16(pool, x, dense(weights, dtype_, phase.weight), phase.attr, out, scratch);
}

void TransposedPhases::run(ThreadPool& pool, const View& x, const float* ordered, const Target& out,
                           std::span<std::byte> scratch) const {
  const std::int64_t chunk = images_at_once(pool);
  const auto* const from = static_cast<const std::byte*>(x.data);
  auto* const to = static_cast<float*>(out.data);
  const std::size_t image_bytes = static_cast<std::size_t>(x_.elements()) * element_bytes(dtype_);
  if (phases_.size() == 1) return convolve(pool, phases_.front(), x, ordered, to, scratch);
  float* const results = reinterpret_cast<float*>(scratch.data());
  for (std::int64_t first = 0; first < images_; first += chunk) {
    const std::int64_t images = std::min(chunk, images_ - first);
    const View part = dense(from + static_cast<std::size_t>(first) * image_bytes, dtype_, x_.with(0, images));
    for (const Phase& phase : phases_)
      if (phase.out.elements() > 0)
        convolve(pool, phase, part, ordered, results + phase.results * images, scratch.subspan(aligned(chunk * out_.elements())));
    join(pool, results, images, to + first * out_.elements());
  }
}

void TransposedPhases::join(ThreadPool& pool, const float* results, std::int64_t images, float* out) const {
  const std::int64_t channels = out_[1], plane = product(extents_);
  // The last axis there is: the missing ones have extent 1 and one phase.
  const auto last = static_cast<std::size_t>(out_.rank() - 3);
  const std::int64_t length = extents_[last], step = steps_[last], rows = plane / length;
  for_ranges(pool, images * channels, plane, [&](std::int64_t begin, std::int64_t end, int) {
    const float* from[kMostPhases];
    for (std::int64_t i = begin; i < end; ++i)
      for (std::int64_t row = 0; row < rows; ++row) {
        Spatial place{};  // of the row's first element
        for (std::size_t axis = last, rest = static_cast<std::size_t>(row); axis-- > 0;
             rest /= static_cast<std::size_t>(extents_[axis]))
          place[axis] = static_cast<std::int64_t>(rest) % extents_[axis];
        for (std::int64_t p = 0; p < step; ++p) {
          Spatial first{place[0] % steps_[0], place[1] % steps_[1], place[2] % steps_[2]};
          first[last] = p;
          const Phase& phase = phases_[static_cast<std::size_t>(number_of(first, steps_))];
          std::int64_t line = i;
          for (std::size_t axis = 0; axis < last; ++axis) line = line * phase.count[axis] + place[axis] / steps_[axis];
          from[p] = results + phase.results * images + line * phase.count[last];
        }
        float* const to = out + (i * rows + row) * length;
        if (step == 1) {
          std::memcpy(to, from[0], static_cast<std::size_t>(length) * sizeof(float));
        } else if (step == 2) {
          interleave(from[0], from[1], length / 2, to);
          if (length % 2 != 0) to[length - 1] = from[0][length / 2];
        } else {
          for (std::int64_t p = 0; p < step; ++p)
            for (std::int64_t j = p, k = 0; j < length; j += step, ++k) to[j] = from[p][k];
        }
      }
  });
}

}  // namespace tenon::cpu
