#include <algorithm>

#include "backends/cpu/loop/program.h"

namespace tenon::cpu {
namespace {

constexpr std::size_t kAlign = 64;
std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }
std::size_t align_up(std::size_t bytes) { return (bytes + kAlign - 1) / kAlign * kAlign; }

class MemoryPlan {
 public:
  explicit MemoryPlan(LoopProgram& program) : program_(program) {}

  void run(int threads) {
    order_instructions();
    choose_homes();
    assign_slots();
    lay_out(threads);
  }

 private:
  using Home = Register::Home;
  using Code = Instruction::Code;

  // From the instruction that first touches a register to the one that last does.
  struct Life {
    int first = -1, last = -1;
    int first_phase = -1, last_phase = -1;  // -1: init
    bool first_in_body = false, last_in_body = false;
  };

  const LoopGeometry& geometry() const { return program_.geometry; }

  void order_instructions() {
    lives_.resize(program_.registers.size());
    for (const Instruction& i : program_.init) visit(i, -1, false);
    for (std::size_t p = 0; p < program_.phases.size(); ++p) {
      for (const Instruction& i : program_.phases[p].head) visit(i, static_cast<int>(p), false);
      for (const Instruction& i : program_.phases[p].body) visit(i, static_cast<int>(p), true);
      phase_end_.push_back(static_cast<int>(order_.size()));
    }
  }

  void visit(const Instruction& instruction, int phase, bool in_body) {
    const int position = static_cast<int>(order_.size());
    order_.push_back(&instruction);
    const auto touch = [&](int reg) {
      if (reg < 0) return;
      Life& life = lives_[at(reg)];
      if (life.first < 0) {
        life.first = position;
        life.first_phase = phase;
        life.first_in_body = in_body;
      }
      life.last = position;
      life.last_phase = phase;
      life.last_in_body = in_body;
    };
    for (int reg : instruction.in) touch(reg);
    touch(instruction.out);
  }

  void choose_homes() {
    for (std::size_t r = 0; r < lives_.size(); ++r) {
      Register& reg = program_.registers[r];
      Life& life = lives_[r];
      if (reg.home != Home::block || life.first < 0) continue;
      slot_bytes_ = std::max(slot_bytes_, align_up(at(geometry().tile_elements()) * element_bytes(reg.dtype)));
      if (life.first_phase < 0) {
        life.last = static_cast<int>(order_.size());
      } else if (geometry().tile_rows == 1 && life.first_in_body && life.last_phase > life.first_phase) {
        reg.home = Home::row;  // the later phase starts only when the whole row is done
      } else if (!life.first_in_body && life.last_in_body) {
        life.last = phase_end_[at(life.last_phase)];  // written once per row, read by every tile of it
      }
    }
  }

  // Linear scan: a slot is free again when the life of its register is over.
  void assign_slots() {
    slot_of_.assign(lives_.size(), -1);
    std::vector<int> free_slots;
    std::vector<std::pair<int, int>> busy;  // last position, slot
    for (int position = 0; position < static_cast<int>(order_.size()); ++position) {
      const Instruction& instruction = *order_[at(position)];
      const int out = instruction.out;
      if (out < 0 || program_.registers[at(out)].home != Home::block || lives_[at(out)].first != position) continue;
      const int over = position - (works_in_place(instruction) ? 0 : 1);
      std::erase_if(busy, [&](const auto& entry) {
        if (entry.first > over) return false;
        free_slots.push_back(entry.second);
        return true;
      });
      if (free_slots.empty()) free_slots.push_back(slots_++);
      slot_of_[at(out)] = free_slots.back();
      free_slots.pop_back();
      busy.push_back({lives_[at(out)].last, slot_of_[at(out)]});
    }
  }

  // The result may replace a dead input, but only between elements of the same size.
  bool works_in_place(const Instruction& instruction) const {
    if (instruction.code != Code::elementwise && instruction.code != Code::with_rows && instruction.code != Code::convert)
      return false;
    const std::size_t size = element_bytes(program_.registers[at(instruction.out)].dtype);
    return std::all_of(instruction.in.begin(), instruction.in.end(),
                       [&](int in) { return in < 0 || element_bytes(program_.registers[at(in)].dtype) == size; });
  }

  void lay_out(int threads) {
    std::size_t offset = align_up(program_.registers.size() * sizeof(void*));
    offset = align_up(offset + program_.reductions.size() * sizeof(Accumulator));
    const std::size_t slots_at = offset;
    offset += at(slots_) * slot_bytes_;
    for (std::size_t r = 0; r < program_.registers.size(); ++r) {
      Register& reg = program_.registers[r];
      const std::size_t size = element_bytes(reg.dtype);
      switch (reg.home) {
        case Home::block: reg.offset = slots_at + at(std::max(slot_of_[r], 0)) * slot_bytes_; break;
        case Home::row:
          reg.offset = offset;
          offset += align_up(at(geometry().cols) * size);
          program_.moving.push_back(static_cast<int>(r));
          break;
        case Home::row_value:
          reg.offset = offset;
          offset += align_up(at(geometry().tile_rows) * size);
          break;
        case Home::input:
        case Home::output: program_.moving.push_back(static_cast<int>(r)); break;
        case Home::constant: break;
      }
    }
    program_.column_accumulators = offset;
    if (geometry().keeps_columns && geometry().parts == 1)
      offset += program_.reductions.size() * at(geometry().tile_elements()) * sizeof(Accumulator);
    program_.worker_bytes = align_up(offset);
    program_.partials_offset = program_.worker_bytes * at(threads);
    std::size_t partials = 0;
    if (geometry().parts > 1)
      partials = at(geometry().partial_stride() * geometry().parts) * program_.reductions.size() * sizeof(Accumulator);
    program_.scratch_bytes = program_.partials_offset + align_up(partials);
  }

  LoopProgram& program_;
  std::vector<const Instruction*> order_;
  std::vector<Life> lives_;
  std::vector<int> phase_end_;
  std::vector<int> slot_of_;
  std::size_t slot_bytes_ = 0;
  int slots_ = 0;
};

}  // namespace

void assign_memory(LoopProgram& program, int threads) { MemoryPlan(program).run(threads); }

}  // namespace tenon::cpu
