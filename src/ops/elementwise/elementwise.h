// The formulas of the elementwise ops: one struct per op, with a body that is written once.
//
// A body is a template over the value type V (value.h): instantiated with the CPU's SIMD lanes it is the op's kernel, with
// Scalar<double> the reference, with Sym the primitives for code generators. Bodies are branch-free (select, not if) and
// numerically stable. Names and traits are in graph/elementwise.h; user-visible texts (parameters, formula, doc) are where the op
// is registered (activations.cpp, arithmetic.cpp, functions.cpp, logic.cpp).
//
// A struct has apply(inputs..., params...); all arguments have type V, except that a condition is a V::Mask.
//
// These headers are compiled for several instruction sets; everything in them is a template or constexpr.
#pragma once

#include "ops/elementwise/activations.h"
#include "ops/elementwise/arithmetic.h"
#include "ops/elementwise/functions.h"
#include "ops/elementwise/logic.h"
