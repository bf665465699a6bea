// Encoder: sentences to vectors, with a model and its tokenizer.
//
//   Encoder encoder = Encoder::load("minilm");            // a folder with a model and its tokenizer.json, or the model file
//   HostArray vectors = encoder.encode(sentences);        // [sentences, width], of length 1
//
// The model takes ids and a mask of [batch, length] and gives either a vector per token, which are averaged over the tokens of
// the text (or the first one is taken), or a vector per text. Texts are run in batches of similar length; the order of the
// results is that of the texts, and a vector does not depend on its batch beyond the last digits.
// Servers that form batches themselves take tokens() and encode_tokens().
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

#include "tenon/array.h"
#include "tenon/manager.h"
#include "tenon/model.h"
#include "tenon/model/tokenizer.h"

namespace tenon {

struct EncoderOptions {
  // Of the vectors of the tokens of a text: their mean, the first, the last, the largest of each element, the sum divided by the
  // square root of how many there are, the mean with weights 1, 2, 3 ...
  enum class Pooling : std::uint8_t { mean, first, last, max, mean_sqrt_len, weighted_mean };
  static constexpr std::int64_t kMaxTokens = 512;

  // nullopt: what the model's files say (the configuration of the pooling module), else the mean.
  std::optional<Pooling> pooling = std::nullopt;
  bool normalize = true;
  // Applied to the vector of a text, one after the other, before it is normalised: x |weight|^T + |bias|, then tanh or nothing.
  struct Dense {
    HostArray weight, bias;  // f32 [out, in] and [out]
    bool has_tanh = false;
  };
  // What the model's files say, if empty (the Dense modules that modules.json names).
  std::vector<Dense> dense = {};
  // Longer texts are cut; the tokens that end a text are kept. 0: what the model's files say (sentence_bert_config.json,
  // config.json), else kMaxTokens.
  std::int64_t max_tokens = 0;
  std::int64_t batch = 32;  // texts of one run; 0: what Model::recommended_batch says for texts of the middle length
  // Rounds the length of a batch up to one of a few sizes and its rows to a power of two, so that few programs are compiled.
  // nullopt: on devices whose programs take long to compile, which are all but the CPU.
  std::optional<bool> rounds_shapes = std::nullopt;
  ModelOptions model = {};  // for load()

  // These, and where they leave it to the files, what those in |folder| say. Files that say nothing leave it as it is. Throws
  // unimplemented naming a module that the model needs and that is not supported, invalid_argument for one that is damaged.
  EncoderOptions completed(const std::filesystem::path& folder) const;
};

// "mean", "first", "last", "max", "mean_sqrt_len", "weighted_mean". Throws invalid_argument naming them for any other.
EncoderOptions::Pooling parse_pooling(std::string_view name);

struct EncoderState;  // src/model/

class Encoder {
 public:
  // |path|: a folder with a model (Model::file_in) and tokenizer.json, or a model file beside its tokenizer.json. Throws
  // what Model::load and Tokenizer::load throw, and invalid_argument for a model that takes no ids.
  static Encoder load(const std::filesystem::path& path, const EncoderOptions& options = {});

  // The folder whose tokenizer.json and settings load() reads for |path|.
  static std::filesystem::path folder(const std::filesystem::path& path);

  // Of parts that are loaded already; there are no files to ask.
  static Encoder of(const Model& model, const Tokenizer& tokenizer, const EncoderOptions& options = {});

  // f32 [texts, width]. |progress| is called after each batch with the number of texts done.
  HostArray encode(std::span<const std::string> texts, const RunOptions& options = {},
                   const std::function<void(std::size_t)>& progress = {}) const;
  // The same on several devices at once: a worker for each of |devices|, of which one may be named twice, takes batches until
  // none is left. The vectors and their order are those of one device. The first error of a worker ends the call.
  // options.device has no effect; |progress| is called from the workers, one at a time.
  HostArray encode(std::span<const std::string> texts, std::span<const std::string> devices, const RunOptions& options = {},
                   const std::function<void(std::size_t)>& progress = {}) const;

  // The tokens of a text, cut to max_tokens.
  Tokens tokens(std::string_view text) const;
  // f32 [texts, width] of texts that are tokens already, run as one batch in which each is padded to |length| tokens, or to the
  // longest of them if that is more. Throws invalid_argument for no texts.
  HostArray encode_tokens(std::span<const Tokens> texts, std::int64_t length, const RunOptions& options = {}) const;

  const Model& model() const noexcept;
  const Tokenizer& tokenizer() const noexcept;
  // With pooling and max_tokens as they are used.
  const EncoderOptions& options() const noexcept;

 private:
  explicit Encoder(std::shared_ptr<const EncoderState> state) : state_(std::move(state)) {}
  std::shared_ptr<const EncoderState> state_;
};

// The rows of |vectors| [n, width] with the largest cosine to |query| [width], best first.
struct Match {
  std::int64_t row = 0;
  float score = 0;
};
std::vector<Match> most_similar(const HostArray& vectors, const HostArray& query, std::int64_t count,
                                const RunOptions& options = {});

// SimHash: the signs of |bits| random projections of each row of |vectors| [n, width], as uint64 [n, bits / 64]. Rows at an angle
// of a differ in about bits * a / pi of them, so near rows can be found, or equal ones dropped, by comparing a few words. Equal
// seeds give equal projections. Throws invalid_argument unless |bits| is a positive multiple of 64.
HostArray simhash(const HostArray& vectors, std::int64_t bits = 64, std::int64_t seed = 0, const RunOptions& options = {});
// In how many bits each row of |hashes| [n, words] differs from |query| [words].
std::vector<std::int64_t> hamming_distances(const HostArray& hashes, const HostArray& query);

}  // namespace tenon
