#include "tenon/model/encoder.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <exception>
#include <mutex>
#include <numeric>
#include <thread>

#include "base/text/printable.h"
#include "tenon/error.h"
#include "tenon/model.h"
#include "tenon/model/tokenizer.h"
#include "tenon/tensor/functions.h"
#include "tensor/node.h"

namespace tenon {

struct EncoderState {
  Model model;
  Tokenizer tokenizer;
  EncoderOptions options;
  std::string ids, mask, types;  // names of the model's inputs; "" for one that it does not have
  Tokens empty = tokenizer.encode("");
  struct Dense {
    Tensor weight, bias;
    bool has_tanh = false;
  };
  std::vector<Dense> dense = {};
};

namespace {

std::string input_named(const ModelInfo& info, std::initializer_list<std::string_view> names) {
  for (const std::string_view name : names)
    for (const ModelValue& value : info.inputs)
      if (value.name == name) return value.name;
  return {};
}

// A text that is too long loses tokens before those that end it ([SEP]).
void cut(Tokens& encoding, const Tokens& empty, std::size_t most) {
  if (encoding.ids.size() <= most) return;
  const std::size_t tail = std::min(empty.ids.size() / 2, most);
  for (std::vector<std::int32_t>* each : {&encoding.ids, &encoding.types})
    each->erase(each->begin() + static_cast<std::ptrdiff_t>(most - tail), each->end() - static_cast<std::ptrdiff_t>(tail));
}

// Lengths for which programs are made where compiling takes long: eight to sixteen a power of two would be too many, one too
// much padding.
std::size_t rounded_length(std::size_t length, std::size_t most) {
  std::size_t size = 16;
  while (size < length) size += size < 64 ? 16 : size < 128 ? 32 : size < 256 ? 64 : 128;
  return std::max(std::min(size, most), length);
}

// Products of one or two rows are summed in another order than larger ones. Batches are never that small, so that a vector has
// the same bits whatever else is encoded with it.
constexpr std::size_t kShortest = 8;

bool compiles_slowly(const std::string& request) {
  DeviceManager& manager = current_manager();
  const std::string& wanted = request == "auto" ? default_request() : request;
  const DeviceInfo device = wanted == "auto" ? manager.default_device() : manager.find(wanted);
  return !device.backends.empty() && device.backends[0] != "cpu" && device.backends[0] != "sim";
}

Model::Tensors inputs_of(const EncoderState& state, const HostArray& ids, const HostArray& mask, const HostArray& types) {
  Model::Tensors inputs{{state.ids, Tensor(ids)}};
  if (!state.mask.empty()) inputs.emplace(state.mask, Tensor(mask));
  if (!state.types.empty()) inputs.emplace(state.types, Tensor(types));
  return inputs;
}

// The vectors of tokens [batch, length, width] as one for each text. |mask|: i64 [batch, length].
Tensor pooled(const Tensor& y, const HostArray& mask, EncoderOptions::Pooling how) {
  using Pooling = EncoderOptions::Pooling;
  if (how == Pooling::first) return y[{Slice(), 0}];
  const Shape shape = mask.shape();
  HostArray weights = mask.cast(DType::f32);
  const std::span<float> w = weights.mutable_view<float>();
  const auto length = static_cast<std::size_t>(shape[1]);
  for (std::size_t i = 0; i < w.size(); ++i) {
    const std::size_t place = i % length;
    if (how == Pooling::weighted_mean) w[i] *= static_cast<float>(place + 1);
    if (how == Pooling::last && place + 1 < length && w[i + 1] != 0) w[i] = 0;
  }
  const Tensor weight = Tensor(weights).reshape({shape[0], shape[1], 1});
  if (how == Pooling::max) return max(where(weight > 0, y, Tensor(-1e9f)), 1);
  const Tensor total = sum(y * weight, 1), count = maximum(sum(weight, 1), Tensor(1e-9f));
  return total / (how == Pooling::mean_sqrt_len ? sqrt(count) : count);
}

// Vectors of the texts in |rows|, whose encodings are padded to the longest, at least to |longest|. There may be more vectors
// than rows, if |rounds|.
HostArray run_batch(const EncoderState& state, std::span<const Tokens> all, std::span<const std::size_t> rows,
                    const RunOptions& options, bool rounds, std::size_t longest = 1) {
  if (!state.mask.empty()) longest = std::max(longest, std::min(kShortest, static_cast<std::size_t>(state.options.max_tokens)));
  for (const std::size_t row : rows) longest = std::max(longest, all[row].ids.size());
  if (rounds) longest = rounded_length(longest, static_cast<std::size_t>(state.options.max_tokens));
  const Shape shape{static_cast<std::int64_t>(rounds ? std::bit_ceil(rows.size()) : rows.size()),
                    static_cast<std::int64_t>(longest)};
  HostArray ids = HostArray::zeros(DType::i64, shape), mask = ids, types = ids;
  for (std::size_t i = 0; i < rows.size(); ++i)
    for (std::size_t k = 0; k < all[rows[i]].ids.size(); ++k) {
      ids.mutable_view<std::int64_t>()[i * longest + k] = all[rows[i]].ids[k];
      mask.mutable_view<std::int64_t>()[i * longest + k] = 1;
      types.mutable_view<std::int64_t>()[i * longest + k] = all[rows[i]].types[k];
    }
  // A row without a text attends to its first token: a softmax over nothing is not a number.
  for (std::int64_t i = static_cast<std::int64_t>(rows.size()); i < shape[0]; ++i)
    mask.mutable_view<std::int64_t>()[static_cast<std::size_t>(i) * longest] = 1;
  const Model::Tensors outputs = state.model(inputs_of(state, ids, mask, types), options);
  const std::string& first = state.model.info().outputs.at(0).name;
  const auto named = outputs.find("sentence_embedding");
  Tensor y = (named != outputs.end() ? named->second : outputs.at(first)).cast(DType::f32);
  if (y.rank() == 3) y = pooled(y, mask, state.options.pooling.value_or(EncoderOptions::Pooling::mean));
  if (y.rank() != 2)
    throw Error(ErrorCode::unimplemented,
                fmt::format("the output '{}' has the shape {}: neither a vector per token nor one per text", printable(first),
                            to_string(y.shape())));
  for (const EncoderState::Dense& each : state.dense) {
    if (y.shape()[1] != each.weight.shape()[1])
      throw Error(ErrorCode::failed_precondition, fmt::format("a dense module takes vectors of {} elements, but they have {}",
                                                              each.weight.shape()[1], y.shape()[1]));
    y = matmul(y, each.weight.T()) + each.bias;
    if (each.has_tanh) y = tanh(y);
  }
  if (state.options.normalize) y = normalize(y);
  y.eval(options);
  return y.to_host();
}

// The batches of one call, taken by one or more workers.
class BatchWork {
 public:
  BatchWork(const EncoderState& state, std::vector<Tokens> all, const RunOptions& options,
            const std::function<void(std::size_t)>& progress)
      : state_(state),
        all_(std::move(all)),
        options_(options),
        progress_(progress),
        order_(all_.size()) {
    std::iota(order_.begin(), order_.end(), std::size_t{0});
    // The longest first: they tell early whether memory is enough, and the last batches, for which a worker may have to wait,
    // are short.
    std::sort(order_.begin(), order_.end(), [&](std::size_t a, std::size_t b) {
      return all_[a].ids.size() != all_[b].ids.size() ? all_[a].ids.size() > all_[b].ids.size() : a < b;
    });
  }

  // Computes batches on |device| until none is left, or until one has failed.
  void run(const std::string& device) noexcept {
    try {
      RunOptions options = options_;
      options.device = device;
      const bool rounds = state_.options.rounds_shapes ? *state_.options.rounds_shapes : compiles_slowly(device);
      const std::size_t batch = batch_for(device);
      for (std::span<const std::size_t> rows = take(batch); !rows.empty(); rows = take(batch))
        store(rows, run_batch(state_, all_, rows, options, rounds));
    } catch (...) {
      const std::lock_guard lock(mutex_);
      if (!error_) error_ = std::current_exception();
    }
  }

  // When no worker runs.
  HostArray vectors() {
    if (error_) std::rethrow_exception(error_);
    return std::move(out_);
  }

 private:
  std::size_t batch_for(const std::string& device) const {
    if (state_.options.batch > 0) return static_cast<std::size_t>(state_.options.batch);
    if (all_.empty()) return 1;
    const auto length = static_cast<std::int64_t>(all_[order_[order_.size() / 2]].ids.size());
    const auto inputs = [&](std::int64_t batch) {
      const HostArray any = HostArray::zeros(DType::i64, Shape{batch, length});
      return inputs_of(state_, any, any, any);
    };
    return static_cast<std::size_t>(state_.model.recommended_batch(inputs, device));
  }

  std::span<const std::size_t> take(std::size_t batch) {
    const std::lock_guard lock(mutex_);
    if (error_) return {};
    const std::span<const std::size_t> rows = std::span(order_).subspan(next_, std::min(batch, order_.size() - next_));
    next_ += rows.size();
    return rows;
  }

  void store(std::span<const std::size_t> rows, const HostArray& vectors) {
    const std::lock_guard lock(mutex_);
    const auto width = static_cast<std::size_t>(vectors.shape()[1]);
    if (done_ == 0) out_ = HostArray::empty(DType::f32, Shape{static_cast<std::int64_t>(all_.size()), vectors.shape()[1]});
    for (std::size_t i = 0; i < rows.size(); ++i)
      std::memcpy(out_.mutable_view<float>().data() + rows[i] * width, vectors.view<float>().data() + i * width,
                  width * sizeof(float));
    done_ += rows.size();
    if (progress_) progress_(done_);
  }

  const EncoderState& state_;
  const std::vector<Tokens> all_;
  const RunOptions& options_;
  const std::function<void(std::size_t)>& progress_;
  std::vector<std::size_t> order_;
  std::mutex mutex_;
  std::size_t next_ = 0, done_ = 0;
  HostArray out_;
  std::exception_ptr error_;
};

}  // namespace

std::filesystem::path Encoder::folder(const std::filesystem::path& path) {
  return std::filesystem::is_directory(path) ? path : path.parent_path();
}

Encoder Encoder::load(const std::filesystem::path& path, const EncoderOptions& options) {
  const std::filesystem::path model = Model::file_in(path), folder = Encoder::folder(path);
  try {
    return of(Model::load(model, options.model), Tokenizer::load(folder / "tokenizer.json"), options.completed(folder));
  } catch (const Error& error) {
    if (error.code() != ErrorCode::failed_precondition) throw;
    throw Error(ErrorCode::invalid_argument, fmt::format("model '{}': {}", printable(model.string()), error.what()),
                error.hint());
  }
}

Encoder Encoder::of(const Model& model, const Tokenizer& tokenizer, const EncoderOptions& options) {
  const ModelInfo& info = model.info();
  EncoderOptions chosen = options;
  if (!chosen.pooling) chosen.pooling = EncoderOptions::Pooling::mean;
  if (chosen.max_tokens < 1) chosen.max_tokens = EncoderOptions::kMaxTokens;
  auto state = std::make_shared<EncoderState>(EncoderState{model, tokenizer, chosen, input_named(info, {"input_ids", "ids"}),
                                                           input_named(info, {"attention_mask", "mask"}),
                                                           input_named(info, {"token_type_ids", "segment_ids"})});
  for (const EncoderOptions::Dense& each : chosen.dense)
    state->dense.push_back({Tensor(each.weight), Tensor(each.bias), each.has_tanh});
  if (state->ids.empty() || info.outputs.empty())
    throw Error(ErrorCode::failed_precondition, "the model has no input named input_ids",
                "an encoder takes the ids of a text's tokens");
  return Encoder(std::move(state));
}

Tokens Encoder::tokens(std::string_view text) const {
  Tokens tokens = state_->tokenizer.encode(text);
  cut(tokens, state_->empty, static_cast<std::size_t>(state_->options.max_tokens));
  return tokens;
}

HostArray Encoder::encode_tokens(std::span<const Tokens> texts, std::int64_t length, const RunOptions& options) const {
  if (texts.empty()) throw Error(ErrorCode::invalid_argument, "a batch needs at least one text");
  std::vector<std::size_t> rows(texts.size());
  std::iota(rows.begin(), rows.end(), std::size_t{0});
  return run_batch(*state_, texts, rows, options, false, static_cast<std::size_t>(std::max<std::int64_t>(length, 1)));
}

const Model& Encoder::model() const noexcept { return state_->model; }
const Tokenizer& Encoder::tokenizer() const noexcept { return state_->tokenizer; }
const EncoderOptions& Encoder::options() const noexcept { return state_->options; }

HostArray Encoder::encode(std::span<const std::string> texts, const RunOptions& options,
                          const std::function<void(std::size_t)>& progress) const {
  const std::string device[] = {options.device};
  return encode(texts, device, options, progress);
}

HostArray Encoder::encode(std::span<const std::string> texts, std::span<const std::string> devices, const RunOptions& options,
                          const std::function<void(std::size_t)>& progress) const {
  if (devices.empty()) throw Error(ErrorCode::invalid_argument, "there is no device to encode on");
  std::vector<Tokens> all;
  for (const std::string& text : texts) all.push_back(tokens(text));
  BatchWork work(*state_, std::move(all), options, progress);
  if (devices.size() == 1) {
    work.run(devices[0]);
    return work.vectors();
  }
  DeviceManager& manager = current_manager();
  {
    std::vector<std::jthread> workers;
    for (const std::string& device : devices)
      workers.emplace_back([&work, &manager, &device] {
        const UseManager use(manager);
        work.run(device);
      });
  }
  return work.vectors();
}

std::vector<Match> most_similar(const HostArray& vectors, const HostArray& query, std::int64_t count, const RunOptions& options) {
  if (vectors.shape().rank() != 2 || query.elements() != vectors.shape()[1])
    throw Error(ErrorCode::invalid_argument,
                fmt::format("vectors are {}, the query {}", to_string(vectors.shape()), to_string(query.shape())),
                "compare vectors of the same model");
  const Tensor rows = normalize(Tensor(vectors).cast(DType::f32)),
               one = normalize(Tensor(query).cast(DType::f32).reshape({1, query.elements()}));
  const std::int64_t most = std::min(count, vectors.shape()[0]);
  const std::vector<Tensor> best = top_k(matmul(one, rows.T()), most);
  eval(best, options);
  const std::vector<float> score = best[0].to_vector<float>();
  const std::vector<std::int64_t> place = best[1].to_vector<std::int64_t>();
  std::vector<Match> out;
  for (std::size_t i = 0; i < score.size(); ++i) out.push_back({place[i], score[i]});
  return out;
}

HostArray simhash(const HostArray& vectors, std::int64_t bits, std::int64_t seed, const RunOptions& options) {
  constexpr std::int64_t kWord = 64;
  if (vectors.shape().rank() != 2)
    throw Error(ErrorCode::invalid_argument, fmt::format("vectors are {}, not a matrix", to_string(vectors.shape())),
                "pass one vector per row");
  if (bits < kWord || bits % kWord != 0)
    throw Error(ErrorCode::invalid_argument, fmt::format("{} bits do not fill words of {}", bits, kWord),
                "use 64, 128, 256, ...");
  const std::int64_t rows = vectors.shape()[0], words = bits / kWord;
  const Tensor directions = randn({vectors.shape()[1], bits}, DType::f32, seed);
  const Tensor is_positive = matmul(Tensor(vectors).cast(DType::f32), directions) > 0;
  eval(std::span(&is_positive, 1), options);
  const HostArray signs = is_positive.to_host();
  const auto* const sign = reinterpret_cast<const std::uint8_t*>(signs.data());
  std::vector<std::uint64_t> hashes(static_cast<std::size_t>(rows * words));
  for (std::size_t i = 0; i < static_cast<std::size_t>(signs.elements()); ++i)
    hashes[i / kWord] |= std::uint64_t{sign[i]} << (i % kWord);
  return HostArray::from<std::uint64_t>({rows, words}, hashes);
}

std::vector<std::int64_t> hamming_distances(const HostArray& hashes, const HostArray& query) {
  if (hashes.dtype() != DType::u64 || query.dtype() != DType::u64 || hashes.shape().rank() != 2 ||
      query.elements() != hashes.shape()[1])
    throw Error(ErrorCode::invalid_argument,
                fmt::format("hashes are {} {}, the query {} {}", name(hashes.dtype()), to_string(hashes.shape()),
                            name(query.dtype()), to_string(query.shape())),
                "compare hashes of as many bits");
  const auto* row = reinterpret_cast<const std::uint64_t*>(hashes.data());
  const auto* const one = reinterpret_cast<const std::uint64_t*>(query.data());
  const auto words = static_cast<std::size_t>(query.elements());
  std::vector<std::int64_t> distances(static_cast<std::size_t>(hashes.shape()[0]));
  for (std::int64_t& distance : distances)
    for (std::size_t i = 0; i < words; ++i) distance += std::popcount(*row++ ^ one[i]);
  return distances;
}

}  // namespace tenon
