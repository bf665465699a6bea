// Scatter: later updates of an element win, and sums are formed in the order of the indices, on every device and in every run.
#include <fmt/format.h>

#include <algorithm>

#include "codegen/c/loops/geometry.h"
#include "codegen/c/primitives/scatter/scatter.h"

namespace tenon::emit {
namespace {

std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

}  // namespace

std::string sum_text(DType stored, const std::string& a, const std::string& b) {
  const DType compute = compute_dtype(stored);
  const char* wrap = element_bytes(compute) == 8 ? "u64" : "u32";
  if (compute == DType::boolean) return fmt::format("({} != 0 || {} != 0)", a, b);
  if (is_float(compute)) return fmt::format("{} + {}", a, b);
  return fmt::format("({})(({}){} + ({}){})", variable_type(compute), wrap, a, wrap, b);
}

std::string place_of_update(Body& body, const Dense& indices, const ScatterAttr& attr, const Dense& out, int status) {
  Parameters& p = body.parameters();
  const Strides strides = contiguous_strides(out.shape);
  std::vector<std::int64_t> others(strides.begin(), strides.begin() + out.shape.rank()), along(others.size(), 0);
  others[at(attr.axis)] = 0;
  along[at(attr.axis)] = 1;
  const Axes axes = joined({indices.shape.begin(), indices.shape.end()}, {others, along});
  std::string text = offset_text(p, axes, {0, 0}, "j");
  return text + fmt::format("const i32 a = (i32)o1;\nconst i64 place = o0 + {} * {};\n",
                            body.call("resolve", fmt::format("{}[j], {}, {}", p.input(indices.stored, indices.slot),
                                                             p.whole_number(out.shape[attr.axis]), p.buffer("i64", status))),
                            p.whole_number(strides[at(attr.axis)]));
}

namespace {

// A line of indices at a time, in order.
Launch by_lines(const KernelTarget& target, const Dense& indices, const Dense& updates, const ScatterAttr& attr, const Dense& out,
                int status) {
  Parameters p(true);
  Body body(target, p);
  const Strides out_strides = contiguous_strides(out.shape), index_strides = contiguous_strides(indices.shape);
  std::vector<std::int64_t> extents, from, to_strides;
  for (int axis = 0; axis < indices.shape.rank(); ++axis) {
    if (axis == attr.axis) continue;
    extents.push_back(indices.shape[axis]);
    from.push_back(index_strides[at(axis)]);
    to_strides.push_back(out_strides[at(axis)]);
  }
  const Axes axes = joined(extents, {from, to_strides});
  const std::string wanted = p.input(indices.stored, indices.slot), in = p.input(updates.stored, updates.slot),
                    to = p.buffer(stored_type(out.stored), out.slot), state = p.buffer("i64", status);
  const std::string step = p.whole_number(index_strides[at(attr.axis)]), out_step = p.whole_number(out_strides[at(attr.axis)]);
  std::string text = offset_text(p, axes, {0, 0}, "j");
  text += fmt::format("for (i64 a = 0; a < {}; ++a) {{\nconst i64 from = o0 + a * {};\n",
                      p.whole_number(indices.shape[attr.axis]), step);
  text += fmt::format("const i64 place = o1 + {} * {};\n",
                      body.call("resolve", fmt::format("{}[from], {}, {}", wanted, p.whole_number(out.shape[attr.axis]), state)),
                      out_step);
  const std::string value = body.loaded(updates.stored, fmt::format("{}[from]", in));
  if (!attr.add) {
    text += fmt::format("{}[place] = {};\n", to, body.to_store(out.stored, value));
  } else {
    const std::string old = body.loaded(out.stored, fmt::format("{}[place]", to));
    text += fmt::format("const {} sum = {};\n{}[place] = {};\n", variable_type(out.stored), sum_text(out.stored, old, value), to,
                        body.to_store(out.stored, "sum"));
  }
  text += "}\n";
  const std::int64_t lines = axes.elements();
  return emit_items(body, lines, indices.shape[attr.axis], text);
}

// First it is found out which update of an element is the last one, then those alone are stored.
std::vector<Launch> last_ones(const KernelTarget& target, const Dense& indices, const Dense& updates, const ScatterAttr& attr,
                              const Dense& out, int status, const Scratch& scratch) {
  const int last = scratch(at(out.shape.elements()) * 4);
  std::vector<Launch> launches{emit_fill(target, out.shape, dense_access(last, DType::i32, out.shape), -1)};
  for (const bool stores : {false, true}) {
    Parameters p(true);
    Body body(target, p);
    std::string text = place_of_update(body, indices, attr, out, status);
    if (stores)
      text += fmt::format(
          "if ({}[place] == a) {}[place] = {};\n", p.input(DType::i32, last), p.output(out.stored, out.slot),
          body.to_store(out.stored, body.loaded(updates.stored, fmt::format("{}[j]", p.input(updates.stored, updates.slot)))));
    else
      text += fmt::format("ATOMIC_MAX({} + place, a);\n", p.buffer("i32", last));
    launches.push_back(emit_items(body, indices.shape.elements(), 1, text));
  }
  return launches;
}

// Sums whose order does not matter.
Launch in_any_order(const KernelTarget& target, const Dense& indices, const Dense& updates, const ScatterAttr& attr,
                    const Dense& out, int status) {
  Parameters p(true);
  Body body(target, p);
  std::string text = place_of_update(body, indices, attr, out, status);
  const std::string value = body.loaded(updates.stored, fmt::format("{}[j]", p.input(updates.stored, updates.slot))),
                    to = p.buffer(stored_type(out.stored), out.slot);
  text += out.stored == DType::boolean ? fmt::format("if ({}) {}[place] = 1;\n", value, to)
                                       : fmt::format("ATOMIC_ADD({} + place, {});\n", to, value);
  return emit_items(body, indices.shape.elements(), 1, text);
}

// The updates of a line are sorted by place, each place's sum is then formed by one work-item.
std::vector<Launch> by_place(const KernelTarget& target, const Dense& indices, const Dense& updates, const ScatterAttr& attr,
                             const Dense& out, int status, const Scratch& scratch) {
  const std::uint64_t bytes = at(indices.shape.elements()) * 8;
  const Dense places{scratch(bytes), DType::i64, indices.shape}, order{scratch(bytes), DType::i64, indices.shape};
  std::vector<Launch> launches;
  {
    Parameters p(true);
    Body body(target, p);
    std::string text = place_of_update(body, indices, attr, out, status);
    launches.push_back(
        emit_items(body, indices.shape.elements(), 1, text + fmt::format("{}[j] = place;\n", p.output(DType::i64, places.slot))));
  }
  for (Launch& launch : emit_arg_sort(target, places, {.axis = attr.axis}, order, scratch)) launches.push_back(std::move(launch));
  Parameters p(true);
  Body body(target, p);
  const std::string known = p.input(DType::i64, places.slot), sorted = p.input(DType::i64, order.slot),
                    in = p.input(updates.stored, updates.slot), to = p.buffer(stored_type(out.stored), out.slot);
  std::int64_t inner = 1;
  for (int i = attr.axis + 1; i < indices.shape.rank(); ++i) inner *= indices.shape[i];
  const std::string extent = p.whole_number(indices.shape[attr.axis]), step = p.whole_number(inner);
  std::string text = fmt::format("const i64 a = j / {0} % {1}, from = j - a * {0};\n", step, extent);
  text += fmt::format("const i64 place = {0}[from + {1}[j] * {2}];\n", known, sorted, step);
  text += fmt::format("if (a == 0 || {0}[from + {1}[j - {2}] * {2}] != place) {{\n", known, sorted, step);
  text += fmt::format("{} sum = {};\n", variable_type(out.stored), body.loaded(out.stored, fmt::format("{}[place]", to)));
  text +=
      fmt::format("for (i64 n = a; n < {0}; ++n) {{\nconst i64 u = from + {1}[from + n * {2}] * {2};\n", extent, sorted, step);
  text += fmt::format("if ({}[u] != place) break;\nsum = {};\n}}\n", known,
                      sum_text(out.stored, "sum", body.loaded(updates.stored, fmt::format("{}[u]", in))));
  text += fmt::format("{}[place] = {};\n}}\n", to, body.to_store(out.stored, "sum"));
  launches.push_back(emit_items(body, indices.shape.elements(), 1, text));
  return launches;
}

}  // namespace

std::vector<Launch> emit_scatter(const KernelTarget& target, const Dense& indices, const Dense& updates, const ScatterAttr& attr,
                                 const Dense& out, int status, const Scratch& scratch) {
  constexpr std::int64_t kShort = 64;
  const std::int64_t extent = indices.shape[attr.axis], lines = indices.shape.elements() / std::max<std::int64_t>(extent, 1);
  const bool fills_device = lines >= std::int64_t{target.compute_units} * 256;
  if (attr.add && is_float(out.stored) && extent > kShort && can_add_in_order(target, indices, out))
    return emit_add_in_order(target, indices, updates, attr, out, status, scratch);
  if (target.is_cpu || extent <= kShort || fills_device || extent >= (std::int64_t{1} << 31))
    return {by_lines(target, indices, updates, attr, out, status)};
  if (!attr.add) return last_ones(target, indices, updates, attr, out, status, scratch);
  const bool has_atomic = element_bytes(out.stored) == 4 || (target.dialect == Dialect::cuda && element_bytes(out.stored) == 8);
  if (out.stored == DType::boolean || (!is_float(out.stored) && has_atomic))
    return {in_any_order(target, indices, updates, attr, out, status)};
  return by_place(target, indices, updates, attr, out, status, scratch);
}

}  // namespace tenon::emit
