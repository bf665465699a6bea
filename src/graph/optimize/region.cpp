#include "graph/optimize/region.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <bit>
#include <utility>

#include "tenon/error.h"

namespace tenon {
namespace {

// Calls f(name, field) for every field. |A| is the attribute's type, const or not.
template <class A, class F>
void each_field(A& a, F&& f) {
  using Attr = std::remove_const_t<A>;
  if constexpr (std::is_same_v<Attr, AttentionAttr>) {
    f("scale", a.scale);
    f("causal", a.causal);
  } else if constexpr (std::is_same_v<Attr, SoftmaxAttr>) {
    f("axis", a.axis);
    f("log", a.log);
  } else if constexpr (std::is_same_v<Attr, NormAttr>) {
    f("axes", a.axes);
    f("eps", a.eps);
    f("subtract_mean", a.subtract_mean);
  } else if constexpr (std::is_same_v<Attr, TopKAttr>) {
    f("axis", a.axis);
    f("first", a.first);
    f("count", a.count);
    f("descending", a.descending);
  } else if constexpr (std::is_same_v<Attr, DistanceAttr>) {
    f("p", a.p);
  } else if constexpr (std::is_same_v<Attr, QuantizedMatMulAttr>) {
    f("bits", a.bits);
    f("group", a.group);
    f("zero", a.zero);
  } else if constexpr (std::is_same_v<Attr, AdaptivePoolAttr>) {
    f("max", a.max);
  } else if constexpr (std::is_same_v<Attr, ForestAttr>) {
    f("test", a.test);
    f("depth", a.depth);
    f("one_target_per_tree", a.one_target_per_tree);
  } else {
    static_assert(std::is_same_v<Attr, ConvTransposeAttr>);
    f("stride", a.stride);
    f("dilation", a.dilation);
    f("pad_low", a.pad_low);
    f("pad_high", a.pad_high);
    f("groups", a.groups);
  }
}

class Checker {
 public:
  Checker(const Graph& graph, const Region& region) : graph_(graph), region_(region) {}

  void run() const {
    require(region_.output >= 0 && region_.output < graph_.size(), "an output that does not exist");
    for (const NodeId id : region_.inputs) require(id >= 0 && id < region_.output, "an input that does not precede the output");
    std::visit(*this, region_.attr);
  }

  void operator()(const AttentionAttr&) const {
    inputs(3, 4);
    const Shape &q = shape(0), &k = shape(1), &v = shape(2);
    require(q.rank() == 4 && k.rank() == 4 && v.rank() == 4 && out().shape.rank() == 4, "tensors that do not have four axes");
    require(q[0] == k[0] && k[0] == v[0] && k[1] == v[1] && k[1] > 0 && q[1] % k[1] == 0, "batches or heads that do not match");
    require(q[3] == k[3] && k[2] == v[2], "rows that do not match");
    require(out().shape == Shape{q[0], q[1], q[2], v[3]}, "a result of the wrong shape");
    for (std::size_t i = 0; i < 3; ++i) require(in(i).dtype == out().dtype && is_float(out().dtype), "dtypes that do not match");
    if (region_.inputs.size() < 4) return;
    require(shape(3) == Shape{q[0], q[1], q[2], k[2]}, "a mask of the wrong shape");
    require(in(3).dtype == DType::boolean || in(3).dtype == out().dtype, "a mask of the wrong dtype");
  }
  void operator()(const SoftmaxAttr& a) const {
    inputs(1, 1);
    has_axis(shape(0), a.axis);
    like_first();
  }
  void operator()(const NormAttr& a) const {
    inputs(1, 3);
    require((a.axes >> shape(0).rank()) == 0, "an axis that does not exist");
    like_first();
    for (std::size_t i = 1; i < region_.inputs.size(); ++i)
      require(broadcastable(shape(i), shape(0)) && in(i).dtype == out().dtype, "a weight that does not match");
  }
  void operator()(const TopKAttr& a) const {
    inputs(1, 1);
    has_axis(shape(0), a.axis);
    const std::int64_t extent = shape(0)[a.axis];
    require(a.first >= 0 && a.count >= 0 && a.first <= extent && a.count <= extent - a.first, "a count that is out of range");
    require(out().dtype == DType::i64 && out().shape == shape(0).with(a.axis, a.count), "a result that does not match");
  }
  void operator()(const DistanceAttr&) const {
    inputs(2, 2);
    const Shape &a = shape(0), &b = shape(1), &y = out().shape;
    const int rank = y.rank();
    require(rank >= 2 && a.rank() == rank && b.rank() == rank, "the wrong rank");
    for (int i = 0; i < rank - 2; ++i) require(a[i] == y[i] && b[i] == y[i], "batches that do not match");
    require(a[rank - 1] == b[rank - 1] && y[rank - 2] == a[rank - 2] && y[rank - 1] == b[rank - 2], "rows that do not match");
    require(in(0).dtype == in(1).dtype && in(0).dtype == out().dtype && is_float(out().dtype), "dtypes that do not match");
  }
  void operator()(const ConvTransposeAttr& a) const {
    inputs(2, 2);
    const Shape &x = shape(0), &w = shape(1), &y = out().shape;
    const int axes = x.rank() - 2;
    require(axes >= 1 && axes <= 3 && w.rank() == x.rank() && y.rank() == x.rank(), "the wrong rank");
    require(a.groups >= 1 && x[1] == w[0] && w[0] % a.groups == 0 && y[0] == x[0] && y[1] == w[1] * a.groups,
            "channels that do not match");
    for (std::size_t i = 0; i < static_cast<std::size_t>(axes); ++i) {
      const int axis = static_cast<int>(i) + 2;
      constexpr std::int64_t kLimit = std::int64_t{1} << 31;
      for (const std::int64_t value : {a.stride[i], a.dilation[i]}) require(value >= 1 && value <= kLimit, "an invalid step");
      for (const std::int64_t value : {a.pad_low[i], a.pad_high[i]})
        require(value >= -kLimit && value <= kLimit, "invalid padding");
      require(x[axis] >= 1 && w[axis] >= 1 && w[axis] <= kLimit, "an empty axis");
      require(x[axis] - 1 <= kMaxElements / a.stride[i] && w[axis] - 1 <= kMaxElements / a.dilation[i],
              "an axis that is too long");
      const std::int64_t full = (x[axis] - 1) * a.stride[i] + (w[axis] - 1) * a.dilation[i] + 1;
      require(y[axis] == full - a.pad_low[i] - a.pad_high[i], "a result of the wrong shape");
    }
    require(in(0).dtype == out().dtype && in(1).dtype == out().dtype && is_float(out().dtype), "dtypes that do not match");
  }
  void operator()(const QuantizedMatMulAttr& a) const {
    inputs(3, 4);
    const Shape &x = shape(0), &codes = shape(1), &scales = shape(2), &y = out().shape;
    require((a.bits == 4 || a.bits == 8) && (a.group == 16 || a.group == 32) && a.zero >= 0 && a.zero <= 255, "unknown codes");
    require(x.rank() == 2 && y.rank() == 2 && codes.rank() == 5 && scales.rank() == 3, "the wrong rank");
    require(x[1] % 32 == 0 && x[1] > 0 && y[0] == x[0] && y[1] % 16 == 0, "rows that do not match");
    require(codes[0] == y[1] / 16 && codes[1] == x[1] / a.group && codes[2] == a.group * a.bits / 32 && codes[3] == 16 &&
                codes[4] == 4,
            "codes of the wrong shape");
    require(scales == Shape({codes[0], codes[1], 16}), "scales of the wrong shape");
    require(in(0).dtype == DType::f32 && out().dtype == DType::f32 && in(1).dtype == DType::u8 &&
                (in(2).dtype == DType::f32 || in(2).dtype == DType::f16),
            "dtypes that do not match");
    if (region_.inputs.size() == 4)
      require(shape(3) == scales && in(3).dtype == in(2).dtype, "minima that do not match the scales");
  }
  void operator()(const AdaptivePoolAttr&) const {
    inputs(1, 1);
    const Shape &x = shape(0), &y = out().shape;
    require(x.rank() >= 3 && x.rank() <= 5 && y.rank() == x.rank() && x[0] == y[0] && x[1] == y[1],
            "a result of the wrong shape");
    constexpr std::int64_t kLimit = std::int64_t{1} << 31;
    for (int axis = 2; axis < x.rank(); ++axis)
      require(x[axis] >= 1 && x[axis] <= kLimit && y[axis] >= 1 && y[axis] <= kLimit, "an empty axis, or one that is too long");
    require(in(0).dtype == out().dtype && is_float(out().dtype), "dtypes that do not match");
  }
  void operator()(const ForestAttr& a) const {
    inputs(4, 4);
    const Shape &x = shape(0), &nodes = shape(1), &roots = shape(2), &weights = shape(3), &y = out().shape;
    require(a.test <= ForestAttr::Test::gt && a.depth >= 0, "an unknown test");
    require(x.rank() == 2 && nodes.rank() == 2 && roots.rank() == 1 && y.rank() == 2, "the wrong rank");
    require(x[1] >= 1 && nodes[0] >= 1 && nodes[1] == 4 && y[0] == x[0] && y[1] >= 1, "tables of the wrong shape");
    require(weights == (a.one_target_per_tree ? roots : Shape({nodes[0], y[1]})), "weights of the wrong shape");
    require(in(0).dtype == DType::f32 && in(1).dtype == DType::i32 && in(2).dtype == DType::i64 &&
                in(3).dtype == (a.one_target_per_tree ? DType::i64 : DType::f32) && out().dtype == DType::f32,
            "dtypes that do not match");
  }

 private:
  void require(bool condition, const char* what) const {
    if (!condition) throw Error(ErrorCode::invalid_argument, fmt::format("a region of {} with {}", name(region_.attr), what));
  }
  void inputs(std::size_t least, std::size_t most) const {
    require(region_.inputs.size() >= least && region_.inputs.size() <= most, "the wrong number of inputs");
  }
  void has_axis(const Shape& shape, int axis) const { require(axis >= 0 && axis < shape.rank(), "an axis that does not exist"); }
  void like_first() const {
    require(out().shape == shape(0) && out().dtype == in(0).dtype && is_float(out().dtype), "a result that does not match");
  }
  const Node& in(std::size_t i) const { return graph_[region_.inputs[i]]; }
  const Shape& shape(std::size_t i) const { return in(i).shape; }
  const Node& out() const { return graph_[region_.output]; }

  const Graph& graph_;
  const Region& region_;
};

template <std::size_t... I>
RegionAttr default_attr(std::size_t index, std::index_sequence<I...>) {
  RegionAttr attr;
  ((index == I ? void(attr = std::variant_alternative_t<I, RegionAttr>{}) : void()), ...);
  return attr;
}

}  // namespace

std::string_view name(const RegionAttr& attr) noexcept {
  constexpr std::string_view names[] = {"attention",      "softmax",          "norm",          "top_k", "cdist",
                                        "conv_transpose", "quantized_matmul", "adaptive_pool", "forest"};
  static_assert(std::size(names) == std::variant_size_v<RegionAttr>);
  return names[attr.index()];
}

void check_region(const Graph& graph, const Region& region) { Checker(graph, region).run(); }

void add_region(SipHash& hash, const RegionAttr& attr) {
  hash.add(attr.index());
  const auto add = [&](std::string_view, const auto& field) {
    using T = std::remove_cvref_t<decltype(field)>;
    if constexpr (std::is_same_v<T, Spatial>)
      for (const std::int64_t value : field) hash.add(static_cast<std::uint64_t>(value));
    else if constexpr (std::is_same_v<T, double>)
      hash.add(std::bit_cast<std::uint64_t>(field));
    else
      hash.add(static_cast<std::uint64_t>(field));
  };
  std::visit([&](const auto& a) { each_field(a, add); }, attr);
}

std::string region_text(const RegionAttr& attr) {
  std::string text(name(attr));
  const auto add = [&](std::string_view field_name, const auto& field) {
    using T = std::remove_cvref_t<decltype(field)>;
    if constexpr (std::is_same_v<T, Spatial>)
      text += fmt::format(" {} {}", field_name, fmt::join(field, ","));
    else if constexpr (std::is_enum_v<T>)
      text += fmt::format(" {} {}", field_name, static_cast<int>(field));
    else
      text += fmt::format(" {} {}", field_name, field);
  };
  std::visit([&](const auto& a) { each_field(a, add); }, attr);
  return text;
}

void write_region(ByteWriter& out, const RegionAttr& attr) {
  out.byte(static_cast<std::uint8_t>(attr.index()));
  const auto write = [&](std::string_view, const auto& field) {
    using T = std::remove_cvref_t<decltype(field)>;
    if constexpr (std::is_same_v<T, Spatial>)
      for (const std::int64_t value : field) out.integer(value);
    else if constexpr (std::is_same_v<T, double>)
      out.real(field);
    else if constexpr (std::is_same_v<T, bool>)
      out.flag(field);
    else if constexpr (std::is_enum_v<T>)
      out.byte(static_cast<std::uint8_t>(field));
    else
      out.integer(field);
  };
  std::visit([&](const auto& a) { each_field(a, write); }, attr);
}

RegionAttr read_region(ByteReader& in) {
  constexpr std::size_t kKinds = std::variant_size_v<RegionAttr>;
  RegionAttr attr = default_attr(in.below(kKinds, "a region that does not exist"), std::make_index_sequence<kKinds>());
  const auto read = [&](std::string_view, auto& field) {
    using T = std::remove_cvref_t<decltype(field)>;
    if constexpr (std::is_same_v<T, Spatial>) {
      for (std::int64_t& value : field) value = in.integer();
    } else if constexpr (std::is_same_v<T, double>) {
      field = in.real();
    } else if constexpr (std::is_same_v<T, bool>) {
      field = in.flag();
    } else if constexpr (std::is_enum_v<T>) {
      field = static_cast<T>(in.byte());
    } else {
      const std::int64_t value = in.integer();
      if (!std::in_range<T>(value)) ByteReader::fail("a region with a number that is out of range");
      field = static_cast<T>(value);
    }
  };
  std::visit([&](auto& a) { each_field(a, read); }, attr);
  return attr;
}

}  // namespace tenon
