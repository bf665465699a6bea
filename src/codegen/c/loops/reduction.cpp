#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "codegen/c/loops/group.h"

namespace tenon::emit {
namespace {

std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

// The domain is [outer, reduced, inner]. Sums of f32 run in f32 over short stretches, which are joined in f64 where there is one.
constexpr int kStretch = 32;
constexpr int kProcessorStretch = 4096;
constexpr int kProcessorWidth = 512;  // inner elements a work-item of a processor takes at once, if it can keep them
constexpr std::int64_t kLong = 1 << 16;
constexpr std::int64_t kMostSegments = 16384;  // on a GPU

class ReductionEmitter {
 public:
  ReductionEmitter(const KernelTarget& target, GroupReader& reader, GroupPlacement& placement)
      : target_(target),
        reader_(reader),
        graph_(reader.graph()),
        group_(reader.group()),
        placement_(placement),
        outer_(outer_axes()),
        parameters_(target.is_cpu || !fits_i32(whole_axes(), offsets_)),
        body_(target, parameters_) {
    rows_ = outer_.elements();
    for (NodeId id : group_.nodes)
      if (graph_[id].prim == Prim::reduce) reductions_.push_back(id);
    choose_shape();
  }

  std::vector<Launch> run() {
    for (const External& e : reader_.externals()) pointers_.push_back(parameters_.input(e.from.stored, e.from.slot));
    n_ = parameters_.index(reduced_);
    inner_text_ = parameters_.index(inner_);
    segment_text_ = parameters_.index(segment_);
    rows_text_ = parameters_.index(rows_);
    for (NodeId id : reductions_) {
      if (segments_ == 1) continue;
      const std::uint64_t bytes = at(segments_ * rows_ * inner_) * element_bytes(total_dtype(id));
      partial_slots_.push_back(placement_.scratch(bytes));
      partials_.push_back(parameters_.buffer(stored_type(total_dtype(id)), partial_slots_.back()));
    }
    std::vector<Launch> launches;
    launches.push_back(target_.is_cpu ? (inner_ == 1 ? processor_rows() : processor_columns())
                       : inner_ == 1  ? gpu_rows()
                       : is_short()   ? gpu_short_columns()
                                      : gpu_columns());
    if (segments_ > 1)
      for (std::size_t r = 0; r < reductions_.size(); ++r) launches.push_back(join_segments(r));
    return launches;
  }

 private:
  const std::string& ix() const { return parameters_.index_type(); }

  // --- Geometry ---
  std::int64_t stride_over(const External& e, const std::vector<int>& axes) const {
    std::vector<std::int64_t> extents, strides;
    for (int axis : axes) {
      extents.push_back(group_.domain[axis]);
      strides.push_back(e.view.strides[at(axis)]);
    }
    const Axes one = joined(extents, {strides});
    return one.extents.empty() ? 0 : one.strides[0].back();
  }
  Axes outer_axes() {
    const GroupAxes axes = group_axes(group_);
    std::vector<std::int64_t> extents;
    for (int axis : axes.outer) extents.push_back(group_.domain[axis]);
    for (int axis : axes.reduced) reduced_ *= group_.domain[axis];
    for (int axis : axes.inner) inner_ *= group_.domain[axis];
    std::vector<std::vector<std::int64_t>> strides;
    for (const External& e : reader_.externals()) {
      std::vector<std::int64_t> outer;
      for (int axis : axes.outer) outer.push_back(e.view.strides[at(axis)]);
      strides.push_back(outer);
      offsets_.push_back(e.view.offset);
      reduced_strides_.push_back(stride_over(e, axes.reduced));
      inner_strides_.push_back(stride_over(e, axes.inner));
    }
    return joined(extents, strides);
  }
  Axes whole_axes() const {
    Axes whole = outer_;
    whole.extents.insert(whole.extents.end(), {reduced_, inner_});
    for (std::size_t k = 0; k < whole.strides.size(); ++k)
      whole.strides[k].insert(whole.strides[k].end(), {reduced_strides_[k], inner_strides_[k]});
    return whole;
  }
  void choose_shape() {
    std::int64_t parallel = 1, wanted = 1, shortest = 1;
    if (target_.is_cpu) {
      if (target_.private_bytes < 16 * kProcessorWidth) width_ = 16;
      parallel = rows_ * ceil_div(inner_, width_);
      wanted = target_.compute_units * 4;
      shortest = inner_ == 1 ? 2 * target_.least_work : 64;
    } else {
      const bool is_cuda = target_.dialect == Dialect::cuda, is_long = inner_ == 1 && reduced_ >= kLong;
      threads_ = std::min(is_long && is_cuda ? 1024 : 256, target_.max_group_size);
      lanes_ = inner_ == 1 ? threads_ : static_cast<int>(std::min<std::int64_t>(power_of_two_from(inner_), is_cuda ? 128 : 32));
      // Elements a work-item has on their way at once.
      const bool is_simple = group_.nodes.size() * reader_.externals().size() <= 3;
      unroll_ = !is_simple ? 4 : is_long ? 16 : reduced_ >= 1024 ? 8 : 4;
      parallel = rows_ * (inner_ == 1 ? 1 : ceil_div(inner_, lanes_));
      // Several times what runs at once: who is done early takes another. Where all a group does is to read, many short ones are
      // the fastest.
      wanted = is_long && is_cuda ? kMostSegments : std::int64_t{target_.compute_units} * 32;
      shortest = inner_ == 1 ? threads_ * 16 : threads_ / lanes_ * 16;
    }
    segments_ =
        std::clamp<std::int64_t>(wanted / std::max<std::int64_t>(parallel, 1), 1, std::max<std::int64_t>(reduced_ / shortest, 1));
    segments_ = std::min<std::int64_t>(segments_, target_.is_cpu ? 4096 : kMostSegments);
    vector_ = vector_width();
    segment_ = ceil_div(ceil_div(reduced_, segments_), vector_) * vector_;
    // Whole steps: the last one would have a few work-items only.
    const std::int64_t step = std::int64_t{threads_} * (vector_ > 1 ? vector_ * vector_loads() : unroll_);
    if (!target_.is_cpu && inner_ == 1 && segments_ > 1 && segment_ > step) segment_ = (segment_ + step / 2) / step * step;
    if (segment_ > 0) segments_ = ceil_div(reduced_, segment_);
    segments_ = std::max<std::int64_t>(segments_, 1);
  }

  // Elements of 16 bits and less that a work-item reads by one load (CUDA): a warp's loads of single ones are too short to keep
  // the memory busy.
  int vector_width() const {
    if (target_.dialect != Dialect::cuda || inner_ != 1 || reader_.externals().empty()) return 1;
    for (NodeId id : group_.outputs)
      if (graph_[id].prim != Prim::reduce) return 1;
    std::size_t largest = 0;
    for (std::size_t k = 0; k < reduced_strides_.size(); ++k) {
      if (reduced_strides_[k] == 0) continue;
      if (reduced_strides_[k] != 1) return 1;
      largest = std::max(largest, element_bytes(reader_.externals()[k].from.stored));
    }
    if (largest == 0 || largest > 2) return 1;
    constexpr int kWidth = 8;
    for (std::size_t k = 0; k < reduced_strides_.size(); ++k) {
      if (reduced_strides_[k] == 0) continue;
      const auto fits = [](std::int64_t distance) { return distance % kWidth == 0; };
      if (!fits(offsets_[k]) || !std::ranges::all_of(outer_.strides[k], fits)) return 1;
    }
    return kWidth;
  }

  // --- Values ---
  ReduceKind kind(NodeId id) const { return graph_[id].as<ReduceAttr>().kind; }
  DType dtype(NodeId id) const { return compute_dtype(graph_[id].dtype); }
  // What stretches are joined in.
  DType total_dtype(NodeId id) const {
    return kind(id) == ReduceKind::sum && dtype(id) == DType::f32 && target_.has_f64 ? DType::f64 : dtype(id);
  }
  std::string sum(std::size_t r) const { return fmt::format("s{}", r); }
  std::string total(std::size_t r) const { return fmt::format("t{}", r); }
  std::string combine(std::size_t r, const std::string& a, const std::string& b, DType as) const {
    return combine_text(kind(reductions_[r]), as, a, b);
  }

  std::string variable(NodeId operand) {
    if (const auto m = reader_.member(operand)) return reader_.name(*m);
    if (reader_.is_number(operand)) return reader_.number(body_, operand);
    return fmt::format("x{}", reader_.external_index(operand));
  }

  // The operand's element at (row, n, i) in memory.
  std::string place(std::size_t k) {
    const std::string line = place_text(parameters_, fmt::format("o{}", k), "n", reduced_strides_[k]);
    return fmt::format("{}[{}]", pointers_[k], place_text(parameters_, line, "i", inner_strides_[k]));
  }

  // The group's nodes at (row, n, i), and outputs of the domain's shape stored; then |accumulate| of every reduction. |operand|
  // gives the stored element of an operand.
  template <class Accumulate, class Operand>
  std::string element(Accumulate accumulate, Operand operand) {
    std::string text;
    for (std::size_t k = 0; k < reader_.externals().size(); ++k) {
      const DType stored = reader_.externals()[k].from.stored;
      text += fmt::format("{} x{} = {};\n", variable_type(stored), k, body_.loaded(stored, operand(k)));
    }
    for (NodeId id : group_.nodes)
      if (graph_[id].prim != Prim::reduce) text += reader_.statement(body_, id, [&](NodeId o) { return variable(o); });
    for (NodeId id : group_.outputs) {
      if (graph_[id].prim == Prim::reduce) continue;
      for (const StoredValue& to : placement_.targets(id)) {
        std::string& pointer = output_pointers_[to.slot];
        if (pointer.empty()) pointer = parameters_.output(to.stored, to.slot);
        text += fmt::format("{}[(row * {} + n) * {} + i] = {};\n", pointer, n_, inner_text_,
                            body_.to_store(to.stored, reader_.name(id)));
      }
    }
    for (std::size_t r = 0; r < reductions_.size(); ++r) text += accumulate(r, variable(graph_[reductions_[r]].inputs[0]));
    return text;
  }
  template <class Accumulate>
  std::string element(Accumulate accumulate) {
    return element(accumulate, [&](std::size_t k) { return place(k); });
  }

  // Stores a total, in the variable |value|, as a partial result or as the result.
  std::string store(std::size_t r, const std::string& value, const std::string& place, const std::string& segment) {
    if (segments_ > 1)
      return fmt::format("{}[{} * ({} * {}) + {}] = {};\n", partials_[r], segment, rows_text_, inner_text_, place, value);
    return store_result(body_, r, value, place);
  }
  std::string store_result(Body& body, std::size_t r, const std::string& value, const std::string& place) {
    std::string text;
    const NodeId id = reductions_[r];
    const std::string result = total_dtype(id) == dtype(id) ? value : "(f32)" + value;
    if (GroupReader* const end = placement_.end(id)) return store_end(body, *end, result, place);
    for (const StoredValue& to : placement_.targets(id))
      text +=
          fmt::format("{}[{}] = {};\n", body.parameters().output(to.stored, to.slot), place, body.to_store(to.stored, result));
    return text;
  }

  std::string store_end(Body& body, GroupReader& end, const std::string& result, const std::string& place) {
    std::string text = element_text(end, body, [&](const External&) { return "(" + result + ")"; });
    for (const NodeId output : end.group().outputs)
      for (const StoredValue& to : placement_.targets(output))
        text += fmt::format("{}[{}] = {};\n", body.parameters().output(to.stored, to.slot), place,
                            body.to_store(to.stored, end.name(output)));
    return text;
  }

  std::string declare(const char* which, bool totals) {
    std::string text;
    for (std::size_t r = 0; r < reductions_.size(); ++r) {
      const DType as = totals ? total_dtype(reductions_[r]) : dtype(reductions_[r]);
      text += fmt::format("{} {}{} = {};\n", variable_type(as), which, r, identity_text(kind(reductions_[r]), as));
    }
    return text;
  }
  std::string join_stretch() {
    std::string text;
    for (std::size_t r = 0; r < reductions_.size(); ++r) {
      const DType as = total_dtype(reductions_[r]);
      const std::string part = as == dtype(reductions_[r]) ? sum(r) : "(f64)" + sum(r);
      text += fmt::format("{} = {};\n", total(r), combine(r, total(r), part, as));
    }
    return text;
  }

  // --- Processors ---
  Launch processor_rows() {
    std::string text =
        fmt::format("{0} begin = (i64)group_id(0) * {1}, end = begin + {1} < {2} ? begin + {1} : {2};\nconst {0} i = 0;\n", ix(),
                    segment_text_, n_);
    text += fmt::format("for ({0} row = group_id(1); row < {1}; row += group_count(1)) {{\n", ix(), rows_text_);
    text += offset_text(parameters_, outer_, offsets_, "row") + declare("t", true);
    std::string before, after;
    const std::string inside = element([&](std::size_t r, const std::string& value) {
      const NodeId id = reductions_[r];
      const bool floats = is_float(dtype(id)), extreme = kind(id) == ReduceKind::max || kind(id) == ReduceKind::min;
      const std::string type = variable_type(dtype(id));
      if (floats && extreme) {
        std::string step;
        extreme_text(body_, kind(id), dtype(id), fmt::format("k{}", r), sum(r), value, before, step, after);
        return step;
      }
      if (dtype(id) == DType::f64 && kind(id) == ReduceKind::sum) {
        before += fmt::format("f64 {0} = 0.0, c{0} = 0.0;\n", sum(r));
        after += fmt::format("{} = {};\n", sum(r), compensated_total_text(sum(r), "c" + sum(r)));
        return compensated_add_text(sum(r), "c" + sum(r), value);
      }
      before += fmt::format("{} {} = {};\n", type, sum(r), identity_text(kind(id), dtype(id)));
      const bool any_order = floats && !extreme;
      return fmt::format("{{ {}{} = {}; }}\n", any_order ? "ANY_ORDER " : "", sum(r), combine(r, sum(r), value, dtype(id)));
    });
    // A loop that is not vectorised adds one after another.
    const bool is_even = std::ranges::all_of(reduced_strides_, [](std::int64_t d) { return d == 0 || d == 1; });
    const bool vectorised = is_even && !body_.calls_library();
    const std::string loop = fmt::format("VECTORIZE for ({} n = b; n < stop; ++n) {{\n{}}}\n", ix(), inside);
    text +=
        fmt::format("const {} stretch = {};\n", ix(), vectorised && target_.dialect != Dialect::tensix ? kProcessorStretch : 128);
    text += fmt::format(
        "for ({0} b = begin; b < end; b += stretch) {{\nconst {0} stop = b + stretch < end ? b + stretch : end;\n", ix());
    text += before + loop + after + join_stretch() + "}\n";
    for (std::size_t r = 0; r < reductions_.size(); ++r) text += store(r, total(r), "row", "(i64)group_id(0)");
    text += "}\n";
    return make_launch(
        body_, {1, 1, 1},
        {static_cast<std::uint32_t>(segments_), static_cast<std::uint32_t>(std::min<std::int64_t>(rows_, 65535)), 1}, text);
  }

  Launch processor_columns() {
    std::string text = fmt::format("{0} begin = (i64)group_id(2) * {1}, end = begin + {1} < {2} ? begin + {1} : {2};\n", ix(),
                                   segment_text_, n_);
    text += fmt::format("const {0} first = (i64)group_id(0) * {1}, width = {2} - first < {1} ? {2} - first : {1};\n", ix(),
                        width_, inner_text_);
    for (std::size_t r = 0; r < reductions_.size(); ++r)
      text += fmt::format("{} s{}[{}];\n{} t{}[{}];\n", variable_type(dtype(reductions_[r])), r, width_,
                          variable_type(total_dtype(reductions_[r])), r, width_);
    text += fmt::format("for ({0} row = group_id(1); row < {1}; row += group_count(1)) {{\n", ix(), rows_text_);
    text += offset_text(parameters_, outer_, offsets_, "row");
    const auto each = [&](const std::string& inside) {
      return fmt::format("VECTORIZE for ({} j = 0; j < width; ++j) {{\n{}}}\n", ix(), inside);
    };
    std::string reset, clear, join, stores;
    for (std::size_t r = 0; r < reductions_.size(); ++r) {
      const NodeId id = reductions_[r];
      reset += fmt::format("t{}[j] = {};\n", r, identity_text(kind(id), total_dtype(id)));
      clear += fmt::format("s{}[j] = {};\n", r, identity_text(kind(id), dtype(id)));
      const std::string part = fmt::format("{}s{}[j]", total_dtype(id) == dtype(id) ? "" : "(f64)", r);
      join += fmt::format("t{0}[j] = {1};\n", r, combine(r, fmt::format("t{}[j]", r), part, total_dtype(id)));
      stores += store(r, fmt::format("t{}[j]", r), fmt::format("row * {} + first + j", inner_text_), "(i64)group_id(2)");
    }
    text += each(reset);
    text += fmt::format("for ({0} b = begin; b < end; b += {1}) {{\nconst {0} stop = b + {1} < end ? b + {1} : end;\n", ix(),
                        kStretch);
    text += each(clear);
    text += fmt::format("for ({} n = b; n < stop; ++n) {{\n", ix());
    const std::string inside =
        fmt::format("const {} i = first + j;\n", ix()) + element([&](std::size_t r, const std::string& value) {
          return fmt::format("s{}[j] = {};\n", r, combine(r, fmt::format("s{}[j]", r), value, dtype(reductions_[r])));
        });
    text += each(inside) + "}\n" + each(join) + "}\n" + each(stores) + "}\n";
    return make_launch(body_, {1, 1, 1},
                       {static_cast<std::uint32_t>(ceil_div(inner_, width_)),
                        static_cast<std::uint32_t>(std::min<std::int64_t>(rows_, 65535)), static_cast<std::uint32_t>(segments_)},
                       text);
  }

  // --- GPUs ---
  // Joins |lanes| neighbouring totals of |lines| lines in local memory; the result is in lane 0's variable.
  std::string across_lanes(ReduceKind kind, DType as, const std::string& value, const std::string& name, int lanes, int lines,
                           bool over_lines) const {
    if (target_.dialect == Dialect::cuda && !over_lines && lanes >= 32) {
      const int warps = lanes / 32;
      std::string text = across_warp_text(kind, as, value, 32);
      if (warps == 1) return text;
      text += fmt::format("BARRIER;\nif (lane % 32 == 0) {0}[lane / 32] = {1};\nBARRIER;\n{1} = {0}[lane % {2}];\n", name, value,
                          warps);
      return text + across_warp_text(kind, as, value, warps);
    }
    const int count = over_lines ? lines : lanes;
    const std::string type = variable_type(as), me = over_lines ? "line" : "lane";
    const std::string mine = fmt::format("line * {} + lane", lanes);
    const std::string other = over_lines ? fmt::format("(line + distance) * {} + lane", lanes) : mine + " + distance";
    std::string text = fmt::format("BARRIER;\n{}[{}] = {};\nBARRIER;\n", name, mine, value);
    text += fmt::format(
        "for (i32 distance = {}; distance > 0; distance /= 2) {{\nif ({} < distance) {{\nconst {} other = {}[{}];\n{} = {};\n",
        count / 2, me, type, name, other, value, combine_text(kind, as, value, "other"));
    return text + fmt::format("{}[{}] = {};\n}}\nBARRIER;\n}}\n", name, mine, value);
  }

  std::string shared_arrays(int size) {
    std::string text;
    for (std::size_t r = 0; r < reductions_.size(); ++r)
      text += fmt::format("LOCAL {} shared{}[{}];\n", variable_type(total_dtype(reductions_[r])), r, size);
    return text;
  }
  // A stretch of |unroll_| elements from n = b on, |step| apart, summed in s: first all are read, then all are added, so that
  // the reads do not wait for each other.
  std::string stretch(int step) {
    const auto add = [&](std::size_t r, const std::string& value) {
      return fmt::format("{} = {};\n", sum(r), combine(r, sum(r), value, dtype(reductions_[r])));
    };
    const std::string n = fmt::format("const {} n = b + k * {};\n", ix(), step);
    std::string loads;
    std::string text = fmt::format("if (b < end - {}) {{\n", (unroll_ - 1) * step);
    for (std::size_t k = 0; k < reader_.externals().size(); ++k) {
      text += fmt::format("{} p{}[{}];\n", stored_type(reader_.externals()[k].from.stored), k, unroll_);
      loads += fmt::format("p{}[k] = {};\n", k, place(k));
    }
    text += fmt::format("UNROLL for (i32 k = 0; k < {}; ++k) {{\n{}{}}}\n", unroll_, n, loads);
    text += fmt::format("UNROLL for (i32 k = 0; k < {}; ++k) {{\n{}{}}}\n}} else {{\n", unroll_, n,
                        element(add, [](std::size_t k) { return fmt::format("p{}[k]", k); }));
    text += fmt::format("for ({} n = b; n < end; n += {}) {{\n{}}}\n}}\n", ix(), step, element(add));
    return text;
  }

  // The same with |vector_| neighbours a load, for |threads_| work-items.
  std::string vector_stretch() {
    const auto add = [&](std::size_t r, const std::string& value) {
      return fmt::format("{} = {};\n", sum(r), combine(r, sum(r), value, dtype(reductions_[r])));
    };
    const int loads = vector_loads(), step = threads_ * vector_;
    std::string text = fmt::format("if (b <= end - {}) {{\n", (loads - 1) * step + vector_), words;
    for (std::size_t k = 0; k < reader_.externals().size(); ++k) {
      const std::string type = stored_type(reader_.externals()[k].from.stored);
      if (reduced_strides_[k] == 0) {
        text += fmt::format("const {} p{} = {};\n", type, k, place(k));
      } else {
        text += fmt::format("VARRAY({}, {}, p{});\n", type, loads * vector_, k);
        words += fmt::format("VLOAD({}, {}, p{} + k * {}, {} + o{} + n);\n", type, vector_, k, vector_, pointers_[k], k);
      }
    }
    text += fmt::format("UNROLL for (i32 k = 0; k < {}; ++k) {{\nconst {} n = b + k * {};\n{}}}\n", loads, ix(), step, words);
    text += fmt::format(
        "UNROLL for (i32 k = 0; k < {}; ++k) {{\n{}}}\n}} else {{\n", loads * vector_,
        element(add, [&](std::size_t k) { return reduced_strides_[k] == 0 ? fmt::format("p{}", k) : fmt::format("p{}[k]", k); }));
    text +=
        fmt::format("for ({0} first = b; first < end; first += {1})\nfor ({0} n = first; n < end && n < first + {2}; ++n) {{\n",
                    ix(), step, vector_);
    return text + element(add) + "}\n}\n";
  }
  int vector_loads() const { return std::max(1, unroll_ / vector_); }

  Launch gpu_rows() {
    std::string text = "const i32 lane = local_id(0), line = 0;\n" + shared_arrays(threads_);
    text += fmt::format("const {0} i = 0, begin = ({0})group_id(0) * {1}, end = begin + {1} < {2} ? begin + {1} : {2};\n", ix(),
                        segment_text_, n_);
    text += fmt::format("for ({0} row = group_id(1); row < {1}; row += group_count(1)) {{\n", ix(), rows_text_);
    text += offset_text(parameters_, outer_, offsets_, "row") + declare("t", true);
    if (vector_ > 1)
      text += fmt::format("for ({} b = begin + lane * {}; b < end; b += {}) {{\n", ix(), vector_,
                          threads_ * vector_ * vector_loads());
    else
      text += fmt::format("for ({} b = begin + lane; b < end; b += {}) {{\n", ix(), threads_ * unroll_);
    text += declare("s", false) + (vector_ > 1 ? vector_stretch() : stretch(threads_)) + join_stretch() + "}\n";
    for (std::size_t r = 0; r < reductions_.size(); ++r) {
      text += across_lanes(kind(reductions_[r]), total_dtype(reductions_[r]), total(r), fmt::format("shared{}", r), threads_, 1,
                           false);
      text += fmt::format("if (lane == 0) {{\n{}}}\n", store(r, total(r), "row", fmt::format("({})group_id(0)", ix())));
    }
    text += "}\n";
    return make_launch(
        body_, {threads_, 1, 1},
        {static_cast<std::uint32_t>(segments_), static_cast<std::uint32_t>(std::min<std::int64_t>(rows_, 65535)), 1}, text);
  }

  Launch gpu_columns() {
    const int lines = threads_ / lanes_;
    std::string text = "const i32 lane = local_id(0), line = local_id(1);\n" + shared_arrays(threads_);
    text += fmt::format("const {0} begin = ({0})group_id(2) * {1}, end = begin + {1} < {2} ? begin + {1} : {2};\n", ix(),
                        segment_text_, n_);
    text += fmt::format("for ({0} row = group_id(1); row < {1}; row += group_count(1)) {{\n", ix(), rows_text_);
    text += offset_text(parameters_, outer_, offsets_, "row");
    text += fmt::format("for ({0} column = ({0})group_id(0) * {1}; column < {2}; column += ({0})group_count(0) * {1}) {{\n", ix(),
                        lanes_, inner_text_);
    text += fmt::format("const {0} i = column + lane < {1} ? column + lane : {1} - 1;\n", ix(), inner_text_) + declare("t", true);
    text += fmt::format("for ({} b = begin + line; b < end; b += {}) {{\n", ix(), lines * unroll_) + declare("s", false);
    text += stretch(lines) + join_stretch() + "}\n";
    for (std::size_t r = 0; r < reductions_.size(); ++r) {
      text += across_lanes(kind(reductions_[r]), total_dtype(reductions_[r]), total(r), fmt::format("shared{}", r), lanes_, lines,
                           true);
      text += fmt::format("if (line == 0 && column + lane < {}) {{\n{}}}\n", inner_text_,
                          store(r, total(r), fmt::format("row * {} + i", inner_text_), fmt::format("({})group_id(2)", ix())));
    }
    text += "}\n}\n";
    return make_launch(body_, {lanes_, lines, 1},
                       {static_cast<std::uint32_t>(std::min<std::int64_t>(ceil_div(inner_, lanes_), 1 << 20)),
                        static_cast<std::uint32_t>(std::min<std::int64_t>(rows_, 65535)), static_cast<std::uint32_t>(segments_)},
                       text);
  }

  // Columns of few elements: a work-item takes one by itself.
  bool is_short() const { return segments_ == 1 && reduced_ > 0 && reduced_ <= 32; }
  Launch gpu_short_columns() {
    while (unroll_ < 8 && unroll_ * 2 <= reduced_) unroll_ *= 2;
    while (unroll_ > reduced_) unroll_ /= 2;
    const std::int64_t count = rows_ * inner_;
    std::string text = fmt::format("const {0} j = ({0})group_id(0) * {1} + local_id(0);\nif (j < {2}) {{\n", ix(), threads_,
                                   parameters_.index(count));
    text += fmt::format("const {0} row = j / {1}, i = j - row * {1}, end = {2};\n", ix(), inner_text_, n_);
    text += offset_text(parameters_, outer_, offsets_, "row") + declare("t", true);
    text += fmt::format("for ({} b = 0; b < end; b += {}) {{\n", ix(), unroll_) + declare("s", false);
    text += stretch(1) + join_stretch() + "}\n";
    for (std::size_t r = 0; r < reductions_.size(); ++r) text += store(r, total(r), "j", "0");
    return make_launch(body_, {threads_, 1, 1}, {static_cast<std::uint32_t>(ceil_div(count, threads_)), 1, 1}, text + "}\n");
  }

  // The second kernel: one result from its segments.
  Launch join_segments(std::size_t r) {
    const NodeId id = reductions_[r];
    const DType as = total_dtype(id);
    Parameters parameters(true);
    Body body(target_, parameters);
    const std::string type = variable_type(as);
    const std::string in = parameters.input(as, partial_slots_[r]), results = parameters.index(rows_ * inner_),
                      count = parameters.index(segments_);
    std::string text;
    if (target_.is_cpu) {
      const std::int64_t chunk = 4096;
      text += fmt::format("for (i64 j = (i64)group_id(0) * {0}; j < {1} && j < ((i64)group_id(0) + 1) * {0}; ++j) {{\n", chunk,
                          results);
      text += fmt::format("{} t = {};\nfor (i64 s = 0; s < {}; ++s) t = {};\n", type, identity_text(kind(id), as), count,
                          combine_text(kind(id), as, "t", fmt::format("{}[s * {} + j]", in, results)));
      text += store_result(body, r, "t", "j") + "}\n";
      return make_launch(body, {1, 1, 1}, {static_cast<std::uint32_t>(ceil_div(rows_ * inner_, chunk)), 1, 1}, text);
    }
    const int most = std::min(1024, target_.max_group_size);
    const int lanes =
        static_cast<int>(std::min<std::int64_t>(power_of_two_from(segments_), rows_ * inner_ > 64 ? threads_ : most));
    text += fmt::format("const i32 lane = local_id(0), line = 0;\nLOCAL {} shared[{}];\n", type, lanes);
    text += fmt::format("for (i64 j = group_id(0); j < {}; j += group_count(0)) {{\n{} t = {};\n", results, type,
                        identity_text(kind(id), as));
    text += fmt::format("UNROLL_BY(8) for (i64 s = lane; s < {}; s += {}) {{ const {} other = {}[s * {} + j]; t = {}; }}\n",
                        count, lanes, type, in, results, combine_text(kind(id), as, "t", "other"));
    text += across_lanes(kind(id), as, "t", "shared", lanes, 1, false);
    text += fmt::format("if (lane == 0) {{\n{}}}\n}}\n", store_result(body, r, "t", "j"));
    return make_launch(body, {lanes, 1, 1}, {static_cast<std::uint32_t>(std::min<std::int64_t>(rows_ * inner_, 1 << 20)), 1, 1},
                       text);
  }

  const KernelTarget& target_;
  GroupReader& reader_;
  const Graph& graph_;
  const Group& group_;
  GroupPlacement& placement_;
  std::int64_t rows_ = 1, reduced_ = 1, inner_ = 1;
  std::vector<std::int64_t> offsets_, reduced_strides_, inner_strides_;
  Axes outer_;
  Parameters parameters_;
  Body body_;
  std::vector<NodeId> reductions_;
  std::int64_t segments_ = 1, segment_ = 1;
  int threads_ = 1, lanes_ = 1;
  int width_ = kProcessorWidth;
  int unroll_ = 4;
  int vector_ = 1;
  std::vector<std::string> pointers_, partials_;
  std::map<int, std::string> output_pointers_;  // by slot
  std::vector<int> partial_slots_;
  std::string n_, inner_text_, segment_text_, rows_text_;
};

}  // namespace

std::vector<Launch> emit_reduction(const KernelTarget& target, GroupReader& reader, GroupPlacement& placement) {
  return ReductionEmitter(target, reader, placement).run();
}

}  // namespace tenon::emit
