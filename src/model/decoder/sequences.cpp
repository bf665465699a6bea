#include "model/decoder/sequences.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "manager/evaluate.h"
#include "tenon/error.h"

namespace tenon::decoder {
namespace {

enum Kind : std::int64_t { kPrefill, kDecode, kAdvance, kAppend, kArrange };

constexpr std::int64_t kChunk = 256;  // tokens of a prompt at a time

std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

// Sizes for which programs are made: powers of two and the middles between them.
std::int64_t rounded_up(std::int64_t n, std::int64_t least) {
  std::int64_t size = least;
  while (size < n) {
    if (size + size / 2 >= n) return size + size / 2;
    size *= 2;
  }
  return size;
}

// Of a closed part.
std::int64_t rounded_capacity(std::int64_t n, bool apart) { return rounded_up(n, apart ? kLeastClosedApart : 64); }

std::int64_t rounded_rows(std::int64_t n) {
  std::int64_t rows = 1;
  while (rows < n) rows *= 2;
  return rows;
}

struct Angles {
  HostArray cos, sin;
};
// |totals|: how long the sequence of each position is in all.
Angles angles_of(const Architecture& a, std::span<const std::int64_t> positions, std::span<const std::int64_t> totals) {
  const auto n = static_cast<std::int64_t>(positions.size()), half = a.angles();
  Angles out{HostArray::empty(DType::f32, Shape{n, 1, 1, half}), HostArray::empty(DType::f32, Shape{n, 1, 2, half})};
  float* cos = out.cos.mutable_view<float>().data();
  float* sin = out.sin.mutable_view<float>().data();
  for (std::int64_t i = 0; i < n; ++i) {
    const bool is_long = a.short_context > 0 && totals[at(i)] > a.short_context;
    const std::vector<double>& frequencies = is_long ? a.long_frequencies : a.frequencies;
    for (std::int64_t j = 0; j < half; ++j) {
      const double angle = static_cast<double>(positions[at(i)]) * frequencies[at(j)];
      cos[i * half + j] = static_cast<float>(std::cos(angle) * a.rotation_scale);
      const auto value = static_cast<float>(std::sin(angle) * a.rotation_scale);
      sin[2 * i * half + j] = -value;
      sin[(2 * i + 1) * half + j] = value;
    }
  }
  return out;
}

HostArray integers(std::span<const std::int64_t> values) {
  return HostArray::from<std::int64_t>(Shape{static_cast<std::int64_t>(values.size())}, values);
}

}  // namespace

Decoder::Decoder(gguf::Source source, Architecture architecture, const DecoderTarget& target)
    : source_(std::move(source)),
      architecture_(std::move(architecture)),
      target_(target),
      weights_(load_weights(source_, architecture_, target.form, target.apart)) {}

HostArray Decoder::embed(std::span<const std::int32_t> ids, std::span<const std::int64_t> positions) const {
  const Architecture& a = architecture_;
  for (const std::int32_t id : ids)
    if (id < 0 || id >= a.vocabulary)
      throw Error(ErrorCode::invalid_argument, fmt::format("the token {} is not among the {} of the model", id, a.vocabulary));
  if (target_.apart) return integers(std::vector<std::int64_t>(ids.begin(), ids.end()));
  const gguf::TensorInfo& table = source_.tensor("token_embd.weight");
  const gguf::TensorInfo* places = a.has_position_embedding ? &source_.tensor("position_embd.weight") : nullptr;
  HostArray out = HostArray::empty(DType::f32, Shape{static_cast<std::int64_t>(ids.size()), a.width});
  float* to = out.mutable_view<float>().data();
  for (std::size_t i = 0; i < ids.size(); ++i) {
    std::vector<float> row = source_.floats(table, ids[i], 1);
    if (a.embedding_scale != 1)
      for (float& value : row) value *= static_cast<float>(a.embedding_scale);
    if (places) {
      // Tokens that only fill a program may lie beyond the last position.
      const std::vector<float> place = source_.floats(*places, std::min(positions[i], a.context - 1) + a.first_position, 1);
      for (std::size_t j = 0; j < row.size(); ++j) row[j] += place[j];
    }
    to = std::copy(row.begin(), row.end(), to);
  }
  return out;
}

StepProgram Decoder::build(const Key& k) const {
  const Architecture& a = architecture_;
  switch (k[0]) {
    case kPrefill: return prefill(a, weights_, k[1], k[2], target_.apart);
    case kDecode: return target_.apart ? decode_apart(a, weights_, k[1], k[2]) : decode(a, weights_, k[1], k[2]);
    case kAdvance: return decoder::advance(a, weights_, k[1], k[2], k[3]);
    case kAppend: return append(a, k[1], k[2], k[3], k[4], target_.apart);
    default: return arrange(a, k[1], k[2], k[3], k[4], k[5], target_.apart);
  }
}

std::shared_ptr<const StepProgram> Decoder::program(const Key& key) {
  {
    const std::lock_guard lock(mutex_);
    if (const auto found = programs_.find(key); found != programs_.end()) return found->second;
  }
  auto made = std::make_shared<const StepProgram>(build(key));
  const std::lock_guard lock(mutex_);
  // Sizes are powers of two and their middles, so there are few; hostile requests cannot make many.
  return programs_.try_emplace(key, std::move(made)).first->second;
}

Sequences::Tensors Sequences::run(const Decoder::Key& key, std::vector<HostArray> arrays,
                                  std::initializer_list<const Tensors*> caches, const RunOptions& options) {
  const std::shared_ptr<const StepProgram> program = decoder_->program(key);
  Tensors feeds = program->feeds;
  auto next = program->open.begin();
  for (HostArray& array : arrays) feeds[*next++] = Storage::from_host(std::move(array));
  for (const Tensors* cache : caches)
    for (const auto& tensor : *cache) feeds[*next++] = tensor;
  return evaluate(manager_, program->graph, feeds, options).outputs;
}

Sequences::Computed Sequences::compute(std::span<const std::int32_t> ids, std::int64_t total, const RunOptions& options) {
  const auto n = static_cast<std::int64_t>(ids.size());
  Computed out;
  auto& [logits, cache, capacity] = out;
  for (std::int64_t first = 0; first < n; first += kChunk) {
    const std::int64_t count = std::min(kChunk, n - first), size = rounded_up(count, 16);
    std::vector<std::int32_t> chunk(ids.begin() + first, ids.begin() + first + count);
    chunk.resize(at(size), chunk.back());
    std::vector<std::int64_t> positions;
    for (std::int64_t i = 0; i < size; ++i) positions.push_back(first + i);
    Angles angles = angles_of(decoder_->architecture(), positions, std::vector<std::int64_t>(at(size), total));
    std::vector<HostArray> arrays{decoder_->embed(chunk, positions), std::move(angles.cos), std::move(angles.sin),
                                  integers(std::array{count - 1})};
    if (capacity > 0) arrays.push_back(integers(std::array{first}));
    Tensors results = run({kPrefill, size, capacity}, std::move(arrays), {&cache}, options);
    logits = results[0]->to_host();
    results.erase(results.begin());
    const std::int64_t larger = rounded_capacity(first + size, decoder_->target().apart);
    cache = capacity > 0 ? run({kAppend, 1, capacity, larger, size}, {integers(std::array{first})}, {&cache, &results}, options)
                         : run({kAppend, 1, 0, larger, size}, {integers(std::array{std::int64_t{0}})}, {&results}, options);
    capacity = larger;
  }
  return out;
}

HostArray Sequences::add(std::span<const std::int32_t> ids, const RunOptions& options) {
  const Architecture& a = decoder_->architecture();
  if (ids.empty()) throw Error(ErrorCode::invalid_argument, "a prompt needs at least one token");
  const auto n = static_cast<std::int64_t>(ids.size());
  if (n > a.context)
    throw Error(ErrorCode::invalid_argument, fmt::format("the prompt has {} tokens, the model takes {}", n, a.context));
  close_open_part(options);
  opened_.clear();  // rows change
  const Computed added = compute(ids, n, options);
  std::vector<std::int64_t> from(rows() + 1);
  for (std::size_t i = 0; i < from.size(); ++i) from[i] = static_cast<std::int64_t>(i);
  from.back() = stored_rows_;  // the added one
  lengths_.push_back(n);
  open_.push_back(0);
  ids_.emplace_back();
  if (a.short_context > 0) ids_.back().assign(ids.begin(), ids.end());
  try {
    rearrange(from, &added, options);
  } catch (...) {
    lengths_.pop_back();
    open_.pop_back();
    ids_.pop_back();
    throw;
  }
  return added.logits.reshape(Shape{a.vocabulary});
}

bool Sequences::may_advance(std::size_t row, std::int64_t count) const {
  const Architecture& a = decoder_->architecture();
  const std::int64_t length = lengths_[row];
  const bool becomes_long = a.short_context > 0 && length <= a.short_context && length + count > a.short_context;
  return length + count <= a.context && !becomes_long;
}

void Sequences::recompute_long(std::int64_t count, const RunOptions& options) {
  const std::int64_t most = decoder_->architecture().short_context;
  for (std::size_t row = 0; most > 0 && row < rows(); ++row) {
    if (lengths_[row] > most || lengths_[row] + count <= most) continue;
    close_open_part(options);
    opened_.clear();
    const Computed again = compute(ids_[row], lengths_[row] + count, options);
    std::vector<std::int64_t> from(rows());
    for (std::size_t i = 0; i < from.size(); ++i) from[i] = static_cast<std::int64_t>(i == row ? at(stored_rows_) : i);
    rearrange(from, &again, options);
  }
}

void Sequences::rearrange(std::span<const std::int64_t> from, const Computed* added, const RunOptions& options) {
  const auto wanted = static_cast<std::int64_t>(from.size());
  if (wanted == 0) {
    closed_.clear();
    stored_rows_ = capacity_ = 0;
    return;
  }
  const std::int64_t rows = rounded_rows(wanted);
  if (added && wanted == 1) {
    closed_ = added->cache;
    stored_rows_ = 1;
    capacity_ = added->capacity;
    return;
  }
  std::vector<std::int64_t> numbers(from.begin(), from.end());
  numbers.resize(at(rows), 0);
  static const Tensors none;
  const std::int64_t capacity = rounded_capacity(*std::max_element(lengths_.begin(), lengths_.end()), decoder_->target().apart);
  closed_ = run({kArrange, rows, capacity, stored_rows_, capacity_, added ? added->capacity : 0}, {integers(numbers)},
                {stored_rows_ > 0 ? &closed_ : &none, added ? &added->cache : &none}, options);
  stored_rows_ = rows;
  capacity_ = capacity;
}

void Sequences::close_open_part(const RunOptions& options) {
  if (opened_.empty() || *std::max_element(open_.begin(), open_.end()) == 0) return;
  std::vector<std::int64_t> places(at(stored_rows_), 0);
  std::int64_t longest = 0;
  for (std::size_t i = 0; i < rows(); ++i) {
    places[i] = lengths_[i] - open_[i];
    longest = std::max(longest, places[i] + kOpen);
  }
  const std::int64_t larger = std::max(capacity_, rounded_capacity(longest, decoder_->target().apart));
  closed_ = run({kAppend, stored_rows_, capacity_, larger, kOpen}, {integers(places)}, {&closed_, &opened_}, options);
  capacity_ = larger;
  std::fill(open_.begin(), open_.end(), 0);
}

void Sequences::remove(std::size_t row, const RunOptions& options) {
  if (rows() > 1) close_open_part(options);
  opened_.clear();
  lengths_[row] = lengths_.back();
  lengths_.pop_back();
  ids_[row] = std::move(ids_.back());
  ids_.pop_back();
  open_.pop_back();
  std::vector<std::int64_t> from(rows());
  for (std::size_t i = 0; i < from.size(); ++i) from[i] = static_cast<std::int64_t>(i);
  if (row < from.size()) from[row] = static_cast<std::int64_t>(rows());
  rearrange(from, nullptr, options);
}

std::vector<HostArray> Sequences::prepare(std::span<const std::int32_t> ids, std::int64_t count, const RunOptions& options) {
  const Architecture& a = decoder_->architecture();
  const bool apart = decoder_->target().apart;
  if (ids.size() != rows() || ids.empty())
    throw Error(ErrorCode::invalid_argument, fmt::format("{} tokens for {} sequences", ids.size(), rows()));
  recompute_long(count, options);
  if (*std::max_element(open_.begin(), open_.end()) + count > kOpen) close_open_part(options);
  if (opened_.empty())
    opened_.assign(at(cache_tensors(a, apart)),
                   Storage::from_host(HostArray::zeros(DType::f32, cache_shape(a, apart, stored_rows_, kOpen))));
  // Rows of the tensors that no sequence uses repeat the first.
  std::vector<std::int32_t> tokens(ids.begin(), ids.end());
  tokens.resize(at(stored_rows_), ids[0]);
  std::vector<std::int64_t> positions(at(count * stored_rows_), 0), counts(at(stored_rows_), 0), places(at(stored_rows_), 0);
  std::vector<std::int64_t> totals(positions.size(), 0);
  for (std::size_t i = 0; i < rows(); ++i) {
    for (std::int64_t j = 0; j < count; ++j) {
      positions[at(j * stored_rows_) + i] = lengths_[i] + j;
      totals[at(j * stored_rows_) + i] = lengths_[i] + count;
    }
    places[i] = open_[i];
    counts[i] = lengths_[i] - open_[i];
  }
  Angles angles = angles_of(a, positions, totals);
  return {decoder_->embed(tokens, positions), std::move(angles.cos), std::move(angles.sin), integers(counts), integers(places)};
}

HostArray Sequences::take_results(Tensors results, std::int64_t count) {
  HostArray first = results[0]->to_host();
  results.erase(results.begin());
  opened_ = std::move(results);
  for (std::size_t i = 0; i < rows(); ++i) {
    lengths_[i] += count;
    open_[i] += count;
  }
  return first;
}

HostArray Sequences::step(std::span<const std::int32_t> ids, const RunOptions& options) {
  std::vector<HostArray> arrays = prepare(ids, 1, options);
  HostArray logits = take_results(run({kDecode, stored_rows_, capacity_}, std::move(arrays), {&closed_, &opened_}, options), 1);
  if (decoder_->architecture().short_context > 0)
    for (std::size_t row = 0; row < rows(); ++row) ids_[row].push_back(ids[row]);
  return logits;
}

HostArray Sequences::advance(std::span<const std::int32_t> ids, std::int64_t count, const RunOptions& options) {
  if (!decoder_->target().apart || count < 1 || count > kOpen)
    throw Error(ErrorCode::invalid_argument, fmt::format("{} tokens in one program", count));
  std::vector<HostArray> arrays = prepare(ids, count, options);
  HostArray chosen =
      take_results(run({kAdvance, stored_rows_, capacity_, count}, std::move(arrays), {&closed_, &opened_}, options), count);
  if (decoder_->architecture().short_context > 0)
    for (std::size_t row = 0; row < rows(); ++row) {
      const std::span<const std::int64_t> each = chosen.view<std::int64_t>().subspan(row * at(count), at(count - 1));
      ids_[row].push_back(ids[row]);
      ids_[row].insert(ids_[row].end(), each.begin(), each.end());
    }
  return chosen;
}

}  // namespace tenon::decoder
