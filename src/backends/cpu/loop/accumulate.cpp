#include "backends/cpu/loop/accumulate.h"

#include <limits>

namespace tenon::cpu {
namespace {

template <class T>
inline T combine_integers(ReduceKind kind, T a, T b) {
  using U = std::uint64_t;
  switch (kind) {
    case ReduceKind::sum: return static_cast<T>(static_cast<U>(a) + static_cast<U>(b));
    case ReduceKind::prod: return static_cast<T>(static_cast<U>(a) * static_cast<U>(b));
    case ReduceKind::max: return a > b ? a : b;
    case ReduceKind::min: return a < b ? a : b;
    case ReduceKind::any: return static_cast<T>(a != 0 || b != 0);
    case ReduceKind::all: return static_cast<T>(a != 0 && b != 0);
  }
  return a;
}

inline double combine_floats(ReduceKind kind, double a, double b) {
  switch (kind) {
    case ReduceKind::sum: return a + b;
    case ReduceKind::prod: return a * b;
    case ReduceKind::max: return std::isnan(a) || a > b ? a : b;
    case ReduceKind::min: return std::isnan(a) || a < b ? a : b;
    case ReduceKind::any: return a != 0 || b != 0;
    case ReduceKind::all: return a != 0 && b != 0;
  }
  return a;
}

// a[i] = combine(a[i], b[i]), the kind and the class known to the compiler.
template <ReduceKind kind>
void combine_rows(AccumulatorClass cls, Accumulator* a, const Accumulator* b, std::int64_t n) {
  switch (cls) {
    case AccumulatorClass::floating:
      for (std::int64_t i = 0; i < n; ++i) a[i].f = combine_floats(kind, a[i].f, b[i].f);
      break;
    case AccumulatorClass::signed_integer:
      for (std::int64_t i = 0; i < n; ++i) a[i].i = combine_integers(kind, a[i].i, b[i].i);
      break;
    case AccumulatorClass::unsigned_integer:
      for (std::int64_t i = 0; i < n; ++i) a[i].u = combine_integers(kind, a[i].u, b[i].u);
      break;
  }
}
void combine_rows(ReduceKind kind, AccumulatorClass cls, Accumulator* a, const Accumulator* b, std::int64_t n) {
  switch (kind) {
    case ReduceKind::sum: return combine_rows<ReduceKind::sum>(cls, a, b, n);
    case ReduceKind::prod: return combine_rows<ReduceKind::prod>(cls, a, b, n);
    case ReduceKind::max: return combine_rows<ReduceKind::max>(cls, a, b, n);
    case ReduceKind::min: return combine_rows<ReduceKind::min>(cls, a, b, n);
    case ReduceKind::any: return combine_rows<ReduceKind::any>(cls, a, b, n);
    case ReduceKind::all: return combine_rows<ReduceKind::all>(cls, a, b, n);
  }
}

}  // namespace

Accumulator identity(ReduceKind kind, DType dtype) {
  const AccumulatorClass cls = accumulator_class(dtype);
  Accumulator acc;
  acc.u = 0;
  const bool one = kind == ReduceKind::prod || kind == ReduceKind::all;
  const bool extreme = kind == ReduceKind::max || kind == ReduceKind::min;
  switch (cls) {
    case AccumulatorClass::floating:
      acc.f = one ? 1.0 : 0.0;
      if (extreme)
        acc.f = kind == ReduceKind::max ? -std::numeric_limits<double>::infinity() : std::numeric_limits<double>::infinity();
      break;
    case AccumulatorClass::signed_integer:
      acc.i = one;
      if (extreme)
        acc.i = kind == ReduceKind::max ? std::numeric_limits<std::int64_t>::min() : std::numeric_limits<std::int64_t>::max();
      break;
    case AccumulatorClass::unsigned_integer:
      acc.u = one;
      if (extreme) acc.u = kind == ReduceKind::max ? 0 : std::numeric_limits<std::uint64_t>::max();
      break;
  }
  return acc;
}

Accumulator combine(ReduceKind kind, AccumulatorClass cls, Accumulator a, Accumulator b) {
  switch (cls) {
    case AccumulatorClass::floating: a.f = combine_floats(kind, a.f, b.f); break;
    case AccumulatorClass::signed_integer: a.i = combine_integers(kind, a.i, b.i); break;
    case AccumulatorClass::unsigned_integer: a.u = combine_integers(kind, a.u, b.u); break;
  }
  return a;
}

void combine_tree(ReduceKind kind, AccumulatorClass cls, Accumulator* rows, std::int64_t count, std::int64_t stride,
                  std::int64_t n) {
  if (count == 1) return;
  const std::int64_t half = count / 2;
  combine_tree(kind, cls, rows, half, stride, n);
  combine_tree(kind, cls, rows + half * stride, count - half, stride, n);
  combine_rows(kind, cls, rows, rows + half * stride, n);
}

void store(const Accumulator* values, std::int64_t n, DType dtype, void* out) {
  const auto each = [&]<class T>(T*, auto value_of) {
    for (std::int64_t i = 0; i < n; ++i) static_cast<T*>(out)[i] = static_cast<T>(value_of(values[i]));
  };
  const auto bits = [](Accumulator a) { return a.u; };
  switch (dtype) {
    case DType::f32: return each(static_cast<float*>(nullptr), [](Accumulator a) { return a.f; });
    case DType::f64: return each(static_cast<double*>(nullptr), [](Accumulator a) { return a.f; });
    case DType::boolean: return each(static_cast<std::uint8_t*>(nullptr), [](Accumulator a) { return a.u != 0; });
    default: break;
  }
  // The low bits of an integer.
  switch (element_bytes(dtype)) {
    case 1: return each(static_cast<std::uint8_t*>(nullptr), bits);
    case 2: return each(static_cast<std::uint16_t*>(nullptr), bits);
    case 4: return each(static_cast<std::uint32_t*>(nullptr), bits);
    default: return each(static_cast<std::uint64_t*>(nullptr), bits);
  }
}

}  // namespace tenon::cpu
