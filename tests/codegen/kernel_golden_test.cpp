// Kernels for CUDA, OpenCL and Tenstorrent's cores as text, one or two of each family: what plan_kernels() makes of a graph,
// launches and all. The functions of math.h that a kernel calls are named, not shown. What kernels compute is tested where a
// device is.
#include <fmt/format.h>

#include <algorithm>

#include "codegen/golden.h"
#include "hal/kernel_plan.h"

namespace tenon {
namespace {

using test::GoldenCase;

constexpr GoldenCase kCases[] = {
    // loops/map.cpp
    {"map", "x * v + 1"},
    {"map_in_bfloat16", "h * 2"},
    {"map_of_functions", "atan2(x, y) + floor_div(x, asinh(y))"},
    {"map_of_a_transposed_view", "x + w.T"},
    {"map_to_several_results", "x + y, x * y"},
    {"map_of_a_block_format", "k * 2"},
    // loops/reduction.cpp, loops/lines.cpp, loops/columns.cpp
    {"reduction_of_all", "sum(x * y)"},
    {"reduction_of_a_long_vector", "sum(line)"},
    {"reduction_of_narrow_elements", "sum(narrow_line)"},
    {"reduction_of_lines", "max(x, axis=0)"},
    {"mean_of_lines", "mean(square, axis=0)"},
    // rows/
    {"rows", "softmax(wide)"},
    {"rows_of_few_elements", "layer_norm(x)"},
    {"rows_of_many_elements", "log_softmax(very_wide)"},
    // primitives/products.cpp, primitives/matrix_conv.cpp
    {"product", "square @ square"},
    {"product_with_a_vector", "x @ v"},
    {"convolution", "conv2d(image, filter, padding=1)"},
    {"convolution_on_matrix_units", "conv2d(picture, filters, padding=1)"},
    {"convolution_with_many_channels", "conv2d(picture, many_filters, padding=1)"},
    {"convolution_of_volumes", "conv3d(volume, volume_filters, padding=1)"},
    {"transposed_convolution", "conv_transpose2d(picture, filters, stride=2)"},
    {"transposed_convolution_of_few_products", "conv_transpose2d(image, image_filter, stride=2, padding=1)"},
    {"transposed_convolution_of_equal_parts", "conv_transpose2d(picture, filters, stride=2, padding=1, output_padding=1)"},
    {"transposed_convolution_at_once", "conv_transpose2d(picture, filters, stride=3)"},
    {"pooling", "max_pool2d(image, 2)"},
    {"pooling_of_volumes", "avg_pool3d(volume, 2)"},
    {"pooling_to_windows", "adaptive_avg_pool3d(volume, 3)"},
    {"pooling_by_long_windows", "adaptive_avg_pool1d(reshape(very_wide, [8, 8, 40000]), 7)"},
    // attention/
    {"attention", "attention(heads, heads, heads)"},
    {"attention_on_matrix_units", "attention(half_heads, half_heads, half_heads)"},
    {"attention_of_few_queries", "attention(one_query, heads, heads)"},
    // primitives/indexing.cpp, primitives/scatter/
    {"take", "x[i]"},
    {"gather", "gather(v, i, axis=0)"},
    {"gather_of_many", "gather(square, places, axis=1)"},
    {"scatter", "scatter(v, i, [1.0, 2, 3], axis=0)"},
    {"scatter_add", "scatter_add(v, i, [1.0, 2, 3], axis=0)"},
    {"scatter_add_of_many", "scatter_add(square, places, square, axis=0)"},
    {"scatter_add_of_rows", "scatter_add(square, broadcast_to(places[:, 0:1], [256, 256]), square, axis=0)"},
    {"scatter_add_in_few_places", "scatter_add(square[0:4], broadcast_to(places[:, 0:1], [256, 256]), square, axis=0)"},
    {"sort", "sort(x, axis=1)"},
    {"sort_of_a_long_line", "sort(line)"},
    {"selection", "top_k(wide, k=5)"},
    {"selection_from_a_long_line", "top_k(line, k=5)"},
    {"cumulative", "cumsum(x, axis=1)"},
    {"argmax", "argmax(x, axis=1)"},
    {"argmax_of_columns", "argmax(square, axis=0)"},
    {"pad", "pad(square, 3)"},
    {"concat_of_groups", "cross(wide[:, 0:3], wide[:, 3:6])"},
    {"pad_and_concat", "concat(pad(v, [1, 2], value=7), v, axis=0)"},
    // primitives/transposed_copy.cpp, loops/short_copy.cpp
    {"transposed_copy", "reshape(square.T, [65536])"},
    {"short_copy", "pixel_shuffle(picture, 2)"},
    {"every_second_column", "square[:, 0::2]"},
    {"reversed_copy", "flip(square, axis=1)"},
    {"fill", "full([100000000], 2.5)"},
    {"eye", "eye(512)"},
    // primitives/random.cpp
    {"random", "randn([64], seed=7)"},
    {"random_numbers_in_a_group", "where(x > rand([4, 8], seed=7), x, 0) * v"},
    {"random_doubles_in_a_group", "bernoulli([63], p=0.3, seed=7)"},
    {"random_integers", "randint([63], low=-3, high=1000, seed=7)"},
    {"iota", "arange(64)"},
};

KernelTarget gpu(Dialect dialect) {
  return {.dialect = dialect,
          .has_matrix_units = dialect == Dialect::cuda,
          .compute_units = 132,
          .max_group_size = 1024,
          .local_bytes = 48 * 1024};
}

// An entry's name is made from its text: here it is a number.
std::string with_plain_names(std::string text, const KernelPlan& plan) {
  for (std::size_t i = 0; i < plan.kernels.size(); ++i)
    for (std::size_t at = text.find(plan.kernels[i].entry); at != std::string::npos; at = text.find(plan.kernels[i].entry))
      text.replace(at, plan.kernels[i].entry.size(), fmt::format("kernel{}", i));
  return text;
}

// Kernels are written without indentation.
std::string indented(const std::string& text) {
  std::istringstream lines(text);
  std::string out;
  int depth = 0;
  for (std::string line; std::getline(lines, line);) {
    const auto count = [&](char c) { return static_cast<int>(std::count(line.begin(), line.end(), c)); };
    const int closes_first = line.starts_with('}') ? 1 : 0;
    out += std::string(static_cast<std::size_t>(2 * std::max(0, depth - closes_first)), ' ') + line + "\n";
    depth += count('{') - count('}');
  }
  return out;
}

std::string argument_text(const KernelArgument& argument) {
  if (const auto* location = std::get_if<Location>(&argument)) {
    constexpr const char* kSpaces[] = {"input", "output", "workspace", "constants", "status"};
    const char* space = kSpaces[static_cast<int>(location->space)];
    return location->space <= Location::Space::output ? fmt::format("{}{}", space, location->index)
                                                      : fmt::format("{}+{}", space, location->offset_bytes);
  }
  return std::visit(
      [](const auto& value) -> std::string {
        if constexpr (std::is_same_v<std::decay_t<decltype(value)>, Location>)
          return "";
        else
          return fmt::format("{}", value);
      },
      argument);
}

std::string plan_text(const KernelPlan& plan) {
  std::string text = fmt::format("// workspace {} bytes\n", plan.workspace_bytes);
  for (const PlanStep& step : plan.steps) {
    const auto& launch = std::get<KernelLaunch>(step);
    std::string arguments;
    for (const KernelArgument& argument : launch.arguments)
      arguments += (arguments.empty() ? "" : ", ") + argument_text(argument);
    const std::array<int, 3>& size = plan.kernels[static_cast<std::size_t>(launch.kernel)].group_size;
    text += fmt::format("// kernel{}<{}x{}x{} of {}x{}x{}>({})\n", launch.kernel, launch.groups[0], launch.groups[1],
                        launch.groups[2], size[0], size[1], size[2], arguments);
  }
  for (const Kernel& kernel : plan.kernels) {
    text += "\n";
    for (const std::string& helper : kernel.helpers) text += fmt::format("// calls {}\n", helper);
    text += indented(kernel.text);
  }
  return with_plain_names(std::move(text), plan);
}

class KernelGolden : public testing::TestWithParam<GoldenCase> {};

TEST_P(KernelGolden, TheTextIsAsItWas) {
  const Graph graph = test::golden_graph(GetParam().expression);
  const std::string opencl = plan_text(plan_kernels(graph, gpu(Dialect::opencl)));
  const std::string cuda = plan_text(plan_kernels(graph, gpu(Dialect::cuda)));
  std::string text = fmt::format("// {}\n", GetParam().expression);
  text += opencl == cuda ? "\n// --- OpenCL, CUDA\n" + opencl : "\n// --- OpenCL\n" + opencl + "\n// --- CUDA\n" + cuda;
  KernelTarget hopper = gpu(Dialect::cuda);
  hopper.has_warpgroup_products = true;
  if (const std::string other = plan_text(plan_kernels(graph, hopper)); other != cuda)
    text += "\n// --- CUDA, compute capability 9.0\n" + other;
  text += "\n// --- Tenstorrent\n" + plan_text(plan_kernels(graph, tensix_target(256)));
  test::expect_golden(fmt::format("kernels/{}.c", GetParam().name), text);
}

INSTANTIATE_TEST_SUITE_P(Cases, KernelGolden, testing::ValuesIn(kCases), test::case_name);

TEST(KernelGolden, EveryFileHasItsCase) { test::expect_no_other_golden("kernels", kCases); }

}  // namespace
}  // namespace tenon
