// Helpers of the expression tests: run an expression through the reference, and catch what it throws.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "reference/reference.h"
#include "tenon/expression.h"

namespace tenon::testing {

using Given = std::vector<std::pair<std::string, HostArray>>;

inline std::vector<HostArray> run_all(const std::string& source, const Given& given = {}, const ExpressionOptions& options = {}) {
  std::vector<NamedType> types;
  std::vector<HostArray> arrays;
  for (const auto& [name, array] : given) {
    types.push_back({name, array.dtype(), array.shape()});
    arrays.push_back(array);
  }
  return reference_run(parse_expression(source, types, options), arrays);
}

inline HostArray run(const std::string& source, const Given& given = {}, const ExpressionOptions& options = {}) {
  const std::vector<HostArray> outputs = run_all(source, given, options);
  EXPECT_EQ(outputs.size(), 1u) << source;
  return outputs.at(0);
}

inline std::vector<double> values(const std::string& source, const Given& given = {}) { return run(source, given).to_doubles(); }
inline double value(const std::string& source, const Given& given = {}) {
  const HostArray result = run(source, given);
  EXPECT_EQ(result.elements(), 1) << source;
  return result.value(0);
}

inline HostArray floats(const Shape& shape, std::vector<float> numbers) {
  return HostArray::from<float>(shape, std::span<const float>(numbers));
}

// The error |source| is refused with; a test failure, and an empty one, when it is not.
inline ExpressionError error_of(const std::string& source, const Given& given = {}, const ExpressionOptions& options = {}) {
  try {
    run_all(source, given, options);
  } catch (const ExpressionError& error) {
    return error;
  }
  ADD_FAILURE() << source << " was accepted";
  return ExpressionError(ErrorCode::ok, "", "", {});
}

}  // namespace tenon::testing
