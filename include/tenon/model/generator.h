// Generator: text from a language model.
//
//   Generator generator = Generator::load("smollm2.gguf");
//   Generation one = generator.generate(generator.tokens("The capital of France is"), {.max_tokens = 16});
//   std::cout << one.text << '\n';
//
//   std::vector<ChatMessage> chat{{"user", "What is a lease?"}};
//   generator.generate(generator.chat_tokens(chat), {.temperature = 0.7, .seed = 1}, {},
//                      [](const GeneratedPiece& piece) { std::cout << piece.text << std::flush; return true; });
//
// Models: GGUF files with the tokenizer in the file, and folders as Hugging Face has them: config.json, model.safetensors or its
// shards, tokenizer.json. docs/models.md lists the architectures. On the CPU, weights of 4 to 8 bits are multiplied as they are;
// elsewhere they become 16-bit floats. Loading opens no device. Keys and values of a sequence stay on the device between tokens,
// which lets others have it in between: every step is a lease of its own. A step is one token, or on GPUs up to eight of greedy
// texts, whose pieces then arrive together (docs/models.md).
// A sequence's tokens do not depend on the sequences that run beside it.
//
// Lifetime: a value; copies share the model. Thread safety: all calls may run concurrently.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tenon/manager.h"
#include "tenon/model.h"
#include "tenon/model/tokenizer.h"

namespace tenon {

struct SamplingOptions {
  std::int64_t max_tokens = 256;       // generated at most; the model's context may end a text earlier
  double temperature = 0;              // 0: the most likely token each time (greedy)
  std::int64_t top_k = 0;              // choose among this many of the most likely tokens; 0: among all
  double top_p = 1;                    // and among the most likely ones that together have this probability
  double repeat_penalty = 1;           // above 1: tokens of the last 64 are less likely
  std::uint64_t seed = 0;              // equal seeds and prompts give equal texts
  std::vector<std::string> stop = {};  // texts that end the generation; they are not part of the result
};

struct ChatMessage {
  std::string role;  // "system", "user" or "assistant"
  std::string content;
};

// A part of the text as soon as it is certain: whole characters that no stop text can take back.
struct GeneratedPiece {
  std::string text;
  std::size_t sequence = 0;  // in a batch
};
using PieceCallback = std::function<bool(const GeneratedPiece&)>;  // false ends the sequence

struct Generation {
  enum class Finish : std::uint8_t { stop, length, cancelled };  // by the model or a stop text; by max_tokens; by the caller
  std::string text;
  std::vector<std::int32_t> ids;
  Finish finish = Finish::stop;
  std::int64_t prompt_tokens = 0;
  double prompt_seconds = 0, seconds = 0;  // for the prompt, and for the tokens after the first
};

struct GeneratorOptions {
  // How matrices are kept. automatic: as in the file on CPUs and GPUs, which rounds their other factor to 8 bits; 16-bit
  // floats elsewhere. With float32 nothing is rounded further, at the price of memory and time.
  enum class Weights : std::uint8_t { automatic, float16, float32 };
  std::string device = "auto";  // as in RunOptions
  Weights weights = Weights::automatic;
};

struct GenerationRequest {
  std::vector<std::int32_t> prompt;
  SamplingOptions sampling;
};

struct GeneratorState;  // src/model/

class Generator {
 public:
  // |model|: a GGUF file, or a folder. Throws not_found, permission_denied, invalid_argument for a file that is damaged,
  // unimplemented naming what is not supported.
  static Generator load(const std::filesystem::path& model, const GeneratorOptions& options = {});

  const ModelInfo& info() const noexcept;
  const Tokenizer& tokenizer() const noexcept;
  std::int64_t context() const noexcept;        // tokens of a prompt and its answer together
  std::string device() const;                   // the id of the device it was loaded for
  std::uint64_t weight_bytes() const noexcept;  // as they are kept for that device
  // The most that the keys and values of a sequence of |tokens| tokens take.
  std::uint64_t sequence_bytes(std::int64_t tokens) const noexcept;

  // The tokens of a prompt, with the one that begins a text if the model has it.
  std::vector<std::int32_t> tokens(std::string_view text) const;
  // The tokens of a conversation up to where the assistant speaks, as the model's chat template writes it. Texts in messages
  // cannot end a turn. Throws unimplemented if the model has no template that can be run, invalid_argument for an unknown role
  // and for messages that the template refuses.
  std::vector<std::int32_t> chat_tokens(std::span<const ChatMessage> messages) const;
  // "ChatML", "Llama 3" ..., "Jinja" for others; "" if the model has no template that can be run.
  std::string chat_format() const;

  // Blocks until the text is complete, the callback returns false or |options|.cancel is set: what there is then is returned.
  // Throws invalid_argument for an empty prompt or one beyond context(), and what devices throw. |piece| is called in this
  // thread.
  Generation generate(std::span<const std::int32_t> prompt, const SamplingOptions& sampling = {}, const RunOptions& options = {},
                      const PieceCallback& piece = {}) const;
  // Several sequences in one batch; results in the order of the requests.
  std::vector<Generation> generate_all(std::span<const GenerationRequest> requests, const RunOptions& options = {},
                                       const PieceCallback& piece = {}) const;

 private:
  friend class GenerationBatch;  // src/model/generate/batch.h
  explicit Generator(std::shared_ptr<const GeneratorState> state) : state_(std::move(state)) {}
  std::shared_ptr<const GeneratorState> state_;
};

}  // namespace tenon
