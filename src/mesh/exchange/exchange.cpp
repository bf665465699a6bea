#include "mesh/exchange/exchange.h"

#include <algorithm>
#include <array>
#include <condition_variable>
#include <cstring>
#include <mutex>

#include "tenon/error.h"
#include "tenon/manager/placement.h"

namespace tenon::mesh {
namespace {

std::size_t index(int i) { return static_cast<std::size_t>(i); }

template <class T>
T combine(ReduceKind kind, T a, T b) {
  switch (kind) {
    case ReduceKind::sum: return static_cast<T>(a + b);
    case ReduceKind::prod: return static_cast<T>(a * b);
    case ReduceKind::max: return b > a || b != b ? b : a;  // NaN wins
    case ReduceKind::min: return b < a || b != b ? b : a;
    case ReduceKind::any: return static_cast<T>(a != T{} || b != T{});
    case ReduceKind::all: return static_cast<T>(a != T{} && b != T{});
  }
  return a;
}

template <class T>
void accumulate_as(ReduceKind kind, std::byte* target, const std::byte* source, std::int64_t elements) {
  auto* to = reinterpret_cast<T*>(target);
  const auto* from = reinterpret_cast<const T*>(source);
  // The switch is outside of the loop, so that each loop is one vector instruction.
  const auto loop = [&](auto constant) {
    for (std::int64_t i = 0; i < elements; ++i) to[i] = combine<T>(constant(), to[i], from[i]);
  };
  switch (kind) {
    case ReduceKind::sum: return loop([] { return ReduceKind::sum; });
    case ReduceKind::prod: return loop([] { return ReduceKind::prod; });
    case ReduceKind::max: return loop([] { return ReduceKind::max; });
    case ReduceKind::min: return loop([] { return ReduceKind::min; });
    case ReduceKind::any: return loop([] { return ReduceKind::any; });
    case ReduceKind::all: return loop([] { return ReduceKind::all; });
  }
}

// The axes of the mesh that |from| is partial along and |to| is not, and their reduction.
struct Reduction {
  std::vector<int> axes;
  ReduceKind kind = ReduceKind::sum;
};
Reduction reduction_between(const Layout& from, const Layout& to) {
  Reduction result;
  for (std::size_t m = 0; m < from.partials.size(); ++m)
    if (from.partials[m] && !to.partials[m]) {
      result.axes.push_back(static_cast<int>(m));
      result.kind = *from.partials[m];
    }
  return result;
}

}  // namespace

void accumulate(ReduceKind kind, DType dtype, std::byte* target, const std::byte* source, std::int64_t elements) {
  switch (dtype) {
    case DType::boolean:
      return accumulate_as<std::uint8_t>(kind == ReduceKind::sum ? ReduceKind::any : kind, target, source, elements);
    case DType::u8: return accumulate_as<std::uint8_t>(kind, target, source, elements);
    case DType::u16: return accumulate_as<std::uint16_t>(kind, target, source, elements);
    case DType::u32: return accumulate_as<std::uint32_t>(kind, target, source, elements);
    case DType::u64: return accumulate_as<std::uint64_t>(kind, target, source, elements);
    // Sums of signed integers wrap around: computed without sign.
    case DType::i8:
      return kind <= ReduceKind::prod ? accumulate_as<std::uint8_t>(kind, target, source, elements)
                                      : accumulate_as<std::int8_t>(kind, target, source, elements);
    case DType::i16:
      return kind <= ReduceKind::prod ? accumulate_as<std::uint16_t>(kind, target, source, elements)
                                      : accumulate_as<std::int16_t>(kind, target, source, elements);
    case DType::i32:
      return kind <= ReduceKind::prod ? accumulate_as<std::uint32_t>(kind, target, source, elements)
                                      : accumulate_as<std::int32_t>(kind, target, source, elements);
    case DType::i64:
      return kind <= ReduceKind::prod ? accumulate_as<std::uint64_t>(kind, target, source, elements)
                                      : accumulate_as<std::int64_t>(kind, target, source, elements);
    case DType::f32: return accumulate_as<float>(kind, target, source, elements);
    case DType::f64: return accumulate_as<double>(kind, target, source, elements);
    default: throw Error(ErrorCode::internal, "a value in 16 bits was to be added up between devices");
  }
}

std::uint64_t copy_common(const HostArray& source, const Box& from, std::byte* target, const Box& to) {
  const Box common = intersection(from, to);
  const std::int64_t elements = common.elements();
  if (elements == 0) return 0;
  const std::size_t size = element_bytes(source.dtype());
  const Shape shape = common.shape();
  const Strides in = contiguous_strides(from.shape()), out = contiguous_strides(to.shape());
  // Rows of the last axis are contiguous in both; so are several axes where both parts are as wide as the common one.
  int inner = shape.rank();
  std::int64_t run = 1;
  while (inner > 0 && in[index(inner - 1)] == run && out[index(inner - 1)] == run) run *= shape[--inner];
  std::array<std::int64_t, kMaxRank> at{};
  for (std::int64_t done = 0; done < elements; done += run) {
    std::int64_t read = 0, write = 0;
    for (int axis = 0; axis < shape.rank(); ++axis) {
      const std::int64_t position = common.begin[index(axis)] + (axis < inner ? at[index(axis)] : 0);
      read += (position - from.begin[index(axis)]) * in[index(axis)];
      write += (position - to.begin[index(axis)]) * out[index(axis)];
    }
    std::memcpy(target + static_cast<std::size_t>(write) * size, source.data() + static_cast<std::size_t>(read) * size,
                static_cast<std::size_t>(run) * size);
    for (int axis = inner - 1; axis >= 0 && ++at[index(axis)] == shape[axis]; --axis) at[index(axis)] = 0;
  }
  return static_cast<std::uint64_t>(elements) * size;
}

HostArray cut(const HostArray& array, const Box& have, const Box& wanted) {
  if (have == wanted) return array;
  const bool is_rows = std::equal(have.begin.begin() + 1, have.begin.end(), wanted.begin.begin() + 1) &&
                       std::equal(have.end.begin() + 1, have.end.end(), wanted.end.begin() + 1);
  if (is_rows) return placement::rows(array, wanted.begin[0] - have.begin[0], wanted.end[0] - have.begin[0]);
  HostArray part = HostArray::empty(array.dtype(), wanted.shape());
  copy_common(array, have, part.mutable_data(), wanted);
  return part;
}

struct Meeting::State {
  explicit State(const Mesh& the_mesh) : mesh(the_mesh) {
    for (auto& list : slots) list.resize(index(mesh.size()));
    is_stopped.resize(index(mesh.size()));
  }
  struct Slot {
    std::string text;
    HostArray part;
    HostArray sum;                // of the group's first device: its members fill it
    std::byte* filled = nullptr;  // its bytes
  };

  // Returns when all devices have come here.
  void wait(int rank) {
    std::unique_lock lock(mutex);
    const std::uint64_t round = rounds;
    if (++waiting == mesh.size()) {
      waiting = 0;
      ++rounds;
      changed.notify_all();
      return;
    }
    changed.wait(lock, [&] { return rounds != round || is_aborted || is_stopped[index(rank)]; });
    if (rounds == round)
      throw Error(ErrorCode::cancelled, is_aborted ? "another device of the mesh failed" : "the exchange was stopped");
  }

  const Mesh& mesh;
  std::mutex mutex;
  std::condition_variable changed;
  int waiting = 0;
  std::uint64_t rounds = 0;
  bool is_aborted = false;
  std::vector<std::uint8_t> is_stopped;  // by rank
  // Used in turn: a device may begin the next exchange while others still read the last one, but not the one after.
  std::array<std::vector<Slot>, 2> slots;
};

namespace {

class MeetingExchange final : public Exchange {
 public:
  MeetingExchange(std::shared_ptr<Meeting::State> state, int rank) : state_(std::move(state)), rank_(rank) {}

  HostArray reduce(const HostArray& mine, const Layout& from, const Layout& to, const Shape& shape) override {
    const Reduction reduction = reduction_between(from, to);
    const std::vector<int> group = group_of(mesh(), rank_, reduction.axes);
    const Box have = box_of(from, shape, mesh(), rank_), wanted = box_of(to, shape, mesh(), rank_);
    return have == wanted ? reduce_all(mine, reduction.kind, group) : reduce_part(mine, reduction.kind, group, have, wanted);
  }

  HostArray move(const HostArray& mine, const Layout& from, const Layout& to, const Shape& shape) override {
    auto& slots = next_slots();
    slots[index(rank_)].part = mine;
    state_->wait(rank_);
    const Box wanted = box_of(to, shape, mesh(), rank_);
    HostArray result = HostArray::empty(mine.dtype(), wanted.shape());
    std::byte* target = result.mutable_data();
    for (const int source : sources_of(from, mesh(), rank_)) {
      const std::uint64_t bytes = copy_common(slots[index(source)].part, box_of(from, shape, mesh(), source), target, wanted);
      if (source != rank_) bytes_ += bytes;
    }
    return result;
  }

  std::vector<std::string> gather(const std::string& text) override {
    auto& slots = next_slots();
    slots[index(rank_)].text = text;
    state_->wait(rank_);
    std::vector<std::string> texts;
    for (const Meeting::State::Slot& slot : slots) texts.push_back(slot.text);
    return texts;
  }

  std::uint64_t take_bytes() override { return std::exchange(bytes_, 0); }

  void stop() noexcept override {
    {
      const std::lock_guard lock(state_->mutex);
      state_->is_stopped[index(rank_)] = 1;
    }
    state_->changed.notify_all();
  }

 private:
  const Mesh& mesh() const { return state_->mesh; }
  std::vector<Meeting::State::Slot>& next_slots() { return state_->slots[++turn_ % 2]; }

  // Each member adds up its share of the elements, and all shares are everybody's.
  HostArray reduce_all(const HostArray& mine, ReduceKind kind, const std::vector<int>& group) {
    auto& slots = next_slots();
    auto& own = slots[index(rank_)];
    own.part = mine;
    if (group[0] == rank_) {
      own.sum = HostArray::empty(mine.dtype(), mine.shape());
      own.filled = own.sum.mutable_data();
    }
    state_->wait(rank_);
    const auto members = static_cast<std::int64_t>(group.size());
    const auto place = std::find(group.begin(), group.end(), rank_) - group.begin();
    const std::int64_t begin = mine.elements() * place / members, end = mine.elements() * (place + 1) / members;
    const std::size_t size = element_bytes(mine.dtype());
    const auto offset = static_cast<std::size_t>(begin) * size, bytes = static_cast<std::size_t>(end - begin) * size;
    std::byte* target = slots[index(group[0])].filled + offset;
    for (const int member : group) {
      const std::byte* source = slots[index(member)].part.data() + offset;
      if (member == group[0]) {
        if (bytes != 0) std::memcpy(target, source, bytes);
      } else {
        accumulate(kind, mine.dtype(), target, source, end - begin);
      }
      if (member != rank_) bytes_ += bytes;
    }
    state_->wait(rank_);
    bytes_ += mine.bytes() - bytes;
    return slots[index(group[0])].sum;
  }

  HostArray reduce_part(const HostArray& mine, ReduceKind kind, const std::vector<int>& group, const Box& have,
                        const Box& wanted) {
    auto& slots = next_slots();
    slots[index(rank_)].part = mine;
    state_->wait(rank_);
    HostArray result;
    for (const int member : group) {
      HostArray term = cut(slots[index(member)].part, have, wanted);
      if (member != rank_) bytes_ += term.bytes();
      if (member == group[0])
        result = std::move(term);
      else
        accumulate(kind, mine.dtype(), result.mutable_data(), term.data(), term.elements());
    }
    return result;
  }

  std::shared_ptr<Meeting::State> state_;
  const int rank_;
  std::size_t turn_ = 0;
  std::uint64_t bytes_ = 0;
};

}  // namespace

Meeting::Meeting(const Mesh& mesh) : state_(std::make_shared<State>(mesh)) {}
Meeting::~Meeting() = default;

std::unique_ptr<Exchange> Meeting::exchange(int rank) { return std::make_unique<MeetingExchange>(state_, rank); }

void Meeting::abort() {
  {
    const std::lock_guard lock(state_->mutex);
    state_->is_aborted = true;
  }
  state_->changed.notify_all();
}

}  // namespace tenon::mesh
