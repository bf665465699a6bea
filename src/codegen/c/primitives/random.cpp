// Random numbers (graph/random.h). On CUDA a work-item draws four neighbours, because one call of the generator gives four f32 or
// two f64, and computes of them what the group that alone reads them makes of them: the numbers themselves are never in memory.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "codegen/c/loops/geometry.h"
#include "codegen/c/loops/group.h"
#include "codegen/c/primitives/primitives.h"
#include "graph/elementwise.h"

namespace tenon::emit {
namespace {

std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

// Neighbours of a work-item: four, and two where all that is stored has 64 bits, so that a warp stores whole cache lines at once.
constexpr std::int64_t kTogether = 4, kWideTogether = 2;

// Whole numbers from 0 to |range| - 1, which |result| is: the cast of the rounded-down product of uniform doubles.
struct WholeNumbers {
  NodeId product = -1, floor = -1, result = -1;
  std::int64_t range = 0;
};

// Where nothing else of the group reads the doubles or what is between them and the result.
std::optional<WholeNumbers> find_whole_numbers(const GroupReader& reader, NodeId random) {
  const Graph& graph = reader.graph();
  const Group& group = reader.group();
  const auto readers_of = [&](auto reads) {
    std::vector<NodeId> found;
    for (const NodeId id : group.nodes)
      if (std::ranges::any_of(graph[id].inputs, reads)) found.push_back(id);
    return found;
  };
  const auto is = [&](NodeId id, ElementwiseOp op) {
    return graph[id].prim == Prim::elementwise && graph[id].as<ElementwiseAttr>().op == op;
  };
  const auto only_reader = [&](NodeId member) -> NodeId {
    if (std::ranges::count(group.outputs, member) > 0) return -1;
    const std::vector<NodeId> all = readers_of([&](NodeId operand) { return reader.member(operand) == member; });
    return all.size() == 1 ? all[0] : -1;
  };
  const auto is_drawn = [&](NodeId operand) {
    const int k = reader.external_index(operand);
    return k >= 0 && reader.externals()[at(k)].view.base == random;
  };
  const RandomAttr& attr = graph[random].as<RandomAttr>();
  const std::vector<NodeId> first = readers_of(is_drawn);
  if (attr.normal || graph[random].dtype != DType::f64 || first.size() != 1 || !is(first[0], ElementwiseOp::Mul))
    return std::nullopt;
  WholeNumbers numbers{.product = first[0]};
  const auto& factors = graph[numbers.product].inputs;
  const NodeId factor = is_drawn(factors[0]) ? factors[1] : factors[0];
  if (is_drawn(factor)) return std::nullopt;
  const std::optional<double> range = reader.number_value(factor);
  if (!range || *range < 1 || *range > 0x1p32 - 1 || *range != std::floor(*range)) return std::nullopt;
  numbers.range = static_cast<std::int64_t>(*range);
  numbers.floor = only_reader(numbers.product);
  if (numbers.floor < 0 || !is(numbers.floor, ElementwiseOp::Floor)) return std::nullopt;
  numbers.result = only_reader(numbers.floor);
  if (numbers.result < 0 || graph[numbers.result].prim != Prim::cast || graph[numbers.result].dtype != DType::i64)
    return std::nullopt;
  return numbers;
}

// Statements that define |words|, of which each of the |together| numbers from j * |together| on has two.
std::string words_text(Body& body, const RandomAttr& attr, std::int64_t together) {
  const std::string seed = "(u64)" + body.parameters().whole_number(static_cast<std::int64_t>(attr.seed));
  return fmt::format("Words words[{0}];\nUNROLL for (i32 pair = 0; pair < {0}; ++pair) words[pair] = {1};\n", together / 2,
                     body.call("philox", fmt::format("{}, (u64)j * {} + pair, 1u", seed, together / 2)));
}

// Statements that define |values|, the |together| numbers from j * |together| on; four of f32.
std::string drawn_text(Body& body, const RandomAttr& attr, DType dtype, std::int64_t together) {
  const std::string seed = "(u64)" + body.parameters().whole_number(static_cast<std::int64_t>(attr.seed));
  std::string text = fmt::format("{} values[{}];\n", variable_type(dtype), together);
  if (dtype == DType::f64 && attr.normal) {
    for (int l = 0; l < together; ++l)
      text +=
          fmt::format("values[{}] = {};\n", l, body.call("normal_f64", fmt::format("{}, (u64)j * {} + {}", seed, together, l)));
  } else if (dtype == DType::f64) {
    text += fmt::format("UNROLL for (i32 pair = 0; pair < {}; ++pair) {{\nconst Words words = {};\n", together / 2,
                        body.call("philox", fmt::format("{}, (u64)j * {} + pair, 1u", seed, together / 2)));
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

// Work-items that each have |together| neighbours of |count| elements, of which the last may be fewer: |first| is the number of
// the first.
class Quads {
 public:
  Quads(const KernelTarget& target, std::int64_t count, bool wide, std::int64_t together)
      : count_(count),
        together_(together),
        parameters_(wide),
        body_(target, parameters_) {}

  Body& body() { return body_; }

  // Neighbours of a dense input in the array |name|.
  std::string loads(const std::string& name, DType stored, const std::string& buffer, std::int64_t offset) {
    const std::string type = stored_type(stored);
    const std::string from =
        offset == 0 ? buffer + " + first" : fmt::format("{} + {} + first", buffer, parameters_.index(offset));
    std::string text = fmt::format("VARRAY({}, {}, {});\n", type, together_, name), words;
    for (std::int64_t k = 0; k < together_; k += word_of(stored))
      words += fmt::format("VLOAD({}, {}, {} + {}, {} + {});\n", type, word_of(stored), name, k, from, k);
    return text + whole_or_each(words, fmt::format("{}[l] = ({})[l];\n", name, from));
  }
  std::string stores(const std::string& name, DType stored, const std::string& buffer) {
    std::string words;
    for (std::int64_t k = 0; k < together_; k += word_of(stored))
      words +=
          fmt::format("VSTORE({0}, {1}, {2} + {3}, {4} + first + {3});\n", stored_type(stored), word_of(stored), name, k, buffer);
    return whole_or_each(words, fmt::format("{}[first + l] = {}[l];\n", buffer, name));
  }

  // |inside| begins after the definitions of j and first.
  Launch run(const std::string& inside) {
    // No more groups than run at a time: the keys of the generator are then computed once for many numbers.
    const std::int64_t quads = ceil_div(count_, together_);
    const auto groups =
        static_cast<std::uint32_t>(std::min<std::int64_t>(ceil_div(quads, 256), body_.target().compute_units * 8));
    const std::string& ix = parameters_.index_type();
    const std::string text = fmt::format(
        "for ({0} j = blockIdx.x * 256u + threadIdx.x; j < ({0}){1}; j += gridDim.x * 256u) {{\nconst {2} first = ({2})j * "
        "{3};\n",
        quads < (std::int64_t{1} << 31) ? "u32" : "u64", parameters_.whole_number(quads), ix, together_);
    return make_launch(body_, {256, 1, 1}, {std::max(groups, 1u), 1, 1}, text + inside + "}\n");
  }

 private:
  std::string whole_or_each(const std::string& whole, const std::string& each) {
    if (count_ % together_ == 0) return whole;
    if (count_name_.empty()) count_name_ = parameters_.index(count_);
    return fmt::format("if ({0} - first >= {1}) {{\n{2}}} else {{\nfor (i32 l = 0; l < {1}; ++l) if (first + l < {0}) {3}}}\n",
                       count_name_, together_, whole, each);
  }

  // Elements of |dtype| that one load or store moves.
  std::int64_t word_of(DType dtype) const {
    return std::min<std::int64_t>(together_, 16 / static_cast<std::int64_t>(element_bytes(dtype)));
  }

  const std::int64_t count_, together_;
  Parameters parameters_;
  Body body_;
  std::string count_name_;
};

}  // namespace

Launch emit_random(const KernelTarget& target, const RandomAttr& attr, DType dtype, const Dense& out) {
  if (target.dialect == Dialect::cuda) {
    const std::int64_t together = dtype == DType::f64 && element_bytes(out.stored) == 8 ? kWideTogether : kTogether;
    Quads quads(target, out.shape.elements(), true, together);
    Body& body = quads.body();
    const std::string to = body.parameters().output(out.stored, out.slot);
    std::string text = drawn_text(body, attr, dtype, together);
    text += fmt::format("VARRAY({}, {}, r);\nUNROLL for (i32 l = 0; l < {}; ++l) r[l] = {};\n", stored_type(out.stored), together,
                        together, body.to_store(out.stored, "values[l]"));
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
  bool is_wide = compute_dtype(node.dtype) == DType::f64;
  for (const NodeId output : reader.group().outputs)
    for (const StoredValue& to : placement.targets(output)) is_wide = is_wide && element_bytes(to.stored) == 8;
  const std::int64_t together = is_wide ? kWideTogether : kTogether;
  const auto is_vector = [&](const External& e) { return is_dense(e.view) && e.view.offset % together == 0; };
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
  Quads quads(target, domain.elements(), furthest >= (std::int64_t{1} << 31) - (1 << 24) || !fits_i32(axes, offsets), together);
  Body& body = quads.body();
  Parameters& p = body.parameters();
  const std::optional<WholeNumbers> whole = find_whole_numbers(reader, random);
  const RandomAttr& attr = node.as<RandomAttr>();
  std::string text = whole ? words_text(body, attr, together) : drawn_text(body, attr, compute_dtype(node.dtype), together),
              inside;
  std::map<NodeId, std::string> known;
  if (whole)
    known = {
        {whole->product, ""},
        {whole->floor, ""},
        {whole->result, body.call("unit_below", fmt::format("words[l / 2].w[l % 2 * 2], words[l / 2].w[l % 2 * 2 + 1], (u32){}",
                                                            p.whole_number(whole->range)))}};
  if (!offsets.empty()) {
    const std::string& ix = p.index_type();
    inside = fmt::format("const {0} i = first + l;\n", ix) + offset_text(p, axes, offsets, "i");
  }
  inside += element_text(
      reader, body,
      [&](const External& e) -> std::string {
        if (e.view.base == random) return whole ? "0.0" : "values[l]";
        const auto k = &e - reader.externals().data();
        const std::string buffer = p.input(e.from.stored, e.from.slot);
        if (placed[at(k)] >= 0) return body.loaded(e.from.stored, fmt::format("{}[o{}]", buffer, placed[at(k)]));
        text += quads.loads(fmt::format("p{}", k), e.from.stored, buffer, e.view.offset);
        return body.loaded(e.from.stored, fmt::format("p{}[l]", k));
      },
      known);
  std::string stores;
  int count = 0;
  for (const NodeId output : reader.group().outputs)
    for (const StoredValue& to : placement.targets(output)) {
      const std::string name = fmt::format("q{}", count++);
      text += fmt::format("VARRAY({}, {}, {});\n", stored_type(to.stored), together, name);
      inside += fmt::format("{}[l] = {};\n", name, body.to_store(to.stored, reader.name(output)));
      stores += quads.stores(name, to.stored, p.output(to.stored, to.slot));
    }
  return quads.run(text + fmt::format("UNROLL for (i32 l = 0; l < {}; ++l) {{\n{}}}\n", together, inside) + stores);
}

}  // namespace tenon::emit
