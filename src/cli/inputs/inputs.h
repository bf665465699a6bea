// What users write on the command line, as values: name=VALUE as arrays, and times.
//
// VALUE is a literal ([[1, 2], [3, 4]], 3.5), an expression without inputs (rand([1024, 1024], seed=1)), or @FILE: a .npy file,
// or a .safetensors file with one tensor, or FILE.safetensors:TENSOR.
#pragma once

#include <chrono>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tenon/array.h"
#include "tenon/expression.h"
#include "tenon/tensor/program.h"

namespace tenon::cli {

struct Input {
  std::string name;
  HostArray array;
};

// |dtype|, where given, is what values (not files, not bools) are converted to. A name is an identifier, or one of |names|, which
// may contain any character. Throws invalid_argument for a malformed argument or a name given twice, and what reading and
// computing throw, naming the input.
std::vector<Input> parse_inputs(std::span<const std::string> arguments, std::optional<DType> dtype,
                                std::span<const std::string> names = {});

// What parse_expression makes of |source| with these inputs. Inputs the expression never reads are refused: they are
// misspellings. |dtype| is the default float dtype, if it is a float.
Graph parse_program(std::string_view source, std::span<const Input> inputs, std::optional<DType> dtype);

// The values of |program|'s inputs, in its order, and then those that it captured. A value that is not read from a file gets the
// dtype of its input. Throws not_found for a name that the program does not have, invalid_argument for one that is missing or
// has another type, and what parse_inputs() throws.
std::vector<HostArray> inputs_of(const Program& program, std::span<const std::string> arguments);

std::vector<HostArray> arrays_of(std::span<const Input> inputs);

// "7d", "12h", "30m", "90s", "4w" before |now|, or the beginning of a day here, "2026-11-01", or "2026-11-01T14:30". Throws
// invalid_argument.
std::chrono::system_clock::time_point parse_since(std::string_view text, std::chrono::system_clock::time_point now);

}  // namespace tenon::cli
