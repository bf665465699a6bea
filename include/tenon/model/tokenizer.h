// Tokenizer: turns text into the ids that a model takes, and ids back into text. Reads tokenizer.json, the format of Hugging
// Face's tokenizers, and gives the same ids.
//
//   Tokenizer tokenizer = Tokenizer::load("tokenizer.json");
//   Tokens one = tokenizer.encode("Hello, world.");
//   one.ids;                                            // {101, 7592, 1010, 2088, 1012, 102}
//   std::string text = tokenizer.decode(one.ids);
//
// Supported: the models WordPiece, BPE, Unigram and WordLevel, with the normalizers, pre-tokenizers, post-processors and decoders
// that models use. A component that is not supported is refused by its name when the file is read, so a tokenizer that loads is
// complete. Truncation and padding that a file asks for are not applied: the caller decides.
//
// Lifetime: a value; copies share the tables. Thread safety: all calls may run concurrently.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tenon {

struct Tokens {
  std::vector<std::int32_t> ids;
  std::vector<std::int32_t> types;  // the segment of each: 0, or 1 for a second text
};

struct TokenizerState;  // src/model/tokenizer/

class Tokenizer {
 public:
  // Throws not_found, invalid_argument for a malformed file, unimplemented naming a component that is not supported.
  static Tokenizer load(const std::filesystem::path& file);
  static Tokenizer parse(std::string_view json);

  // |special|: add the tokens that the file puts around a text ([CLS] ... [SEP]).
  Tokens encode(std::string_view text, bool special = true) const;
  Tokens encode_pair(std::string_view first, std::string_view second, bool special = true) const;
  // |skip_special|: leave out special tokens.
  std::string decode(std::span<const std::int32_t> ids, bool skip_special = true) const;

  std::optional<std::int32_t> id_of(std::string_view token) const;
  std::optional<std::string> token_of(std::int32_t id) const;
  std::size_t size() const noexcept;  // of the vocabulary, added tokens included
  std::string model() const;          // "WordPiece"

 private:
  explicit Tokenizer(std::shared_ptr<const TokenizerState> state) : state_(std::move(state)) {}
  std::shared_ptr<const TokenizerState> state_;
};

}  // namespace tenon
