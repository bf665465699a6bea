// The backend "walk": one device, walk:0, that computes a program by walking over its nodes in order.
//
// As small as a backend can be and still keep every promise of tenon/backend.h; docs/writing-a-backend.md explains it line by
// line. It computes in float32 only, knows the primitives of a small network (softmax, sums, matrix products, a few functions),
// and refuses everything else by name. It is not fast.
#pragma once

#include <memory>

#include "tenon/backend.h"

std::unique_ptr<tenon::Backend> make_walk_backend();
