// Elementwise bodies: comparison, logic, kinds of value, bits. See elementwise.h.
#pragma once

#include "ops/elementwise/traits.h"
#include "ops/elementwise/value.h"

namespace tenon::elementwise {
inline namespace TENON_ISA {

// --- Comparison ---
struct Eq {
  static constexpr const char* name = "eq";
  static constexpr ElementwiseTraits traits{.inputs = 2, .kinds = kAll, .returns_bool = true};
  template <class V>
  static typename V::Mask apply(V x, V y) {
    return x == y;
  }
};
struct Ne {
  static constexpr const char* name = "ne";
  static constexpr ElementwiseTraits traits{.inputs = 2, .kinds = kAll, .returns_bool = true};
  template <class V>
  static typename V::Mask apply(V x, V y) {
    return x != y;
  }
};
struct Lt {
  static constexpr const char* name = "lt";
  static constexpr ElementwiseTraits traits{.inputs = 2, .kinds = kAll, .returns_bool = true};
  template <class V>
  static typename V::Mask apply(V x, V y) {
    return x < y;
  }
};
struct Le {
  static constexpr const char* name = "le";
  static constexpr ElementwiseTraits traits{.inputs = 2, .kinds = kAll, .returns_bool = true};
  template <class V>
  static typename V::Mask apply(V x, V y) {
    return x <= y;
  }
};
struct Gt {
  static constexpr const char* name = "gt";
  static constexpr ElementwiseTraits traits{.inputs = 2, .kinds = kAll, .returns_bool = true};
  template <class V>
  static typename V::Mask apply(V x, V y) {
    return x > y;
  }
};
struct Ge {
  static constexpr const char* name = "ge";
  static constexpr ElementwiseTraits traits{.inputs = 2, .kinds = kAll, .returns_bool = true};
  template <class V>
  static typename V::Mask apply(V x, V y) {
    return x >= y;
  }
};
struct Eqz {
  static constexpr const char* name = "eqz";
  static constexpr ElementwiseTraits traits{.kinds = kAll, .returns_bool = true};
  template <class V>
  static typename V::Mask apply(V x) {
    return x == V(0);
  }
};
struct Nez {
  static constexpr const char* name = "nez";
  static constexpr ElementwiseTraits traits{.kinds = kAll, .returns_bool = true};
  template <class V>
  static typename V::Mask apply(V x) {
    return x != V(0);
  }
};
struct Ltz {
  static constexpr const char* name = "ltz";
  static constexpr ElementwiseTraits traits{.kinds = kAll, .returns_bool = true};
  template <class V>
  static typename V::Mask apply(V x) {
    return x < V(0);
  }
};
struct Lez {
  static constexpr const char* name = "lez";
  static constexpr ElementwiseTraits traits{.kinds = kAll, .returns_bool = true};
  template <class V>
  static typename V::Mask apply(V x) {
    return x <= V(0);
  }
};
struct Gtz {
  static constexpr const char* name = "gtz";
  static constexpr ElementwiseTraits traits{.kinds = kAll, .returns_bool = true};
  template <class V>
  static typename V::Mask apply(V x) {
    return x > V(0);
  }
};
struct Gez {
  static constexpr const char* name = "gez";
  static constexpr ElementwiseTraits traits{.kinds = kAll, .returns_bool = true};
  template <class V>
  static typename V::Mask apply(V x) {
    return x >= V(0);
  }
};
struct IsClose {
  static constexpr const char* name = "isclose";
  static constexpr ElementwiseTraits traits{.inputs = 2, .params = 3, .returns_bool = true, .wide = true};
  template <class V>
  static typename V::Mask apply(V x, V y, V rtol, V atol, V equal_nan) {
    const V difference = abs(x - y);
    const auto near = (difference <= atol + rtol * abs(y)) & !is_inf(difference);
    const auto both_nan = is_nan(x) & is_nan(y) & (equal_nan != V(0));
    return (x == y) | near | both_nan;
  }
};

// --- Logic ---
struct LogicalAnd {
  static constexpr const char* name = "logical_and";
  static constexpr ElementwiseTraits traits{.inputs = 2, .kinds = kAll, .returns_bool = true};
  template <class V>
  static typename V::Mask apply(V x, V y) {
    return (x != V(0)) & (y != V(0));
  }
};
struct LogicalOr {
  static constexpr const char* name = "logical_or";
  static constexpr ElementwiseTraits traits{.inputs = 2, .kinds = kAll, .returns_bool = true};
  template <class V>
  static typename V::Mask apply(V x, V y) {
    return (x != V(0)) | (y != V(0));
  }
};
struct LogicalXor {
  static constexpr const char* name = "logical_xor";
  static constexpr ElementwiseTraits traits{.inputs = 2, .kinds = kAll, .returns_bool = true};
  template <class V>
  static typename V::Mask apply(V x, V y) {
    return (x != V(0)) ^ (y != V(0));
  }
};
struct LogicalNot {
  static constexpr const char* name = "logical_not";
  static constexpr ElementwiseTraits traits{.kinds = kAll, .returns_bool = true};
  template <class V>
  static typename V::Mask apply(V x) {
    return x == V(0);
  }
};

// --- Kinds of value ---
struct IsNan {
  static constexpr const char* name = "isnan";
  static constexpr ElementwiseTraits traits{.returns_bool = true};
  template <class V>
  static typename V::Mask apply(V x) {
    return is_nan(x);
  }
};
struct IsInf {
  static constexpr const char* name = "isinf";
  static constexpr ElementwiseTraits traits{.returns_bool = true};
  template <class V>
  static typename V::Mask apply(V x) {
    return is_inf(x);
  }
};
struct IsFinite {
  static constexpr const char* name = "isfinite";
  static constexpr ElementwiseTraits traits{.returns_bool = true};
  template <class V>
  static typename V::Mask apply(V x) {
    return !(is_nan(x) | is_inf(x));
  }
};
struct IsPosInf {
  static constexpr const char* name = "isposinf";
  static constexpr ElementwiseTraits traits{.returns_bool = true};
  template <class V>
  static typename V::Mask apply(V x) {
    return is_inf(x) & (x > V(0));
  }
};
struct IsNegInf {
  static constexpr const char* name = "isneginf";
  static constexpr ElementwiseTraits traits{.returns_bool = true};
  template <class V>
  static typename V::Mask apply(V x) {
    return is_inf(x) & (x < V(0));
  }
};
struct SignBit {
  static constexpr const char* name = "signbit";
  static constexpr ElementwiseTraits traits{.kinds = kNumbers, .returns_bool = true};
  template <class V>
  static typename V::Mask apply(V x) {
    return signbit(x);
  }
};

// --- Bits ---
struct BitwiseAnd {
  static constexpr const char* name = "bitwise_and";
  static constexpr ElementwiseTraits traits{.inputs = 2, .kinds = kBits};
  template <class V>
  static V apply(V x, V y) {
    return x & y;
  }
};
struct BitwiseOr {
  static constexpr const char* name = "bitwise_or";
  static constexpr ElementwiseTraits traits{.inputs = 2, .kinds = kBits};
  template <class V>
  static V apply(V x, V y) {
    return x | y;
  }
};
struct BitwiseXor {
  static constexpr const char* name = "bitwise_xor";
  static constexpr ElementwiseTraits traits{.inputs = 2, .kinds = kBits};
  template <class V>
  static V apply(V x, V y) {
    return x ^ y;
  }
};
struct BitwiseNot {
  static constexpr const char* name = "bitwise_not";
  static constexpr ElementwiseTraits traits{.kinds = kIntegers};
  template <class V>
  static V apply(V x) {
    return ~x;
  }
};
struct LeftShift {
  static constexpr const char* name = "left_shift";
  static constexpr ElementwiseTraits traits{.inputs = 2, .kinds = kIntegers};
  template <class V>
  static V apply(V x, V y) {
    return x << y;
  }
};
struct RightShift {
  static constexpr const char* name = "right_shift";
  static constexpr ElementwiseTraits traits{.inputs = 2, .kinds = kIntegers};
  template <class V>
  static V apply(V x, V y) {
    return x >> y;
  }
};

}  // namespace TENON_ISA
}  // namespace tenon::elementwise
