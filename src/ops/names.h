// Names and what somebody probably meant: the "did you mean" of op, parameter, variable and dtype names.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace tenon {

// Edits (insert, delete, replace, swap of neighbours; case does not count) that turn |a| into |b|.
std::size_t edit_distance(std::string_view a, std::string_view b);

// The candidate nearest to |wanted|, the first of equally near ones; empty when none is near enough to be worth suggesting: more
// than a third of the name (at least one letter, at most three) would have to change.
std::string nearest(std::string_view wanted, std::span<const std::string_view> candidates);
std::string nearest(std::string_view wanted, std::span<const std::string> candidates);

}  // namespace tenon
