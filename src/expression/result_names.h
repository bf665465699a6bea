// The names that an expression gives to its results.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace tenon {

// |count| distinct names. If there are several results, they are called as the last statement calls them: "values" and "indices"
// for `values, indices = top_k(x, 3)` and for `v = ...; values, indices`. A result without a name of its own is "result0",
// "result1", ...; a single one is "result". Throws ExpressionError if |source| is no expression.
std::vector<std::string> result_names(std::string_view source, std::size_t count);

// "result0", "result1", ...; a single one is "result".
std::vector<std::string> numbered_results(std::size_t count);

// The same for a call of one op: "values" and "indices" for top_k.
std::vector<std::string> op_result_names(std::string_view op, std::size_t count);

}  // namespace tenon
