#include "server/models/served_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "base/log.h"
#include "base/text/printable.h"
#include "base/threads/stop_scope.h"
#include "base/threads/turn.h"
#include "server/http/problem.h"
#include "server/models/model_repository.h"
#include "server/services.h"
#include "tenon/error.h"
#include "tenon/tensor/program.h"

namespace tenon::server {
namespace {

constexpr std::uint64_t kLoadedBytes = 8 << 20;  // of a small model beside its weights
// What the programs of a model that was sent may take.
constexpr std::uint64_t kLeastProgramBytes = 1 << 20, kMostProgramBytes = 16 << 20;
// Host memory is not exclusive as a device is, and whoever types a second question should not wait for the weights again.
constexpr double kLeastKeepSeconds = 60;

std::uint64_t file_bytes(const ModelSource& source) {
  std::error_code error;
  std::uint64_t bytes = std::filesystem::file_size(source.file, error);
  // Weights in files of their own.
  const bool has_shards = source.file.extension() == ".json";
  for (const auto& entry : std::filesystem::directory_iterator(source.file.parent_path(), error)) {
    const std::string extension = entry.path().extension().string();
    if (extension == ".data" || extension == ".weight" || extension == ".onnx_data" || extension == ".bin" ||
        (has_shards && extension == ".safetensors"))
      bytes += entry.file_size(error);
  }
  return bytes;
}

Batcher::Setup batcher_setup(const ModelSource& source) {
  Batcher::Setup setup;
  setup.name = source.name;
  setup.instances = std::max<std::size_t>(source.config.devices.size(), 1);
  setup.max_queue = source.config.max_queue;
  setup.limits = {.rows = 1, .latency_objective = source.config.latency_objective};
  return setup;
}

}  // namespace

std::string_view name(ServedModel::State state) noexcept {
  switch (state) {
    case ServedModel::State::unloaded: return "unloaded";
    case ServedModel::State::loading: return "loading";
    case ServedModel::State::ready: return "ready";
    case ServedModel::State::failed: return "failed";
    case ServedModel::State::stopped: return "stopped";
  }
  return "";
}

ServedModel::ServedModel(Services& services, ModelSource source)
    : services_(services),
      source_(std::move(source)),
      state_(source_.problem.empty() ? State::unloaded : State::failed),
      error_(source_.problem.empty() ? nullptr
                                     : std::make_exception_ptr(Error(ErrorCode::failed_precondition, source_.problem,
                                                                     "correct the files, then load it"))),
      problem_(source_.problem),
      batching_{.reason = "not loaded yet"},
      used_(Clock::now()),
      batcher_([&] {
        Batcher::Setup setup = batcher_setup(source_);
        // A task keeps the model alive, also when a new version has taken its place.
        setup.start = [this, queue = fmt::format("model {}", source_.name)](std::function<void()> task) {
          return services_.workers.submit(payer(), queue, [task = std::move(task), self = shared_from_this()] { task(); });
        };
        setup.run = [this](const Batch& batch, std::size_t instance, std::stop_token cancel, std::string& device) {
          return run_batch(batch, instance, std::move(cancel), device);
        };
        return setup;
      }()),
      generation_(std::make_shared<GenerationQueue>([&] {
        GenerationQueue::Setup setup;
        setup.name = source_.name;
        setup.max_queue = source_.config.max_queue;
        setup.manager = &services_.manager;
        setup.start = [this, queue = fmt::format("model {}", source_.name)](std::function<void()> task) {
          return services_.workers.submit(payer(), queue, [task = std::move(task), self = shared_from_this()] { task(); });
        };
        setup.instances = std::max<std::size_t>(source_.config.devices.size(), 1);
        setup.max_run_time = services_.options.max_run_time;
        setup.acquire = [this](std::size_t instance, const std::stop_token& cancel) {
          std::shared_ptr<const LoadedModel> loaded = acquire(cancel);
          const Generator* generator = &loaded->replicas.at(instance);
          return std::shared_ptr<const Generator>(std::move(loaded), generator);
        };
        setup.options = [this](std::size_t instance, std::stop_token cancel) {
          RunOptions options = run_options(instance, std::move(cancel));
          const std::lock_guard lock(mutex_);
          if (loaded_ && instance < loaded_->replicas.size()) options.device = loaded_->replicas[instance].device();
          return options;
        };
        return setup;
      }())) {}

void ServedModel::cancel_running() {
  batcher_.cancel_running();
  generation_->fail_all(std::make_exception_ptr(Error(ErrorCode::cancelled, "the server ends")));
}

void ServedModel::generate(std::vector<GenerationTask> tasks) {
  const Clock::time_point now = Clock::now();
  {
    const std::lock_guard lock(mutex_);
    used_ = now;
  }
  if (source_.config.timeout.count() > 0)
    for (GenerationTask& task : tasks) task.starts_by = std::min(task.starts_by, now + source_.config.timeout);
  generation_->submit(std::move(tasks));
}

void ServedModel::drop_dead() {
  batcher_.drop_dead();
  generation_->drop_dead();
}

// --- Loading ---

RunOptions ServedModel::run_options(std::size_t instance, std::stop_token cancel) const {
  RunOptions options;
  if (instance < source_.config.devices.size()) options.device = source_.config.devices[instance];
  options.cancel = std::move(cancel);
  options.limit = services_.options.max_run_time;
  options.timeout = std::chrono::seconds(60);
  options.program = fmt::format("model {}", source_.name);
  options.client = options.program;
  return options;
}

void ServedModel::warm_up(const LoadedModel& loaded, const RunOptions& options) {
  for (const ModelConfig::WarmUp& each : source_.config.warm_up) {
    Model::Tensors inputs;
    for (const ModelValue& value : loaded.model->info().inputs) {
      const auto dims = each.dims.find(value.name);
      if (!value.dtype || (dims == each.dims.end() && value.is_optional)) continue;
      std::vector<std::int64_t> extents{each.batch};
      if (dims != each.dims.end()) extents.insert(extents.end(), dims->second.begin(), dims->second.end());
      const Shape shape(extents);
      if (shape.elements() > services_.limits.elements)
        throw Error(ErrorCode::invalid_argument, fmt::format("config.pbtxt: model_warmup asks for {} elements of '{}'",
                                                             shape.elements(), printable(value.name)));
      inputs.emplace(value.name, Tensor(HostArray::zeros(*value.dtype, shape)));
    }
    (*loaded.model)(inputs, options);
  }
}

ClientMemory ServedModel::payers_memory() const { return {services_.memory, payer()}; }

void ServedModel::load_sent(LoadedModel& loaded) {
  loaded.kept = std::make_shared<ModelMemory>(payers_memory(), [services = &services_, owner = source_.owner, self = this] {
    return services->models.release_sent(owner, self);
  });
  const std::uint64_t programs = std::clamp(services_.memory.client_limit() / 64, kLeastProgramBytes, kMostProgramBytes);
  loaded.kept->add(programs);
  const ModelScope scope(services_.limits, payers_memory(), loaded.kept);
  loaded.model = Model::parse(std::as_bytes(std::span(source_.body->view())), {.program_bytes = programs});
  loaded.layout = batch_layout(loaded.model->info());
}

BatchingVerdict ServedModel::probe(const LoadedModel& loaded, const RunOptions& options) const {
  if (source_.config.max_batch_size && *source_.config.max_batch_size <= 1)
    return {.reason = fmt::format("max_batch_size is {}", *source_.config.max_batch_size)};
  const ModelScope scope(services_.limits, payers_memory(), loaded.kept);
  try {
    return probe_batching(*loaded.model, loaded.encoder ? &*loaded.encoder : nullptr, loaded.layout, options);
  } catch (const Problem& problem) {
    return {.reason = fmt::format("it could not be tried: {}", problem.what())};
  }
}

std::shared_ptr<const Graph> ServedModel::graph(const LoadedModel& loaded, const Model::Tensors& shapes) const {
  const ModelScope scope(services_.limits, payers_memory(), loaded.kept);
  return loaded.model->graph(shapes);
}

// Weights are kept in the form that a device multiplies fastest, and a tensor is on one device at a time.
void ServedModel::load_generators(LoadedModel& loaded, std::uint64_t estimate) const {
  std::vector<std::string> devices = source_.config.devices;
  if (devices.empty()) devices.emplace_back("auto");
  loaded.bytes = 0;
  for (const std::string& device : devices) {
    const std::string id = device == "auto" ? services_.manager.default_device().id : services_.manager.find(device).id;
    const auto same =
        std::find_if(loaded.replicas.begin(), loaded.replicas.end(), [&](const Generator& each) { return each.device() == id; });
    if (same != loaded.replicas.end()) {
      loaded.replicas.push_back(Generator(*same));
      continue;
    }
    loaded.memory.grow_to(loaded.bytes + estimate);
    loaded.replicas.push_back(Generator::load(source_.file, {.device = id}));
    loaded.bytes += std::max(estimate, loaded.replicas.back().weight_bytes() + kLoadedBytes);
    loaded.memory.grow_to(loaded.bytes);
  }
  loaded.generator = loaded.replicas.front();
}

std::shared_ptr<const LoadedModel> ServedModel::load_files(const std::stop_token& cancel, BatchingVerdict& verdict) {
  const UseManager manager(services_.manager);
  const StopScope scope(cancel, services_.options.max_run_time);
  const Clock::time_point begin = Clock::now();
  auto loaded = std::make_shared<LoadedModel>();
  if (source_.body) {
    load_sent(*loaded);
    verdict = probe(*loaded, run_options(0, cancel));
    loaded->bytes = loaded->kept->bytes();
    loaded->load_seconds = std::chrono::duration<double>(Clock::now() - begin).count();
    return loaded;
  }
  const bool is_language = is_generator();
  // Small integers are kept in another order, and some scales wider.
  const std::uint64_t file = file_bytes(source_), estimate = (is_language ? file + file / 4 : file) + kLoadedBytes;
  loaded->memory = services_.models.make_room(estimate, this);
  loaded->bytes = estimate;
  if (is_language) {
    load_generators(*loaded, estimate);
    verdict = {.batches = true, .reason = "sequences advance together, a token each at a time"};
    loaded->load_seconds = std::chrono::duration<double>(Clock::now() - begin).count();
    return loaded;
  }
  loaded->model = Model::load(source_.file, source_.config.encoder.model);
  loaded->layout = batch_layout(loaded->model->info());
  if (source_.tokenizer) {
    try {
      loaded->encoder = Encoder::of(*loaded->model, Tokenizer::load(*source_.tokenizer), source_.config.encoder);
    } catch (const Error& error) {
      loaded->encoder_problem = error.what();
    }
  }
  const RunOptions options = run_options(0, cancel);
  verdict = probe(*loaded, options);
  warm_up(*loaded, options);
  loaded->load_seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  return loaded;
}

std::shared_ptr<const LoadedModel> ServedModel::load_now(std::unique_lock<std::mutex>& lock, const std::stop_token& cancel) {
  state_ = State::loading;
  ++loads_;
  lock.unlock();
  std::shared_ptr<const LoadedModel> loaded;
  BatchingVerdict verdict;
  std::exception_ptr error;
  try {
    loaded = load_files(cancel, verdict);
  } catch (const std::exception& failure) {
    error = std::current_exception();
    logging::warn("model {} cannot be loaded: {}", source_.name, failure.what());
  }
  lock.lock();
  changed_.notify_all();
  used_ = Clock::now();
  if (error) {
    // What was only cancelled, or has no room now, may work the next time.
    bool is_lasting = true;
    try {
      std::rethrow_exception(error);
    } catch (const Problem&) {
      is_lasting = false;
    } catch (const Error& failure) {
      is_lasting = failure.code() != ErrorCode::cancelled && failure.code() != ErrorCode::unavailable &&
                   failure.code() != ErrorCode::deadline_exceeded && failure.code() != ErrorCode::resource_exhausted;
      problem_ = failure.what();
    } catch (const std::exception& failure) {
      problem_ = failure.what();
    }
    state_ = is_lasting ? State::failed : State::unloaded;
    error_ = error;
    std::rethrow_exception(error);
  }
  state_ = State::ready;
  problem_.clear();
  error_ = nullptr;
  loaded_ = loaded;
  info_ = std::make_shared<const ModelInfo>(loaded->info());
  load_seconds_ = loaded->load_seconds;
  batching_ = verdict;
  batcher_.set_rows_limit(verdict.batches ? source_.config.most_rows() : 1);
  return loaded;
}

std::shared_ptr<const LoadedModel> ServedModel::acquire(const std::stop_token& cancel) {
  std::optional<WithoutTurn> without_turn;
  std::unique_lock lock(mutex_);
  if (state_ == State::loading) without_turn.emplace();
  changed_.wait(lock, cancel, [&] { return state_ != State::loading; });
  used_ = Clock::now();
  switch (state_) {
    case State::ready: return loaded_;
    case State::failed: {
      throw Error(ErrorCode::failed_precondition, fmt::format("model {} cannot be loaded: {}", source_.name, problem_),
                  fmt::format("correct it, then POST /v2/repository/models/{}/load", source_.name));
    }
    case State::stopped:
      throw Error(ErrorCode::failed_precondition, fmt::format("model {} is unloaded", source_.name),
                  fmt::format("POST /v2/repository/models/{}/load", source_.name));
    case State::loading: throw Error(ErrorCode::cancelled, "the client has gone");
    case State::unloaded: break;
  }
  return load_now(lock, cancel);
}

void ServedModel::load(const std::stop_token& cancel) {
  std::optional<WithoutTurn> without_turn;
  std::unique_lock lock(mutex_);
  if (state_ == State::loading) without_turn.emplace();
  changed_.wait(lock, cancel, [&] { return state_ != State::loading; });
  if (state_ == State::ready) return;
  if (state_ == State::loading) throw Error(ErrorCode::cancelled, "the client has gone");
  if (!source_.problem.empty()) std::rethrow_exception(error_);
  load_now(lock, cancel);
}

void ServedModel::stop() {
  {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return state_ != State::loading; });
    state_ = State::stopped;
    loaded_ = nullptr;
    verified_.clear();
  }
  const std::exception_ptr error =
      std::make_exception_ptr(Error(ErrorCode::failed_precondition, fmt::format("model {} was unloaded", source_.name)));
  batcher_.fail_waiting(error);
  generation_->fail_all(error);
}

bool ServedModel::release() {
  const std::lock_guard lock(mutex_);
  // A use count above one: a request has it and will join the queue.
  if (state_ != State::ready || loaded_.use_count() > 1 || !batcher_.is_idle() || !generation_->is_idle()) return false;
  state_ = State::unloaded;
  loaded_ = nullptr;
  verified_.clear();
  return true;
}

double ServedModel::keep_seconds(double load_seconds) const {
  if (source_.config.keep_seconds) return *source_.config.keep_seconds;
  const Config& config = services_.manager.config();
  switch (config.keep_open) {
    case KeepOpenPolicy::always: return std::numeric_limits<double>::infinity();
    case KeepOpenPolicy::on_demand: return 0;
    case KeepOpenPolicy::linger: return config.linger_seconds.value_or(kLeastKeepSeconds);
    case KeepOpenPolicy::adaptive: return std::max(config.worth * load_seconds, kLeastKeepSeconds);
  }
  return kLeastKeepSeconds;
}

void ServedModel::release_if_idle(Clock::time_point now) {
  {
    const std::lock_guard lock(mutex_);
    if (state_ != State::ready) return;
    if (std::chrono::duration<double>(now - used_).count() < keep_seconds(load_seconds_)) return;
  }
  release();
}

ServedModel::Status ServedModel::status() const {
  const std::lock_guard lock(mutex_);
  return {.state = state_,
          .problem = problem_,
          .batching = batching_,
          .bytes = loaded_ ? loaded_->bytes : 0,
          .load_seconds = load_seconds_,
          .idle_seconds = std::chrono::duration<double>(Clock::now() - used_).count(),
          .loads = loads_,
          .loaded = loaded_,
          .info = info_};
}

bool ServedModel::is_servable() const {
  const std::lock_guard lock(mutex_);
  return state_ != State::failed && state_ != State::stopped;
}

// --- Running ---

void ServedModel::describe(BatchItem& item, const LoadedModel& loaded) const {
  bool pads = false;
  {
    const std::lock_guard lock(mutex_);
    pads = batching_.batches && batching_.pads;
  }
  if (const Tokens* tokens = std::get_if<Tokens>(&item.input)) {
    item.key = "text";
    item.length = static_cast<std::int64_t>(tokens->ids.size());
    item.rows = 1;
    return;
  }
  const NamedArrays& arrays = std::get<NamedArrays>(item.input);
  item.key = batch_key(arrays, loaded.layout, pads);
  const auto mask = arrays.find(loaded.layout.mask);
  const bool has_rows = loaded.layout.has_batch_axis && !arrays.empty() && arrays.begin()->second.shape().rank() > 0;
  item.rows = has_rows ? std::max<std::int64_t>(arrays.begin()->second.shape()[0], 1) : 1;
  if (pads && mask != arrays.end() && mask->second.shape().rank() == 2) item.length = mask->second.shape()[1];
}

void ServedModel::submit(std::vector<BatchItem> items) {
  {
    const std::lock_guard lock(mutex_);
    used_ = Clock::now();
  }
  const Clock::time_point deadline =
      source_.config.timeout.count() > 0 ? Clock::now() + source_.config.timeout : Clock::time_point::max();
  for (BatchItem& item : items) item.deadline = std::min(item.deadline, deadline);
  batcher_.submit(std::move(items));
}

void ServedModel::stop_batching(const std::string& reason) {
  logging::warn("model {} is not batched any more: {}", source_.name, reason);
  {
    const std::lock_guard lock(mutex_);
    batching_ = {.reason = reason};
  }
  batcher_.set_rows_limit(1);
}

std::vector<NamedArrays> ServedModel::run_items(const LoadedModel& loaded, std::span<const BatchItem> items, std::int64_t length,
                                                const RunOptions& options) {
  const bool is_text = std::holds_alternative<Tokens>(items.front().input);
  const ModelScope scope(services_.limits, payers_memory(), loaded.kept);
  return is_text ? run_tokens(*loaded.encoder, items, length, options)
                 : run_arrays(*loaded.model, loaded.layout, items, length, options);
}

std::vector<NamedArrays> ServedModel::run_on_any(const LoadedModel& loaded, std::span<const BatchItem> items, std::int64_t length,
                                                 RunOptions options) {
  // A request that names its device gets that one or an error.
  std::vector<std::string> others;
  if (items.front().device.empty()) others = source_.config.devices;
  std::erase(others, options.device);
  while (true) try {
      return run_items(loaded, items, length, options);
    } catch (const Error& error) {
      const bool is_of_device = error.code() == ErrorCode::unavailable || error.code() == ErrorCode::data_loss;
      if (!is_of_device || others.empty() || options.cancel.stop_requested()) throw;
      logging::warn("model {}: {} failed: {}; repeated on {}", source_.name, options.device, error.what(), others.front());
      options.device = others.front();
      others.erase(others.begin());
    }
}

std::vector<BatchResult> ServedModel::run_batch(const Batch& batch, std::size_t instance, std::stop_token cancel,
                                                std::string& device) {
  const std::shared_ptr<const LoadedModel> loaded = acquire(cancel);
  const UseManager manager(services_.manager);
  const StopScope scope(cancel);
  RunOptions options = run_options(instance, cancel);
  if (const std::string& wanted = batch.items.front().device; !wanted.empty()) options.device = wanted;
  options.on_decision = [&device](const Decision& decision) { device = decision.device.id; };
  const std::span<const BatchItem> items(batch.items);
  const auto alone = [&](std::size_t i) { return run_on_any(*loaded, items.subspan(i, 1), batch.length, options)[0]; };
  if (items.size() == 1) return {{.outputs = alone(0)}};
  const auto each_alone = [&] {
    std::vector<BatchResult> results(items.size());
    for (std::size_t i = 0; i < items.size(); ++i) try {
        results[i].outputs = alone(i);
      } catch (...) {
        results[i].error = std::current_exception();
      }
    return results;
  };
  std::vector<NamedArrays> outputs;
  try {
    outputs = run_on_any(*loaded, items, batch.length, options);
  } catch (const std::exception&) {
    if (cancel.stop_requested()) throw;
    // One of them may be at fault, or all together take too much memory: no request suffers from its neighbours.
    return each_alone();
  }
  const std::string shape = fmt::format("{}/{}/{}", items.front().key, batch.rows, batch.length);
  bool is_verified = false;
  {
    const std::lock_guard lock(mutex_);
    is_verified = verified_.contains(shape);
  }
  // A shape that has not run before: different sizes can take different paths through a backend.
  if (!is_verified)
    for (const std::size_t i : {std::size_t{0}, items.size() - 1})
      if (!have_equal_bits(outputs[i], alone(i))) {
        stop_batching(fmt::format("in a batch of {} results differ from those of a request alone", batch.rows));
        return each_alone();
      }
  if (!is_verified) {
    const std::lock_guard lock(mutex_);
    if (verified_.size() > 4096) verified_.clear();
    verified_.insert(shape);
  }
  std::vector<BatchResult> results(items.size());
  for (std::size_t i = 0; i < items.size(); ++i) results[i].outputs = std::move(outputs[i]);
  return results;
}

}  // namespace tenon::server
