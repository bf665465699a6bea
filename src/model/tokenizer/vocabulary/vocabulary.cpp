#include "model/tokenizer/vocabulary/vocabulary.h"

#include <fmt/format.h>

#include <limits>

#include "model/tokenizer/normalize/unicode.h"

namespace tenon::tokenizer {
namespace {

// The longest token that the rest of a word begins with, until nothing is left.
class WordPiece final : public TokenModel {
 public:
  explicit WordPiece(const Fields& fields)
      : TokenModel("WordPiece"),
        prefix_(fields.text("continuing_subword_prefix", "##")),
        longest_(static_cast<std::size_t>(fields.integer("max_input_chars_per_word", 100))) {
    read_vocabulary(fields);
    const std::string unknown = fields.text("unk_token", "[UNK]");
    const std::optional<Id> id = vocabulary_.find(unknown);
    if (!id) fields.fail(fmt::format("unk_token '{}' is not in the vocabulary", unknown));
    unknown_ = *id;
  }

  void encode(std::u32string_view piece, std::vector<Id>& out) const override {
    if (piece.size() > longest_) return out.push_back(unknown_);
    const std::size_t before = out.size();
    for (std::size_t begin = 0; begin < piece.size();) {
      std::size_t end = piece.size();
      std::optional<Id> found;
      for (; end > begin; --end) {
        found = vocabulary_.find((begin > 0 ? prefix_ : "") + encode_utf8(piece.substr(begin, end - begin)));
        if (found) break;
      }
      if (!found) {
        out.resize(before);
        return out.push_back(unknown_);
      }
      out.push_back(*found);
      begin = end;
    }
  }

 private:
  std::string prefix_;
  std::size_t longest_;
  Id unknown_ = 0;
};

class WordLevel final : public TokenModel {
 public:
  explicit WordLevel(const Fields& fields) : TokenModel("WordLevel") {
    read_vocabulary(fields);
    unknown_ = vocabulary_.find(fields.text("unk_token", "<unk>"));
  }
  void encode(std::u32string_view piece, std::vector<Id>& out) const override {
    std::optional<Id> found = vocabulary_.find(encode_utf8(piece));
    if (!found) found = unknown_;
    if (found) out.push_back(*found);
  }

 private:
  std::optional<Id> unknown_;
};

}  // namespace

void Vocabulary::add(std::string token, Id id) {
  tokens_.insert_or_assign(id, token);
  ids_.insert_or_assign(std::move(token), id);
}

std::optional<Id> Vocabulary::find(std::string_view token) const {
  const auto found = ids_.find(std::string(token));
  return found == ids_.end() ? std::nullopt : std::optional(found->second);
}

const std::string* Vocabulary::token(Id id) const {
  const auto found = tokens_.find(id);
  return found == tokens_.end() ? nullptr : &found->second;
}

void TokenModel::read_vocabulary(const Fields& fields) {
  for (const auto& [token, id] : fields.object("vocab")) {
    if (!id.is_int64() || id.get_int64() < 0 || id.get_int64() > std::numeric_limits<Id>::max())
      fields.fail("a token has an id that is out of range");
    vocabulary_.add(std::string(token), static_cast<Id>(id.get_int64()));
  }
}

std::unique_ptr<TokenModel> make_token_model(const Fields& fields) {
  // Files of older versions leave the type out; what they contain tells.
  std::string type = fields.text("type", "");
  if (type.empty())
    type = fields.has("merges")                                      ? "BPE"
           : fields.has("vocab") && fields.value("vocab").is_array() ? "Unigram"
           : fields.has("continuing_subword_prefix")                 ? "WordPiece"
                                                                     : "";
  if (type == "WordPiece") return std::make_unique<WordPiece>(fields);
  if (type == "WordLevel") return std::make_unique<WordLevel>(fields);
  if (type == "BPE") return make_bpe(fields);
  if (type == "Unigram") return make_unigram(fields);
  fields.refuse(fmt::format("the model '{}'", type));
}

}  // namespace tenon::tokenizer
