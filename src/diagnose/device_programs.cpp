#include "diagnose/device_programs.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>

#include "tenon/error.h"
#include "tenon/expression.h"

namespace tenon {
namespace {

constexpr double kNotFinite = std::numeric_limits<double>::quiet_NaN();

// The first element, or not a number when any of them is not finite.
double first_if_finite(const HostArray& array) {
  const HostArray numbers = array.cast(DType::f32);
  const std::span<const float> values = numbers.view<float>();
  const bool finite = std::all_of(values.begin(), values.end(), [](float value) { return std::isfinite(value); });
  return finite && !values.empty() ? values[0] : kNotFinite;
}

Check run_one(const std::string& device, DeviceManager& manager, const Diagnostic& diagnostic, RunOptions options) {
  Check check{.id = device + "." + diagnostic.id, .text = diagnostic.title};
  std::string wrong, remedy;
  try {
    options.device = device;
    const RunResult result = manager.run(parse_expression(diagnostic.program), {}, options);
    double seconds = 0;
    for (const Span& span : result.timeline) seconds += span.seconds;
    check.seconds = seconds;
    for (const HostArray& output : result.outputs)
      if (!std::isfinite(first_if_finite(output))) wrong = "a result is not finite";
    const double got = first_if_finite(result.outputs.at(0));
    if (wrong.empty() && std::fabs(got - diagnostic.expected) > diagnostic.tolerance)
      wrong = fmt::format("expected {}, got {}", diagnostic.expected, got);
    if (!wrong.empty())
      remedy = fmt::format("results of {} cannot be trusted; use another device and report this problem", device);
  } catch (const Error& error) {
    if (error.code() == ErrorCode::cancelled) throw;
    wrong = fmt::format("{}: {}", to_string(error.code()), error.what());
    remedy = error.hint();
  } catch (const std::exception& error) {
    wrong = error.what();
  }
  if (wrong.empty()) return check;
  check.verdict = diagnostic.severity == Severity::optional ? Verdict::warn : Verdict::fail;
  check.text = fmt::format("{}: {}", diagnostic.title, wrong);
  check.remedy = remedy;
  return check;
}

}  // namespace

const std::vector<Diagnostic>& device_diagnostics() {
  static const std::vector<Diagnostic> all{
      {"basic", Severity::critical, "the squares of 1 to 4 add up to 30", "sum([1.0, 2, 3, 4] ** 2)", 30, 0},
      // The gradients are checked along with the loss: a step against them must make it smaller.
      {"network", Severity::critical, "a network 128-64-8 learns from a batch of 16", R"(
x = randn([16, 128], seed=1); t = randn([16, 8], seed=2)
w1 = randn([128, 64], seed=3) * 0.1; w2 = randn([64, 8], seed=4) * 0.1
z = x @ w1; h = relu(z); y = h @ w2
loss = mean((y - t) ** 2)
dy = 2 * (y - t) / 128
dw2 = h.T @ dy; dw1 = x.T @ ((dy @ w2.T) * cast(z > 0, float32))
after = mean((relu(x @ (w1 - 0.01 * dw1)) @ (w2 - 0.01 * dw2) - t) ** 2)
cast(after < loss, float32), loss, dw1, dw2)",
       1, 0},
      // Multiplying by a vector first or last gives the same.
      {"matmul", Severity::important, "a product of 1024 x 1024 matrices is correct", R"(
a = rand([1024, 1024], seed=5); b = rand([1024, 1024], seed=6); v = rand([1024, 1], seed=7)
expected = a @ (b @ v)
max(abs((a @ b) @ v - expected) / expected))",
       0, 1e-4},
      {"generative", Severity::important, "attention over 4 x 32 x 64 and cosine noise are finite", R"(
q = randn([4, 32, 64], seed=8); k = randn([4, 32, 64], seed=9); v = ones([4, 32, 64])
alpha = (cos(arange(4.0) / 4 * pi / 2) ** 2)[:, None, None]
noisy = sqrt(alpha) * q + sqrt(1 - alpha) * randn([4, 32, 64], seed=10)
max(abs(attention(noisy, k, v) - 1)), noisy)",
       0, 1e-5},
      {"memory", Severity::optional, "128 MiB can be allocated, written and read back", R"(
x = full([32, 1024, 1024], 1.5)
x[31, 1023, 1023] - x[0, 0, 0] + 1.5, x)",
       1.5, 0},
  };
  return all;
}

std::vector<Check> diagnose(const std::string& device, DeviceManager& manager, const std::vector<Diagnostic>& diagnostics,
                            const RunOptions& how, const std::function<void(const Check&)>& on_check) {
  std::vector<Check> checks;
  for (const Diagnostic& diagnostic : diagnostics) {
    checks.push_back(run_one(device, manager, diagnostic, how));
    if (on_check) on_check(checks.back());
    if (checks.back().verdict == Verdict::fail && diagnostic.severity == Severity::critical) break;
  }
  return checks;
}

}  // namespace tenon
