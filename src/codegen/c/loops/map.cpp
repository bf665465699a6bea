#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "codegen/c/loops/geometry.h"
#include "codegen/c/loops/loop.h"

namespace tenon::emit {
namespace {

// 64 bits of FNV-1a: names only have to differ, text is compared where it matters.
std::uint64_t hash(const std::string& text) {
  std::uint64_t h = 14695981039346656037ull;
  for (char c : text) h = (h ^ static_cast<unsigned char>(c)) * 1099511628211ull;
  return h;
}

class MapEmitter {
 public:
  MapEmitter(const KernelTarget& target, const Shape& domain, std::span<const Access> inputs, std::span<const Access> outputs,
             const MapBody& map_body)
      : target_(target),
        inputs_(inputs),
        outputs_(outputs),
        map_body_(map_body),
        axes_(axes_of(domain, inputs, outputs, offsets_)),
        parameters_(target.is_cpu || !fits_i32(axes_, offsets_)),
        body_(target, parameters_) {
    if (axes_.extents.empty()) {
      axes_.extents.push_back(1);
      for (auto& strides : axes_.strides) strides.push_back(1);
    }
    inner_ = axes_.extents.back();
    for (const auto& strides : axes_.strides) inner_strides_.push_back(strides.back());
    axes_.drop_last();
    rows_ = axes_.elements();
    flat_ = axes_.extents.empty();
  }

  Launch run() {
    for (const Access& input : inputs_)
      pointers_.push_back(input.slot == kNumbers ? "" : parameters_.input(input.stored, input.slot));
    for (const Access& output : outputs_) pointers_.push_back(parameters_.output(output.stored, output.slot));
    n_ = parameters_.index(inner_);
    return target_.is_cpu ? on_cpu() : on_gpu();
  }

 private:
  static Axes axes_of(const Shape& domain, std::span<const Access> inputs, std::span<const Access> outputs,
                      std::vector<std::int64_t>& offsets) {
    std::vector<std::vector<std::int64_t>> strides;
    for (const auto& list : {inputs, outputs})
      for (const Access& a : list) {
        strides.push_back(a.strides);
        offsets.push_back(a.offset);
      }
    return joined(std::vector<std::int64_t>(domain.begin(), domain.end()), std::move(strides));
  }

  const std::string& ix() const { return parameters_.index_type(); }
  std::string row_offsets(const std::string& row) { return offset_text(parameters_, axes_, offsets_, row); }
  bool is_numbers(std::size_t k) const { return k < inputs_.size() && inputs_[k].slot == kNumbers; }
  std::string place(std::size_t k, const std::string& i) {
    const std::string offset = place_text(parameters_, fmt::format("o{}", k), i, inner_strides_[k]);
    return is_numbers(k) ? fmt::format("({})({})", variable_type(inputs_[k].stored), offset)
                         : fmt::format("{}[{}]", pointers_[k], offset);
  }

  // The body for one element: |load| gives the text of input k, |store| takes output k.
  template <class Load, class Store>
  std::string element(const std::string& index, Load load, Store store) {
    std::string text;
    std::vector<std::string> variables;
    for (std::size_t k = 0; k < inputs_.size(); ++k) {
      variables.push_back(fmt::format("x{}", k));
      text += fmt::format("{} x{} = {};\n", variable_type(inputs_[k].stored), k, body_.loaded(inputs_[k].stored, load(k)));
    }
    std::vector<std::string> results(outputs_.size());
    text += map_body_(MapContext{body_, variables, index}, results);
    for (std::size_t k = 0; k < outputs_.size(); ++k) text += store(k, body_.to_store(outputs_[k].stored, results[k]));
    return text;
  }
  std::string scalar_element() {
    return element(
        "i", [&](std::size_t k) { return place(k, "i"); },
        [&](std::size_t k, const std::string& value) {
          return fmt::format("{} = {};\n", place(inputs_.size() + k, "i"), value);
        });
  }

  Launch on_cpu() {
    // Enough pieces for every core to find work at the end, none so small that starting it costs more than running it.
    const std::int64_t total = rows_ * inner_;
    const std::int64_t pieces = std::clamp<std::int64_t>(total / target_.least_work, 1, target_.compute_units * 8);
    std::string text;
    if (flat_) {
      const std::int64_t chunk = ceil_div(ceil_div(inner_, pieces), 64) * 64;
      text += fmt::format("{0} first = (i64)group_id(0) * {1}, last = first + {1} < {2} ? first + {1} : {2};\n", ix(),
                          parameters_.index(chunk), n_);
      text += row_offsets("0");
      text += fmt::format("VECTORIZE for ({} i = first; i < last; ++i) {{\n{}}}\n", ix(), scalar_element());
      return make_launch(body_, {1, 1, 1}, {static_cast<std::uint32_t>(ceil_div(inner_, chunk)), 1, 1}, text);
    }
    const std::int64_t parts = rows_ >= pieces ? 1 : std::clamp<std::int64_t>(pieces / rows_, 1, ceil_div(inner_, 1024));
    const std::int64_t part = ceil_div(inner_, parts), row_chunk = ceil_div(rows_, std::min(pieces, rows_));
    const std::string rows = parameters_.index(rows_), step = parameters_.index(row_chunk), width = parameters_.index(part);
    text += fmt::format("{0} first = (i64)group_id(1) * {1}, last = first + {1} < {2} ? first + {1} : {2};\n", ix(), step, rows);
    text += fmt::format("{0} begin = (i64)group_id(0) * {1}, end = begin + {1} < {2} ? begin + {1} : {2};\n", ix(), width, n_);
    // An operand read across its rows: short pieces of many rows, so that a cache line serves all its elements.
    const bool across = std::ranges::any_of(inner_strides_, [](std::int64_t stride) { return stride != 0 && stride != 1; });
    if (across) {
      text += fmt::format(
          "for ({0} piece = begin; piece < end; piece += 32) {{\nconst {0} stop = piece + 32 < end ? piece + 32 : end;\n", ix());
      text += fmt::format("for ({} row = first; row < last; ++row) {{\n{}", ix(), row_offsets("row"));
      text += fmt::format("VECTORIZE for ({} i = piece; i < stop; ++i) {{\n{}}}\n}}\n}}\n", ix(), scalar_element());
    } else {
      text += fmt::format("for ({} row = first; row < last; ++row) {{\n{}", ix(), row_offsets("row"));
      text += fmt::format("VECTORIZE for ({} i = begin; i < end; ++i) {{\n{}}}\n}}\n", ix(), scalar_element());
    }
    return make_launch(
        body_, {1, 1, 1},
        {static_cast<std::uint32_t>(ceil_div(inner_, part)), static_cast<std::uint32_t>(ceil_div(rows_, row_chunk)), 1}, text);
  }

  // An input whose neighbours are read from the last to the first.
  bool is_reversed(std::size_t k) const { return k < inputs_.size() && inner_strides_[k] == -1; }

  // An input of which every second, third or fourth element is read: each by itself, from lines that the others read, too.
  bool is_spread(std::size_t k) const {
    return k < inputs_.size() && std::abs(inner_strides_[k]) >= 2 && std::abs(inner_strides_[k]) <= 4 && !is_numbers(k);
  }

  // Elements a work-item takes at once, by loads and stores of 16 bytes.
  int vector_width() const {
    std::size_t largest = 1;
    for (std::size_t k = 0; k < inner_strides_.size(); ++k) {
      if ((inner_strides_[k] == 0 && k < inputs_.size()) || is_numbers(k)) continue;
      if (inner_strides_[k] != 1 && !is_reversed(k) && !is_spread(k)) return 1;
      largest = std::max(largest, element_bytes(k < inputs_.size() ? inputs_[k].stored : outputs_[k - inputs_.size()].stored));
    }
    const int width = static_cast<int>(std::clamp<std::size_t>(16 / largest, 1, 8));
    if (inner_ < 4 * width || (!flat_ && inner_ % width != 0)) return 1;
    for (std::size_t k = 0; k < inner_strides_.size(); ++k) {
      if (inner_strides_[k] == 0 || is_numbers(k) || is_spread(k)) continue;
      if ((offsets_[k] + (is_reversed(k) ? 1 : 0)) % width != 0) return 1;
      for (std::int64_t stride : axes_.strides[k])
        if (stride % width != 0) return 1;
    }
    return width;
  }

  std::string vector_element(int width) {
    std::string text = fmt::format("const i32 whole = {} - i >= {};\n", n_, width);
    const auto array = [](const char* prefix, std::size_t k) { return fmt::format("{}{}", prefix, k); };
    for (std::size_t k = 0; k < inputs_.size(); ++k) {
      if (inner_strides_[k] == 0 || is_numbers(k)) continue;
      const std::string type = stored_type(inputs_[k].stored), a = array("p", k);
      if (is_spread(k)) {
        text += fmt::format("{0} {1}[{2}];\nUNROLL for (i32 l = 0; l < {2}; ++l) {1}[l] = i + l < {3} ? {4} : 0;\n", type, a,
                            width, n_, place(k, "(i + l)"));
        continue;
      }
      const bool reversed = is_reversed(k);
      text += fmt::format("VARRAY({0}, {1}, {2});\nif (whole) {{ VLOAD({0}, {1}, {2}, {3} + o{4} {5}); }}\n", type, width, a,
                          pointers_[k], k, reversed ? fmt::format("- i - {}", width - 1) : "+ i");
      text += fmt::format("else for (i32 l = 0; l < {}; ++l) {} = i + l < {} ? {}[o{} {}] : 0;\n", width,
                          a + (reversed ? fmt::format("[{} - l]", width - 1) : "[l]"), n_, pointers_[k], k,
                          reversed ? "- i - l" : "+ i + l");
    }
    for (std::size_t k = 0; k < outputs_.size(); ++k)
      text += fmt::format("VARRAY({}, {}, {});\n", stored_type(outputs_[k].stored), width, array("q", k));
    text += fmt::format("UNROLL for (i32 l = 0; l < {}; ++l) {{\n", width);
    text += element(
        "(i + l)",
        [&](std::size_t k) {
          if (inner_strides_[k] == 0 || is_numbers(k)) return place(k, "(i + l)");
          return is_reversed(k) ? fmt::format("p{}[{} - l]", k, width - 1) : fmt::format("p{}[l]", k);
        },
        [&](std::size_t k, const std::string& value) { return fmt::format("q{}[l] = {};\n", k, value); });
    text += "}\n";
    for (std::size_t k = 0; k < outputs_.size(); ++k) {
      const std::size_t at = inputs_.size() + k;
      text += fmt::format("if (whole) {{ VSTORE({}, {}, q{}, {} + o{} + i); }}\n", stored_type(outputs_[k].stored), width, k,
                          pointers_[at], at);
      text += fmt::format("else for (i32 l = 0; l < {}; ++l) if (i + l < {}) {}[o{} + i + l] = q{}[l];\n", width, n_,
                          pointers_[at], at, k);
    }
    return text;
  }

  // Elements of rows that are read and written one by one: a work-item has several on their way at once.
  static constexpr int kAhead = 4;
  bool takes_several(int threads) const {
    return inner_ >= kAhead * threads && rows_ * inner_ >= std::int64_t{target_.compute_units} * 4096;
  }
  std::string several_elements(int threads) {
    const std::string c = fmt::format("const {0} c = i + k * {1};\nif (c < {2}) {{\n", ix(), threads, n_);
    std::string text, loads;
    const auto is_loaded = [&](std::size_t k) { return inner_strides_[k] != 0 && !is_numbers(k); };
    for (std::size_t k = 0; k < inputs_.size(); ++k) {
      if (!is_loaded(k)) continue;
      text += fmt::format("{} p{}[{}];\n", stored_type(inputs_[k].stored), k, kAhead);
      loads += fmt::format("p{}[k] = {};\n", k, place(k, "c"));
    }
    const std::string each = fmt::format("UNROLL for (i32 k = 0; k < {}; ++k) {{\n", kAhead) + c;
    if (!loads.empty()) text += each + loads + "}\n}\n";
    text += each + element(
                       "c", [&](std::size_t k) { return is_loaded(k) ? fmt::format("p{}[k]", k) : place(k, "c"); },
                       [&](std::size_t k, const std::string& value) {
                         return fmt::format("{} = {};\n", place(inputs_.size() + k, "c"), value);
                       });
    return text + "}\n}\n";
  }

  // Where nothing is read but numbers, groups that stay and go on to the next stretch keep the memory busier than new ones.
  std::int64_t most_groups(int stretch) const {
    bool only_stores = flat_;
    for (std::size_t k = 0; k < inputs_.size(); ++k) only_stores = only_stores && (inner_strides_[k] == 0 || is_numbers(k));
    if (!only_stores) return 1 << 30;
    return std::min<std::int64_t>(target_.compute_units * 8, (1 << 24) / stretch);
  }
  // The same for rows, where little is read besides: what is repeated along rows or columns.
  std::int64_t most_rows(std::int64_t groups) const {
    constexpr std::int64_t kLimit = 65535, kRepeats = 32;
    std::int64_t read = 0;
    for (std::size_t k = 0; k < inputs_.size(); ++k) {
      std::int64_t elements = inner_strides_[k] == 0 ? 1 : inner_;
      for (std::size_t d = 0; d < axes_.extents.size(); ++d)
        if (axes_.strides[k][d] != 0) elements *= axes_.extents[d];
      read += elements;
    }
    if (flat_ || read * kRepeats > rows_ * inner_) return kLimit;
    return std::clamp<std::int64_t>(target_.compute_units * 8 / std::max<std::int64_t>(groups, 1), 1, kLimit);
  }

  Launch on_gpu() {
    const int width = vector_width();
    const std::int64_t steps = ceil_div(inner_, width);
    const int threads = std::min(256, target_.max_group_size);
    const int bx = static_cast<int>(std::min<std::int64_t>(threads, power_of_two_from(steps)));
    const int by = flat_ ? 1 : threads / bx;
    const bool several = width == 1 && takes_several(bx);
    const int stretch = bx * (several ? kAhead : width);  // of a group
    const std::uint32_t gx = static_cast<std::uint32_t>(std::min<std::int64_t>(ceil_div(inner_, stretch), most_groups(stretch)));
    const std::uint32_t gy = static_cast<std::uint32_t>(std::min<std::int64_t>(ceil_div(rows_, by), most_rows(gx)));
    std::string text;
    if (flat_) {
      text += row_offsets("0");
    } else {
      text +=
          fmt::format("for ({0} row = ({0})group_id(1) * {1} + local_id(1); row < {2}; row += ({0})group_count(1) * {1}) {{\n",
                      ix(), by, parameters_.index(rows_));
      text += row_offsets("row");
    }
    // Where the groups reach the end by themselves a step further could pass 31 bits.
    const std::string further =
        gx < ceil_div(inner_, stretch) ? fmt::format("i += ({})group_count(0) * {}", ix(), stretch) : "i = " + n_;
    const std::string begin = several ? fmt::format("({})group_id(0) * {} + local_id(0)", ix(), stretch)
                                      : fmt::format("(({})group_id(0) * {} + local_id(0)) * {}", ix(), bx, width);
    text += fmt::format("for ({0} i = {1}; i < {2}; {3}) {{\n", ix(), begin, n_, further);
    text += several ? several_elements(bx) : width > 1 ? vector_element(width) : scalar_element();
    text += flat_ ? "}\n" : "}\n}\n";
    return make_launch(body_, {bx, by, 1}, {gx, gy, 1}, text);
  }

  const KernelTarget& target_;
  std::span<const Access> inputs_, outputs_;
  const MapBody& map_body_;
  std::vector<std::int64_t> offsets_;
  Axes axes_;
  Parameters parameters_;
  Body body_;
  std::int64_t inner_ = 1, rows_ = 1;
  std::vector<std::int64_t> inner_strides_;
  bool flat_ = true;
  std::vector<std::string> pointers_;
  std::string n_;
};

}  // namespace

Launch make_launch(Body& body, std::array<int, 3> group_size, std::array<std::uint32_t, 3> groups, const std::string& statements,
                   int least_groups, bool waits_itself) {
  Launch launch;
  const std::string signature =
      fmt::format("({}) {{\n{}{}}}\n", body.parameters().declarations(body.target(), waits_itself),
                  body.target().dialect == Dialect::cuda && !waits_itself ? "STARTED;\n" : "", statements);
  const std::string size = fmt::format("{}, {}, {}", group_size[0], group_size[1], group_size[2]);
  const std::string head =
      least_groups > 0 ? fmt::format("KERNEL_LEAST({}, {}) ", size, least_groups) : fmt::format("KERNEL({}) ", size);
  launch.kernel.entry = fmt::format("tenon_{:016x}", hash(head + signature));
  launch.kernel.text = head + launch.kernel.entry + signature;
  launch.kernel.helpers = body.take_helpers();
  launch.kernel.group_size = group_size;
  launch.groups = groups;
  launch.arguments = body.parameters().take_values();
  return launch;
}

Access access(int slot, DType stored, const ValueView& view) {
  return {slot, stored, view.offset, {view.strides.begin(), view.strides.begin() + view.shape.rank()}};
}
Access dense_access(int slot, DType stored, const Shape& shape) { return access(slot, stored, whole_view(-1, shape)); }

Launch emit_map(const KernelTarget& target, const Shape& domain, std::span<const Access> inputs, std::span<const Access> outputs,
                const MapBody& body) {
  return MapEmitter(target, domain, inputs, outputs, body).run();
}

namespace {

// Elements that are only moved are words: 16-bit floats need no conversion to f32 and back.
DType as_word(DType dtype) {
  if (dtype == DType::f16 || dtype == DType::bf16) return DType::u16;
  return dtype == DType::boolean ? DType::u8 : dtype;
}

}  // namespace

Launch emit_copy(const KernelTarget& target, const Shape& shape, const Access& source, const Access& result) {
  Access from = source, to = result;
  if (from.stored == to.stored) from.stored = to.stored = as_word(from.stored);
  if (!target.is_cpu) {
    if (std::optional<Launch> transposed = emit_transposed_copy(target, shape, from, to)) return *transposed;
    if (std::optional<Launch> copy = emit_short_copy(target, shape, from, to)) return *copy;
  }
  const MapBody body = [&](const MapContext& context, std::vector<std::string>& outputs) {
    // The store rounds to f16 and bf16 itself.
    const DType wanted = compute_dtype(to.stored);
    outputs[0] = from.stored == to.stored || compute_dtype(from.stored) == wanted
                     ? context.inputs[0]
                     : "(" + context.body.cast(from.stored, wanted, context.inputs[0]) + ")";
    return std::string();
  };
  return emit_map(target, shape, std::span(&from, 1), std::span(&to, 1), body);
}

}  // namespace tenon::emit
