// Reductions over contiguous elements and over columns. Compiled once per instruction set (kernels.cmake).
//
// Float reductions give every level the same lanes to work with, however many vectors those are: element i always belongs to lane
// i mod 64 (f32) or i mod 32 (f64), and the lanes are combined in one order.
#include "backends/cpu/kernels/kernels.h"
#include "backends/cpu/kernels/lanes.h"
#include "backends/cpu/kernels/level.h"
#include "backends/cpu/kernels/math_f32.h"
#include "backends/cpu/kernels/partial.h"
#include "ops/elementwise/elementwise.h"

namespace tenon::cpu {
namespace {

template <class V>
TENON_INLINE V load(const typename V::Type* p) {
  V x;
  __builtin_memcpy(&x.v, p, sizeof x.v);
  return x;
}

// --- Floats ---
inline constexpr int kBlockBytes = 256;
inline constexpr int kVectors = kBlockBytes / kVectorBytes;
template <class T>
inline constexpr int kBlock = kBlockBytes / static_cast<int>(sizeof(T));
// Sums of up to this many elements are added in the elements' own type before they go to double.
inline constexpr std::int64_t kChunk = 1024;

TENON_INLINE double max(double x, double y) { return x > y || x != x ? x : y; }
TENON_INLINE double min(double x, double y) { return x < y || x != x ? x : y; }

struct Sum {
  static constexpr double identity = -0.0;  // -0 + x is x, also for -0
  template <class V>
  TENON_INLINE static V combine(V x, V y) {
    return x + y;
  }
};
struct Product {
  static constexpr double identity = 1;
  template <class V>
  TENON_INLINE static V combine(V x, V y) {
    return x * y;
  }
};
struct Max {
  static constexpr double identity = -std::numeric_limits<double>::infinity();
  template <class V>
  TENON_INLINE static V combine(V x, V y) {
    return max(x, y);
  }
};
// Of numbers without a sign: as integers, of which NaN is the largest.
struct MaxOfMagnitudes {
  static constexpr double identity = Max::identity;
  TENON_INLINE static double combine(double x, double y) { return max(x, y); }
  template <class T>
  TENON_INLINE static Lanes<T> combine(Lanes<T> x, Lanes<T> y) {
    using Signed = typename Lanes<T>::Signed;
    const auto a = (Signed)x.v, b = (Signed)y.v;
    return Lanes<T>((typename Lanes<T>::Vector)(a > b ? a : b));
  }
};
struct Min {
  static constexpr double identity = std::numeric_limits<double>::infinity();
  template <class V>
  TENON_INLINE static V combine(V x, V y) {
    return min(x, y);
  }
};

// A block of 256 bytes combined lane by lane to 64 bytes, as doubles: 16 of f32, 8 of f64.
template <class Op>
TENON_INLINE void fold(const F32 (&lanes)[kVectors], double* out) {
  F32 part[kVectors];
  for (int k = 0; k < kVectors; ++k) part[k] = lanes[k];
  for (int width = kVectors / 2; width * kVectorBytes >= 64; width /= 2)
    for (int k = 0; k < width; ++k) part[k] = Op::combine(part[k], part[k + width]);
  for (int k = 0; k < 64 / kVectorBytes; ++k) {
    const Wide low = widen(low_half(part[k].v)), high = widen(high_half(part[k].v));
    __builtin_memcpy(out + k * F32::kCount, &low.v, sizeof low.v);
    __builtin_memcpy(out + k * F32::kCount + Wide::kCount, &high.v, sizeof high.v);
  }
}
template <class Op>
TENON_INLINE void fold(const Wide (&lanes)[kVectors], double* out) {
  Wide part[kVectors];
  for (int k = 0; k < kVectors; ++k) part[k] = lanes[k];
  for (int width = kVectors / 2; width * kVectorBytes >= 64; width /= 2)
    for (int k = 0; k < width; ++k) part[k] = Op::combine(part[k], part[k + width]);
  for (int k = 0; k < 64 / kVectorBytes; ++k) __builtin_memcpy(out + k * Wide::kCount, &part[k].v, sizeof part[k].v);
}

// A page: how far ahead kernels for memory beyond the caches prefetch.
inline constexpr std::int64_t kAheadBytes = 4096;

// |n| elements, fewer than the vector has; the others are |others|.
template <class T>
TENON_INLINE Lanes<T> load_some(const T* p, std::int64_t n, T others) {
  return Lanes<T>(load_first(p, n * static_cast<std::int64_t>(sizeof(T)), Lanes<T>(others).v));
}
template <class T>
TENON_INLINE Lanes<T> first_lanes(Lanes<T> x, std::int64_t n, T others) {
  return Lanes<T>(load_first(&x.v, n * static_cast<std::int64_t>(sizeof(T)), Lanes<T>(others).v));
}
TENON_INLINE void ask_for(const void* p) {
  for (int line = 0; line < kBlockBytes; line += 64) __builtin_prefetch(static_cast<const char*>(p) + line);
}

// What is reduced. lanes(i) are the elements from i on, some(i, n, others) the last |n|; ask_ahead(i) is called once per block.
template <class T, bool is_far>
struct ElementSource {
  const T* p;

  TENON_INLINE void ask_ahead(std::int64_t i) const {
    if constexpr (is_far) ask_for(reinterpret_cast<const char*>(p + i) + kAheadBytes);
  }
  TENON_INLINE Lanes<T> lanes(std::int64_t i) const { return load<Lanes<T>>(p + i); }
  TENON_INLINE Lanes<T> some(std::int64_t i, std::int64_t n, T others) const { return load_some(p + i, n, others); }
  TENON_INLINE ElementSource from(std::int64_t i) const { return {p + i}; }
};
// bf16 as f32.
struct Bf16Source {
  const std::uint16_t* p;
  typedef std::uint16_t Narrow __attribute__((vector_size(kVectorBytes / 2)));

  TENON_INLINE static F32 widened(Narrow x) { return F32((FloatV)(__builtin_convertvector(x, Uint32V) << 16)); }
  TENON_INLINE void ask_ahead(std::int64_t) const {}
  TENON_INLINE F32 lanes(std::int64_t i) const {
    Narrow x;
    __builtin_memcpy(&x, p + i, sizeof x);
    return widened(x);
  }
  TENON_INLINE F32 some(std::int64_t i, std::int64_t n, float others) const {
    Narrow x{};
    __builtin_memcpy(&x, p + i, static_cast<std::size_t>(2 * n));
    return first_lanes(widened(x), n, others);
  }
  TENON_INLINE Bf16Source from(std::int64_t i) const { return {p + i}; }
};
// The magnitudes of another source's elements.
template <class Source>
struct MagnitudeSource {
  Source x;

  TENON_INLINE void ask_ahead(std::int64_t) const {}
  TENON_INLINE auto lanes(std::int64_t i) const { return abs(x.lanes(i)); }
  template <class T>
  TENON_INLINE Lanes<T> some(std::int64_t i, std::int64_t n, T others) const {
    return first_lanes(abs(x.some(i, n, T{0})), n, others);
  }
  TENON_INLINE MagnitudeSource from(std::int64_t i) const { return {x.from(i)}; }
};
template <class T, bool is_far>
struct ProductSource {
  const T *a, *b;

  TENON_INLINE void ask_ahead(std::int64_t i) const {
    if constexpr (is_far) {
      ask_for(reinterpret_cast<const char*>(a + i) + kAheadBytes);
      ask_for(reinterpret_cast<const char*>(b + i) + kAheadBytes);
    }
  }
  TENON_INLINE Lanes<T> lanes(std::int64_t i) const { return load<Lanes<T>>(a + i) * load<Lanes<T>>(b + i); }
  // 1 and the identity: where a sum starts at -0, so must what is added to it.
  TENON_INLINE Lanes<T> some(std::int64_t i, std::int64_t n, T others) const {
    return load_some(a + i, n, T{1}) * load_some(b + i, n, others);
  }
  TENON_INLINE ProductSource from(std::int64_t i) const { return {a + i, b + i}; }
};
struct Distance {
  template <class T>
  TENON_INLINE static Lanes<T> of(Lanes<T> difference) {
    return abs(difference);
  }
};
struct SquaredDistance {
  template <class T>
  TENON_INLINE static Lanes<T> of(Lanes<T> difference) {
    return difference * difference;
  }
};
template <class Measure, class T>
struct DifferenceSource {
  const T *a, *b;

  TENON_INLINE void ask_ahead(std::int64_t) const {}
  TENON_INLINE Lanes<T> lanes(std::int64_t i) const { return Measure::of(load<Lanes<T>>(a + i) - load<Lanes<T>>(b + i)); }
  TENON_INLINE Lanes<T> some(std::int64_t i, std::int64_t n, T others) const {
    return first_lanes(Measure::of(load_some(a + i, n, T{0}) - load_some(b + i, n, T{0})), n, others);
  }
  TENON_INLINE DifferenceSource from(std::int64_t i) const { return {a + i, b + i}; }
};
// (x - shift)^2, prefetching what comes next.
template <class T>
struct SquaredDeviationSource {
  const T* p;
  Lanes<T> shift;
  const T *ahead, *ahead_too;

  TENON_INLINE void ask_ahead(std::int64_t i) const {
    ask_for(ahead + i);
    ask_for(ahead_too + i);
  }
  TENON_INLINE Lanes<T> lanes(std::int64_t i) const {
    const Lanes<T> deviation = load<Lanes<T>>(p + i) - shift;
    return deviation * deviation;
  }
  TENON_INLINE Lanes<T> some(std::int64_t i, std::int64_t n, T others) const {
    const Lanes<T> deviation = load_some(p + i, n, T{0}) - shift;
    return first_lanes(deviation * deviation, n, others);
  }
  TENON_INLINE SquaredDeviationSource from(std::int64_t i) const { return {p + i, shift, ahead + i, ahead_too + i}; }
};
// (x factor)^2 of another source's elements, likewise; or (x / divisor)^2. T: what lies in memory.
template <bool divides, class Source, class T>
struct SquaredQuotientSource {
  Source x;
  F32 operand;
  const T *ahead, *ahead_too;

  TENON_INLINE void ask_ahead(std::int64_t i) const {
    ask_for(ahead + i);
    ask_for(ahead_too + i);
  }
  TENON_INLINE F32 of(F32 value) const {
    const F32 quotient = divides ? value / operand : value * operand;
    return quotient * quotient;
  }
  TENON_INLINE F32 lanes(std::int64_t i) const { return of(x.lanes(i)); }
  TENON_INLINE F32 some(std::int64_t i, std::int64_t n, float others) const {
    return first_lanes(of(x.some(i, n, 0.0f)), n, others);
  }
  TENON_INLINE SquaredQuotientSource from(std::int64_t i) const { return {x.from(i), operand, ahead + i, ahead_too + i}; }
};
// What an op makes of two arrays, which is stored on the way.
template <class Op, class T>
struct StoredSource {
  const T *a, *b;
  T* out;

  TENON_INLINE void ask_ahead(std::int64_t) const {}
  TENON_INLINE Lanes<T> lanes(std::int64_t i) const {
    const Lanes<T> x = Op::apply(load<Lanes<T>>(a + i), load<Lanes<T>>(b + i));
    __builtin_memcpy(out + i, &x.v, sizeof x.v);
    return x;
  }
  TENON_INLINE Lanes<T> some(std::int64_t i, std::int64_t n, T others) const {
    const Lanes<T> x = Op::apply(load_some(a + i, n, T{1}), load_some(b + i, n, T{1}));
    store_first(out + i, n * static_cast<std::int64_t>(sizeof(T)), x.v);
    return first_lanes(x, n, others);
  }
  TENON_INLINE StoredSource from(std::int64_t i) const { return {a + i, b + i, out + i}; }
};

template <class Op, class T, class Source>
TENON_INLINE Accumulator reduce_source(Source source, std::int64_t n) {
  constexpr int width = 64 / static_cast<int>(sizeof(T));
  double total[width], part[width];
  for (double& t : total) t = Op::identity;
  while (n > 0) {
    const std::int64_t chunk = n < kChunk ? n : kChunk;
    Lanes<T> lanes[kVectors];
    for (auto& lane : lanes) lane = Lanes<T>(static_cast<T>(Op::identity));
    std::int64_t i = 0;
    for (; i + kBlock<T> <= chunk; i += kBlock<T>) {
      source.ask_ahead(i);
      for (int k = 0; k < kVectors; ++k) lanes[k] = Op::combine(lanes[k], source.lanes(i + k * Lanes<T>::kCount));
    }
    // A lane that has no element is left as it is.
    for (int k = 0; k < kVectors && i < chunk; ++k, i += Lanes<T>::kCount)
      lanes[k] = Op::combine(
          lanes[k], i + Lanes<T>::kCount <= chunk ? source.lanes(i) : source.some(i, chunk - i, static_cast<T>(Op::identity)));
    fold<Op>(lanes, part);
    for (int j = 0; j < width; ++j) total[j] = Op::combine(total[j], part[j]);
    source = source.from(chunk);
    n -= chunk;
  }
  for (int w = width / 2; w > 0; w /= 2)
    for (int j = 0; j < w; ++j) total[j] = Op::combine(total[j], total[j + w]);
  return {.f = total[0]};
}
template <class Op, class T, bool is_far = false>
Accumulator reduce_floats(const void* in, std::int64_t n) {
  return reduce_source<Op, T>(ElementSource<T, is_far>{static_cast<const T*>(in)}, n);
}
template <class T, bool is_far>
Accumulator sum_of_products(const void* a, const void* b, std::int64_t n) {
  if (n == 0) return {.f = 0};
  return reduce_source<Sum, T>(ProductSource<T, is_far>{static_cast<const T*>(a), static_cast<const T*>(b)}, n);
}

template <class Reduce, class Measure, class T>
Accumulator reduce_differences(const void* a, const void* b, std::int64_t n) {
  if (n == 0) return {.f = std::is_same_v<Reduce, Sum> ? 0 : Reduce::identity};
  return reduce_source<Reduce, T>(DifferenceSource<Measure, T>{static_cast<const T*>(a), static_cast<const T*>(b)}, n);
}
template <class T>
Accumulator sum_of_squared_deviations(const void* in, const void* shift, std::int64_t n, Ahead ahead) {
  if (n == 0) return {.f = 0};
  return reduce_source<Sum, T>(SquaredDeviationSource<T>{static_cast<const T*>(in), Lanes<T>(*static_cast<const T*>(shift)),
                                                         static_cast<const T*>(ahead.first), static_cast<const T*>(ahead.second)},
                               n);
}
template <class Source, class T>
Accumulator sum_of_squared_quotients(const void* in, const void* divisor, std::int64_t n, Ahead ahead) {
  if (n == 0) return {.f = 0};
  const Source x{static_cast<const T*>(in)};
  const float d = *static_cast<const float*>(divisor);
  const auto *first = static_cast<const T*>(ahead.first), *second = static_cast<const T*>(ahead.second);
  // The reciprocal of an ordinary number is a normal number; of 0, a subnormal or an infinity it is not.
  if (__builtin_fabsf(d) > 0x1p-100f && __builtin_fabsf(d) < 0x1p100f)
    return reduce_source<Sum, float>(SquaredQuotientSource<false, Source, T>{x, F32(1 / d), first, second}, n);
  return reduce_source<Sum, float>(SquaredQuotientSource<true, Source, T>{x, F32(d), first, second}, n);
}
template <class Op>
Accumulator reduce_bf16(const void* in, std::int64_t n) {
  if (n == 0 && std::is_same_v<Op, Sum>) return {.f = 0};
  return reduce_source<Op, float>(Bf16Source{static_cast<const std::uint16_t*>(in)}, n);
}
template <class T, class Source, class Stored = T>
Accumulator largest_magnitude(const void* in, std::int64_t n) {
  return reduce_source<MaxOfMagnitudes, T>(MagnitudeSource<Source>{{static_cast<const Stored*>(in)}}, n);
}
template <class Source, class T>
void largest_and_squares(const void* in, std::int64_t n, Accumulator* largest, Accumulator* squares) {
  constexpr int width = 16;
  Source source{static_cast<const T*>(in)};
  double top[width], total[width], part[width];
  for (double& t : top) t = MaxOfMagnitudes::identity;
  for (double& t : total) t = 0;
  while (n > 0) {
    const std::int64_t chunk = n < kChunk ? n : kChunk;
    F32 tops[kVectors], sums[kVectors];
    for (F32& lane : tops) lane = F32(0.0f);
    for (F32& lane : sums) lane = F32(0.0f);
    const auto take = [&](int k, F32 x) {
      tops[k] = MaxOfMagnitudes::combine(tops[k], abs(x));
      sums[k] = sums[k] + x * x;
    };
    std::int64_t i = 0;
    for (; i + kBlock<float> <= chunk; i += kBlock<float>)
      for (int k = 0; k < kVectors; ++k) take(k, source.lanes(i + k * F32::kCount));
    for (int k = 0; k < kVectors && i < chunk; ++k, i += F32::kCount)
      take(k, i + F32::kCount <= chunk ? source.lanes(i) : source.some(i, chunk - i, 0.0f));
    fold<MaxOfMagnitudes>(tops, part);
    for (int j = 0; j < width; ++j) top[j] = MaxOfMagnitudes::combine(top[j], part[j]);
    fold<Sum>(sums, part);
    for (int j = 0; j < width; ++j) total[j] += part[j];
    source = source.from(chunk);
    n -= chunk;
  }
  for (int w = width / 2; w > 0; w /= 2)
    for (int j = 0; j < w; ++j) {
      top[j] = MaxOfMagnitudes::combine(top[j], top[j + w]);
      total[j] += total[j + w];
    }
  largest->f = top[0];
  squares->f = total[0];
}
template <class Reduce, class Op, class T>
Accumulator store_and_reduce(const void* a, const void* b, void* out, std::int64_t n) {
  if (n == 0) return {.f = std::is_same_v<Reduce, Sum> ? 0 : Reduce::identity};
  return reduce_source<Reduce, T>(StoredSource<Op, T>{static_cast<const T*>(a), static_cast<const T*>(b), static_cast<T*>(out)},
                                  n);
}

// exp(x - shift), stored if |keep|. The lanes and their order are those of a sum by reduce_floats, so that fusing changes
// nothing.
template <bool keep>
struct ExpSource {
  const float* p;
  F32 minus;
  float* out;
  const float *ahead, *ahead_too;

  TENON_INLINE void ask_ahead(std::int64_t i) const {
    ask_for(ahead + i);
    ask_for(ahead_too + i);
  }
  TENON_INLINE F32 lanes(std::int64_t i) const {
    const F32 e = exp(load<F32>(p + i) + minus);
    if constexpr (keep) __builtin_memcpy(out + i, &e.v, sizeof e.v);
    return e;
  }
  TENON_INLINE F32 some(std::int64_t i, std::int64_t n, float) const {
    // The others give -inf, whose exponential adds nothing.
    const F32 e = exp(load_some(p + i, n, -std::numeric_limits<float>::infinity()) + minus);
    if constexpr (keep) store_first(out + i, n * static_cast<std::int64_t>(sizeof(float)), e.v);
    return e;
  }
  TENON_INLINE ExpSource from(std::int64_t i) const { return {p + i, minus, keep ? out + i : nullptr, ahead + i, ahead_too + i}; }
};
template <bool keep>
Accumulator exp_sum(const float* in, float shift, float* out, std::int64_t n, Ahead ahead) {
  return reduce_source<Sum, float>(
      ExpSource<keep>{in, F32(-shift), out, static_cast<const float*>(ahead.first), static_cast<const float*>(ahead.second)}, n);
}
template <class T, bool is_far = false>
Accumulator sum_of_floats(const void* in, std::int64_t n) {
  return n == 0 ? Accumulator{.f = 0} : reduce_floats<Sum, T, is_far>(in, n);
}
// In double from the start.
Accumulator product_of_f32(const void* in, std::int64_t n) {
  const auto* p = static_cast<const float*>(in);
  constexpr int count = 64 / Wide::kCount;
  Wide lanes[count];
  for (Wide& x : lanes) x = Wide(1.0);
  std::int64_t i = 0;
  for (; i + 64 <= n; i += 64)
    for (int k = 0; k < count; ++k) {
      HalfFloatV x;
      __builtin_memcpy(&x, p + i + k * Wide::kCount, sizeof x);
      lanes[k] = lanes[k] * widen(x);
    }
  for (int k = 0; k < count && i < n; ++k, i += Wide::kCount) {
    HalfFloatV x;
    if (i + Wide::kCount <= n)
      __builtin_memcpy(&x, p + i, sizeof x);
    else
      x = load_first(p + i, (n - i) * static_cast<std::int64_t>(sizeof(float)), 1.0f - HalfFloatV{});
    lanes[k] = lanes[k] * widen(x);
  }
  for (int w = count / 2; w > 0; w /= 2)
    for (int k = 0; k < w; ++k) lanes[k] = lanes[k] * lanes[k + w];
  double all[Wide::kCount];
  __builtin_memcpy(all, lanes, sizeof all);
  for (int w = Wide::kCount / 2; w > 0; w /= 2)
    for (int j = 0; j < w; ++j) all[j] *= all[j + w];
  return {.f = all[0]};
}

template <class Op>
void reduce_short_rows(const float* in, std::int64_t rows, std::int64_t cols, Accumulator* out) {
  // Element by element of all rows, four rows at a time: no result waits for the one before it.
  std::int64_t i = 0;
  for (; i + 4 <= rows; i += 4, in += 4 * cols) {
    double results[4] = {Op::identity, Op::identity, Op::identity, Op::identity};
    for (std::int64_t j = 0; j < cols; ++j)
      for (int r = 0; r < 4; ++r) results[r] = Op::combine(results[r], static_cast<double>(in[r * cols + j]));
    for (int r = 0; r < 4; ++r) out[i + r].f = results[r];
  }
  for (; i < rows; ++i, in += cols) {
    double result = Op::identity;
    for (std::int64_t j = 0; j < cols; ++j) result = Op::combine(result, static_cast<double>(in[j]));
    out[i].f = result;
  }
}

// --- Any type: what a reduction does to an accumulator ---
template <class T>
using AccumulatorOf =
    std::conditional_t<std::is_floating_point_v<T>, double, std::conditional_t<std::is_signed_v<T>, std::int64_t, std::uint64_t>>;
template <class A>
TENON_INLINE A& member(Accumulator& a) {
  if constexpr (std::is_same_v<A, double>)
    return a.f;
  else if constexpr (std::is_same_v<A, std::int64_t>)
    return a.i;
  else
    return a.u;
}

template <ReduceKind kind, class A>
TENON_INLINE A combine(A x, A y) {
  if constexpr (kind == ReduceKind::sum || kind == ReduceKind::prod) {
    if constexpr (std::is_same_v<A, double>)
      return kind == ReduceKind::sum ? x + y : x * y;
    else {
      const auto a = static_cast<std::uint64_t>(x), b = static_cast<std::uint64_t>(y);  // wraps
      return static_cast<A>(kind == ReduceKind::sum ? a + b : a * b);
    }
  } else if constexpr (kind == ReduceKind::max) {
    return x > y || x != x ? x : y;
  } else if constexpr (kind == ReduceKind::min) {
    return x < y || x != x ? x : y;
  } else if constexpr (kind == ReduceKind::any) {
    return static_cast<A>((x != 0) | (y != 0));
  } else {
    return static_cast<A>((x != 0) & (y != 0));
  }
}
template <ReduceKind kind, class T>
constexpr AccumulatorOf<T> identity() {
  using A = AccumulatorOf<T>;
  if constexpr (kind == ReduceKind::sum || kind == ReduceKind::any) return 0;
  if constexpr (kind == ReduceKind::prod || kind == ReduceKind::all) return 1;
  if constexpr (std::is_same_v<A, double>)
    return kind == ReduceKind::max ? Max::identity : Min::identity;
  else
    return static_cast<A>(kind == ReduceKind::max ? std::numeric_limits<T>::min() : std::numeric_limits<T>::max());
}

template <ReduceKind kind, class T>
Accumulator reduce(const void* in, std::int64_t n) {
  using A = AccumulatorOf<T>;
  const auto* p = static_cast<const T*>(in);
  A total = identity<kind, T>();
  if constexpr (kind == ReduceKind::max || kind == ReduceKind::min) {
    T extreme = static_cast<T>(total);
    for (std::int64_t i = 0; i < n; ++i)
      extreme = kind == ReduceKind::max ? (p[i] > extreme ? p[i] : extreme) : (p[i] < extreme ? p[i] : extreme);
    total = static_cast<A>(extreme);
  } else if constexpr (kind == ReduceKind::any || kind == ReduceKind::all) {
    bool result = kind == ReduceKind::all;
    for (std::int64_t i = 0; i < n; ++i) result = kind == ReduceKind::any ? result | (p[i] != 0) : result & (p[i] != 0);
    total = static_cast<A>(result);
  } else {
    for (std::int64_t i = 0; i < n; ++i) total = combine<kind, A>(total, static_cast<A>(p[i]));
  }
  Accumulator result{};
  member<A>(result) = total;
  return result;
}

// --- Columns ---
template <ReduceKind kind, class T>
void reduce_columns(const void* in, std::int64_t rows, std::int64_t row_stride, std::int64_t n, Accumulator* acc) {
  using A = AccumulatorOf<T>;
  constexpr std::int64_t tile = 512;  // of accumulators: they stay in the L1 cache over all rows
  for (std::int64_t first = 0; first < n; first += tile) {
    const std::int64_t columns = n - first < tile ? n - first : tile;
    Accumulator* a = acc + first;
    for (std::int64_t i = 0; i < rows; ++i) {
      const T* row = static_cast<const T*>(in) + i * row_stride + first;
      TENON_INDEPENDENT
      for (std::int64_t j = 0; j < columns; ++j) member<A>(a[j]) = combine<kind, A>(member<A>(a[j]), static_cast<A>(row[j]));
    }
  }
}

// Combines |Vectors| vectors of columns of some rows in f32, and the result with |acc|: the first |columns| of one vector if not
// all.
template <class Op, class Source, int Vectors, bool is_whole, class T>
TENON_INLINE void combine_columns(const T* in, std::int64_t rows, std::int64_t row_stride, std::int64_t columns,
                                  Accumulator* acc) {
  F32 lanes[Vectors];
  for (auto& lane : lanes) lane = F32(static_cast<float>(Op::identity));
  for (std::int64_t r = 0; r < rows; ++r) {
    const Source row{in + r * row_stride};
    for (int k = 0; k < Vectors; ++k)
      lanes[k] = Op::combine(lanes[k], is_whole ? row.lanes(k * F32::kCount) : row.some(0, columns, 0));
  }
  float part[Vectors * F32::kCount];
  for (int k = 0; k < Vectors; ++k) __builtin_memcpy(part + k * F32::kCount, &lanes[k].v, sizeof lanes[k].v);
  const std::int64_t count = is_whole ? Vectors * F32::kCount : columns;
  for (std::int64_t k = 0; k < count; ++k) acc[k].f = Op::combine(acc[k].f, static_cast<double>(part[k]));
}

// Sixteen rows at a time are combined in f32: whole rows of sixteen, so that memory is read as it lies. T: float, or the bits of
// bf16.
template <class Op, class Source, class T>
void reduce_columns_in_f32(const void* in, std::int64_t rows, std::int64_t row_stride, std::int64_t n, Accumulator* acc) {
  constexpr std::int64_t group = 16, width = F32::kCount;
  for (std::int64_t i = 0; i < rows; i += group) {
    const T* first = static_cast<const T*>(in) + i * row_stride;
    const std::int64_t count = i + group < rows ? group : rows - i;
    std::int64_t j = 0;
    for (; j + kVectors * width <= n; j += kVectors * width)
      combine_columns<Op, Source, kVectors, true>(first + j, count, row_stride, 0, acc + j);
    for (; j + width <= n; j += width) combine_columns<Op, Source, 1, true>(first + j, count, row_stride, 0, acc + j);
    if (j < n) combine_columns<Op, Source, 1, false>(first + j, count, row_stride, n - j, acc + j);
  }
}

template <ReduceKind kind, class T>
void add_kind(Kernels& table, DType dtype) {
  const int k = static_cast<int>(kind), t = static_cast<int>(dtype);
  table.partial_reduce[k][t] = reduce<kind, T>;
  table.column_reduce[k][t] = reduce_columns<kind, T>;
}
template <class T>
void add_type(Kernels& table, DType dtype) {
  add_kind<ReduceKind::sum, T>(table, dtype);
  add_kind<ReduceKind::prod, T>(table, dtype);
  add_kind<ReduceKind::max, T>(table, dtype);
  add_kind<ReduceKind::min, T>(table, dtype);
  add_kind<ReduceKind::any, T>(table, dtype);
  add_kind<ReduceKind::all, T>(table, dtype);
}
template <class T>
void add_floats(Kernels& table, DType dtype) {
  add_type<T>(table, dtype);
  const int t = static_cast<int>(dtype);
  table.partial_reduce[static_cast<int>(ReduceKind::sum)][t] = sum_of_floats<T>;
  table.partial_reduce[static_cast<int>(ReduceKind::max)][t] = reduce_floats<Max, T>;
  table.partial_reduce[static_cast<int>(ReduceKind::min)][t] = reduce_floats<Min, T>;
  table.product_sum[t] = sum_of_products<T, false>;
  table.far_product_sum[t] = sum_of_products<T, true>;
  table.far_reduce[static_cast<int>(ReduceKind::sum)][t] = sum_of_floats<T, true>;
  table.far_reduce[static_cast<int>(ReduceKind::max)][t] = reduce_floats<Max, T, true>;
  table.far_reduce[static_cast<int>(ReduceKind::min)][t] = reduce_floats<Min, T, true>;
  table.difference_reduce[t] = {reduce_differences<Sum, Distance, T>, reduce_differences<Max, Distance, T>,
                                reduce_differences<Sum, SquaredDistance, T>};
  table.largest_magnitude[t] = largest_magnitude<T, ElementSource<T, false>>;
  table.sum_of_squared_deviations[t] = sum_of_squared_deviations<T>;
#define TENON_X(Name)                                                                                          \
  table.store_and_sum[static_cast<int>(ElementwiseOp::Name)][t] = store_and_reduce<Sum, elementwise::Name, T>; \
  table.store_and_max[static_cast<int>(ElementwiseOp::Name)][t] = store_and_reduce<Max, elementwise::Name, T>;
  TENON_X(Add)
  TENON_X(Sub)
  TENON_X(Mul)
#undef TENON_X
}

}  // namespace

void level::add_reduce_kernels(Kernels& table) {
  table.exp_sum = exp_sum<true>;
  table.exp_sum_alone = exp_sum<false>;
  add_type<std::uint8_t>(table, DType::boolean);
  add_type<std::uint8_t>(table, DType::u8);
  add_type<std::uint16_t>(table, DType::u16);
  add_type<std::uint32_t>(table, DType::u32);
  add_type<std::uint64_t>(table, DType::u64);
  add_type<std::int8_t>(table, DType::i8);
  add_type<std::int16_t>(table, DType::i16);
  add_type<std::int32_t>(table, DType::i32);
  add_type<std::int64_t>(table, DType::i64);
  add_floats<float>(table, DType::f32);
  add_floats<double>(table, DType::f64);
  table.partial_reduce[static_cast<int>(ReduceKind::prod)][static_cast<int>(DType::f32)] = product_of_f32;
  table.partial_reduce[static_cast<int>(ReduceKind::prod)][static_cast<int>(DType::f64)] = reduce_floats<Product, double>;
#define TENON_X(kind, Op)                                                      \
  table.column_reduce[static_cast<int>(kind)][static_cast<int>(DType::f32)] =  \
      reduce_columns_in_f32<Op, ElementSource<float, false>, float>;           \
  table.column_reduce[static_cast<int>(kind)][static_cast<int>(DType::bf16)] = \
      reduce_columns_in_f32<Op, Bf16Source, std::uint16_t>;                    \
  table.partial_reduce[static_cast<int>(kind)][static_cast<int>(DType::bf16)] = reduce_bf16<Op>;
  TENON_X(ReduceKind::sum, Sum)
  TENON_X(ReduceKind::max, Max)
  TENON_X(ReduceKind::min, Min)
#undef TENON_X
  table.short_rows[static_cast<int>(ReduceKind::sum)] = reduce_short_rows<Sum>;
  table.short_rows[static_cast<int>(ReduceKind::prod)] = reduce_short_rows<Product>;
  table.short_rows[static_cast<int>(ReduceKind::max)] = reduce_short_rows<Max>;
  table.short_rows[static_cast<int>(ReduceKind::min)] = reduce_short_rows<Min>;
  table.largest_magnitude[static_cast<int>(DType::bf16)] = largest_magnitude<float, Bf16Source, std::uint16_t>;
  table.largest_and_squares[static_cast<int>(DType::f32)] = largest_and_squares<ElementSource<float, false>, float>;
  table.largest_and_squares[static_cast<int>(DType::bf16)] = largest_and_squares<Bf16Source, std::uint16_t>;
  table.sum_of_squared_quotients[static_cast<int>(DType::f32)] = sum_of_squared_quotients<ElementSource<float, false>, float>;
  table.sum_of_squared_quotients[static_cast<int>(DType::bf16)] = sum_of_squared_quotients<Bf16Source, std::uint16_t>;
}

}  // namespace tenon::cpu
