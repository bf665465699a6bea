// Elementwise bodies: comparison, logic, kinds of value, bits. See ops/elementwise/elementwise.h.
#pragma once

#include "graph/elementwise.h"
#include "math/value.h"

namespace tenon::elementwise {
inline namespace TENON_ISA {

// --- Comparison ---
struct Eq : Body<ElementwiseOp::Eq> {
  template <class V>
  static typename V::Mask apply(V x, V y) {
    return x == y;
  }
};
struct Ne : Body<ElementwiseOp::Ne> {
  template <class V>
  static typename V::Mask apply(V x, V y) {
    return x != y;
  }
};
struct Lt : Body<ElementwiseOp::Lt> {
  template <class V>
  static typename V::Mask apply(V x, V y) {
    return x < y;
  }
};
struct Le : Body<ElementwiseOp::Le> {
  template <class V>
  static typename V::Mask apply(V x, V y) {
    return x <= y;
  }
};
struct Gt : Body<ElementwiseOp::Gt> {
  template <class V>
  static typename V::Mask apply(V x, V y) {
    return x > y;
  }
};
struct Ge : Body<ElementwiseOp::Ge> {
  template <class V>
  static typename V::Mask apply(V x, V y) {
    return x >= y;
  }
};
struct Eqz : Body<ElementwiseOp::Eqz> {
  template <class V>
  static typename V::Mask apply(V x) {
    return x == V(0);
  }
};
struct Nez : Body<ElementwiseOp::Nez> {
  template <class V>
  static typename V::Mask apply(V x) {
    return x != V(0);
  }
};
struct Ltz : Body<ElementwiseOp::Ltz> {
  template <class V>
  static typename V::Mask apply(V x) {
    return x < V(0);
  }
};
struct Lez : Body<ElementwiseOp::Lez> {
  template <class V>
  static typename V::Mask apply(V x) {
    return x <= V(0);
  }
};
struct Gtz : Body<ElementwiseOp::Gtz> {
  template <class V>
  static typename V::Mask apply(V x) {
    return x > V(0);
  }
};
struct Gez : Body<ElementwiseOp::Gez> {
  template <class V>
  static typename V::Mask apply(V x) {
    return x >= V(0);
  }
};
struct IsClose : Body<ElementwiseOp::IsClose> {
  template <class V>
  static typename V::Mask apply(V x, V y, V rtol, V atol, V equal_nan) {
    const V difference = abs(x - y);
    const auto near = (difference <= atol + rtol * abs(y)) & !is_inf(difference);
    const auto both_nan = is_nan(x) & is_nan(y) & (equal_nan != V(0));
    return (x == y) | near | both_nan;
  }
};

// --- Logic ---
struct LogicalAnd : Body<ElementwiseOp::LogicalAnd> {
  template <class V>
  static typename V::Mask apply(V x, V y) {
    return (x != V(0)) & (y != V(0));
  }
};
struct LogicalOr : Body<ElementwiseOp::LogicalOr> {
  template <class V>
  static typename V::Mask apply(V x, V y) {
    return (x != V(0)) | (y != V(0));
  }
};
struct LogicalXor : Body<ElementwiseOp::LogicalXor> {
  template <class V>
  static typename V::Mask apply(V x, V y) {
    return (x != V(0)) ^ (y != V(0));
  }
};
struct LogicalNot : Body<ElementwiseOp::LogicalNot> {
  template <class V>
  static typename V::Mask apply(V x) {
    return x == V(0);
  }
};

// --- Kinds of value ---
struct IsNan : Body<ElementwiseOp::IsNan> {
  template <class V>
  static typename V::Mask apply(V x) {
    return is_nan(x);
  }
};
struct IsInf : Body<ElementwiseOp::IsInf> {
  template <class V>
  static typename V::Mask apply(V x) {
    return is_inf(x);
  }
};
struct IsFinite : Body<ElementwiseOp::IsFinite> {
  template <class V>
  static typename V::Mask apply(V x) {
    return !(is_nan(x) | is_inf(x));
  }
};
struct IsPosInf : Body<ElementwiseOp::IsPosInf> {
  template <class V>
  static typename V::Mask apply(V x) {
    return is_inf(x) & (x > V(0));
  }
};
struct IsNegInf : Body<ElementwiseOp::IsNegInf> {
  template <class V>
  static typename V::Mask apply(V x) {
    return is_inf(x) & (x < V(0));
  }
};
struct SignBit : Body<ElementwiseOp::SignBit> {
  template <class V>
  static typename V::Mask apply(V x) {
    return signbit(x);
  }
};

// --- Bits ---
struct BitwiseAnd : Body<ElementwiseOp::BitwiseAnd> {
  template <class V>
  static V apply(V x, V y) {
    return x & y;
  }
};
struct BitwiseOr : Body<ElementwiseOp::BitwiseOr> {
  template <class V>
  static V apply(V x, V y) {
    return x | y;
  }
};
struct BitwiseXor : Body<ElementwiseOp::BitwiseXor> {
  template <class V>
  static V apply(V x, V y) {
    return x ^ y;
  }
};
struct BitwiseNot : Body<ElementwiseOp::BitwiseNot> {
  template <class V>
  static V apply(V x) {
    return ~x;
  }
};
struct LeftShift : Body<ElementwiseOp::LeftShift> {
  template <class V>
  static V apply(V x, V y) {
    return x << y;
  }
};
struct RightShift : Body<ElementwiseOp::RightShift> {
  template <class V>
  static V apply(V x, V y) {
    return x >> y;
  }
};

}  // namespace TENON_ISA
}  // namespace tenon::elementwise
