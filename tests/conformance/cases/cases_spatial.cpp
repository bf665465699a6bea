// Convolutions and pooling over one to three spatial axes.
#include "conformance/plan.h"

namespace tenon::conformance {
namespace {

// [a, b, then |spatial| extents]
Shape with_spatial(std::int64_t a, std::int64_t b, int spatial, std::initializer_list<std::int64_t> extents) {
  std::vector<std::int64_t> dims{a, b};
  dims.insert(dims.end(), extents.begin(), extents.begin() + spatial);
  return Shape(dims);
}

template <int n>
void conv(Plan& p) {
  const auto image = [&](std::int64_t channels) { return p.x(with_spatial(2, channels, n, {9, 7, 5})); };
  p.add("plain", {image(3), p.x(with_spatial(4, 3, n, {3, 2, 3}))});
  p.add("padding and bias", {image(3), p.x(with_spatial(4, 3, n, {3, 3, 3})), p.x({4})}, {{"padding", integers({1})}});
  p.add("stride", {image(2), p.x(with_spatial(3, 2, n, {3, 3, 2}))}, {{"stride", integers({2})}, {"padding", integers({1})}});
  p.add("dilation", {image(2), p.x(with_spatial(3, 2, n, {3, 2, 2}))}, {{"dilation", integers({2})}});
  p.add("groups", {image(4), p.x(with_spatial(6, 2, n, {3, 3, 3}))}, {{"groups", integer(2)}, {"padding", integers({1})}});
  p.add("depthwise", {image(4), p.x(with_spatial(4, 1, n, {3, 3, 3}))}, {{"groups", integer(4)}});
  p.add("kernel of one", {image(5), p.x(with_spatial(3, 5, n, {1, 1, 1}))});
}
template <int n>
void conv_transpose(Plan& p) {
  const auto image = [&](std::int64_t channels) { return p.x(with_spatial(2, channels, n, {4, 3, 3})); };
  p.add("plain", {image(3), p.x(with_spatial(3, 4, n, {3, 2, 2}))});
  p.add("stride and bias", {image(3), p.x(with_spatial(3, 2, n, {3, 3, 3})), p.x({2})},
        {{"stride", integers({2})}, {"padding", integers({1})}, {"output_padding", integers({1})}});
  p.add("groups and dilation", {image(4), p.x(with_spatial(4, 3, n, {2, 3, 2}))},
        {{"groups", integer(2)}, {"dilation", integers({2})}});
}
template <int n>
void pool(Plan& p, Values values) {
  const CaseInput image = p.x(with_spatial(2, 3, n, {11, 9, 7}), values);
  p.add("plain", {image}, {{"kernel", integers({2})}});
  p.add("overlapping", {image}, {{"kernel", integers({3})}, {"stride", integers({1})}, {"padding", integers({1})}});
  p.add("dilation", {image}, {{"kernel", integers({2})}, {"stride", integers({2})}, {"dilation", integers({2})}});
}
template <int n>
void max_pool(Plan& p) {
  pool<n>(p, Values::wide);
  p.add("special values", {p.x(with_spatial(2, 3, n, {11, 9, 7}), Values::ties)},
        {{"kernel", integers({3})}, {"stride", integers({2})}});
}
template <int n>
void avg_pool(Plan& p) {
  pool<n>(p, Values::small);
  p.add("padding not counted", {p.x(with_spatial(2, 3, n, {11, 9, 7}))},
        {{"kernel", integers({3})}, {"stride", integers({2})}, {"padding", integers({1})}, {"count_include_pad", false}});
}
template <int n>
void adaptive(Plan& p) {
  const CaseInput image = p.x(with_spatial(2, 3, n, {8, 6, 4}));
  p.add("to one", {image}, {{"output_size", integers({1})}});
  p.add("even", {image}, {{"output_size", integers({2})}});
  p.add("uneven", {image}, {{"output_size", integers({3})}});
}
void global_pool(Plan& p) {
  p.add("plane", {p.x({2, 3, 5, 7})});
  p.add("line", {p.x({2, 3, 33})});
}

}  // namespace

const PlanTable& spatial_plans() {
  static const PlanTable table{
      {"conv1d", conv<1>},
      {"conv2d", conv<2>},
      {"conv3d", conv<3>},
      {"conv_transpose1d", conv_transpose<1>},
      {"conv_transpose2d", conv_transpose<2>},
      {"conv_transpose3d", conv_transpose<3>},
      {"max_pool1d", max_pool<1>},
      {"max_pool2d", max_pool<2>},
      {"max_pool3d", max_pool<3>},
      {"avg_pool1d", avg_pool<1>},
      {"avg_pool2d", avg_pool<2>},
      {"avg_pool3d", avg_pool<3>},
      {"adaptive_avg_pool1d", adaptive<1>},
      {"adaptive_avg_pool2d", adaptive<2>},
      {"adaptive_avg_pool3d", adaptive<3>},
      {"adaptive_max_pool1d", adaptive<1>},
      {"adaptive_max_pool2d", adaptive<2>},
      {"adaptive_max_pool3d", adaptive<3>},
      {"global_avg_pool", global_pool},
      {"global_max_pool", global_pool},
  };
  return table;
}

}  // namespace tenon::conformance
