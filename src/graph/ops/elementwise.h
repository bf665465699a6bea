// The elementwise ops: one struct each, its body written once.
//
// A body is a template over the value type V (value.h): instantiated with the CPU's SIMD lanes it is that op's kernel, with
// Scalar<double> the reference, with Sym the primitives every code emitter starts from. Bodies are branch-free (select, not if)
// and numerically stable. What users read about an op (parameters, formula, doc) is in elementwise.cpp, which registers them.
//
// This header is compiled for several instruction sets; everything in it is a template or constexpr.
#pragma once

#include "graph/ops/value.h"
#include "tenon/graph.h"

namespace tenon {

enum ValueKinds : std::uint8_t { kFloats = 1, kIntegers = 2, kBools = 4, kNumbers = kFloats | kIntegers, kAll = 7 };

struct ElementwiseTraits {
  int inputs = 1;
  int params = 0;
  // What the body computes on. Inputs of another kind are converted: bool to i32 if integers are allowed, integers (and bool) to
  // f32 if only floats are; floats given to an integer op are refused.
  ValueKinds kinds = kFloats;
  bool returns_bool = false;
  bool condition = false;  // the first input is a bool mask, not converted
  // Evaluate f32 in double lanes and round once: for bodies whose f32 evaluation would lose more than 4 ULP, and that are
  // not worth a careful f32 version.
  bool wide = false;
};

namespace elementwise {

struct Add {
  static constexpr const char* name = "add";
  static constexpr ElementwiseTraits traits{.inputs = 2, .kinds = kNumbers};
  template <class V>
  static V apply(V x, V y) {
    return x + y;
  }
};
struct Elu {
  static constexpr const char* name = "elu";
  static constexpr ElementwiseTraits traits{.params = 1};
  template <class V>
  static V apply(V x, V alpha) {
    return select(x > V(0), x, alpha * expm1(min(x, V(0))));
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
struct Where {
  static constexpr const char* name = "where";
  static constexpr ElementwiseTraits traits{.inputs = 3, .kinds = kAll, .condition = true};
  template <class V>
  static V apply(typename V::Mask c, V x, V y) {
    return select(c, x, y);
  }
};

}  // namespace elementwise

// Every elementwise op, once. The order is the numbering of ElementwiseOp.
#define TENON_ELEMENTWISE_OPS(X) X(Add) X(Elu) X(Lt) X(Where)

enum class ElementwiseOp : std::uint16_t {
#define TENON_X(Name) Name,
  TENON_ELEMENTWISE_OPS(TENON_X)
#undef TENON_X
};

inline constexpr ElementwiseTraits kElementwiseTraits[] = {
#define TENON_X(Name) elementwise::Name::traits,
    TENON_ELEMENTWISE_OPS(TENON_X)
#undef TENON_X
};
inline constexpr const char* kElementwiseNames[] = {
#define TENON_X(Name) elementwise::Name::name,
    TENON_ELEMENTWISE_OPS(TENON_X)
#undef TENON_X
};
inline constexpr int kElementwiseCount = static_cast<int>(sizeof kElementwiseTraits / sizeof kElementwiseTraits[0]);
constexpr const ElementwiseTraits& traits(ElementwiseOp op) { return kElementwiseTraits[static_cast<int>(op)]; }
constexpr const char* name(ElementwiseOp op) { return kElementwiseNames[static_cast<int>(op)]; }

}  // namespace tenon
