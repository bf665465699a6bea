#include "mesh/exchange/device_exchange.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "base/log.h"
#include "manager/manager_state.h"
#include "tenon/error.h"

namespace tenon::mesh {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::seconds kDeadline{30};
// What the devices tell each other: their group is there, it has to be made, the device is closed.
constexpr const char *kIsJoined = "joined", *kIsOpen = "open", *kIsClosed = "closed";

std::string key_of(const Mesh& mesh, const std::vector<int>& group) {
  std::string key;
  for (const int member : group) key += (key.empty() ? "" : ",") + mesh.devices()[static_cast<std::size_t>(member)];
  return key;
}

// Short exchanges are seen at once; a long one is not asked about all the time.
void pause(int polls) {
  if (polls >= 20) std::this_thread::sleep_for(std::chrono::microseconds(std::min(polls, 1000)));
}

}  // namespace

std::shared_ptr<const CollectiveBackend> backend_between(DeviceManager& manager, const Mesh& mesh) {
  std::shared_ptr<const CollectiveBackend> common;
  for (const std::string& id : mesh.devices()) {
    std::shared_ptr<const CollectiveBackend> able;
    try {
      able = std::dynamic_pointer_cast<const CollectiveBackend>(state_of(manager).routing.owner_for(id)->backend());
    } catch (const Error&) {
      return nullptr;  // whoever leases it says why
    }
    if (!able || able->collective_library().empty() || (common && common != able)) return nullptr;
    common = able;
  }
  return common;
}

std::uint64_t bytes_for_devices(const Graph& graph, const Mesh& mesh, const Partition& partition) {
  std::uint64_t bytes = 0;
  for (const Value& value : partition.values)
    if (value.is_exchange() && is_for_devices(graph, partition, value)) bytes += describe(graph, mesh, partition, value).bytes;
  return bytes;
}

Flight::~Flight() {
  if (!has_landed_) operation_.groups().erase(key_);  // before the buffers go
}

std::vector<std::shared_ptr<Storage>> Flight::land(const std::stop_token& cancel) {
  try {
    const Clock::time_point deadline = Clock::now() + kDeadline;
    for (int polls = 0; !group().is_complete(); pause(++polls)) {
      if (cancel.stop_requested()) throw Error(ErrorCode::cancelled, "the exchange was stopped");
      if (Clock::now() >= deadline)
        throw Error(ErrorCode::deadline_exceeded,
                    fmt::format("an exchange between {} was not done after {} s", key_, kDeadline.count()),
                    "look at the health of the devices; another program may use them");
    }
  } catch (...) {
    operation_.failed();
    throw;
  }
  has_landed_ = true;
  std::vector<std::shared_ptr<Storage>> values;
  for (std::shared_ptr<Buffer>& buffer : received_)
    values.push_back(Storage::on_device(operation_.residency(), std::move(buffer)));
  return values;
}

DeviceExchange::DeviceExchange(DeviceManager& manager, const Mesh& mesh, int rank, Exchange& peers)
    : mesh_(mesh),
      rank_(rank),
      peers_(peers),
      owner_(state_of(manager).routing.owner_for(mesh.devices()[static_cast<std::size_t>(rank)])) {}

std::unique_ptr<Flight> DeviceExchange::start(const DevicePlan& plan, const std::vector<std::shared_ptr<Storage>>& sent) {
  if (is_given_up_) return nullptr;
  peers_.gather("");
  const std::string key = key_of(mesh_, plan.group);
  std::optional<DeviceOwner::Operation> operation = owner_->begin_if_open(residency_.get());
  const std::vector<std::string> states = peers_.gather(!operation                          ? kIsClosed
                                                        : operation->groups().contains(key) ? kIsJoined
                                                                                            : kIsOpen);
  const auto any = [&](const char* state) { return std::find(states.begin(), states.end(), state) != states.end(); };
  is_given_up_ = any(kIsClosed) || (any(kIsOpen) && !join(plan, *operation, key));
  if (is_given_up_) return nullptr;
  residency_ = operation->residency();
  auto flight = std::make_unique<Flight>(std::move(*operation), key);
  for (const std::shared_ptr<Storage>& value : sent) flight->sent_.push_back(value->on(residency_));
  for (const TensorType& type : plan.received) flight->received_.push_back(residency_->allocate(type));
  std::vector<GroupCall> calls;
  for (const DevicePlan::Call& call : plan.calls)
    calls.push_back({call.kind, call.peer, plan.reduction, call.from ? flight->sent_[*call.from].get() : nullptr,
                     call.to ? flight->received_[*call.to].get() : nullptr});
  flight->group().start(calls);
  peers_.gather("");
  return flight;
}

// False, on all devices, if one of them could not.
bool DeviceExchange::join(const DevicePlan& plan, DeviceOwner::Operation& operation, const std::string& key) {
  operation.groups().erase(key);
  auto* const able = dynamic_cast<Collectives*>(&operation.device());
  const bool is_first = plan.group[0] == rank_;
  std::string problem = able ? "" : owner_->device().id + " cannot exchange with other devices directly";
  std::string id;
  if (able && is_first) try {
      id = able->make_group_id();
    } catch (const Error& error) {
      problem = error.what();
    }
  const std::vector<std::string> ids = peers_.gather(id);
  if (all_say_nothing(problem)) try {
      id = ids[static_cast<std::size_t>(plan.group[0])];
      const auto place = std::find(plan.group.begin(), plan.group.end(), rank_) - plan.group.begin();
      operation.groups()[key] = able->join(id, static_cast<int>(place), static_cast<int>(plan.group.size()));
    } catch (const Error& error) {
      problem = error.what();
      operation.groups().erase(key);
    }
  else
    return false;
  if (all_say_nothing(problem)) return true;
  operation.groups().erase(key);
  return false;
}

// Whether no device has a problem.
bool DeviceExchange::all_say_nothing(const std::string& mine) {
  const std::vector<std::string> all = peers_.gather(mine);
  const auto problem = std::find_if(all.begin(), all.end(), [](const std::string& text) { return !text.empty(); });
  if (problem == all.end()) return true;
  if (rank_ == 0) logging::info("values of a mesh go through host memory: {}", *problem);
  return false;
}

}  // namespace tenon::mesh
