#include "backends/sim/backend.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <chrono>
#include <map>
#include <set>

#include "backends/sim/session.h"
#include "base/text/units.h"

namespace tenon::sim {
namespace {

HostArray copy_of(const HostArray& array) {
  return HostArray::from_bytes(array.dtype(), array.shape(), {array.data(), array.bytes()});
}

class SimExecutable final : public Executable {
 public:
  SimExecutable(std::shared_ptr<Session> session, std::unique_ptr<Executable> inner)
      : session_(std::move(session)),
        inner_(std::move(inner)) {}

  std::span<const TensorType> input_types() const noexcept override { return inner_->input_types(); }
  std::span<const TensorType> output_types() const noexcept override { return inner_->output_types(); }

  using Executable::run;
  void run(std::span<const Buffer* const> inputs, std::span<Buffer* const> outputs) override {
    std::vector<std::shared_ptr<Buffer>> held;
    std::vector<const Buffer*> in;
    std::vector<Buffer*> out;
    for (const Buffer* buffer : inputs) in.push_back(held.emplace_back(session_->hold(*buffer)).get());
    for (const Buffer* buffer : outputs) out.push_back(held.emplace_back(session_->hold(*buffer)).get());
    session_->check_open();
    Card& card = session_->card();
    const Fault fault = card.faults.next(Call::run);
    if (fault == Fault::run_hangs) session_->hang();
    if (fault != Fault::none || card.is_unplugged()) throw session_->lose();
    const auto start = std::chrono::steady_clock::now();
    inner_->run(in, out);
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    session_->compute_for(std::max(took.count() * (card.device.compute_factor - 1), card.device.compute_seconds - took.count()));
    if (card.is_unplugged()) throw session_->lose();
    // A call of another thread may have lost the device, and the outputs with it.
    session_->check_open();
  }

 private:
  std::shared_ptr<Session> session_;
  std::unique_ptr<Executable> inner_;
};

class SimDevice final : public OpenDevice {
 public:
  SimDevice(std::shared_ptr<Session> session, std::shared_ptr<MemoryBudget> budget)
      : session_(std::move(session)),
        budget_(std::move(budget)) {}
  ~SimDevice() override { session_->abandon(); }

  const DeviceInfo& info() const noexcept override { return session_->card().info; }

  std::unique_ptr<Executable> compile(const Graph& graph) override {
    session_->check_open();
    return std::make_unique<SimExecutable>(session_, session_->inner().compile(graph));
  }

  std::unique_ptr<Buffer> allocate(const TensorType& type) override {
    session_->check_open();
    Memory memory = take(Call::allocate, storage_bytes(type.dtype, type.shape));
    return make(session_->inner().allocate(type), std::move(memory));
  }

  std::unique_ptr<Buffer> upload(const HostArray& array) override {
    session_->check_open();
    Memory memory = take(Call::upload, array.bytes());
    return make(session_->inner().upload(copy_of(array)), std::move(memory));
  }

  HostArray download(const Buffer& buffer) override {
    const std::shared_ptr<Buffer> held = session_->hold(buffer);
    if (session_->card().faults.next(Call::download) == Fault::lost_mid_run) throw session_->lose();
    HostArray result = copy_of(session_->inner().download(*held));
    session_->check_open();
    return result;
  }

  void close() override { session_->close(); }
  bool is_lost() const noexcept override { return session_->is_lost(); }
  bool abandon() noexcept override {
    session_->lose();
    return true;
  }

 private:
  struct Memory {
    MemoryBudget::Share device, budget;
  };

  Memory take(Call call, std::uint64_t bytes) {
    Card& card = session_->card();
    switch (card.faults.next(call)) {
      case Fault::out_of_memory: throw card.out_of_memory(bytes, " (simulated fault)");
      case Fault::lost_mid_run: throw session_->lose();
      default: break;
    }
    Memory memory{.device = card.take(bytes), .budget = {}};
    if (budget_) memory.budget = budget_->reserve(bytes);
    return memory;
  }

  std::unique_ptr<Buffer> make(std::unique_ptr<Buffer> inner, Memory memory) {
    return std::make_unique<SimBuffer>(session_, std::move(inner), std::move(memory.device), std::move(memory.budget));
  }

  std::shared_ptr<Session> session_;
  std::shared_ptr<MemoryBudget> budget_;
};

class SimBackend final : public Backend {
 public:
  SimBackend(std::vector<std::shared_ptr<Card>> cards, std::unique_ptr<Backend> inner)
      : cards_(std::move(cards)),
        inner_(std::move(inner)),
        inner_device_(inner_->devices().at(0)) {}

  std::string_view name() const noexcept override { return "sim"; }

  std::vector<DeviceInfo> devices() override {
    std::vector<DeviceInfo> all;
    for (const auto& card : cards_) {
      DeviceInfo& info = all.emplace_back(card->info);
      info.memory_free_bytes = card->memory->limit_bytes() - std::min(card->memory->used_bytes(), card->memory->limit_bytes());
    }
    return all;
  }

  using Backend::open;
  std::unique_ptr<OpenDevice> open(const DeviceInfo& device, const OpenOptions& options) override {
    const std::shared_ptr<Card>& card = find(device);
    enter(*card);
    try {
      bring_up(*card);
      return std::make_unique<SimDevice>(
          std::make_shared<Session>(card, inner_->open(inner_device_, {.budget = nullptr, .fuse = options.fuse})),
          options.budget);
    } catch (...) {
      const std::lock_guard lock(card->mutex);
      --card->sessions;
      throw;
    }
  }

  void check(const DeviceInfo& device, const Graph& graph) const override {
    find(device);
    inner_->check(inner_device_, graph);
  }

  void recover(const DeviceInfo& device) override {
    Card& card = *find(device);
    const std::lock_guard lock(card.mutex);
    card.is_dirty = card.is_refusing = false;
  }

  Latency latency(const DeviceInfo& device) const override {
    const SimulatedDevice& simulated = find(device)->device;
    return {simulated.open_seconds, simulated.close_seconds};
  }

 private:
  const std::shared_ptr<Card>& find(const DeviceInfo& device) const {
    for (const auto& card : cards_)
      if (card->info.id == device.id) return card;
    throw Error(ErrorCode::not_found, fmt::format("unknown simulated device {}", device.id));
  }

  static void enter(Card& card) {
    const std::lock_guard lock(card.mutex);
    if (card.device.exclusive && card.sessions > 0)
      throw Error(ErrorCode::unavailable, card.info.id + " is already open; it has one user at a time");
    ++card.sessions;
  }

  static void bring_up(Card& card) {
    if (card.is_unplugged())
      throw Error(ErrorCode::unavailable, card.info.id + " is unplugged (simulated)",
                  fmt::format("remove the file {}", card.device.unplug));
    bool is_dirty, is_refusing;
    {
      const std::lock_guard lock(card.mutex);
      is_dirty = card.is_dirty;
      is_refusing = card.is_refusing;
    }
    switch (is_refusing ? Fault::dirty_refuses : card.faults.next(Call::open, is_dirty)) {
      case Fault::dirty_refuses: {
        const std::lock_guard lock(card.mutex);
        card.is_refusing = true;
        throw Error(ErrorCode::unavailable, card.info.id + " cannot be opened: its last user crashed (simulated fault)",
                    "recover it first");
      }
      case Fault::open_fails:
        card.wait(card.device.open_seconds);
        throw Error(ErrorCode::unavailable, card.info.id + " failed to open (simulated fault)", "try again");
      case Fault::open_hangs:
        card.wait(card.device.hang_seconds);
        throw Error(ErrorCode::deadline_exceeded,
                    fmt::format("{} did not answer for {} while opening (simulated fault)", card.info.id,
                                format_seconds(card.device.hang_seconds)),
                    "try again");
      default: break;
    }
    card.wait(card.device.open_seconds);
    const std::lock_guard lock(card.mutex);
    card.is_dirty = false;
  }

  const std::vector<std::shared_ptr<Card>> cards_;
  const std::unique_ptr<Backend> inner_;
  const DeviceInfo inner_device_;
};

DeviceKind kind_of(std::string_view architecture) {
  if (architecture == "gpu") return DeviceKind::gpu;
  if (architecture == "tpu") return DeviceKind::tpu;
  return DeviceKind::tenstorrent;
}

std::string model_name(std::string architecture) {
  if (architecture == "gpu") return "Simulated GPU";
  if (architecture == "tpu") return "Simulated TPU";
  architecture[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(architecture[0])));
  return "Simulated " + architecture;
}

DeviceInfo describe(const SimulatedDevice& device, std::string id) {
  DeviceInfo info;
  info.id = std::move(id);
  info.kind = kind_of(device.architecture);
  info.name = model_name(device.architecture);
  info.vendor = "Tenon (simulated)";
  info.backends = {"sim"};
  info.memory_total_bytes = device.memory_bytes;
  info.architecture = device.architecture;
  info.exclusive = device.exclusive;
  info.details["simulated"] = "true";
  return info;
}

void check(const SimulatedDevice& device) {
  const auto bad = [&](const std::string& what) {
    return Error(ErrorCode::invalid_argument, fmt::format("simulated {}: {}", device.architecture, what));
  };
  for (const double seconds : {device.open_seconds, device.close_seconds, device.compute_seconds, device.hang_seconds})
    if (!(seconds >= 0 && seconds < 1e6)) throw bad(fmt::format("{} is not a time in seconds", seconds));
  if (!(device.compute_factor >= 1 && device.compute_factor < 1e6))
    throw bad(fmt::format("the compute factor must be at least 1, not {}", device.compute_factor));
  const auto allowed = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == ':' || c == '-' || c == '_'; };
  if (!std::all_of(device.id.begin(), device.id.end(), allowed))
    throw bad(fmt::format("'{}' is not a valid id; use letters, digits, ':', '-' and '_'", device.id));
}

std::string next_free(const std::set<std::string>& ids) {
  for (int i = 0;; ++i)
    if (std::string id = fmt::format("sim:{}", i); !ids.contains(id)) return id;
}

std::set<std::string> given_ids(const std::vector<SimulatedDevice>& devices) {
  std::set<std::string> ids;
  for (const SimulatedDevice& device : devices)
    if (!device.id.empty() && !ids.insert(device.id).second)
      throw Error(ErrorCode::already_exists, fmt::format("two simulated devices have the id {}", device.id));
  return ids;
}

}  // namespace

std::unique_ptr<Backend> make_backend(std::vector<SimulatedDevice> devices, std::unique_ptr<Backend> inner) {
  std::set<std::string> ids = given_ids(devices);
  std::map<DeviceKind, int> of_kind;
  std::vector<DeviceInfo> infos;
  for (SimulatedDevice& device : devices) {
    const SimulatedDevice typical = SimulatedDevice::of_architecture(device.architecture);
    if (device.memory_bytes == 0) device.memory_bytes = typical.memory_bytes;
    check(device);
    std::string id = device.id.empty() ? next_free(ids) : device.id;
    ids.insert(id);
    infos.push_back(describe(device, std::move(id)));
    ++of_kind[infos.back().kind];
  }
  std::vector<std::shared_ptr<Card>> cards;
  for (std::size_t i = 0; i < devices.size(); ++i) {
    infos[i].supports_distributed = of_kind[infos[i].kind] > 1;
    if (i == 0) infos[i].aliases = {"sim"};
    cards.push_back(std::make_shared<Card>(std::move(devices[i]), std::move(infos[i])));
  }
  return std::make_unique<SimBackend>(std::move(cards), std::move(inner));
}

}  // namespace tenon::sim
