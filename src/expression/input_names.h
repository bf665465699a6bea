// Names of inputs, as every front end checks them.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace tenon {

// Whether an input can have this name: a letter or _, then letters, digits and _; at most 64.
bool is_identifier(std::string_view text) noexcept;

// Throws invalid_argument for an input that the expression never reads: it is a misspelling. |read| are its free_names().
void require_used(const std::string& input, std::span<const std::string> read);

}  // namespace tenon
