// What drives one device of a mesh: its lease, its programs, its side of every exchange.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

#include "lease/storage.h"
#include "mesh/exchange/device_exchange.h"
#include "mesh/exchange/exchange.h"
#include "mesh/exchange/exchange_queue.h"
#include "mesh/plan/partition.h"
#include "mesh/plan/stages.h"
#include "tenon/manager.h"
#include "tenon/mesh.h"

namespace tenon::mesh {

// A program made ready for a mesh.
struct Prepared {
  Prepared(const Graph& the_graph, std::span<const HostArray> the_inputs, const Mesh& the_mesh, const MeshOptions& options);

  const Graph& graph;
  std::span<const HostArray> inputs;
  const Mesh& mesh;
  Partition partition;
  std::vector<Stage> stages;
};

// Not thread-safe; driven by the thread that calls run(). Values that the next program does not need are exchanged on a thread of
// their own meanwhile.
class Member {
 public:
  Member(DeviceManager& manager, const Prepared& prepared, int rank, std::string device_id, RunOptions options,
         std::unique_ptr<Exchange> exchange);
  // Before run(), on all members: values go from device to device where they can.
  void exchange_between_devices() { devices_.emplace(manager_, prepared_.mesh, rank_, *exchange_); }

  // Throws the errors of the device.
  Lease lease() const;
  // While the calling thread holds the lease. Throws what the device and the exchange throw.
  void run();

  const std::string& device_id() const noexcept { return device_id_; }
  Exchange& exchange() noexcept { return *exchange_; }
  Timeline timeline;
  std::vector<HostArray> outputs;  // parts
  // Of each exchange, in order: the bytes received; none if devices exchanged by themselves, which do not tell.
  std::vector<std::optional<std::uint64_t>> bytes;
  // timeline and bytes are complete when run() has returned.

 private:
  const Value& value(int v) const { return prepared_.partition.values[static_cast<std::size_t>(v)]; }
  const Shape& shape(int v) const { return prepared_.graph[value(v).origin].shape; }
  using Clock = std::chrono::steady_clock;

  void run_stages();
  void place_inputs();
  void run_stage(std::size_t number);
  void compute(const Stage& stage);
  bool is_needed_next(int v, std::size_t stage) const;
  void begin_exchange(int v, bool is_needed_next);
  bool begin_between_devices(int v, bool is_needed_next);
  ExchangeQueue::Values exchange_value(int v, const HostArray& mine);
  std::vector<std::shared_ptr<Storage>> compute(const Graph& graph, const std::vector<std::shared_ptr<Storage>>& inputs);
  void wait_for(Crossing crossing);
  std::shared_ptr<Storage> stored_value(int v, DType dtype) const;
  HostArray host_value(int v, DType dtype) const;
  void add(const Timeline& spans, Clock::time_point begin);

  DeviceManager& manager_;
  const Prepared& prepared_;
  const int rank_;
  const std::string device_id_;
  const RunOptions options_;
  std::unique_ptr<Exchange> exchange_;
  std::optional<DeviceExchange> devices_;
  std::map<int, Graph> joins_;  // of values that devices exchanged: what puts them together
  std::map<Crossing, std::shared_ptr<Storage>> values_;
  Clock::time_point begin_;
  std::optional<Clock::time_point> end_;  // of the run, if it has a limit
  std::stop_source stop_;                 // of the programs
  std::mutex timeline_mutex_;
  // The last members: their threads use the others. Exchanges through the host; waits for those between devices.
  ExchangeQueue queue_, landing_;
};

// The exchanges of a run, with the bytes that all |members| of this process received |through|. Those between devices went
// through |library|, with the bytes of the formula.
std::vector<Collective> collectives_of(const Prepared& prepared, std::span<const std::unique_ptr<Member>> members,
                                       const std::string& through, const std::string& library = {});

}  // namespace tenon::mesh
