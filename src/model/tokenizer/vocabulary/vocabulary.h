// TokenModel: finds the tokens of one piece of text. One class per algorithm.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "model/tokenizer/fields.h"

namespace tenon::tokenizer {

using Id = std::int32_t;

// Tokens and their ids, both ways.
class Vocabulary {
 public:
  void add(std::string token, Id id);
  std::optional<Id> find(std::string_view token) const;
  const std::string* token(Id id) const;
  std::size_t size() const noexcept { return ids_.size(); }

 private:
  std::unordered_map<std::string, Id> ids_;
  std::unordered_map<Id, std::string> tokens_;
};

class TokenModel {
 public:
  virtual ~TokenModel() = default;
  virtual void encode(std::u32string_view piece, std::vector<Id>& out) const = 0;
  const Vocabulary& vocabulary() const noexcept { return vocabulary_; }
  const std::string& name() const noexcept { return name_; }

 protected:
  explicit TokenModel(std::string name) : name_(std::move(name)) {}
  // The members of |object| as tokens and ids. Throws invalid_argument.
  void read_vocabulary(const Fields& fields);
  Vocabulary vocabulary_;

 private:
  std::string name_;
};

std::unique_ptr<TokenModel> make_token_model(const Fields& fields);
std::unique_ptr<TokenModel> make_bpe(const Fields& fields);
std::unique_ptr<TokenModel> make_unigram(const Fields& fields);

}  // namespace tenon::tokenizer
