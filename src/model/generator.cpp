#include "tenon/model/generator.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text/printable.h"
#include "model/generate/batch.h"
#include "model/generate/state.h"
#include "tenon/error.h"
#include "tensor/node.h"

namespace tenon {
namespace {

// A model whose template cannot be read still takes plain prompts.
void add_chat(GeneratorState& state) {
  const std::optional<std::string>& jinja = state.files.chat_template;
  state.chat_reason = "the model has no chat template";
  if (!jinja) return;
  try {
    state.chat = ChatTemplate::parse(*jinja, state.files.special_tokens);
  } catch (const Error& error) {
    state.chat_reason = error.what();
  }
}

// Which parts of a conversation must not become control tokens: those of messages within which, or from which on, the text of
// one stands.
std::vector<bool> risky_parts(std::span<const ChatPart> parts, std::span<const std::string> control_texts) {
  std::string all;
  std::vector<std::size_t> begins;
  for (const ChatPart& part : parts) {
    begins.push_back(all.size());
    all += part.text;
  }
  std::vector<bool> out(parts.size(), false);
  for (const std::string& control : control_texts)
    for (std::size_t at = all.find(control); at != std::string::npos; at = all.find(control, at + 1)) {
      std::size_t i = static_cast<std::size_t>(std::upper_bound(begins.begin(), begins.end(), at) - begins.begin()) - 1;
      for (; i < parts.size() && begins[i] < at + control.size(); ++i) out[i] = out[i] || parts[i].is_content;
    }
  return out;
}

bool is_driven_by(const DeviceInfo& device, std::initializer_list<std::string_view> backends) {
  return !device.backends.empty() && std::ranges::find(backends, device.backends[0]) != backends.end();
}

// Small integers are multiplied as they are where there are kernels for them.
decoder::WeightForm form_for(const DeviceInfo& device, GeneratorOptions::Weights wanted) {
  if (wanted == GeneratorOptions::Weights::float16) return decoder::WeightForm::half;
  if (wanted == GeneratorOptions::Weights::float32) return decoder::WeightForm::single;
  return is_driven_by(device, {"cpu", "sim", "cuda", "opencl"}) ? decoder::WeightForm::as_stored : decoder::WeightForm::half;
}

decoder::DecoderTarget target_for(const DeviceInfo& device, GeneratorOptions::Weights wanted,
                                  const decoder::Architecture& architecture) {
  const bool apart = !is_driven_by(device, {"cpu", "sim"}) && architecture.is_uniform();
  return {.form = form_for(device, wanted),
          .apart = apart,
          // Compilers of other kinds take long for programs of this size.
          .tokens_together = apart && is_driven_by(device, {"cuda", "opencl"}) ? 8 : 1};
}

RunOptions on_device(const RunOptions& options, const GeneratorState& state) {
  RunOptions out = options;
  if (out.device == "auto") out.device = state.device.id;
  return out;
}

}  // namespace

Generator Generator::load(const std::filesystem::path& path, const GeneratorOptions& options) {
  try {
    ModelFiles files = open_model_files(path);
    decoder::Architecture architecture = decoder::architecture_of(files.source);
    Tokenizer tokenizer = Tokenizer::parse(files.tokenizer_json(true));
    DeviceManager& manager = current_manager();
    DeviceInfo device = options.device == "auto" ? manager.default_device() : manager.find(options.device);
    const decoder::DecoderTarget target = target_for(device, options.weights, architecture);
    auto made = std::make_shared<decoder::Decoder>(files.source, std::move(architecture), target);
    auto state = std::make_shared<GeneratorState>(std::move(files), std::move(tokenizer), std::move(device), std::move(made));
    add_chat(*state);
    return Generator(std::move(state));
  } catch (const Error& error) {
    throw Error(error.code(), fmt::format("model '{}': {}", printable(path.string()), error.what()), error.hint());
  }
}

const ModelInfo& Generator::info() const noexcept { return state_->files.info; }
const Tokenizer& Generator::tokenizer() const noexcept { return state_->tokenizer; }
std::int64_t Generator::context() const noexcept { return state_->decoder->architecture().context; }
std::string Generator::device() const { return state_->device.id; }
std::uint64_t Generator::weight_bytes() const noexcept { return state_->decoder->weight_bytes(); }
std::uint64_t Generator::sequence_bytes(std::int64_t tokens) const noexcept {
  const decoder::Architecture& a = state_->decoder->architecture();
  // The closed part grows by at most a half, and while it grows there are two.
  const std::int64_t least = state_->decoder->target().apart ? decoder::kLeastClosedApart : 0;
  const std::int64_t kept = 3 * std::max(std::min(tokens, a.context), least) + 3 * decoder::kOpen;
  return static_cast<std::uint64_t>(a.layers * 2 * a.kv_heads * a.head_width * kept) * sizeof(float);
}
std::string Generator::chat_format() const { return state_->chat ? state_->chat->name() : ""; }

std::vector<std::int32_t> Generator::tokens(std::string_view text) const { return state_->tokenizer.encode(text).ids; }

std::vector<std::int32_t> Generator::chat_tokens(std::span<const ChatMessage> messages) const {
  if (!state_->chat)
    throw Error(ErrorCode::unimplemented, state_->chat_reason, "send a plain prompt, written as the model expects it");
  const std::vector<ChatPart> parts = state_->chat->format(messages);
  const std::vector<bool> is_risky = risky_parts(parts, state_->files.control_texts);
  std::vector<std::int32_t> ids;
  std::string text;
  const auto add = [&](const std::vector<std::int32_t>& more) { ids.insert(ids.end(), more.begin(), more.end()); };
  const auto flush = [&] {
    if (!text.empty()) add(state_->tokenizer.encode(text, false).ids);
    text.clear();
  };
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (!is_risky[i]) {
      text += parts[i].text;
      continue;
    }
    flush();
    add(state_->plain().encode(parts[i].text, false).ids);
  }
  flush();
  return ids;
}

Generation Generator::generate(std::span<const std::int32_t> prompt, const SamplingOptions& sampling, const RunOptions& options,
                               const PieceCallback& piece) const {
  return generate_all(std::array{GenerationRequest{{prompt.begin(), prompt.end()}, sampling}}, options, piece)[0];
}

std::vector<Generation> Generator::generate_all(std::span<const GenerationRequest> requests, const RunOptions& options,
                                                const PieceCallback& piece) const {
  GenerationBatch batch(*this, current_manager());
  for (const GenerationRequest& request : requests) batch.check(request);
  const RunOptions run = on_device(options, *state_);
  std::vector<Generation> out(requests.size(), Generation{.finish = Generation::Finish::cancelled});
  std::size_t next = 0;
  try {
    while (next < requests.size() || batch.size() > 0) {
      while (next < requests.size() && batch.size() < GenerationBatch::kMostRows) {
        const std::size_t i = next++;
        GenerationBatch::Piece sink;
        if (piece) sink = [&piece, i](const std::string& text) { return text.empty() || piece({text, i}); };
        batch.add(requests[i], std::move(sink), [&out, i](Generation done) { out[i] = std::move(done); }, run);
      }
      batch.step(run);
    }
  } catch (const Error& error) {
    if (error.code() != ErrorCode::cancelled || !options.cancel.stop_requested()) throw;
    batch.cancel();
  }
  return out;
}

}  // namespace tenon
