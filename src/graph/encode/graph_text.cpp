#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/siphash.h"
#include "graph/elementwise.h"
#include "graph/optimize/region.h"
#include "tenon/graph.h"

namespace tenon {
namespace {

struct AttributeText {
  const Node& node;
  std::size_t rank() const { return static_cast<std::size_t>(node.shape.rank()); }
  template <class T>
  auto first(const T& list) const {
    return fmt::join(list.begin(), list.begin() + static_cast<std::ptrdiff_t>(std::min(rank(), list.size())), ",");
  }
  std::string spatial(const Spatial& s) const { return fmt::format("{}", fmt::join(s, ",")); }

  std::string operator()(std::monostate) const { return ""; }
  std::string operator()(const InputAttr& a) const { return fmt::format("{}", a.index); }
  std::string operator()(const ConstantAttr& a) const {
    if (a.value.bytes() > 256) {
      const SipHash::Digest digest = SipHash::of({}, std::span(a.value.data(), a.value.bytes()));
      return fmt::format("#{:016x}{:016x}", digest.high, digest.low);
    }
    std::string hex;
    for (std::size_t i = 0; i < a.value.bytes(); ++i) hex += fmt::format("{:02x}", static_cast<unsigned>(a.value.data()[i]));
    return hex;
  }
  std::string operator()(const ElementwiseAttr& a) const {
    std::string text = name(a.op);
    for (int i = 0; i < traits(a.op).params; ++i) text += fmt::format(" {}", a.params[static_cast<std::size_t>(i)]);
    return text;
  }
  std::string operator()(const TransposeAttr& a) const { return fmt::format("perm {}", first(a.perm)); }
  std::string operator()(const SliceAttr& a) const { return fmt::format("start {} step {}", first(a.start), first(a.step)); }
  std::string operator()(const PadAttr& a) const { return fmt::format("low {} value {}", first(a.low), a.value); }
  std::string operator()(const AxisAttr& a) const { return fmt::format("axis {}", a.axis); }
  std::string operator()(const ScatterAttr& a) const { return fmt::format("axis {}{}", a.axis, a.add ? " add" : ""); }
  std::string operator()(const ReduceAttr& a) const { return fmt::format("{} axes {:b}", name(a.kind), a.axes); }
  std::string operator()(const ArgReduceAttr& a) const {
    return fmt::format("{} axis {}", a.largest ? "largest" : "smallest", a.axis);
  }
  std::string operator()(const MatMulAttr& a) const {
    return fmt::format("{}{}", a.transpose_a ? "ta" : "", a.transpose_b ? "tb" : "");
  }
  std::string operator()(const ConvAttr& a) const {
    return fmt::format("stride {} dilation {} pad {} {} groups {}", spatial(a.stride), spatial(a.dilation), spatial(a.pad_low),
                       spatial(a.pad_high), a.groups);
  }
  std::string operator()(const WindowAttr& a) const {
    return fmt::format("{} size {} stride {} dilation {} pad {} {}", a.max ? "max" : "sum", spatial(a.size), spatial(a.stride),
                       spatial(a.dilation), spatial(a.pad_low), spatial(a.pad_high));
  }
  std::string operator()(const ArgSortAttr& a) const {
    return fmt::format("axis {}{}", a.axis, a.descending ? " descending" : "");
  }
  std::string operator()(const CumulativeAttr& a) const {
    return fmt::format("axis {}{}", a.axis, a.product ? " product" : " sum");
  }
  std::string operator()(const RandomAttr& a) const { return fmt::format("{} seed {}", a.normal ? "normal" : "uniform", a.seed); }
  std::string operator()(const RegionAttr& a) const { return region_text(a); }
};

}  // namespace

std::string node_text(const Node& node) {
  std::string text = fmt::format("{} {}{}{}", name(node.prim), name(node.dtype), node.weak ? "?" : "", to_string(node.shape));
  for (NodeId in : node.inputs) text += fmt::format(" %{}", in);
  const std::string attributes = std::visit(AttributeText{node}, node.attr);
  if (!attributes.empty()) text += " {" + attributes + "}";
  return text;
}

std::string Graph::text() const {
  std::string text;
  for (NodeId id = 0; id < size(); ++id) text += fmt::format("%{} = {}\n", id, node_text((*this)[id]));
  for (const Region& region : regions_)
    text += fmt::format("region %{} of %{} {{{}}}\n", region.output, fmt::join(region.inputs, " %"), region_text(region.attr));
  text += "return";
  for (NodeId id : outputs_) text += fmt::format(" %{}", id);
  text += '\n';
  return text;
}

}  // namespace tenon
