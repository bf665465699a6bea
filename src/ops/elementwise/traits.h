// What there is to know about an elementwise body besides its formula.
#pragma once

#include <cstdint>

namespace tenon {

enum ValueKinds : std::uint8_t {
  kFloats = 1,
  kIntegers = 2,
  kBools = 4,
  kNumbers = kFloats | kIntegers,
  kBits = kIntegers | kBools,
  kAll = 7
};

struct ElementwiseTraits {
  int inputs = 1;
  int params = 0;
  // What the body computes on. Inputs of another kind are converted: bool to i32 if integers are allowed, integers (and bool) to
  // f32 if only floats are; floats given to an integer op are refused.
  ValueKinds kinds = kFloats;
  bool returns_bool = false;
  bool condition = false;  // the first input is a bool mask, not converted
  // Evaluate f32 in double lanes and round once: for bodies whose f32 evaluation would lose more than 4 ULP, and that are
  // not worth a careful f32 version; and for those that compare with a parameter, so that f32 and the reference agree on which
  // side a value lies.
  bool wide = false;
  // The result can be a small difference of large terms, which keeps of a function only its last digits: in f64 not with
  // functions of vectors, but with the C library's of single numbers, which are more exact.
  bool cancels = false;
};

}  // namespace tenon
