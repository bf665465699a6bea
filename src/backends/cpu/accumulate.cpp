#include "backends/cpu/accumulate.h"

#include <limits>

namespace tenon::cpu {
namespace {

template <class T>
T combine_integers(ReduceKind kind, T a, T b) {
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

double combine_floats(ReduceKind kind, double a, double b) {
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

Accumulator combine_tree(ReduceKind kind, AccumulatorClass cls, const Accumulator* parts, std::int64_t count,
                         std::int64_t stride) {
  if (count == 1) return parts[0];
  const std::int64_t half = count / 2;
  return combine(kind, cls, combine_tree(kind, cls, parts, half, stride),
                 combine_tree(kind, cls, parts + half * stride, count - half, stride));
}

void store(Accumulator value, DType dtype, void* out) {
  switch (dtype) {
    case DType::f32: *static_cast<float*>(out) = static_cast<float>(value.f); break;
    case DType::f64: *static_cast<double*>(out) = value.f; break;
    case DType::boolean: *static_cast<std::uint8_t*>(out) = value.u != 0; break;
    default: __builtin_memcpy(out, &value, element_bytes(dtype)); break;  // little-endian: the low bytes
  }
}

}  // namespace tenon::cpu
