#include "model/generate/batch.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "model/generate/state.h"
#include "tenon/error.h"

namespace tenon {
namespace {

constexpr double kLongestStep = 0.1;  // seconds; a text should not come in fewer pieces than ten a second

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

}  // namespace

GenerationBatch::GenerationBatch(const Generator& generator, DeviceManager& manager)
    : state_(generator.state_),
      sequences_(state_->decoder, manager) {}

bool GenerationBatch::is_end(std::int32_t id) const { return state_->files.ends.contains(id); }

void GenerationBatch::check(const GenerationRequest& request) const {
  const Sampler checks_options(request.sampling, {});
  const decoder::Architecture& a = state_->decoder->architecture();
  const auto n = static_cast<std::int64_t>(request.prompt.size());
  if (n == 0) throw Error(ErrorCode::invalid_argument, "the prompt is empty");
  if (n >= a.context)
    throw Error(ErrorCode::invalid_argument,
                fmt::format("the prompt has {} tokens; prompt and answer together may have {}", n, a.context),
                "shorten the prompt");
  for (const std::int32_t id : request.prompt)
    if (id < 0 || id >= a.vocabulary)
      throw Error(ErrorCode::invalid_argument, fmt::format("the token {} is not among the {} of the model", id, a.vocabulary));
}

void GenerationBatch::add(const GenerationRequest& request, Piece piece, Done done, const RunOptions& options) {
  check(request);
  const double begun = now();
  auto active = std::make_unique<Active>(Active{Sampler(request.sampling, request.prompt),
                                                TextStream(state_->tokenizer, request.sampling.stop, request.prompt),
                                                {},
                                                std::move(piece),
                                                std::move(done),
                                                request.sampling.max_tokens});
  active->result.prompt_tokens = static_cast<std::int64_t>(request.prompt.size());
  const HostArray logits = sequences_.add(request.prompt, options);
  active->started = now();
  active->result.prompt_seconds = active->started - begun;
  active_.push_back(std::move(active));
  if (accept(*active_.back(), active_.back()->sampler.choose(logits.view<float>()))) {
    const std::unique_ptr<Active> ended = std::move(active_.back());
    active_.pop_back();
    sequences_.remove(active_.size(), options);
    finish(*ended);
  }
}

// Several tokens cost the host as much as one. The first ones are single, which also shows how long one takes; so are the last
// ones, if most of those together would be dropped.
std::int64_t GenerationBatch::step_tokens() const {
  const std::int64_t most = state_->decoder->target().tokens_together;
  if (most == 1 || token_seconds_ * static_cast<double>(most) > kLongestStep) return 1;
  std::int64_t wanted = 0;
  for (std::size_t row = 0; row < active_.size(); ++row) {
    const Active& active = *active_[row];
    if (!active.sampler.is_greedy() || !sequences_.may_advance(row, most)) return 1;
    wanted = std::max(wanted, active.max_tokens - static_cast<std::int64_t>(active.result.ids.size()));
  }
  return 2 * wanted >= most ? most : 1;
}

std::vector<std::int32_t> GenerationBatch::next_tokens(std::int64_t count, const RunOptions& options) {
  std::vector<std::int32_t> tokens;
  for (const auto& active : active_) tokens.push_back(active->token);
  if (count > 1) {
    const HostArray chosen = sequences_.advance(tokens, count, options);
    const std::span<const std::int64_t> ids = chosen.view<std::int64_t>().first(active_.size() * static_cast<std::size_t>(count));
    return {ids.begin(), ids.end()};
  }
  const double begun = now();
  const HostArray logits = sequences_.step(tokens, options);
  token_seconds_ = std::min(token_seconds_, now() - begun);
  const auto width = static_cast<std::size_t>(logits.shape()[1]);
  for (std::size_t row = 0; row < active_.size(); ++row)
    tokens[row] = active_[row]->sampler.choose(logits.view<float>().subspan(row * width, width));
  return tokens;
}

void GenerationBatch::step(const RunOptions& options) {
  if (active_.empty()) return;
  const std::int64_t count = step_tokens(), context = state_->decoder->architecture().context;
  const std::vector<std::int32_t> tokens = next_tokens(count, options);
  std::vector<std::size_t> ended;
  for (std::size_t row = 0; row < active_.size(); ++row) {
    Active& active = *active_[row];
    bool has_ended = false;
    // What follows the end of a text is dropped.
    for (std::int64_t i = 0; i < count && !has_ended; ++i) {
      const bool is_full = sequences_.length(row) - count + i + 1 >= context;
      has_ended = accept(active, tokens[row * static_cast<std::size_t>(count) + static_cast<std::size_t>(i)]) || is_full;
      if (is_full && active.result.finish != Generation::Finish::cancelled) active.result.finish = Generation::Finish::length;
    }
    if (has_ended) ended.push_back(row);
  }
  // From the last, because the last row takes the place of one that is removed.
  for (auto row = ended.rbegin(); row != ended.rend(); ++row) {
    const std::unique_ptr<Active> one = std::move(active_[*row]);
    active_[*row] = std::move(active_.back());
    active_.pop_back();
    sequences_.remove(*row, options);
    finish(*one);
  }
}

void GenerationBatch::cancel() {
  for (const std::unique_ptr<Active>& active : active_) {
    active->result.finish = Generation::Finish::cancelled;
    finish(*active);
  }
  active_.clear();
}

bool GenerationBatch::accept(Active& active, std::int32_t token) {
  active.token = token;
  if (is_end(active.token)) {
    active.result.finish = Generation::Finish::stop;
    return true;
  }
  active.result.ids.push_back(active.token);
  const std::string text = active.text.add(active.token);
  active.result.text += text;
  if (active.piece && !active.piece(text)) {
    active.result.finish = Generation::Finish::cancelled;
    return true;
  }
  if (active.text.is_stopped()) {
    active.result.finish = Generation::Finish::stop;
    return true;
  }
  active.result.finish = Generation::Finish::length;
  return static_cast<std::int64_t>(active.result.ids.size()) >= active.max_tokens;
}

void GenerationBatch::finish(Active& active) {
  if (active.result.finish != Generation::Finish::cancelled) {
    const std::string rest = active.text.finish();
    active.result.text += rest;
    if (!rest.empty() && active.piece) active.piece(rest);
  }
  active.result.seconds = now() - active.started;
  if (active.done) active.done(std::move(active.result));
}

}  // namespace tenon
