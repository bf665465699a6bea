#include "model/generate/batch.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "model/generate/state.h"
#include "tenon/error.h"

namespace tenon {
namespace {

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
  if (advance(*active_.back(), logits.view<float>())) {
    const std::unique_ptr<Active> ended = std::move(active_.back());
    active_.pop_back();
    sequences_.remove(active_.size(), options);
    finish(*ended);
  }
}

void GenerationBatch::step(const RunOptions& options) {
  if (active_.empty()) return;
  std::vector<std::int32_t> tokens;
  for (const auto& active : active_) tokens.push_back(active->token);
  const HostArray logits = sequences_.step(tokens, options);
  const auto width = static_cast<std::size_t>(logits.shape()[1]);
  std::vector<std::size_t> ended;
  for (std::size_t row = 0; row < active_.size(); ++row) {
    const bool is_full = sequences_.length(row) >= state_->decoder->architecture().context;
    if (advance(*active_[row], logits.view<float>().subspan(row * width, width)) || is_full) {
      if (is_full && active_[row]->result.finish != Generation::Finish::cancelled)
        active_[row]->result.finish = Generation::Finish::length;
      ended.push_back(row);
    }
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

bool GenerationBatch::advance(Active& active, std::span<const float> logits) {
  active.token = active.sampler.choose(logits);
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
