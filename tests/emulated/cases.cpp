#include "emulated/cases.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "emulated/program.h"
#include "reference/reference.h"
#include "tenon/error.h"

namespace tenon::emulated {
namespace {

void expect_close(const HostArray& result, const HostArray& expected, double limit, const std::string& what) {
  double most = 0, largest = 0;
  std::int64_t worst = -1;
  for (std::int64_t i = 0; i < result.elements(); ++i) {
    const double x = result.value(i), y = expected.value(i);
    if (x == y || (std::isnan(x) && std::isnan(y))) continue;
    const double difference = std::abs(x - y);
    if (std::isfinite(y)) largest = std::max(largest, std::abs(y));
    if (difference <= most) continue;
    most = std::isfinite(difference) ? difference : INFINITY;  // also for what is no number
    worst = i;
  }
  for (std::int64_t i = 0; i < result.elements(); ++i)
    if (const double y = expected.value(i); std::isfinite(y)) largest = std::max(largest, std::abs(y));
  const double allowed = is_float(result.dtype()) ? limit * largest : 0;
  EXPECT_LE(most, allowed) << what << ": element " << worst << " of " << to_string(result.shape()) << " is "
                           << (worst < 0 ? 0 : result.value(worst)) << " instead of " << (worst < 0 ? 0 : expected.value(worst));
}

}  // namespace

KernelTarget card(int units) {
  return {.dialect = Dialect::cuda, .compute_units = units, .max_group_size = 1024, .local_bytes = 48 * 1024};
}

HostArray Numbers::normal(DType dtype, const Shape& shape, double scale, double mean) {
  HostArray all = HostArray::empty(DType::f32, shape);
  // A sum of four uniform numbers is normal enough, and cheap.
  for (float& x : all.mutable_view<float>()) {
    double sum = 0;
    for (int i = 0; i < 4; ++i) sum += static_cast<double>(engine_()) * 0x1p-32 - 0.5;
    x = static_cast<float>(mean + scale * sum * std::sqrt(3.0));
  }
  return all.cast(dtype);
}

HostArray Numbers::below(DType dtype, const Shape& shape, std::int64_t limit) {
  HostArray all = HostArray::empty(DType::i64, shape);
  std::uniform_int_distribution<std::int64_t> draw(0, limit - 1);
  for (std::int64_t& x : all.mutable_view<std::int64_t>()) x = draw(engine_);
  return all.cast(dtype);
}

void Cases::check() const {
  std::vector<KernelPlan> plans;
  std::vector<const Kernel*> kernels;
  std::set<std::string> entries;
  for (const Case& c : cases_) {
    plans.push_back(plan_kernels(c.graph, c.target));
  }
  for (std::size_t i = 0; i < cases_.size(); ++i)
    for (const Kernel& kernel : plans[i].kernels) {
      ASSERT_EQ(what_is_missing(kernel), "") << cases_[i].name;
      if (entries.insert(kernel.entry).second) kernels.push_back(&kernel);
    }
  KernelLibrary library(card(), kernels);
  for (std::size_t i = 0; i < cases_.size(); ++i) {
    const Case& c = cases_[i];
    const std::vector<HostArray> expected = reference_run(c.graph, c.inputs);
    for (const Temporaries temporaries : {Temporaries::apart, Temporaries::as_planned}) {
      const std::string what =
          fmt::format("{}, temporaries {}", c.name, temporaries == Temporaries::apart ? "apart" : "as planned");
      try {
        const std::vector<HostArray> results = run_plan(plans[i], library, c.inputs, temporaries);
        ASSERT_EQ(results.size(), expected.size()) << what;
        for (std::size_t k = 0; k < results.size(); ++k)
          expect_close(results[k], expected[k], c.limit, fmt::format("{}, output {}", what, k));
      } catch (const Error& error) {
        ADD_FAILURE() << what << ": " << error.what();
      }
    }
  }
}

}  // namespace tenon::emulated
