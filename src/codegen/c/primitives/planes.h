// Windows that slide over the lines, planes or volumes of [n, c, ...] on a GPU, each channel by itself (planes.cpp). primitives.h
// has the same for every target and size, and calls these.
#pragma once

#include <optional>

#include "codegen/c/primitives/primitives.h"

namespace tenon::emit {

// Nothing where the general kernels are needed: large windows; for convolutions also lines, volumes, and more than one channel in
// a group.
std::optional<Launch> emit_plane_window(const KernelTarget& target, const Dense& x, const WindowAttr& attr, const Dense& out);
std::optional<Launch> emit_depthwise(const KernelTarget& target, const Dense& x, const Dense& weight, const ConvAttr& attr,
                                     const Dense& out);

}  // namespace tenon::emit
