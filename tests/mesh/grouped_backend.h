// GroupedBackend: devices grp:0, grp:1 ... that compute on the CPU and exchange with each other by themselves, as cards do.
//
// What a group does can be made to fail or to take time; what was called is counted.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstring>
#include <functional>
#include <map>
#include <mutex>
#include <set>

#include "backends/cpu/backend.h"
#include "backends/cpu/executable.h"
#include "hal/collectives.h"
#include "mesh/exchange/exchange.h"
#include "tenon/error.h"

namespace tenon {

struct Grouping {
  using Round = std::map<int, std::vector<GroupCall>>;  // by rank
  struct World {
    int size = 0;
    std::map<int, Round> rounds;
    std::set<int> done;
  };

  std::mutex mutex;
  std::map<std::string, World> worlds;
  std::map<GroupCall::Kind, int> calls;
  int ids = 0, joined = 0, groups = 0;
  // Called with the device's id; they may throw.
  std::function<void(const std::string&)> on_make, on_join, on_start;
  std::function<bool()> is_held_up = [] { return false; };  // whether exchanges take longer
  std::atomic<int> runs{0};                                 // of programs, that have begun
};

class PlainGroup final : public DeviceGroup {
 public:
  PlainGroup(std::shared_ptr<Grouping> grouping, std::string device, const std::string& id, int rank, int size)
      : grouping_(std::move(grouping)),
        device_(std::move(device)),
        id_(id),
        rank_(rank) {
    const std::lock_guard lock(grouping_->mutex);
    grouping_->worlds[id].size = size;
    ++grouping_->joined;
    ++grouping_->groups;
  }
  ~PlainGroup() override {
    const std::lock_guard lock(grouping_->mutex);
    for (auto& [number, round] : grouping_->worlds[id_].rounds) round.erase(rank_);
    --grouping_->groups;
  }

  void start(std::span<const GroupCall> calls) override {
    if (grouping_->on_start) grouping_->on_start(device_);
    const std::lock_guard lock(grouping_->mutex);
    Grouping::World& world = grouping_->worlds[id_];
    Grouping::Round& round = world.rounds[++rounds_];
    round[rank_].assign(calls.begin(), calls.end());
    for (const GroupCall& call : calls) ++grouping_->calls[call.kind];
    if (static_cast<int>(round.size()) < world.size) return;
    perform(round);
    world.rounds.erase(rounds_);
    world.done.insert(rounds_);
  }
  bool is_complete() override {
    if (grouping_->is_held_up()) return false;
    const std::lock_guard lock(grouping_->mutex);
    return grouping_->worlds[id_].done.contains(rounds_);
  }

 private:
  using Kind = GroupCall::Kind;
  static const std::byte* data(const Buffer* buffer) { return static_cast<const cpu::CpuBuffer*>(buffer)->data(); }
  static std::byte* fresh(Buffer* buffer) { return static_cast<cpu::CpuBuffer*>(buffer)->fresh_data(); }
  static std::size_t bytes(const Buffer* buffer) { return storage_bytes(buffer->type().dtype, buffer->type().shape); }

  static std::vector<std::byte> reduced(const Grouping::Round& round, std::size_t number) {
    const GroupCall& first = round.begin()->second[number];
    std::vector<std::byte> sum(data(first.from), data(first.from) + bytes(first.from));
    for (auto rank = std::next(round.begin()); rank != round.end(); ++rank)
      mesh::accumulate(first.reduction, first.from->type().dtype, sum.data(), data(rank->second[number].from),
                       first.from->type().shape.elements());
    return sum;
  }
  static void perform(const Grouping::Round& round) {
    const std::vector<GroupCall>& first = round.begin()->second;
    for (std::size_t i = 0; i < first.size(); ++i) {
      if (first[i].kind == Kind::send || first[i].kind == Kind::receive) return deliver(round);
      if (first[i].kind == Kind::all_gather) {
        gather(round, i);
        continue;
      }
      const std::vector<std::byte> sum = reduced(round, i);
      for (const auto& [rank, calls] : round)
        if (Buffer* const to = calls[i].to)
          std::memcpy(fresh(to),
                      sum.data() + (first[i].kind == Kind::reduce_scatter ? static_cast<std::size_t>(rank) * bytes(to) : 0),
                      bytes(to));
    }
  }
  static void gather(const Grouping::Round& round, std::size_t number) {
    for (const auto& [rank, calls] : round) {
      std::byte* to = fresh(calls[number].to);
      for (const auto& [source, theirs] : round) to = std::copy_n(data(theirs[number].from), bytes(theirs[number].from), to);
    }
  }
  static void deliver(const Grouping::Round& round) {
    for (const auto& [rank, calls] : round)
      for (const GroupCall& call : calls) {
        if (call.kind != Kind::receive) continue;
        const std::vector<GroupCall>& theirs = round.at(call.peer);
        const auto sent = std::find_if(theirs.begin(), theirs.end(),
                                       [&](const GroupCall& other) { return other.kind == Kind::send && other.peer == rank; });
        if (sent == theirs.end() || bytes(sent->from) != bytes(call.to))
          throw Error(ErrorCode::internal, "a message does not fit its receiver");
        std::memcpy(fresh(call.to), data(sent->from), bytes(call.to));
      }
  }

  std::shared_ptr<Grouping> grouping_;
  const std::string device_, id_;
  const int rank_;
  int rounds_ = 0;
};

class GroupedDevice final : public OpenDevice, public Collectives {
 public:
  GroupedDevice(DeviceInfo info, std::unique_ptr<OpenDevice> inner, std::shared_ptr<Grouping> grouping)
      : info_(std::move(info)),
        inner_(std::move(inner)),
        grouping_(std::move(grouping)) {}
  const DeviceInfo& info() const noexcept override { return info_; }
  std::unique_ptr<Executable> compile(const Graph& graph) override {
    return std::make_unique<Counted>(inner_->compile(graph), grouping_);
  }
  std::unique_ptr<Buffer> allocate(const TensorType& type) override { return inner_->allocate(type); }
  std::unique_ptr<Buffer> upload(const HostArray& array) override { return inner_->upload(array); }
  HostArray download(const Buffer& buffer) override { return inner_->download(buffer); }

  std::string make_group_id() override {
    if (grouping_->on_make) grouping_->on_make(info_.id);
    const std::lock_guard lock(grouping_->mutex);
    return std::to_string(++grouping_->ids);
  }
  std::unique_ptr<DeviceGroup> join(const std::string& id, int rank, int size) override {
    if (grouping_->on_join) grouping_->on_join(info_.id);
    return std::make_unique<PlainGroup>(grouping_, info_.id, id, rank, size);
  }

 private:
  class Counted final : public Executable {
   public:
    Counted(std::unique_ptr<Executable> inner, std::shared_ptr<Grouping> grouping)
        : inner_(std::move(inner)),
          grouping_(std::move(grouping)) {}
    std::span<const TensorType> input_types() const noexcept override { return inner_->input_types(); }
    std::span<const TensorType> output_types() const noexcept override { return inner_->output_types(); }
    void run(std::span<const Buffer* const> inputs, std::span<Buffer* const> outputs) override {
      ++grouping_->runs;
      inner_->run(inputs, outputs);
    }

   private:
    std::unique_ptr<Executable> inner_;
    std::shared_ptr<Grouping> grouping_;
  };

  DeviceInfo info_;
  std::unique_ptr<OpenDevice> inner_;
  std::shared_ptr<Grouping> grouping_;
};

class GroupedBackend final : public Backend, public CollectiveBackend {
 public:
  GroupedBackend(int count, std::shared_ptr<Grouping> grouping) : count_(count), grouping_(std::move(grouping)) {}
  std::string_view name() const noexcept override { return "grp"; }
  std::vector<DeviceInfo> devices() override {
    std::vector<DeviceInfo> all;
    for (int i = 0; i < count_; ++i) {
      DeviceInfo& info = all.emplace_back();
      info.id = "grp:" + std::to_string(i);
      info.kind = DeviceKind::gpu;
      info.name = "grouped";
      info.backends = {"grp"};
    }
    return all;
  }
  using Backend::open;
  std::unique_ptr<OpenDevice> open(const DeviceInfo& device, const OpenOptions& options) override {
    const auto cpus = cpu::make_backend();
    return std::make_unique<GroupedDevice>(device, cpus->open(cpus->devices()[0], options), grouping_);
  }
  std::string_view collective_library() const noexcept override { return "GRP"; }
  std::string collective_version() const override {
    if (grouping_->on_make) grouping_->on_make("");
    return "1.0";
  }

 private:
  const int count_;
  std::shared_ptr<Grouping> grouping_;
};

}  // namespace tenon
