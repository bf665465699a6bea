// The composed ops against tests/golden/composed.txt, which NumPy and SciPy made (make_composed.py).
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "reference/reference.h"
#include "source_folder.h"
#include "tenon/expression.h"
#include "tenon/ops.h"

namespace tenon {
namespace {

struct Golden {
  std::string expression;
  std::vector<std::string> names;
  std::vector<HostArray> inputs;
  std::vector<HostArray> results;
};

// "float64 [2,3] 1 2 3 4 5 6"; an integer's digits are read as such.
HostArray read_tensor(const std::string& text) {
  std::istringstream words(text);
  std::string dtype, shape, word;
  words >> dtype >> shape;
  std::vector<std::int64_t> dims;
  std::istringstream extents(shape.substr(1, shape.size() - 2));
  while (std::getline(extents, word, ',')) dims.push_back(std::stoll(word));
  const Shape to(dims);
  const DType type = parse_dtype(dtype).value();
  std::vector<double> floats;
  std::vector<std::int64_t> integers;
  while (words >> word) {
    if (is_float(type))
      floats.push_back(std::strtod(word.c_str(), nullptr));
    else
      integers.push_back(std::stoll(word));
  }
  if (is_float(type)) return HostArray::from<double>(to, std::span<const double>(floats));
  return HostArray::from<std::int64_t>(to, std::span<const std::int64_t>(integers)).cast(type);
}

std::vector<Golden> golden_cases() {
  const std::filesystem::path file = source_folder() / "tests/golden/composed.txt";
  std::ifstream in(file);
  EXPECT_TRUE(in.good()) << file;
  std::vector<Golden> cases;
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with('#')) continue;
    if (line.starts_with("= ")) {
      cases.push_back({line.substr(2), {}, {}, {}});
    } else if (line.starts_with("-> ")) {
      cases.back().results.push_back(read_tensor(line.substr(3)));
    } else {
      const std::size_t colon = line.find(": ");
      cases.back().names.push_back(line.substr(0, colon));
      cases.back().inputs.push_back(read_tensor(line.substr(colon + 2)));
    }
  }
  return cases;
}

// A few roundings in double; a mean of integers is an f32.
double limit(const std::string& expression) { return expression.starts_with("mean(cast") ? 1e-7 : 1e-12; }

bool close(double actual, double expected, double limit) {
  if (std::isnan(expected)) return std::isnan(actual);
  if (std::isinf(expected)) return actual == expected;
  return std::abs(actual - expected) <= limit * std::max(std::abs(expected), 0.1);
}

TEST(ComposedGolden, EveryCaseMatches) {
  for (const Golden& golden : golden_cases()) {
    SCOPED_TRACE(golden.expression);
    std::vector<NamedType> types;
    for (std::size_t i = 0; i < golden.inputs.size(); ++i)
      types.push_back({golden.names[i], golden.inputs[i].dtype(), golden.inputs[i].shape()});
    std::vector<std::vector<double>> values;
    try {
      const Graph graph = parse_expression(golden.expression, types);
      values = reference_doubles(graph, golden.inputs);
      ASSERT_EQ(values.size(), golden.results.size());
      for (std::size_t i = 0; i < values.size(); ++i) {
        const Node& node = graph[graph.outputs()[i]];
        EXPECT_EQ(to_string(node.shape), to_string(golden.results[i].shape()));
        EXPECT_EQ(is_float(node.dtype), is_float(golden.results[i].dtype())) << name(node.dtype);
      }
    } catch (const Error& error) {
      ADD_FAILURE() << error.what();
      continue;
    }
    for (std::size_t i = 0; i < values.size(); ++i)
      for (std::size_t k = 0; k < values[i].size(); ++k) {
        const double expected = golden.results[i].value(static_cast<std::int64_t>(k));
        if (close(values[i][k], expected, limit(golden.expression))) continue;
        ADD_FAILURE() << "result " << i << ", element " << k << ": " << values[i][k] << ", expected " << expected;
      }
  }
}

TEST(ComposedGolden, EveryComposedOpHasACase) {
  std::set<std::string> covered;
  for (const Golden& golden : golden_cases()) {
    const std::string called = golden.expression.substr(0, golden.expression.find('('));
    if (const OpInfo* op = lookup_op(called)) covered.insert(op->name);
  }
  // Checked elsewhere: what has no expected value (random), and what only moves or renames.
  const std::set<std::string> elsewhere = {"rand",  "randn", "uniform",   "bernoulli", "randint", "randperm",  "cast",
                                           "zeros", "ones",  "full_like", "dot",       "mv",      "dequantize"};
  const std::set<std::string> elementwise = {"unary", "binary", "ternary"};
  for (const OpInfo& op : all_ops()) {
    if (op.elementwise || elsewhere.contains(op.name)) continue;
    if (elementwise.contains(op.category) && op.name != "tril" && op.name != "triu") continue;
    EXPECT_TRUE(covered.contains(op.name)) << op.name << " (" << op.category << ")";
  }
}

}  // namespace
}  // namespace tenon
