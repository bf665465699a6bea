#include <algorithm>
#include <cstring>
#include <map>
#include <optional>

#include "backends/cpu/loop/absorb.h"
#include "backends/cpu/loop/geometry.h"
#include "backends/cpu/loop/loop.h"
#include "backends/cpu/primitives/primitives.h"
#include "tenon/error.h"

namespace tenon::cpu {
namespace {

constexpr std::size_t kAlign = 64;
// Inputs and outputs of this size come from beyond the L2 cache.
constexpr std::size_t kPrefetchFrom = std::size_t{1} << 20;
std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }
std::size_t align_up(std::size_t bytes) { return (bytes + kAlign - 1) / kAlign * kAlign; }

double cost_of(ElementwiseOp op) {
  const ElementwiseTraits& t = traits(op);
  if (t.wide) return 16;
  return (t.kinds & kIntegers) ? 1 : 5;
}

// Emits the instructions of a group, phase by phase.
class LoopCompiler {
 public:
  LoopCompiler(LoopProgram& program, const Graph& graph, const Plan& plan, int group, const ValuePlacement& placement)
      : program_(program),
        graph_(graph),
        plan_(plan),
        group_(plan.groups[at(group)]),
        view_(graph, plan, group),
        placement_(placement) {}

  void run() {
    std::set<NodeId> externals;
    for (NodeId id : group_.nodes)
      for (NodeId operand : graph_[id].inputs)
        if (!member(operand)) externals.insert(operand);
    program_.kind = group_.kind;
    program_.geometry = shape_loop(graph_, plan_, group_, externals);
    const std::size_t bytes = footprint(externals);
    program_.stream = beyond_cache(bytes);
    program_.prefetch = bytes > kPrefetchFrom;
    absorbed_ = find_absorbed(graph_, plan_, view_, geometry());
    shorten_blocks(externals);
    take_rows_together(externals);
    assign_phases();
    emit();
    if (program_.prefetch) look_ahead();
    lengthen_blocks();
  }

 private:
  using Code = Instruction::Code;
  using Home = Register::Home;

  const LoopGeometry& geometry() const { return program_.geometry; }
  std::optional<NodeId> member(NodeId operand) const { return view_.member(operand); }
  bool is_row(NodeId node) const { return view_.is_row(node); }
  bool is_op(NodeId id, ElementwiseOp op) const { return view_.is_op(id, op); }
  bool is_output(NodeId id) const { return view_.is_output(id); }
  int uses(NodeId id) const { return view_.uses(id); }

  // Bytes the loop reads and writes.
  std::size_t footprint(const std::set<NodeId>& externals) const {
    std::size_t bytes = 0;
    for (NodeId node : externals) {
      const ValueView& view = plan_.views[at(node)];
      std::int64_t elements = 1;
      for (int axis = 0; axis < view.shape.rank(); ++axis)
        if (view.strides[at(axis)] != 0) elements *= view.shape[axis];
      bytes += at(elements) * element_bytes(placement_.source(view.base).stored);
    }
    for (NodeId node : group_.outputs)
      for (const Place& place : placement_.targets(node))
        bytes += at(graph_[node].shape.elements()) * element_bytes(place.stored);
    return bytes;
  }

  // With several kernels only the first reads memory and only the last writes it. With short blocks the CPU starts the first
  // kernel of the next block while the last one of this block still waits; the longer the wait, the shorter blocks should be.
  void shorten_blocks(const std::set<NodeId>& externals) {
    constexpr std::int64_t kBlock = 1024, kStreamedBlock = 256, kDirectBlock = 8192;
    const auto is_converted = [&](NodeId node) {
      return placement_.source(plan_.views[at(node)].base).stored != compute_dtype(graph_[node].dtype);
    };
    const std::size_t kernels = group_.nodes.size() - absorbed_.into.size();
    const bool reduces_columns = group_.kind == Group::Kind::reduction && !geometry().keeps_columns;
    if (reduces_columns && kernels == 1 && std::none_of(externals.begin(), externals.end(), is_converted))
      program_.geometry.block = std::max(geometry().block, geometry().part_extent);
    if (group_.kind != Group::Kind::elementwise || !geometry().is_flat()) return;
    if (kernels == 1 && !program_.stream && reads_and_writes_directly(externals)) {
      program_.geometry.block = kDirectBlock;  // nothing has to stay in the L1 cache
    } else if (kernels > 1 || std::any_of(externals.begin(), externals.end(), is_converted)) {
      program_.geometry.block = program_.stream ? kStreamedBlock : kBlock;
    }
  }

  // A choice between columns alone writes rows of its result as it goes: with many of them in a tile little else is done.
  void take_rows_together(const std::set<NodeId>& externals) {
    constexpr std::int64_t kTile = 16384;
    if (group_.kind != Group::Kind::elementwise || program_.stream || group_.outputs.size() != 1) return;
    if (absorbed_.ranges.size() != 1 || group_.nodes.size() != 1 + absorbed_.into.size()) return;
    const auto& [id, range] = *absorbed_.ranges.begin();
    if (geometry().rows <= 1 || geometry().tile_rows > 1 || geometry().cols > kTile / 2) return;
    for (NodeId node : externals)
      if (std::ranges::find(graph_[id].inputs, node) != graph_[id].inputs.end() && !is_known(node) && !is_row_operand(node) &&
          !external_of(node).dense)
        return;
    program_.geometry.tile_rows = std::min(geometry().rows, kTile / geometry().cols);
  }

  // One kernel from inputs and values of rows to an output: nothing has to stay in the L1 cache.
  void lengthen_blocks() {
    constexpr std::int64_t kDirectBlock = 8192;
    if (group_.kind != Group::Kind::elementwise || geometry().tile_rows > 1 || !program_.init.empty()) return;
    if (!program_.constants.empty() || program_.phases.size() != 1 || program_.phases[0].body.size() != 1) return;
    const auto home = [&](int reg) { return program_.registers[at(reg)].home; };
    const Instruction& only = program_.phases[0].body[0];
    if (only.out < 0 || home(only.out) != Home::output) return;
    for (const int reg : only.in)
      if (reg >= 0 && home(reg) != Home::input && home(reg) != Home::row_value) return;
    program_.geometry.block = std::max(geometry().block, kDirectBlock);
  }

  // One kernel from all inputs to one output of the same type.
  bool reads_and_writes_directly(const std::set<NodeId>& externals) const {
    const NodeId id = group_.nodes.back();
    if (graph_[id].prim != Prim::elementwise || group_.outputs.size() != 1 || placement_.targets(id).size() != 1) return false;
    if (kernel_of_16_bits(id, kernel_of(id))) return true;
    const auto is_direct = [&](NodeId node) {
      const External external = external_of(node);
      return external.place.stored == compute_dtype(graph_[node].dtype) && is_pointed_at(external);
    };
    return placement_.targets(id)[0].stored == compute_dtype(graph_[id].dtype) && std::ranges::all_of(externals, is_direct);
  }

  // --- Phases ---

  void assign_phases() {
    int last = 0;
    for (NodeId id : group_.nodes) {
      int phase = 0;
      for (NodeId operand : graph_[id].inputs)
        if (const auto m = member(operand)) phase = std::max(phase, phase_[*m]);
      if (graph_[id].prim == Prim::reduce && group_.kind == Group::Kind::rows) ++phase;
      phase_[id] = phase;
      last = std::max(last, phase);
    }
    program_.phases.resize(at(last + 1));
  }

  // --- Instructions ---

  int new_register(DType dtype, Home home) {
    program_.registers.push_back({home, dtype, 0, -1});
    return static_cast<int>(program_.registers.size()) - 1;
  }

  std::vector<Instruction>& head() { return program_.phases[at(current_phase_)].head; }
  std::vector<Instruction>& body() { return program_.phases[at(current_phase_)].body; }

  void emit() {
    for (current_phase_ = 0; current_phase_ < static_cast<int>(program_.phases.size()); ++current_phase_) {
      for (NodeId id : group_.nodes)
        if (graph_[id].prim == Prim::reduce && phase_[id] == current_phase_ && group_.kind == Group::Kind::rows) emit_stores(id);
      for (NodeId id : group_.nodes) {
        const Node& node = graph_[id];
        if (absorbed_.into.count(id)) continue;
        if (node.prim == Prim::reduce) {
          const int feeding = phase_[id] - (group_.kind == Group::Kind::rows ? 1 : 0);
          if (feeding == current_phase_) emit_reduce(id);
        } else if (phase_[id] == current_phase_) {
          if (absorbed_.ranges.count(id))
            emit_range(id);
          else if (absorbed_.quantizations.count(id))
            emit_quantization(id);
          else if (node.prim == Prim::cast)
            emit_cast(id);
          else
            emit_elementwise(id);
          emit_stores(id);
        }
      }
    }
  }

  // The computation of one instruction: an op, or several nodes in one kernel.
  struct Kernel {
    ElementwiseOp op{};
    std::vector<NodeId> operands;
    ElementwiseKernel call = nullptr;
    ElementwiseKernel streaming = nullptr;
  };

  // An op with a factor of 1 is a cheaper one.
  Kernel simpler(NodeId id) const {
    const Node& node = graph_[id];
    const auto& attr = node.as<ElementwiseAttr>();
    const std::vector<NodeId>& in = node.inputs;
    if (attr.params[0] == 1) {
      if (attr.op == ElementwiseOp::AddAlpha) return {ElementwiseOp::Add, in};
      if (attr.op == ElementwiseOp::SubAlpha) return {ElementwiseOp::Sub, in};
      if (attr.op == ElementwiseOp::ReverseSub) return {ElementwiseOp::Sub, {in[1], in[0]}};
      if (attr.op == ElementwiseOp::AddCMul) return {ElementwiseOp::Mac, {in[1], in[2], in[0]}};
    }
    return {attr.op, in};
  }

  Kernel kernel_of(NodeId id) const {
    const Node& node = graph_[id];
    const auto op = static_cast<int>(node.as<ElementwiseAttr>().op);
    if (const auto inner = absorbed_.multiply_add_of.find(id); inner != absorbed_.multiply_add_of.end())
      return {node.as<ElementwiseAttr>().op, kernel_of(inner->second).operands, kernels().after_multiply_add[op],
              kernels().streaming_after_multiply_add[op]};
    Kernel kernel = simpler(id);
    if (const auto product = absorbed_.product_of.find(id); product != absorbed_.product_of.end()) {
      const NodeId addend = node.inputs[0] == product->second ? node.inputs[1] : node.inputs[0];
      kernel = {ElementwiseOp::Mac, {graph_[product->second].inputs[0], graph_[product->second].inputs[1], addend}};
    }
    const DType type = compute_dtype(graph_[kernel.operands.back()].dtype);
    const auto used = static_cast<int>(kernel.op);
    kernel.call = kernels().elementwise[used][static_cast<int>(type)];
    if (type == DType::f32) kernel.streaming = kernels().streaming[used];
    if (type == DType::f64) kernel.streaming = kernels().streaming_f64[used];
    if (!kernel.call)
      throw Error(ErrorCode::internal, std::string(name(kernel.op)) + " has no CPU kernel for " + std::string(name(type)));
    return kernel;
  }

  void emit_elementwise(NodeId id) {
    const bool row = is_row(id);
    if (absorbed_.exp_sums.count(id)) return emit_exp_sum(id);
    if (absorbed_.deviation_of.count(id)) return emit_deviation_with(id);
    if (absorbed_.normalized.count(id)) return emit_normalized(id);
    if (absorbed_.reduced_by.count(id)) return emit_reduced_op(id);
    const Kernel kernel = kernel_of(id);
    if (is_op(id, ElementwiseOp::Div) && !row && emit_division(id, kernel.operands)) return;
    if (!row && (emit_of_16_bits(id, kernel) || emit_with_rows(id, kernel))) return;
    Instruction instruction;
    instruction.code = row ? Code::row_values : Code::elementwise;
    instruction.params = graph_[id].as<ElementwiseAttr>().params;
    instruction.kernel = kernel.call;
    for (std::size_t i = 0; i < kernel.operands.size(); ++i) instruction.in[i] = operand(kernel.operands[i], row);
    if (kernel.streaming && can_stream(id)) {
      instruction.kernel = kernel.streaming;
      instruction.out = define_output(id);
    } else {
      instruction.out = define(id, row);
    }
    program_.cost += cost_of(kernel.op);
    (row ? head() : body()).push_back(instruction);
  }

  // The kernel of an op whose operands are read where they are and whose result is needed in one place, all in bf16 or all in
  // f16; nullptr otherwise.
  ElementwiseKernel kernel_of_16_bits(NodeId id, const Kernel& kernel) const {
    const DType type = graph_[id].dtype;
    if ((type != DType::bf16 && type != DType::f16) || absorbed_.multiply_add_of.count(id)) return nullptr;
    // A factor could take a number below the normal ones, where it loses digits.
    if (kernel.op == ElementwiseOp::AddCDiv && graph_[id].as<ElementwiseAttr>().params[0] != 1) return nullptr;
    if (!is_stored_as(type, id) || !std::ranges::all_of(kernel.operands, [&](NodeId in) { return is_read_as(type, in); }))
      return nullptr;
    const auto& table = type == DType::bf16 ? kernels().elementwise_bf16 : kernels().elementwise_f16;
    return table[static_cast<int>(kernel.op)];
  }
  // As it is, if it is read as bf16, or in its compute type.
  int operand_or_bf16(NodeId node) {
    return is_read_as(DType::bf16, node) ? input_register(external_of(node)) : operand(node, false);
  }
  // From outside, in its own |type|, where it is.
  bool is_read_as(DType type, NodeId operand) const {
    if (member(operand) || graph_[operand].dtype != type) return false;
    const External external = external_of(operand);
    return external.place.stored == type && is_pointed_at(external);
  }

  bool emit_of_16_bits(NodeId id, const Kernel& kernel) {
    Instruction instruction;
    instruction.kernel = kernel_of_16_bits(id, kernel);
    if (!instruction.kernel) return false;
    instruction.code = Code::elementwise;
    instruction.params = graph_[id].as<ElementwiseAttr>().params;
    for (std::size_t i = 0; i < kernel.operands.size(); ++i) instruction.in[i] = input_register(external_of(kernel.operands[i]));
    instruction.out = define_as_stored(id);
    program_.cost += cost_of(kernel.op);
    body().push_back(instruction);
    return true;
  }

  // The register of a result that is only stored, in its own type: the output's memory unless that is written with streaming
  // stores.
  int define_as_stored(NodeId id) {
    const int reg = register_of_[id] = new_register(graph_[id].dtype, program_.stream ? Home::block : Home::output);
    if (program_.stream) return reg;
    program_.registers[at(reg)].external = dense_external(placement_.targets(id)[0]);
    written_directly_[id] = 0;
    return reg;
  }
  bool is_stored_as(DType type, NodeId id) const {
    return graph_[id].dtype == type && !is_row(id) && is_only_stored(id) && placement_.targets(id).size() == 1;
  }

  // The reduction that node |id| is, fed by the current phase.
  Reduction new_reduction(NodeId id) {
    Reduction reduction;
    reduction.kind = graph_[id].as<ReduceAttr>().kind;
    reduction.dtype = compute_dtype(graph_[id].dtype);
    reduction.phase = current_phase_;
    if (group_.kind == Group::Kind::rows)
      register_of_[id] = reduction.result = new_register(reduction.dtype, Home::row_value);
    else if (is_output(id))
      reduction.targets = placement_.targets(id);
    return reduction;
  }
  void emit_reduction(Instruction instruction, Reduction reduction, double cost) {
    instruction.reduction = static_cast<int>(program_.reductions.size());
    program_.reductions.push_back(std::move(reduction));
    program_.cost += cost;
    body().push_back(instruction);
  }

  void emit_exp_sum(NodeId id) {
    const auto [difference, sum] = absorbed_.exp_sums.at(id);
    Instruction instruction = deviation(Code::exp_sum, difference);
    if (uses(id) > 1 || is_output(id)) instruction.out = define(id, false);
    emit_reduction(instruction, new_reduction(sum), 6);
  }

  // An instruction on the difference of all elements and one per row.
  Instruction deviation(Code code, NodeId difference) {
    Instruction instruction;
    instruction.code = code;
    instruction.in[0] = operand(graph_[difference].inputs[0], false);
    instruction.in[1] = row_register(graph_[difference].inputs[1]);
    return instruction;
  }

  void emit_deviation_with(NodeId id) {
    const auto op = static_cast<int>(graph_[id].as<ElementwiseAttr>().op),
               type = static_cast<int>(compute_dtype(graph_[id].dtype));
    Instruction instruction = deviation(Code::deviation_with, absorbed_.deviation_of.at(id));
    instruction.in[2] = row_register(graph_[id].inputs[1]);
    const bool streams = can_stream(id);
    instruction.kernel = (streams ? kernels().streaming_deviation_with : kernels().deviation_with)[op][type];
    instruction.out = streams ? define_output(id) : define(id, false);
    program_.cost += 2;
    body().push_back(instruction);
  }

  // The bytes of a constant operand, as |type|.
  std::array<std::byte, 8> constant_bytes(NodeId node, DType type) {
    const Register& reg = program_.registers[at(*constant_operand(node))];
    alignas(8) std::array<std::byte, 8> bytes{};
    kernels().convert[static_cast<int>(reg.dtype)][static_cast<int>(type)](program_.constants.data() + reg.offset, bytes.data(),
                                                                           1);
    return bytes;
  }

  void emit_range(NodeId id) {
    const ColumnRange& range = absorbed_.ranges.at(id);
    const Node& node = graph_[id];
    Instruction instruction;
    instruction.code = Code::select_range;
    instruction.in[1] = operand(range.row, true);
    instruction.range.comparison = range.op;
    instruction.range.first_number = range.first_number;
    std::optional<NodeId> copied;
    if (node.prim != Prim::cast) {
      if (!is_known(node.inputs[1])) copied = node.inputs[1];
      if (!is_known(node.inputs[2])) copied = node.inputs[2];
      instruction.range.copies_inside = copied == node.inputs[1];
      instruction.range.copies_outside = copied == node.inputs[2];
    }
    const bool by_row = copied && is_row_operand(*copied), stores_row = by_row && is_stored_in(*copied, node.dtype);
    const bool is_16_bit = node.dtype == DType::bf16 || node.dtype == DType::f16;
    const bool narrow = is_16_bit && is_stored_as(node.dtype, id) && (!copied || stores_row || is_read_as(node.dtype, *copied));
    const DType type = narrow ? node.dtype : compute_dtype(node.dtype);
    if (by_row)
      instruction.in[2] = narrow ? load_stored_row(*copied).out : row_register(*copied);
    else if (copied)
      instruction.in[0] = narrow ? input_register(external_of(*copied)) : operand(*copied, false);
    if (node.prim == Prim::cast) {
      const double one = 1;
      kernels().convert[static_cast<int>(DType::f64)][static_cast<int>(type)](&one, instruction.range.inside.data(), 1);
    } else {
      if (!instruction.range.copies_inside) instruction.range.inside = constant_bytes(node.inputs[1], type);
      if (!instruction.range.copies_outside) instruction.range.outside = constant_bytes(node.inputs[2], type);
    }
    instruction.out = narrow ? define_as_stored(id) : define(id, false);
    program_.cost += 1;
    body().push_back(instruction);
  }
  bool is_known(NodeId node) const {
    return !member(node) && view_.is_constant(node) && !is_block(graph_[node].dtype) && is_uniform(node);
  }

  void emit_quantization(NodeId id) {
    const Quantization& of = absorbed_.quantizations.at(id);
    Instruction instruction;
    instruction.code = Code::elementwise;
    instruction.params = of.params;
    instruction.kernel = kernels().quantize;
    instruction.in[0] = operand(of.source, false);
    instruction.out = define(id, false);
    program_.cost += 2;
    body().push_back(instruction);
  }

  void emit_normalized(NodeId id) {
    const NodeId quotient = absorbed_.normalized.at(id), difference = absorbed_.deviation_of.at(quotient),
                 product = absorbed_.product_of.at(id), x = graph_[difference].inputs[0];
    const auto other = [&](NodeId node, NodeId operand) {
      const std::vector<NodeId>& both = graph_[node].inputs;
      return both[0] == operand ? both[1] : both[0];
    };
    const bool narrow = is_stored_as(DType::bf16, id) && is_read_as(DType::bf16, x) && !loaded_.count({x, false});
    Instruction instruction;
    instruction.code = Code::normalize;
    instruction.in = {narrow ? input_register(external_of(x)) : operand(x, false), row_register(graph_[difference].inputs[1]),
                      row_register(graph_[quotient].inputs[1]), row_register(other(product, quotient)),
                      row_register(other(id, product))};
    if (narrow) {
      instruction.normalize = kernels().normalize_bf16;
      instruction.out = define_as_stored(id);
    } else {
      const bool streams = can_stream(id);
      instruction.normalize = streams ? kernels().streaming_normalize : kernels().normalize;
      instruction.out = streams ? define_output(id) : define(id, false);
    }
    program_.cost += 2;
    body().push_back(instruction);
  }

  void emit_reduced_op(NodeId id) {
    const NodeId sum = absorbed_.reduced_by.at(id);
    Instruction instruction;
    instruction.code = Code::store_and_reduce;
    for (std::size_t i = 0; i < 2; ++i) instruction.in[i] = operand(graph_[id].inputs[i], false);
    instruction.out = define(id, false);
    Reduction reduction = new_reduction(sum);
    instruction.store_and_reduce = store_and_reduce_kernel(reduction.kind, graph_[id].as<ElementwiseAttr>().op, reduction.dtype);
    emit_reduction(instruction, std::move(reduction), 2);
  }

  // One value per row among others with a value per element: of a member, or from outside.
  bool is_row_operand(NodeId operand) const {
    return view_.row_member(operand) || view_.repeats_along(operand, geometry().column_axis);
  }
  int row_register(NodeId node) {
    if (const auto m = view_.row_member(node)) return register_of_.at(*m);
    return operand(node, true);
  }

  // Combines all elements with one value of the row, if there is a kernel for it: sums and products in either order. Short rows
  // are faster together, with their values expanded.
  bool emit_with_rows(NodeId id, const Kernel& kernel) {
    constexpr std::int64_t kShort = 128;
    const auto op = static_cast<int>(kernel.op);
    const std::vector<NodeId>& operands = kernel.operands;
    if (geometry().cols < kShort || !kernels().with_one[op] || absorbed_.multiply_add_of.count(id)) return false;
    if (compute_dtype(graph_[id].dtype) != DType::f32 || (operands.size() == 3 && !is_row_operand(operands[2]))) return false;
    const bool swaps = kernel.op != ElementwiseOp::Sub && is_row_operand(operands[0]);
    const NodeId left = operands[swaps ? 1 : 0], right = operands[swaps ? 0 : 1];
    if (!is_row_operand(right) || is_row_operand(left)) return false;
    Instruction instruction;
    instruction.code = Code::with_rows;
    instruction.in[0] = operand(left, false);
    instruction.in[1] = row_register(right);
    if (operands.size() == 3) instruction.in[2] = row_register(operands[2]);
    const bool streams = can_stream(id);
    instruction.kernel = streams ? kernels().streaming_with_one[op] : kernels().with_one[op];
    instruction.out = streams ? define_output(id) : define(id, false);
    program_.cost += 1;
    body().push_back(instruction);
    return true;
  }

  // All elements of a row divided by one value of the row: by its reciprocal, several times faster and half an ULP less exact.
  bool emit_division(NodeId id, const std::vector<NodeId>& operands) {
    if (!view_.row_member(operands[1]) || compute_dtype(graph_[id].dtype) != DType::f32) return false;
    if (geometry().has_short_rows) return false;  // a call for each row costs more than the divisions
    const int divisor = row_register(operands[1]);
    Instruction division;
    division.code = Code::divide_rows;
    division.in[0] = operand(operands[0], false);
    division.in[1] = divisor;
    division.kernel = kernels().elementwise[static_cast<int>(ElementwiseOp::Div)][static_cast<int>(DType::f32)];
    division.streaming = can_stream(id);
    division.out = division.streaming ? define_output(id) : define(id, false);
    program_.cost += 1;
    body().push_back(division);
    return true;
  }

  void emit_cast(NodeId id) {
    const Node& node = graph_[id];
    const bool row = is_row(id);
    const int source = operand(node.inputs[0], row);
    const DType from = program_.registers[at(source)].dtype;
    const DType to = node.dtype;
    const bool rounds = to == DType::f16 || to == DType::bf16;
    // Where it is only stored, storing rounds it.
    if (rounds ? is_only_stored(id) : from == to) {
      register_of_[id] = source;
      return;
    }
    int current = source;
    if (rounds) current = convert(current, to, row, new_register(to, row ? Home::row_value : Home::block));
    convert(current, compute_dtype(to), row, define(id, row));
    program_.cost += 1;
  }

  int convert(int source, DType to, bool row, int out) {
    Instruction instruction;
    instruction.code = row ? Code::convert_rows : Code::convert;
    instruction.in[0] = source;
    instruction.out = out;
    instruction.convert = kernels().convert[static_cast<int>(program_.registers[at(source)].dtype)][static_cast<int>(to)];
    (row ? head() : body()).push_back(instruction);
    return out;
  }

  void emit_reduce(NodeId id) {
    if (absorbed_.deviation_of.count(id)) {
      Instruction squares = deviation(Code::squared_deviations, absorbed_.deviation_of.at(id));
      squares.squares = kernels().sum_of_squared_deviations[static_cast<int>(program_.registers[at(squares.in[0])].dtype)];
      return emit_reduction(squares, new_reduction(id), 2);
    }
    if (absorbed_.quotients.count(id)) {
      const NodeId quotient = absorbed_.quotients.at(id);
      Instruction squares;
      squares.code = Code::squared_deviations;
      squares.in[0] = operand_or_bf16(graph_[quotient].inputs[0]);
      squares.in[1] = row_register(graph_[quotient].inputs[1]);
      squares.squares = kernels().sum_of_squared_quotients[static_cast<int>(program_.registers[at(squares.in[0])].dtype)];
      if (const auto known = squares_of_.find(id); known != squares_of_.end() && known->second.phase < current_phase_) {
        squares.in[2] = known->second.squares;
        squares.in[3] = known->second.largest;
      }
      return emit_reduction(squares, new_reduction(id), 2);
    }
    if (absorbed_.squares_with.count(id)) return emit_largest_and_squares(id);
    Instruction instruction;
    instruction.code = Code::reduce;
    Reduction reduction = new_reduction(id);
    const auto kind = static_cast<int>(reduction.kind);
    auto type = static_cast<int>(reduction.dtype);
    if (const auto difference = absorbed_.distances.find(id); difference != absorbed_.distances.end()) {
      const NodeId measure = graph_[id].inputs[0];
      reduction.products = difference_kernel(reduction.kind, graph_[measure].as<ElementwiseAttr>().op, reduction.dtype);
      reduction.input = operand(graph_[difference->second].inputs[0], false);
      instruction.in[1] = operand(graph_[difference->second].inputs[1], false);
    } else if (const auto product = absorbed_.product_sums.find(id); product != absorbed_.product_sums.end()) {
      const std::vector<NodeId>& factors = graph_[product->second].inputs;
      reduction.products = kernels().product_sum[type];
      reduction.input = operand(factors[0], false);
      instruction.in[1] = factors.size() > 1 ? operand(factors[1], false) : reduction.input;
      const auto is_input = [&](int reg) { return program_.registers[at(reg)].home == Home::input; };
      if (group_.kind == Group::Kind::reduction && program_.prefetch && is_input(reduction.input) && is_input(instruction.in[1]))
        reduction.products = kernels().far_product_sum[type];
    } else if (const auto size = absorbed_.magnitudes.find(id); size != absorbed_.magnitudes.end()) {
      reduction.input = operand_or_bf16(graph_[size->second].inputs[0]);
      type = static_cast<int>(program_.registers[at(reduction.input)].dtype);
    } else if (!geometry().has_short_rows && is_read_as(DType::bf16, graph_[id].inputs[0]) &&
               kernels().partial_reduce[kind][static_cast<int>(DType::bf16)]) {
      reduction.input = operand_or_bf16(graph_[id].inputs[0]);
      type = static_cast<int>(DType::bf16);
    } else {
      reduction.input = operand(graph_[id].inputs[0], false);
    }
    reduction.partial = absorbed_.magnitudes.count(id) ? kernels().largest_magnitude[type] : kernels().partial_reduce[kind][type];
    if (group_.kind == Group::Kind::reduction && program_.stream && !reduction.products &&
        program_.registers[at(reduction.input)].home == Home::input && !absorbed_.magnitudes.count(id))
      if (const auto far = kernels().far_reduce[kind][type]) reduction.partial = far;
    reduction.columns = kernels().column_reduce[kind][type];
    if (geometry().has_short_rows && !reduction.products && !absorbed_.magnitudes.count(id) &&
        type == static_cast<int>(DType::f32))
      reduction.short_rows = kernels().short_rows[kind];
    instruction.in[0] = reduction.input;
    instruction.out = reduction.result;
    emit_reduction(instruction, std::move(reduction), 1);
  }

  void emit_largest_and_squares(NodeId id) {
    Instruction instruction;
    instruction.code = Code::largest_and_squares;
    instruction.in[0] = operand_or_bf16(graph_[absorbed_.magnitudes.at(id)].inputs[0]);
    Reduction largest = new_reduction(id), squares;
    largest.input = instruction.in[0];
    squares.kind = ReduceKind::sum;
    squares.phase = current_phase_;
    squares.input = instruction.in[0];
    squares.result = new_register(DType::f32, Home::row_value);
    squares_of_[absorbed_.squares_with.at(id)] = {squares.result, largest.result, current_phase_};
    emit_reduction(instruction, std::move(largest), 2);
    program_.reductions.push_back(std::move(squares));
  }

  // An output that no member reads, in its own type wherever it goes.
  bool is_only_stored(NodeId id) const {
    if (!is_output(id) || uses(id) > 0) return false;
    const std::vector<Place> targets = placement_.targets(id);
    return std::ranges::all_of(targets, [&](const Place& place) { return place.stored == graph_[id].dtype; });
  }

  // The value is needed only in one output, which is written with streaming stores.
  bool can_stream(NodeId id) const {
    if (!program_.stream || is_row(id) || !is_output(id) || uses(id) > 0) return false;
    const std::vector<Place> targets = placement_.targets(id);
    return targets.size() == 1 && targets[0].stored == compute_dtype(graph_[id].dtype);
  }

  // A register that aliases the memory of the first output that |id| is.
  int define_output(NodeId id) {
    const int reg = register_of_[id] = new_register(compute_dtype(graph_[id].dtype), Home::output);
    program_.registers[at(reg)].external = dense_external(placement_.targets(id)[0]);
    written_directly_[id] = 0;
    return reg;
  }

  // The register of a member's value: the memory of an output if the value can be computed directly there.
  int define(NodeId id, bool row) {
    const DType dtype = compute_dtype(graph_[id].dtype);
    const int reg = new_register(dtype, row ? Home::row_value : Home::block);
    register_of_[id] = reg;
    if (!row && is_output(id) && !program_.stream) {
      const std::vector<Place> targets = placement_.targets(id);
      for (std::size_t i = 0; i < targets.size(); ++i)
        if (targets[i].stored == dtype) {
          program_.registers[at(reg)].home = Home::output;
          program_.registers[at(reg)].external = dense_external(targets[i]);
          written_directly_[id] = static_cast<int>(i);
          break;
        }
    }
    return reg;
  }

  void emit_stores(NodeId id) {
    if (!is_output(id)) return;
    const bool row = is_row(id);
    const std::vector<Place> targets = placement_.targets(id);
    for (std::size_t i = 0; i < targets.size(); ++i) {
      const auto direct = written_directly_.find(id);
      if (direct != written_directly_.end() && direct->second == static_cast<int>(i)) continue;
      int source = register_of_[id];
      Instruction instruction;
      instruction.external = row ? row_external(targets[i]) : dense_external(targets[i]);
      const DType stored = targets[i].stored;
      if (program_.registers[at(source)].dtype != stored) {
        // Directly to the target if it is addressed like the tile; through a block with streaming stores.
        if (!row && !program_.stream) {
          const int out = new_register(stored, Home::output);
          program_.registers[at(out)].external = instruction.external;
          convert(source, stored, false, out);
          continue;
        }
        source = convert(source, stored, row, new_register(stored, row ? Home::row_value : Home::block));
      }
      instruction.code = row ? Code::store_rows : Code::store;
      instruction.in[0] = source;
      (row ? head() : body()).push_back(instruction);
    }
  }

  int dense_external(const Place& place) {
    External external;
    external.place = place;
    external.dense = true;
    external.col_stride = 1;
    program_.externals.push_back(external);
    return static_cast<int>(program_.externals.size()) - 1;
  }

  int row_external(const Place& place) {
    External external;
    external.place = place;
    std::int64_t stride = 1;
    for (std::size_t i = geometry().outer.size(); i-- > 0;) {
      external.row_strides[i] = stride;
      stride *= geometry().outer[i];
    }
    program_.externals.push_back(external);
    return static_cast<int>(program_.externals.size()) - 1;
  }

  // In rows groups the first phase has read the row, so the next row can be prefetched during the second: by its kernel as it
  // goes along, or between the instructions.
  void look_ahead() {
    if (group_.kind != Group::Kind::rows || program_.phases.size() < 2 || geometry().tile_rows > 1) return;
    Phase& phase = program_.phases[1];
    for (Instruction& instruction : phase.body) {
      if (instruction.code != Code::exp_sum && instruction.code != Code::squared_deviations) continue;
      const std::size_t size = element_bytes(program_.registers[at(instruction.in[0])].dtype);
      std::size_t count = 0;
      for (std::size_t r = 0; r < program_.registers.size() && count < instruction.ahead.size(); ++r) {
        const Register& reg = program_.registers[r];
        if (reg.home == Home::input && element_bytes(reg.dtype) == size) instruction.ahead[count++] = reg.external;
      }
      if (count > 0) return;
    }
    phase.ahead = phase.body.size() > 1;
  }

  // --- Operands ---

  int operand(NodeId node, bool row) {
    if (const auto m = member(node)) {
      const int reg = register_of_.at(*m);
      if (row || !is_row(*m) || graph_[*m].shape == group_.domain) return reg;
      return expand(*m, reg);
    }
    const auto key = std::make_pair(node, row);
    if (const auto known = loaded_.find(key); known != loaded_.end()) return known->second;
    return loaded_[key] = row ? load_row_operand(node) : load_operand(node);
  }

  int expand(NodeId m, int reg) {
    if (const auto known = expanded_.find(m); known != expanded_.end()) return known->second;
    const int out = new_register(program_.registers[at(reg)].dtype, Home::block);
    Instruction instruction;
    instruction.code = Code::expand;
    instruction.in[0] = reg;
    instruction.out = out;
    head().push_back(instruction);
    return expanded_[m] = out;
  }

  External external_of(NodeId node) const {
    return address(graph_, plan_, group_, geometry(), node, placement_.source(plan_.views[at(node)].base));
  }

  bool is_uniform(NodeId node) const {
    const Strides strides = domain_strides(graph_, plan_, group_, node);
    return std::all_of(strides.begin(), strides.begin() + group_.domain.rank(), [](std::int64_t s) { return s == 0; });
  }

  // A block of equal values, known now.
  std::optional<int> constant_operand(NodeId node) {
    const ValueView& view = plan_.views[at(node)];
    const Node& base = graph_[view.base];
    if (base.prim != Prim::constant || !is_uniform(node)) return std::nullopt;
    // A literal combined with a bf16 tensor is stored in f32, so the array's own dtype applies.
    const HostArray& array = base.as<ConstantAttr>().value;
    if (is_block(array.dtype())) return std::nullopt;
    const DType dtype = compute_dtype(base.dtype);
    const std::size_t size = element_bytes(dtype);
    alignas(8) std::byte value[8];
    kernels().convert[static_cast<int>(array.dtype())][static_cast<int>(dtype)](
        array.data() + at(view.offset) * element_bytes(array.dtype()), value, 1);
    const int reg = new_register(dtype, Home::constant);
    program_.registers[at(reg)].offset = align_up(program_.constants.size());
    program_.constants.resize(program_.registers[at(reg)].offset + at(geometry().tile_elements()) * size);
    for (std::int64_t i = 0; i < geometry().tile_elements(); ++i)
      std::memcpy(program_.constants.data() + program_.registers[at(reg)].offset + at(i) * size, value, size);
    return reg;
  }

  // Its elements of a tile lie side by side.
  bool is_pointed_at(const External& external) const {
    return external.dense || (geometry().tile_rows == 1 && external.col_stride == 1);
  }
  // All rows are equal, and tiles are whole rows.
  bool is_same_in_all_tiles(const External& external) const {
    const LoopGeometry& g = geometry();
    const auto first = external.row_strides.begin(), last = first + static_cast<std::ptrdiff_t>(g.outer.size());
    return std::all_of(first, last, [](std::int64_t s) { return s == 0; }) && (g.tile_rows > 1 || g.cols <= g.block) &&
           g.rows > 1;
  }
  int input_register(const External& external) {
    program_.externals.push_back(external);
    const int reg = new_register(external.place.stored, Home::input);
    program_.registers[at(reg)].external = static_cast<int>(program_.externals.size()) - 1;
    return reg;
  }

  int load_operand(NodeId node) {
    if (const auto constant = constant_operand(node)) return *constant;
    const DType wanted = compute_dtype(graph_[node].dtype);
    const External external = external_of(node);
    const bool once = is_same_in_all_tiles(external);
    if (is_pointed_at(external) && !(once && external.place.stored != wanted)) {
      const int reg = input_register(external);
      if (external.place.stored == wanted) return reg;
      return convert(reg, wanted, false, new_register(wanted, Home::block));
    }
    program_.externals.push_back(external);
    const int index = static_cast<int>(program_.externals.size()) - 1;
    const bool segments = geometry().tile_rows == 1;
    std::vector<Instruction>& where = once || is_uniform(node)                 ? program_.init
                                      : (segments && external.col_stride == 0) ? head()
                                                                               : body();
    Instruction load;
    load.code = Code::load;
    load.external = index;
    load.out = new_register(external.place.stored, Home::block);
    where.push_back(load);
    if (external.place.stored == wanted) return load.out;
    Instruction conversion;
    conversion.code = Code::convert;
    conversion.in[0] = load.out;
    conversion.out = new_register(wanted, Home::block);
    conversion.convert = kernels().convert[static_cast<int>(external.place.stored)][static_cast<int>(wanted)];
    where.push_back(conversion);
    return conversion.out;
  }

  // The values of rows as they are stored.
  Instruction load_stored_row(NodeId node) {
    program_.externals.push_back(external_of(node));
    Instruction load;
    load.code = Code::load_rows;
    load.external = static_cast<int>(program_.externals.size()) - 1;
    load.out = new_register(program_.externals.back().place.stored, Home::row_value);
    (is_uniform(node) ? program_.init : head()).push_back(load);
    return load;
  }
  bool is_stored_in(NodeId operand, DType dtype) const { return !member(operand) && external_of(operand).place.stored == dtype; }

  int load_row_operand(NodeId node) {
    if (const auto constant = constant_operand(node)) return *constant;
    const DType wanted = compute_dtype(graph_[node].dtype);
    const Instruction load = load_stored_row(node);
    std::vector<Instruction>& where = is_uniform(node) ? program_.init : head();
    if (program_.registers[at(load.out)].dtype == wanted) return load.out;
    Instruction conversion;
    conversion.code = Code::convert_rows;
    conversion.in[0] = load.out;
    conversion.out = new_register(wanted, Home::row_value);
    conversion.convert = kernels().convert[static_cast<int>(program_.registers[at(load.out)].dtype)][static_cast<int>(wanted)];
    where.push_back(conversion);
    return conversion.out;
  }

  LoopProgram& program_;
  const Graph& graph_;
  const Plan& plan_;
  const Group& group_;
  const GroupView view_;
  const ValuePlacement& placement_;

  Absorbed absorbed_;
  std::map<NodeId, int> phase_;
  int current_phase_ = 0;
  std::map<NodeId, int> register_of_;
  std::map<NodeId, int> written_directly_;  // output -> index of the target its register is
  std::map<std::pair<NodeId, bool>, int> loaded_;
  std::map<NodeId, int> expanded_;
  // A sum of squares of quotients x / row -> what is known of x from an earlier phase.
  struct SquaresOf {
    int squares, largest;  // registers
    int phase;
  };
  std::map<NodeId, SquaresOf> squares_of_;
};

}  // namespace

Loop::Loop(const Graph& graph, const Plan& plan, int group, const ValuePlacement& placement, int threads) {
  LoopCompiler(program_, graph, plan, group, placement).run();
  assign_memory(program_, threads);
}

}  // namespace tenon::cpu
