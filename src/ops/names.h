// Names of inputs, and what somebody probably meant: the "did you mean" of op, parameter, variable and dtype names.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "tenon/ops.h"

namespace tenon {

// What input |index| of |op| is called: as the catalogue says, "input3" for one of any number.
std::string input_name(const OpInfo& op, std::size_t index);

// "bfloat16", "bf16", ...; throws invalid_argument with the nearest name.
DType dtype_named(std::string_view text);

// Edits (insert, delete, replace, swap of neighbours; case does not count) that turn |a| into |b|.
std::size_t edit_distance(std::string_view a, std::string_view b);

// The candidate nearest to |wanted|, the first of equally near ones; empty when none is near enough to be worth suggesting: more
// than a third of the name (at least one letter, at most three) would have to change.
std::string nearest(std::string_view wanted, std::span<const std::string_view> candidates);
std::string nearest(std::string_view wanted, std::span<const std::string> candidates);

// A hint for a name that is not there: "did you mean 'conv2d'?", or "names that contain it: conv1d, conv2d", or those
// that begin with the same four letters, else |otherwise|.
std::string name_hint(std::string_view wanted, std::span<const std::string_view> candidates, std::string otherwise);

}  // namespace tenon
