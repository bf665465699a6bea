// The CUDA dialect of generated kernels, compiled (not run) with NVRTC for the architectures we support.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <span>

#include "base/system/dynamic_library.h"
#include "conformance/random/random_program.h"
#include "hal/kernel_plan.h"
#include "tenon/ops.h"

namespace tenon {
namespace {

// tools/plugins fetches it; a CUDA toolkit has it as well.
const DynamicLibrary& nvrtc() {
  static const DynamicLibrary library = [] {
    const std::string folder = std::string(TENON_SOURCE_DIR) + "/build/plugins/nvidia/cu13/lib/";
    // It looks for its other half beside itself, which a sanitizer's dlopen() does not: loaded before, that is found.
    std::error_code ignored;
    for (const auto& file : std::filesystem::directory_iterator(folder, ignored))
      if (const std::vector<std::string> half{file.path().string()}; half[0].find("builtins") != std::string::npos)
        DynamicLibrary::load(half);
    const std::vector<std::string> names = {folder + "libnvrtc.so.13", "libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"};
    return DynamicLibrary::load(names);
  }();
  return library;
}

std::string compile(const std::string& source, const std::string& options, const std::string& architecture) {
  auto* create =
      nvrtc().function<int(void**, const char*, const char*, int, const char* const*, const char* const*)>("nvrtcCreateProgram");
  auto* build = nvrtc().function<int(void*, int, const char* const*)>("nvrtcCompileProgram");
  auto* log_size = nvrtc().function<int(void*, std::size_t*)>("nvrtcGetProgramLogSize");
  auto* get_log = nvrtc().function<int(void*, char*)>("nvrtcGetProgramLog");
  auto* destroy = nvrtc().function<int(void**)>("nvrtcDestroyProgram");
  void* program = nullptr;
  if (create(&program, source.c_str(), "kernels.cu", 0, nullptr, nullptr) != 0) return "nvrtcCreateProgram failed";
  std::vector<std::string> all{"--gpu-architecture=" + architecture};
  for (std::size_t begin = 0; begin < options.size();) {
    const std::size_t end = std::min(options.find('\n', begin), options.size());
    all.push_back(options.substr(begin, end - begin));
    begin = end + 1;
  }
  std::vector<const char*> pointers;
  for (const std::string& option : all) pointers.push_back(option.c_str());
  std::string log;
  if (build(program, static_cast<int>(pointers.size()), pointers.data()) != 0) {
    std::size_t size = 0;
    log_size(program, &size);
    log.resize(size);
    get_log(program, log.data());
  }
  destroy(&program);
  return log;
}

// Something of everything the emitter writes.
std::vector<Graph> graphs() {
  std::vector<Graph> all;
  const auto add = [&](auto build) { build(all.emplace_back()); };
  const auto unary = [&](std::initializer_list<const char*> ops, DType dtype, const Shape& shape) {
    add([&](Graph& g) {
      std::vector<NodeId> outputs;
      const NodeId x = g.input("x", dtype, shape);
      for (const char* op : ops) outputs.push_back(apply(g, op, {x})[0]);
      g.set_outputs(outputs);
    });
  };
  unary({"gelu", "silu", "mish", "erf", "tanh", "sin", "log1p", "softplus", "erfinv", "lgamma", "digamma"}, DType::f32, {1000});
  unary({"exp", "atan", "cbrt", "lgamma", "i0", "tanhshrink"}, DType::f64, {7, 9});
  unary({"erfc", "ndtr", "exp2"}, DType::f32, {7, 9});
  unary({"softmax", "layer_norm"}, DType::bf16, {64, 1000});
  unary({"softmax"}, DType::f32, {4000, 16384});
  unary({"sum", "max", "cumsum", "argmax", "sort"}, DType::f16, {300, 40});
  unary({"sum", "bitwise_not"}, DType::i8, {1 << 20});
  unary({"sum", "max", "min", "prod"}, DType::f32, {1 << 20});
  unary({"cumsum", "argmax", "argmin"}, DType::f32, {1 << 20});
  unary({"cumsum", "argmax", "cumprod"}, DType::f64, {5000, 20});
  unary({"any", "max"}, DType::boolean, {1 << 20});
  add([](Graph& g) {
    const NodeId a = g.input("a", DType::f32, {65, 33}), b = g.input("b", DType::f32, {65, 33});
    g.set_outputs({g.matmul(a, b, {.transpose_b = true}), g.reduce(ReduceKind::sum, a, 1), g.reduce(ReduceKind::max, b, 1)});
  });
  add([](Graph& g) {
    const NodeId x = g.input("x", DType::f32, {2, 4, 9, 9}), w = g.input("w", DType::f32, {6, 4, 3, 3}),
                 i = g.input("i", DType::i64, {5});
    g.set_outputs({g.conv(x, w, {}),
                   g.conv(g.input("y", DType::bf16, {2, 8, 33, 33}), g.input("v", DType::bf16, {16, 8, 3, 3}), {}),
                   g.window(x, {.max = true, .size = {2, 2, 1}}), g.take(x, i, 3), g.cast(x, DType::bfloat8_b)});
  });
  unary({"sort", "argsort", "median"}, DType::f32, {20, 5000});
  unary({"sort"}, DType::bf16, {100, 1000});
  unary({"log_softmax", "sum"}, DType::bf16, {100, 40'000});
  unary({"argsort"}, DType::i64, {1 << 20});
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16})
    add([&](Graph& g) {
      std::vector<NodeId> outputs;
      for (const std::int64_t rows : {1, 3, 200})
        for (const std::int64_t width : {64, 40, 128, 256}) {
          const NodeId q = g.input("q", dtype, {2, 4, rows, width}), k = g.input("k", dtype, {2, 2, 300, width});
          outputs.push_back(apply(g, "scaled_dot_product_attention", {q, k, k})[0]);
          if (width == 64) outputs.push_back(apply(g, "scaled_dot_product_attention", {q, k, k}, {{"causal", true}})[0]);
          if (width != 40) continue;
          outputs.push_back(apply(g, "scaled_dot_product_attention", {q, k, k, g.input("m", dtype, {rows, 300})})[0]);
        }
      g.set_outputs(outputs);
    });
  // The last keys and values are renewed by attention itself.
  for (const std::int64_t width : {32, 64, 128})
    add([&](Graph& g) {
      const NodeId q = g.input("q", DType::f32, {2, 16, 1, width}), before = g.input("before", DType::f32, {2, 8, 6000, width});
      const NodeId is_new = g.broadcast(g.input("is_new", DType::boolean, {2, 1, 32, 1}), {2, 8, 32, width});
      const NodeId x = g.broadcast(g.input("x", DType::f32, {2, 8, 1, width}), {2, 8, 32, width});
      const NodeId lately =
          apply(g, "where", {is_new, apply(g, "neg", {x})[0], g.input("old", DType::f32, {2, 8, 32, width})})[0];
      const auto both = [&](std::int64_t first) {
        const std::int64_t start[] = {0, first, 0, 0}, step[] = {1, 1, 1, 1};
        const std::int64_t many[] = {2, 4, 6000, width}, few[] = {2, 4, 32, width};
        const NodeId parts[] = {g.slice(before, start, many, step), g.slice(lately, start, few, step)};
        return g.concat(parts, 2);
      };
      g.set_outputs({apply(g, "scaled_dot_product_attention", {q, both(0), both(4)})[0], lately});
    });
  add([](Graph& g) {
    const NodeId x = g.input("x", DType::f32, {2, 8, 33, 40}), w = g.input("w", DType::f32, {16, 1, 3, 3});
    const NodeId table = g.input("t", DType::f32, {1000, 64}), i = g.input("i", DType::i64, {500, 1});
    g.set_outputs({g.conv(x, w, {.groups = 8}), g.window(x, {.max = false, .size = {3, 3, 1}, .stride = {2, 2, 1}}),
                   g.scatter(table, g.broadcast(i, {500, 64}), g.input("u", DType::f32, {500, 64}), 0, true)});
  });
  for (const DType dtype : {DType::f16, DType::bf16})
    add([&](Graph& g) {
      const NodeId x = g.input("x", dtype, {2, 64, 40, 40}), w = g.input("w", dtype, {64, 64, 3, 3});
      const NodeId volume = g.input("volume", dtype, {2, 32, 9, 12, 13}), cube = g.input("cube", dtype, {40, 32, 3, 3, 3});
      const NodeId turned = g.input("turned", dtype, {64, 32, 4, 4});
      const NodeId y = g.input("y", dtype, {2, 20, 300}), v = g.input("v", dtype, {24, 20, 5});
      const NodeId photos = g.input("photos", dtype, {32, 64, 40, 40}), filters = g.input("filters", dtype, {128, 64, 3, 3});
      g.set_outputs({g.conv(photos, filters, {.pad_low = {1, 1}, .pad_high = {1, 1}}),
                     g.conv(volume, cube, {.pad_low = {1, 1, 1}, .pad_high = {1, 1, 1}}),
                     apply(g, "conv_transpose2d", {x, turned}, {{"stride", 2}, {"padding", 1}})[0], g.conv(x, w, {}),
                     g.conv(x, w, {.stride = {2, 1, 1}, .dilation = {1, 2, 1}}), g.conv(y, v, {}),
                     g.cast(g.conv(photos, filters, {}), DType::f32), g.cast(g.conv(x, w, {}), DType::f32)});
    });
  add([](Graph& g) {
    g.set_outputs({g.random({100}, DType::f32, true, 7), g.random({100}, DType::f64, false, 7), g.iota({5}, 0)});
  });
  add([](Graph& g) {
    const NodeId x = g.input("x", DType::bf16, {33, 10}), row = g.input("row", DType::f32, {10});
    const auto one = [&](const char* op, std::vector<NodeId> operands, std::vector<NamedValue> values = {}) {
      return apply(g, find_op(op), operands, values)[0];
    };
    const NodeId kept = one("greater", {g.random({33, 10}, DType::f32, false, 7), row});
    const std::int64_t border[] = {3, 3};
    g.set_outputs({one("where", {kept, x, g.literal(0.0)}), one("exp", {g.random({100}, DType::f64, false, 8)}),
                   one("exp", {g.random({102}, DType::f32, true, 9)}), one("abs", {g.random({102}, DType::f64, true, 9)}),
                   g.pad(x, border, border, 1), g.pad(g.broadcast(row, {33, 10}), border, border, 1)});
  });
  for (const DType dtype : {DType::f32, DType::bf16})
    add([&](Graph& g) {
      const NodeId volume = g.input("volume", dtype, {2, 3, 9, 12, 16}), line = g.input("line", dtype, {2, 3, 41});
      const NodeId a = g.input("a", dtype, {50, 3}), b = g.input("b", dtype, {50, 3});
      g.set_outputs({g.window(volume, {.max = false, .size = {3, 3, 3}, .stride = {2, 2, 2}}),
                     g.window(line, {.max = true, .size = {3, 1, 1}, .stride = {2, 1, 1}}), apply(g, "cross", {a, b})[0]});
    });
  return all;
}

class CudaDialect : public testing::TestWithParam<const char*> {};

KernelTarget card(std::string_view architecture) {
  return {.dialect = Dialect::cuda,
          .has_matrix_units = true,
          .has_warpgroup_products = architecture.ends_with('a'),
          .compute_units = 132,
          .max_group_size = 1024,
          .local_bytes = 48 * 1024};
}

// Of equal kernels one.
std::vector<const Kernel*> kernels_of(std::span<const KernelPlan> plans) {
  std::vector<const Kernel*> kernels;
  std::set<std::string_view> entries;
  for (const KernelPlan& plan : plans)
    for (const Kernel& kernel : plan.kernels)
      if (entries.insert(kernel.entry).second) kernels.push_back(&kernel);
  return kernels;
}

TEST_P(CudaDialect, CompilesForTheArchitecture) {
  if (!nvrtc()) GTEST_SKIP() << "there is no NVRTC here (tools/plugins fetches it)";
  const KernelTarget target = card(GetParam());
  std::vector<KernelPlan> plans;
  for (const Graph& graph : graphs()) plans.push_back(plan_kernels(graph, target));
  const std::vector<const Kernel*> kernels = kernels_of(plans);
  EXPECT_GT(kernels.size(), 25u);
  const auto is_bound = [](const Kernel* kernel) { return kernel->needs_warpgroup_products; };
  EXPECT_EQ(std::ranges::any_of(kernels, is_bound), target.has_warpgroup_products);
  EXPECT_EQ(compile(module_text(target, kernels), compiler_options(target), GetParam()), "");
}

TEST_P(CudaDialect, CompilesRandomPrograms) {
  if (!nvrtc()) GTEST_SKIP() << "there is no NVRTC here (tools/plugins fetches it)";
  const KernelTarget target = card(GetParam());
  constexpr DType kTypes[] = {DType::f32, DType::bf16, DType::f16};
  std::vector<KernelPlan> plans;
  for (const std::uint32_t seed : conformance::random_seeds(12))
    plans.push_back(plan_kernels(conformance::RandomProgram(seed, kTypes[seed % 3]).graph(), target));
  EXPECT_EQ(compile(module_text(target, kernels_of(plans)), compiler_options(target), GetParam()), "");
}

INSTANTIATE_TEST_SUITE_P(, CudaDialect, testing::Values("sm_80", "sm_90", "sm_90a", "sm_100"));

}  // namespace
}  // namespace tenon
