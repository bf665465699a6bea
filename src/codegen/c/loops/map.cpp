#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <ranges>

#include "codegen/c/loops/geometry.h"
#include "codegen/c/loops/loop.h"
#include "tenon/error.h"

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
             const MapBody& map_body, bool is_ops)
      : target_(target),
        is_ops_(is_ops),
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
    for (const Access& input : inputs_) pointers_.push_back(parameters_.input(input.stored, input.slot));
    for (const Access& output : outputs_) pointers_.push_back(parameters_.output(output.stored, output.slot));
    n_ = parameters_.index(inner_);
    return target_.is_cpu ? on_processor() : on_gpu();
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
  std::string place(std::size_t k, const std::string& i) {
    return fmt::format("{}[{}]", pointers_[k], place_text(parameters_, fmt::format("o{}", k), i, inner_strides_[k]));
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

  Launch on_processor() {
    // Enough pieces for every core to find work at the end, none so small that starting it costs more than running it.
    constexpr std::int64_t kMinimum = 8192;
    const std::int64_t total = rows_ * inner_;
    const std::int64_t pieces = std::clamp<std::int64_t>(total / kMinimum, 1, target_.compute_units * 8);
    std::string text;
    if (flat_) {
      const std::int64_t chunk = ceil_div(ceil_div(inner_, pieces), 64) * 64;
      text += fmt::format("{0} first = (i64)group_id(0) * {1}, last = first + {1} < {2} ? first + {1} : {2};\n", ix(),
                          parameters_.index(chunk), n_);
      text += row_offsets("0");
      text += lanes_or("first", "last", {},
                       fmt::format("VECTORIZE for ({} i = first; i < last; ++i) {{\n{}}}\n", ix(), scalar_element()));
      return make_launch(body_, {1, 1, 1}, {static_cast<std::uint32_t>(ceil_div(inner_, chunk)), 1, 1}, text + stream_end());
    }
    const std::int64_t parts = rows_ >= pieces ? 1 : std::clamp<std::int64_t>(pieces / rows_, 1, ceil_div(inner_, 1024));
    const std::int64_t part = ceil_div(inner_, parts), row_chunk = ceil_div(rows_, std::min(pieces, rows_));
    const std::string rows = parameters_.index(rows_), step = parameters_.index(row_chunk), width = parameters_.index(part);
    text += fmt::format("{0} first = (i64)group_id(1) * {1}, last = first + {1} < {2} ? first + {1} : {2};\n", ix(), step, rows);
    text += fmt::format("{0} begin = (i64)group_id(0) * {1}, end = begin + {1} < {2} ? begin + {1} : {2};\n", ix(), width, n_);
    if (axes_.extents.size() == 1 &&
        std::ranges::any_of(std::views::iota(std::size_t{0}, inputs_.size()), [&](std::size_t k) { return is_turned(k); }))
      return on_processor_by_tiles(
          text, {static_cast<std::uint32_t>(ceil_div(inner_, part)), static_cast<std::uint32_t>(ceil_div(rows_, row_chunk)), 1});
    // An operand read across its rows: short pieces of many rows, so that a cache line serves all its elements.
    const bool across = std::ranges::any_of(inner_strides_, [](std::int64_t stride) { return stride != 0 && stride != 1; });
    if (across) {
      text += fmt::format(
          "for ({0} piece = begin; piece < end; piece += 32) {{\nconst {0} stop = piece + 32 < end ? piece + 32 : end;\n", ix());
      text += fmt::format("for ({} row = first; row < last; ++row) {{\n{}", ix(), row_offsets("row"));
      text += fmt::format("VECTORIZE for ({} i = piece; i < stop; ++i) {{\n{}}}\n}}\n}}\n", ix(), scalar_element());
    } else {
      text += fmt::format("for ({} row = first; row < last; ++row) {{\n{}", ix(), row_offsets("row"));
      text += lanes_or("begin", "end", {},
                       fmt::format("VECTORIZE for ({} i = begin; i < end; ++i) {{\n{}}}\n", ix(), scalar_element()));
      text += "}\n" + stream_end();
    }
    return make_launch(
        body_, {1, 1, 1},
        {static_cast<std::uint32_t>(ceil_div(inner_, part)), static_cast<std::uint32_t>(ceil_div(rows_, row_chunk)), 1}, text);
  }

  // --- Many elements at once (target.cpp) ---
  // Memory beyond what caches hold is written past them: nobody finds it there anyway.
  bool streams() const {
    constexpr std::int64_t kBeyondCaches = 24 << 20;
    std::size_t bytes = 0;
    for (const auto& list : {inputs_, outputs_})
      for (const Access& each : list) bytes += element_bytes(each.stored);
    return is_ops_ && static_cast<std::int64_t>(bytes) * rows_ * inner_ > kBeyondCaches;
  }
  std::string stream_end() const { return streams() ? "#ifdef LANES\nSTREAM_END;\n#endif\n" : ""; }

  // |otherwise| is a loop over i from |first| to |last|; before it comes, where possible, the same for LANES elements at once.
  // |given| is the text of an input that does not lie in its own memory any more, or "".
  std::string lanes_or(const std::string& first, const std::string& last, const std::function<std::string(std::size_t)>& given,
                       const std::string& otherwise) {
    if (inputs_.empty()) return otherwise;
    const std::optional<DType> dtype = lanes_dtype(inputs_[0].stored);
    bool possible = is_ops_ && dtype;
    for (std::size_t k = 0; k < inputs_.size(); ++k)
      possible = possible && lanes_dtype(inputs_[k].stored) == dtype &&
                 (inner_strides_[k] == 0 || inner_strides_[k] == 1 || (given && !given(k).empty()));
    for (std::size_t k = 0; k < outputs_.size(); ++k)
      possible = possible && lanes_dtype(outputs_[k].stored) == dtype && inner_strides_[inputs_.size() + k] == 1;
    if (!possible) return otherwise;
    body_.begin_lanes(*dtype);
    const std::string whole = lanes_element(given, "LOAD", streams() ? "STREAM" : "STORE", "");
    const std::string part = lanes_element(given, "LOAD_PART", "STORE_PART", ", part");
    if (!body_.end_lanes()) return otherwise;
    return fmt::format(
        "#ifdef LANES\n{{\n{0} i = {1};\nfor (; i + LANES <= {2}; i += LANES) {{\n{3}}}\nif (i < {2}) {{\nconst i32 part = "
        "(i32)({2} - i);\n{4}}}\n}}\n#else\n{5}#endif\n",
        ix(), first, last, whole, part, otherwise);
  }

  std::string lanes_element(const std::function<std::string(std::size_t)>& given, const char* load, const char* store,
                            const char* part) {
    std::string text;
    std::vector<std::string> variables;
    for (std::size_t k = 0; k < inputs_.size(); ++k) {
      variables.push_back(fmt::format("x{}", k));
      const DType stored = inputs_[k].stored;
      std::string value = given ? given(k) : "";
      if (value.empty() && inner_strides_[k] == 0)
        value = body_.loaded(stored, fmt::format("{}[o{}]", pointers_[k], k));
      else if (value.empty())
        value = fmt::format("{}({} + o{} + i{})", body_.lanes_macro(load, stored), pointers_[k], k, part);
      text += fmt::format("{} x{} = {};\n", body_.lanes_type(), k, value);
    }
    std::vector<std::string> results(outputs_.size());
    text += map_body_(MapContext{body_, variables, ""}, results);
    for (std::size_t k = 0; k < outputs_.size(); ++k) {
      const std::size_t at = inputs_.size() + k;
      text += fmt::format("{}({} + o{} + i, ({})({}){});\n", body_.lanes_macro(store, outputs_[k].stored), pointers_[at], at,
                          body_.lanes_type(), results[k], part);
    }
    return text;
  }

  // Its elements are neighbours down the rows, not along them.
  bool is_turned(std::size_t k) const {
    return inner_strides_[k] != 0 && inner_strides_[k] != 1 && axes_.extents.size() == 1 && axes_.strides[k][0] == 1;
  }

  // Turned operands are turned back a tile at a time, which stays in the nearest cache whatever their strides.
  Launch on_processor_by_tiles(std::string text, std::array<std::uint32_t, 3> groups) {
    // Columns of a tile are read as whole cache lines, or several.
    std::size_t largest = 1, smallest_turned = 8;
    for (const auto& list : {inputs_, outputs_})
      for (const Access& each : list) largest = std::max(largest, element_bytes(each.stored));
    for (std::size_t k = 0; k < inputs_.size(); ++k)
      if (is_turned(k)) smallest_turned = std::min(smallest_turned, element_bytes(inputs_[k].stored));
    const int rows_a_tile = smallest_turned == 1 || largest == 4 ? 64 : 32, columns_a_tile = largest <= 2 ? 256 : 64;
    text += fmt::format(
        "for ({0} piece = begin; piece < end; piece += {1}) {{\nconst {0} stop = piece + {1} < end ? piece + {1} : end;\n", ix(),
        columns_a_tile);
    text +=
        fmt::format("for ({0} top = first; top < last; top += {1}) {{\nconst {0} bottom = top + {1} < last ? top + {1} : last;\n",
                    ix(), rows_a_tile);
    for (std::size_t k = 0; k < inputs_.size(); ++k) {
      if (!is_turned(k)) continue;
      text += fmt::format("{} tile{}[{}][{}] __attribute__((aligned(128)));\n", stored_type(inputs_[k].stored), k, rows_a_tile,
                          columns_a_tile);
      const std::string from = offsets_[k] == 0 ? "top" : fmt::format("{} + top", parameters_.index(offsets_[k]));
      const std::string place = place_text(parameters_, from, "i", inner_strides_[k]);
      // As floats of their size, or bytes: their bits stay as they are.
      const std::size_t bytes = element_bytes(inputs_[k].stored);
      const char* const type = bytes == 1 ? "u8" : bytes == 2 ? "u16" : bytes == 4 ? "f32" : "f64";
      text += fmt::format("#ifdef LANES\nif (bottom - top == {} && stop - piece == {}) {{\n", rows_a_tile, columns_a_tile);
      text += fmt::format("for ({} i = piece; i < stop; i += LANES) for (i32 r = 0; r < {}; r += {})\n", ix(), rows_a_tile,
                          64 / bytes);
      text += body_.call(fmt::format("turn_{}_v", 8 * bytes),
                         fmt::format("({0}*)(tile{1}[r] + (i - piece)), {2}, (GLOBAL const {0}*)({3} + {4} + r), {5}", type, k,
                                     columns_a_tile, pointers_[k], place, parameters_.index(inner_strides_[k])));
      text += ";\n} else\n#endif\n";
      text += fmt::format("for ({} i = piece; i < stop; ++i) {{\n", ix());
      text += fmt::format("if (bottom - top == {0}) {{ for (i32 r = 0; r < {0}; ++r) tile{1}[r][i - piece] = {2}[{3} + r]; }}\n",
                          rows_a_tile, k, pointers_[k], place);
      text += fmt::format("else for (i32 r = 0; r < bottom - top; ++r) tile{}[r][i - piece] = {}[{} + r];\n}}\n", k, pointers_[k],
                          place);
    }
    text += fmt::format("for ({} row = top; row < bottom; ++row) {{\n{}", ix(), row_offsets("row"));
    const std::string inside = element(
        "i", [&](std::size_t k) { return is_turned(k) ? fmt::format("tile{}[row - top][i - piece]", k) : place(k, "i"); },
        [&](std::size_t k, const std::string& value) {
          return fmt::format("{} = {};\n", place(inputs_.size() + k, "i"), value);
        });
    const auto from_tile = [&](std::size_t k) {
      if (!is_turned(k) || !lanes_dtype(inputs_[k].stored)) return std::string();
      const std::string place = fmt::format("(tile{}[row - top] + (i - piece))", k);
      if (lanes_dtype(inputs_[k].stored) == inputs_[k].stored) return fmt::format("*({}*){}", body_.lanes_type(), place);
      return fmt::format("{}(*(U16V*){})", body_.lanes_macro("FROM", inputs_[k].stored), place);
    };
    text +=
        lanes_or("piece", "stop", from_tile, fmt::format("VECTORIZE for ({} i = piece; i < stop; ++i) {{\n{}}}\n", ix(), inside));
    return make_launch(body_, {1, 1, 1}, groups, text + "}\n}\n}\n" + stream_end());
  }

  // Elements a work-item takes at once, by loads and stores of 16 bytes.
  int vector_width() const {
    std::size_t largest = 1;
    for (std::size_t k = 0; k < inner_strides_.size(); ++k) {
      if (inner_strides_[k] == 0 && k < inputs_.size()) continue;
      if (inner_strides_[k] != 1) return 1;
      largest = std::max(largest, element_bytes(k < inputs_.size() ? inputs_[k].stored : outputs_[k - inputs_.size()].stored));
    }
    const int width = static_cast<int>(std::clamp<std::size_t>(16 / largest, 1, 8));
    if (inner_ < 4 * width || (!flat_ && inner_ % width != 0)) return 1;
    for (std::size_t k = 0; k < inner_strides_.size(); ++k) {
      if (inner_strides_[k] == 0) continue;
      if (offsets_[k] % width != 0) return 1;
      for (std::int64_t stride : axes_.strides[k])
        if (stride % width != 0) return 1;
    }
    return width;
  }

  std::string vector_element(int width) {
    std::string text = fmt::format("const i32 whole = {} - i >= {};\n", n_, width);
    const auto array = [](const char* prefix, std::size_t k) { return fmt::format("{}{}", prefix, k); };
    for (std::size_t k = 0; k < inputs_.size(); ++k) {
      if (inner_strides_[k] == 0) continue;
      const std::string type = stored_type(inputs_[k].stored), a = array("p", k);
      text += fmt::format("VARRAY({0}, {1}, {2});\nif (whole) {{ VLOAD({0}, {1}, {2}, {3} + o{4} + i); }}\n", type, width, a,
                          pointers_[k], k);
      text += fmt::format("else for (i32 l = 0; l < {}; ++l) {} = i + l < {} ? {}[o{} + i + l] : 0;\n", width, a + "[l]", n_,
                          pointers_[k], k);
    }
    for (std::size_t k = 0; k < outputs_.size(); ++k)
      text += fmt::format("VARRAY({}, {}, {});\n", stored_type(outputs_[k].stored), width, array("q", k));
    text += fmt::format("UNROLL for (i32 l = 0; l < {}; ++l) {{\n", width);
    text += element(
        "(i + l)",
        [&](std::size_t k) {
          return inner_strides_[k] == 0 ? fmt::format("{}[o{}]", pointers_[k], k) : fmt::format("p{}[l]", k);
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

  Launch on_gpu() {
    const int width = vector_width();
    const std::int64_t steps = ceil_div(inner_, width);
    const int threads = std::min(256, target_.max_group_size);
    const int bx = static_cast<int>(std::min<std::int64_t>(threads, power_of_two_from(steps)));
    const int by = flat_ ? 1 : threads / bx;
    const std::uint32_t gx = static_cast<std::uint32_t>(std::min<std::int64_t>(ceil_div(steps, bx), 1 << 30));
    const std::uint32_t gy = static_cast<std::uint32_t>(std::min<std::int64_t>(ceil_div(rows_, by), 65535));
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
        gx < ceil_div(steps, bx) ? fmt::format("i += ({})group_count(0) * {}", ix(), bx * width) : "i = " + n_;
    text += fmt::format("for ({0} i = (({0})group_id(0) * {1} + local_id(0)) * {2}; i < {3}; {4}) {{\n", ix(), bx, width, n_,
                        further);
    text += width > 1 ? vector_element(width) : scalar_element();
    text += flat_ ? "}\n" : "}\n}\n";
    return make_launch(body_, {bx, by, 1}, {gx, gy, 1}, text);
  }

  const KernelTarget& target_;
  const bool is_ops_;
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

// A kernel's parameters and body; where it claims its work-groups (kernel.h), around the statements for one.
std::string signature_of(const Body& body, const std::string& parameters, const std::string& statements) {
  if (!body.target().claims_groups) return fmt::format("({}) {{\n{}}}\n", parameters, statements);
  return fmt::format(
      "({}, GLOBAL i32* claims, i64 groups_0, i64 groups_1, i64 groups_2) {{\n"
      "for (i64 claim; (claim = ATOMIC_ADD(claims, 1)) < groups_0 * groups_1 * groups_2;) {{\n"
      "const i64 group_0 = claim % groups_0, group_1 = claim / groups_0 % groups_1, group_2 = claim / groups_0 / groups_1;\n"
      "{}}}\n}}\n",
      parameters, statements);
}

}  // namespace

Launch make_launch(Body& body, std::array<int, 3> group_size, std::array<std::uint32_t, 3> groups, const std::string& statements,
                   int least_groups) {
  if (body.target().claims_groups && group_size != std::array{1, 1, 1})
    throw Error(ErrorCode::internal, "a kernel that claims its work-groups has more than one work-item in each");
  Launch launch;
  const std::string signature = signature_of(body, body.parameters().declarations(), statements);
  const std::string size = fmt::format("{}, {}, {}", group_size[0], group_size[1], group_size[2]);
  const std::string head =
      least_groups > 0 ? fmt::format("KERNEL_LEAST({}, {}) ", size, least_groups) : fmt::format("KERNEL({}) ", size);
  launch.kernel.entry = fmt::format("tenon_{:016x}", hash(head + signature));
  launch.kernel.text = head + launch.kernel.entry + signature;
  launch.kernel.helpers = body.take_helpers();
  launch.kernel.group_size = group_size;
  launch.kernel.calls_host = body.calls_host();
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
  return MapEmitter(target, domain, inputs, outputs, body, false).run();
}
Launch emit_ops_map(const KernelTarget& target, const Shape& domain, std::span<const Access> inputs,
                    std::span<const Access> outputs, const MapBody& body) {
  return MapEmitter(target, domain, inputs, outputs, body, true).run();
}

Launch emit_copy(const KernelTarget& target, const Shape& shape, const Access& from, const Access& to) {
  if (!target.is_cpu)
    if (std::optional<Launch> turned = emit_turned_copy(target, shape, from, to)) return *turned;
  const MapBody body = [&](const MapContext& context, std::vector<std::string>& outputs) {
    // The store rounds to f16 and bf16 itself.
    const DType wanted = compute_dtype(to.stored);
    outputs[0] = from.stored == to.stored || compute_dtype(from.stored) == wanted
                     ? context.inputs[0]
                     : "(" + context.body.cast(from.stored, wanted, context.inputs[0]) + ")";
    return std::string();
  };
  return emit_ops_map(target, shape, std::span(&from, 1), std::span(&to, 1), body);
}

}  // namespace tenon::emit
