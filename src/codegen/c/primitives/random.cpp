// Random numbers (graph/random.h). On CUDA a work-item draws four neighbours, because one call of the generator gives four f32 or
// two f64, and computes of them what the group that alone reads them makes of them: the numbers themselves are never in memory.
#include <fmt/format.h>

#include <algorithm>

#include "codegen/c/loops/geometry.h"
#include "codegen/c/loops/group.h"
#include "codegen/c/primitives/primitives.h"

namespace tenon::emit {
namespace {

std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

constexpr std::int64_t kTogether = 4;

// Statements that define |values|, the numbers 4 * j to 4 * j + 3.
std::string drawn_text(Body& body, const RandomAttr& attr, DType dtype) {
  const std::string seed = "(u64)" + body.parameters().whole_number(static_cast<std::int64_t>(attr.seed));
  std::string text = fmt::format("{} values[{}];\n", variable_type(dtype), kTogether);
  if (dtype == DType::f64 && attr.normal) {
    for (int l = 0; l < kTogether; ++l)
      text += fmt::format("values[{}] = {};\n", l, body.call("normal_f64", fmt::format("{}, (u64)j * 4 + {}", seed, l)));
  } else if (dtype == DType::f64) {
    text += fmt::format("UNROLL for (i32 pair = 0; pair < 2; ++pair) {{\nconst Words words = {};\n",
                        body.call("philox", seed + ", (u64)j * 2 + pair, 1u"));
    for (int l = 0; l < 2; ++l)
      text += fmt::format("values[pair * 2 + {}] = {};\n", l,
                          body.call("unit_f64", fmt::format("words.w[{}], words.w[{}]", 2 * l, 2 * l + 1)));
    text += "}\n";
  } else {
    text +=
        fmt::format("const Words words = {};\n", body.call("philox", fmt::format("{}, (u64)j, {}u", seed, attr.normal ? 3 : 0)));
    if (attr.normal)
      for (int pair : {0, 2})
        text += body.call("normal_pair", fmt::format("words.w[{0}], words.w[{0} + 1], values + {0}", pair)) + ";\n";
    else
      text += "UNROLL for (i32 l = 0; l < 4; ++l) values[l] = (f32)(words.w[l] >> 8) * 5.9604645e-8f;\n";
  }
  return text;
}

// Elements of |dtype| that one load or store moves.
std::int64_t word_of(DType dtype) {
  return std::min<std::int64_t>(kTogether, 16 / static_cast<std::int64_t>(element_bytes(dtype)));
}

// Work-items that each have four neighbours of |count| elements, of which the last may be fewer: |first| is the number of the
// first.
class Quads {
 public:
  Quads(const KernelTarget& target, std::int64_t count, bool wide)
      : count_(count),
        parameters_(wide),
        body_(target, parameters_) {}

  Body& body() { return body_; }

  // Four neighbours of a dense input in the array |name|.
  std::string loads(const std::string& name, DType stored, const std::string& buffer, std::int64_t offset) {
    const std::string type = stored_type(stored);
    const std::string from =
        offset == 0 ? buffer + " + first" : fmt::format("{} + {} + first", buffer, parameters_.index(offset));
    std::string text = fmt::format("VARRAY({}, {}, {});\n", type, kTogether, name), words;
    for (std::int64_t k = 0; k < kTogether; k += word_of(stored))
      words += fmt::format("VLOAD({}, {}, {} + {}, {} + {});\n", type, word_of(stored), name, k, from, k);
    return text + whole_or_each(words, fmt::format("{}[l] = ({})[l];\n", name, from));
  }
  std::string stores(const std::string& name, DType stored, const std::string& buffer) {
    std::string words;
    for (std::int64_t k = 0; k < kTogether; k += word_of(stored))
      words +=
          fmt::format("VSTORE({0}, {1}, {2} + {3}, {4} + first + {3});\n", stored_type(stored), word_of(stored), name, k, buffer);
    return whole_or_each(words, fmt::format("{}[first + l] = {}[l];\n", buffer, name));
  }

  // |inside| begins after the definitions of j and first.
  Launch run(const std::string& inside) {
    // No more groups than run at a time: the keys of the generator are then computed once for many numbers.
    const std::int64_t quads = ceil_div(count_, kTogether);
    const auto groups =
        static_cast<std::uint32_t>(std::min<std::int64_t>(ceil_div(quads, 256), body_.target().compute_units * 8));
    const std::string& ix = parameters_.index_type();
    const std::string text = fmt::format(
        "for ({0} j = blockIdx.x * 256u + threadIdx.x; j < ({0}){1}; j += gridDim.x * 256u) {{\nconst {2} first = ({2})j * "
        "{3};\n",
        quads < (std::int64_t{1} << 31) ? "u32" : "u64", parameters_.whole_number(quads), ix, kTogether);
    return make_launch(body_, {256, 1, 1}, {std::max(groups, 1u), 1, 1}, text + inside + "}\n");
  }

 private:
  std::string whole_or_each(const std::string& whole, const std::string& each) {
    if (count_ % kTogether == 0) return whole;
    if (count_name_.empty()) count_name_ = parameters_.index(count_);
    return fmt::format("if ({0} - first >= {1}) {{\n{2}}} else {{\nfor (i32 l = 0; l < {1}; ++l) if (first + l < {0}) {3}}}\n",
                       count_name_, kTogether, whole, each);
  }

  const std::int64_t count_;
  Parameters parameters_;
  Body body_;
  std::string count_name_;
};

}  // namespace

Launch emit_random(const KernelTarget& target, const RandomAttr& attr, DType dtype, const Dense& out) {
  if (target.dialect == Dialect::cuda) {
    Quads quads(target, out.shape.elements(), true);
    Body& body = quads.body();
    const std::string to = body.parameters().output(out.stored, out.slot);
    std::string text = drawn_text(body, attr, dtype);
    text += fmt::format("VARRAY({}, {}, r);\nUNROLL for (i32 l = 0; l < {}; ++l) r[l] = {};\n", stored_type(out.stored),
                        kTogether, kTogether, body.to_store(out.stored, "values[l]"));
    return quads.run(text + quads.stores("r", out.stored, to));
  }
  const Access to = dense_access(out.slot, out.stored, out.shape);
  return emit_map(target, out.shape, {}, std::span(&to, 1), [&](const MapContext& context, std::vector<std::string>& outputs) {
    Body& body = context.body;
    const std::string seed = body.parameters().whole_number(static_cast<std::int64_t>(attr.seed));
    const std::string function = fmt::format("{}_{}", attr.normal ? "normal" : "uniform", variable_type(dtype));
    outputs[0] = "value";
    return fmt::format("{} value = {};\n", variable_type(dtype),
                       body.call(function, fmt::format("(u64){}, (u64){}", seed, context.index)));
  });
}

Launch emit_random_group(const KernelTarget& target, NodeId random, GroupReader& reader, const GroupPlacement& placement) {
  const Shape& domain = reader.group().domain;
  const Node& node = reader.graph()[random];
  // Dense inputs are read four at a time, others where the element's place along their axes says.
  std::vector<std::int64_t> offsets;
  std::vector<std::vector<std::int64_t>> strides;
  std::vector<int> placed(reader.externals().size(), -1);  // the number among |offsets|
  const auto is_vector = [](const External& e) { return is_dense(e.view) && e.view.offset % kTogether == 0; };
  std::int64_t furthest = domain.elements();
  for (std::size_t k = 0; k < reader.externals().size(); ++k) {
    const External& e = reader.externals()[k];
    if (e.view.base == random) continue;
    furthest = std::max(furthest, e.view.offset + domain.elements());
    if (is_vector(e)) continue;
    placed[k] = static_cast<int>(offsets.size());
    offsets.push_back(e.view.offset);
    strides.emplace_back(e.view.strides.begin(), e.view.strides.begin() + domain.rank());
  }
  Axes axes = joined({domain.begin(), domain.end()}, std::move(strides));
  Quads quads(target, domain.elements(), furthest >= (std::int64_t{1} << 31) - (1 << 24) || !fits_i32(axes, offsets));
  Body& body = quads.body();
  Parameters& p = body.parameters();
  std::string text = drawn_text(body, node.as<RandomAttr>(), compute_dtype(node.dtype)), inside;
  if (!offsets.empty()) {
    const std::string& ix = p.index_type();
    inside = fmt::format("const {0} i = first + l;\n", ix) + offset_text(p, axes, offsets, "i");
  }
  inside += element_text(reader, body, [&](const External& e) -> std::string {
    if (e.view.base == random) return "values[l]";
    const auto k = &e - reader.externals().data();
    const std::string buffer = p.input(e.from.stored, e.from.slot);
    if (placed[at(k)] >= 0) return body.loaded(e.from.stored, fmt::format("{}[o{}]", buffer, placed[at(k)]));
    text += quads.loads(fmt::format("p{}", k), e.from.stored, buffer, e.view.offset);
    return body.loaded(e.from.stored, fmt::format("p{}[l]", k));
  });
  std::string stores;
  int count = 0;
  for (const NodeId output : reader.group().outputs)
    for (const StoredValue& to : placement.targets(output)) {
      const std::string name = fmt::format("q{}", count++);
      text += fmt::format("VARRAY({}, {}, {});\n", stored_type(to.stored), kTogether, name);
      inside += fmt::format("{}[l] = {};\n", name, body.to_store(to.stored, reader.name(output)));
      stores += quads.stores(name, to.stored, p.output(to.stored, to.slot));
    }
  return quads.run(text + fmt::format("UNROLL for (i32 l = 0; l < {}; ++l) {{\n{}}}\n", kTogether, inside) + stores);
}

}  // namespace tenon::emit
