#include "hal/worker/parent/device.h"

#include <atomic>

#include "hal/collectives.h"
#include "hal/worker/hosted.h"

namespace tenon {
namespace {

class WorkerBuffer final : public Buffer {
 public:
  WorkerBuffer(TensorType type, std::shared_ptr<WorkerConnection> connection, WorkerConnection::Number number,
               MemoryBudget::Share share)
      : Buffer(std::move(type)),
        connection_(std::move(connection)),
        number_(number),
        share_(std::move(share)) {}
  ~WorkerBuffer() override { connection_->tell(WorkerCommand::drop_buffer, number_, storage_bytes(type().dtype, type().shape)); }

  WorkerConnection::Number number() const { return number_; }

  // The content, if it came with the answer of the run that wrote it; else empty.
  const std::vector<std::byte>& copy() const { return copy_; }
  // |reader| is notified when the content is read.
  void set_copy(std::vector<std::byte> copy, std::shared_ptr<std::atomic<bool>> reader) {
    copy_ = std::move(copy);
    reader_ = std::move(reader);
  }
  void was_read() const {
    if (reader_) reader_->store(true, std::memory_order_relaxed);
  }

 private:
  std::shared_ptr<WorkerConnection> connection_;
  WorkerConnection::Number number_;
  MemoryBudget::Share share_;
  std::vector<std::byte> copy_;
  std::shared_ptr<std::atomic<bool>> reader_;
};

class WorkerProgram final : public Executable, public Tiered {
 public:
  WorkerProgram(std::shared_ptr<WorkerConnection> connection, WorkerConnection::Number number, TranslatedProgram program)
      : connection_(std::move(connection)),
        number_(number),
        input_types_(std::move(program.input_types)),
        output_types_(std::move(program.output_types)),
        tier_(std::move(program.tier)),
        other_tier_(std::move(program.other_tier)),
        ops_by_tier_(std::move(program.ops_by_tier)) {}
  WorkerProgram(std::shared_ptr<WorkerConnection> connection, WorkerConnection::Number number, std::span<const std::byte> types)
      : connection_(std::move(connection)),
        number_(number) {
    ByteReader in(types);
    for (std::vector<TensorType>* list : {&input_types_, &output_types_})
      for (std::uint64_t count = in.below(in.left() + 1, "more types than bytes"); count > 0; --count)
        list->push_back(read_type(in));
  }
  ~WorkerProgram() override { connection_->tell(WorkerCommand::drop_program, number_); }

  std::span<const TensorType> input_types() const noexcept override { return input_types_; }
  std::span<const TensorType> output_types() const noexcept override { return output_types_; }
  const std::string& tier() const noexcept override { return has_changed_.load() ? other_tier_ : tier_; }

  std::map<std::string, std::vector<std::string>> ops_by_tier() const override {
    if (!has_changed_.load()) return ops_by_tier_;
    std::vector<std::string> all;
    for (const auto& [tier, ops] : ops_by_tier_) all.insert(all.end(), ops.begin(), ops.end());
    return {{other_tier_, std::move(all)}};
  }

  using Executable::run;
  void run(std::span<const Buffer* const> inputs, std::span<Buffer* const> outputs) override {
    // Results that were read after the last run are likely to be read after this one.
    const bool send_along = results_are_read_->exchange(false, std::memory_order_relaxed);
    ByteWriter request = request_for(WorkerCommand::run);
    request.flag(send_along);
    request.number(number_);
    request.number(inputs.size());
    for (const Buffer* input : inputs) request.number(static_cast<const WorkerBuffer*>(input)->number());
    request.number(outputs.size());
    for (const Buffer* output : outputs) request.number(static_cast<const WorkerBuffer*>(output)->number());
    const std::vector<std::byte> answer = connection_->call(request);
    ByteReader in(answer);
    for (Buffer* output : outputs) {
      std::vector<std::byte> copy;
      const std::size_t bytes = storage_bytes(output->type().dtype, output->type().shape);
      if (send_along && bytes != 0 && bytes <= kMessageBytes) {
        const std::span<const std::byte> sent = in.raw(bytes);
        copy.assign(sent.begin(), sent.end());
      }
      static_cast<WorkerBuffer*>(output)->set_copy(std::move(copy), results_are_read_);
    }
    if (!other_tier_.empty() && in.left() > 0) has_changed_.store(in.flag());
  }

 private:
  std::shared_ptr<WorkerConnection> connection_;
  WorkerConnection::Number number_;
  std::shared_ptr<std::atomic<bool>> results_are_read_ = std::make_shared<std::atomic<bool>>(false);
  std::vector<TensorType> input_types_, output_types_;
  std::string tier_, other_tier_;
  std::map<std::string, std::vector<std::string>> ops_by_tier_;
  std::atomic<bool> has_changed_{false};
};

// A group that the worker has joined. The worker ends its own waits; the limits are for one that does not.
class WorkerGroup final : public DeviceGroup {
 public:
  WorkerGroup(std::shared_ptr<WorkerConnection> connection, const std::string& id, int rank, int size)
      : connection_(std::move(connection)),
        number_(connection_->next_number()) {
    ByteWriter request = request_for(WorkerCommand::join_group);
    request.number(number_);
    request.text(id);
    request.number(static_cast<std::uint64_t>(rank));
    request.number(static_cast<std::uint64_t>(size));
    connection_->call(request, connection_->limits().transfer);
  }
  // Sent at once: it ends what the device may still be doing.
  ~WorkerGroup() override { connection_->tell(WorkerCommand::leave_group, number_, kWaitingMemory + 1); }

  void start(std::span<const GroupCall> calls) override {
    const auto number_of = [](const Buffer* buffer) {
      return buffer ? static_cast<const WorkerBuffer*>(buffer)->number() : WorkerConnection::Number{0};
    };
    ByteWriter request = request_for(WorkerCommand::start_exchange);
    request.number(number_);
    request.number(calls.size());
    for (const GroupCall& call : calls) {
      request.number(static_cast<std::uint64_t>(call.kind));
      request.number(static_cast<std::uint64_t>(call.peer));
      request.number(static_cast<std::uint64_t>(call.reduction));
      request.number(number_of(call.from));
      request.number(number_of(call.to));
    }
    connection_->call(request, connection_->limits().transfer);
  }

  // Waits for a program that the worker runs.
  bool is_complete() override {
    ByteWriter request = request_for(WorkerCommand::is_exchange_done);
    request.number(number_);
    const std::vector<std::byte> answer = connection_->call(request);
    return ByteReader(answer).flag();
  }

 private:
  std::shared_ptr<WorkerConnection> connection_;
  const WorkerConnection::Number number_;
};

class WorkerDevice final : public OpenDevice, public Collectives {
 public:
  // |spare|, which may be null, is started when the device has closed.
  WorkerDevice(std::shared_ptr<WorkerConnection> connection, DeviceInfo info, std::shared_ptr<MemoryBudget> budget,
               std::shared_ptr<SpareWorker> spare, const TranslatingWorker& program = {})
      : connection_(std::move(connection)),
        info_(std::move(info)),
        budget_(std::move(budget)),
        spare_(std::move(spare)),
        translate_(program.translate) {}

  const DeviceInfo& info() const noexcept override { return info_; }

  std::unique_ptr<Executable> compile(const Graph& graph) override {
    const WorkerConnection::Number number = connection_->next_number();
    ByteWriter request = request_for(WorkerCommand::compile);
    request.number(number);
    if (translate_) {
      TranslatedProgram program = translate_(graph, info_);
      request.raw(program.bytes);
      connection_->call(request);
      return std::make_unique<WorkerProgram>(connection_, number, std::move(program));
    }
    request.raw(serialize(graph));
    return std::make_unique<WorkerProgram>(connection_, number, connection_->call(request));
  }

  std::unique_ptr<Buffer> allocate(const TensorType& type) override {
    std::unique_ptr<WorkerBuffer> buffer = make_buffer(type);
    if (storage_bytes(type.dtype, type.shape) <= kReservedBytes)
      connection_->notify(describe(WorkerCommand::reserve, *buffer));
    else
      connection_->call(describe(WorkerCommand::allocate, *buffer), connection_->limits().transfer);
    return buffer;
  }

  std::unique_ptr<Buffer> upload(const HostArray& array) override {
    std::unique_ptr<WorkerBuffer> buffer = make_buffer({array.dtype(), array.shape()});
    if (array.bytes() <= kMessageBytes) {
      ByteWriter note = describe(WorkerCommand::put, *buffer);
      note.raw({array.data(), array.bytes()});
      connection_->notify(note);
    } else if (is_passed(array.bytes())) {
      connection_->pass_upload(describe(WorkerCommand::pass_upload, *buffer), array);
    } else {
      connection_->upload(describe(WorkerCommand::upload, *buffer), array);
    }
    return buffer;
  }

  HostArray download(const Buffer& buffer) override {
    const auto& ours = static_cast<const WorkerBuffer&>(buffer);
    const TensorType& type = buffer.type();
    ours.was_read();
    if (!ours.copy().empty()) return HostArray::from_bytes(type.dtype, type.shape, ours.copy());
    const bool passes = is_passed(storage_bytes(type.dtype, type.shape));
    ByteWriter request = request_for(passes ? WorkerCommand::pass_download : WorkerCommand::download);
    request.number(ours.number());
    return passes ? connection_->pass_download(request, type) : connection_->download(request, type);
  }

  std::string make_group_id() override {
    const std::vector<std::byte> answer =
        connection_->call(request_for(WorkerCommand::make_group), connection_->limits().transfer);
    return ByteReader(answer).text();
  }
  std::unique_ptr<DeviceGroup> join(const std::string& id, int rank, int size) override {
    return std::make_unique<WorkerGroup>(connection_, id, rank, size);
  }

  void close() override {
    connection_->close();
    if (spare_) spare_->start();
  }
  bool is_lost() const noexcept override { return connection_->is_lost(); }
  bool abandon() noexcept override { return connection_->abandon(); }

 private:
  std::unique_ptr<WorkerBuffer> make_buffer(const TensorType& type) {
    MemoryBudget::Share share;
    if (budget_) share = budget_->reserve(storage_bytes(type.dtype, type.shape));
    return std::make_unique<WorkerBuffer>(type, connection_, connection_->next_number(), std::move(share));
  }
  bool is_passed(std::size_t bytes) const { return bytes > kSharedBytes && connection_->has_direct(); }
  static ByteWriter describe(WorkerCommand command, const WorkerBuffer& buffer) {
    ByteWriter request = request_for(command);
    request.number(buffer.number());
    write_type(request, buffer.type());
    return request;
  }

  std::shared_ptr<WorkerConnection> connection_;
  DeviceInfo info_;
  std::shared_ptr<MemoryBudget> budget_;
  std::shared_ptr<SpareWorker> spare_;
  decltype(TranslatingWorker::translate) translate_;
};

}  // namespace

std::unique_ptr<OpenDevice> open_over(std::shared_ptr<WorkerConnection> connection, std::string_view backend,
                                      const DeviceInfo& device, const OpenOptions& options, std::shared_ptr<SpareWorker> spare) {
  ByteWriter request = request_for(WorkerCommand::open);
  request.number(kWorkerProtocol);
  request.text(backend);
  request.flag(options.fuse);
  write_device(request, device);
  const std::vector<std::byte> answer = connection->call(request, connection->limits().open);
  ByteReader in(answer);
  DeviceInfo opened = read_device(in);
  connection->set_direct(in.flag());
  connection->set_several(true);
  // Keeps the fields that only the manager knows.
  DeviceInfo info = device;
  info.name = opened.name;
  info.memory_total_bytes = opened.memory_total_bytes;
  info.details = opened.details;
  return std::make_unique<WorkerDevice>(std::move(connection), std::move(info), options.budget, std::move(spare));
}

std::unique_ptr<OpenDevice> open_in_worker(const TranslatingWorker& program, const DeviceInfo& device, const OpenOptions& options,
                                           const WorkerOptions& worker) {
  const auto connection = std::make_shared<WorkerConnection>(device.id, worker, program.command);
  ByteWriter request = request_for(WorkerCommand::open);
  request.number(kWorkerProtocol);
  request.text(device.id);
  const std::vector<std::byte> answer = connection->call(request, connection->limits().open);
  ByteReader in(answer);
  DeviceInfo info = device;
  info.name = in.text();
  if (const std::uint64_t bytes = in.number(); bytes != 0) info.memory_total_bytes = bytes;
  for (std::uint64_t count = in.below(in.left() + 1, "more details than bytes"); count > 0; --count) {
    const std::string key = in.text();
    info.details[key] = in.text();
  }
  in.finish();
  return std::make_unique<WorkerDevice>(connection, std::move(info), options.budget, nullptr, program);
}

std::unique_ptr<OpenDevice> open_in_worker(std::string_view backend, const DeviceInfo& device, const OpenOptions& options,
                                           const WorkerOptions& worker) {
  return open_over(std::make_shared<WorkerConnection>(device.id, worker), backend, device, options, nullptr);
}

}  // namespace tenon
