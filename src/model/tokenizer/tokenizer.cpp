#include "tenon/model/tokenizer.h"

#include <fmt/format.h>

#include <boost/json.hpp>
#include <unordered_map>
#include <unordered_set>

#include "array/io/byte_source.h"
#include "base/text/printable.h"
#include "model/tokenizer/normalize/normalizer.h"
#include "model/tokenizer/normalize/unicode.h"
#include "model/tokenizer/post_processor.h"
#include "model/tokenizer/pre_tokenizer.h"
#include "model/tokenizer/vocabulary/added_tokens.h"
#include "model/tokenizer/vocabulary/vocabulary.h"
#include "tenon/error.h"

namespace tenon {

using namespace tokenizer;

struct TokenizerState {
  Normalizer normalize;
  PreTokenizer pre_tokenize;
  std::unique_ptr<TokenModel> model;
  AddedTokens added;
  Template around;
  Decoder decode;
  std::unordered_map<Id, const AddedToken*> added_by_id;
  std::unordered_map<std::string, Id> added_by_text;

  std::vector<Id> ids(std::string_view text) const;
};

namespace {

constexpr std::uint64_t kMaxFileBytes = std::uint64_t{256} << 20;

const boost::json::value& member(const boost::json::object& root, std::string_view name) {
  static const boost::json::value none;
  const boost::json::value* found = root.if_contains(name);
  return found ? *found : none;
}

boost::json::value parse_json(std::string_view text) {
  boost::system::error_code error;
  boost::json::parse_options options;
  options.max_depth = 32;
  boost::json::value root = boost::json::parse(text, error, {}, options);
  if (error) throw Error(ErrorCode::invalid_argument, fmt::format("tokenizer: not JSON: {}", error.message()));
  return root;
}

std::shared_ptr<TokenizerState> build(const boost::json::value& value) {
  const Fields fields(value, "tokenizer.json");
  const boost::json::object& root = fields.all();
  auto state = std::make_shared<TokenizerState>();
  state->normalize = make_normalizer(member(root, "normalizer"), "normalizer");
  state->pre_tokenize = make_pre_tokenizer(member(root, "pre_tokenizer"), "pre_tokenizer");
  state->around = make_template(member(root, "post_processor"), "post_processor");
  state->decode = make_decoder(member(root, "decoder"), "decoder");
  state->model = make_token_model(Fields(fields.value("model"), "model"));
  if (fields.has("added_tokens")) state->added = AddedTokens(fields.array("added_tokens"), state->normalize);
  for (const AddedToken& token : state->added.all()) {
    state->added_by_id.emplace(token.id, &token);
    state->added_by_text.emplace(token.content, token.id);
  }
  return state;
}

}  // namespace

std::vector<Id> TokenizerState::ids(std::string_view text) const {
  std::vector<Id> out;
  for (Part& raw : added.split(decode_utf8(text), true, false)) {
    if (raw.id >= 0) {
      out.push_back(raw.id);
      continue;
    }
    normalize(raw.text);
    for (Part& part : added.split(raw.text, raw.is_first, true)) {
      if (part.id >= 0) {
        out.push_back(part.id);
        continue;
      }
      std::vector<Piece> whole;
      whole.push_back({std::move(part.text), part.is_first});
      for (const Piece& piece : pre_tokenize(std::move(whole))) model->encode(piece.text, out);
    }
  }
  return out;
}

Tokenizer Tokenizer::parse(std::string_view json) { return Tokenizer(build(parse_json(json))); }

Tokenizer Tokenizer::load(const std::filesystem::path& file) {
  const std::unique_ptr<ByteSource> source = open_source(file);
  if (source->size() > kMaxFileBytes)
    throw Error(ErrorCode::resource_exhausted,
                fmt::format("'{}' has {} bytes, too many for a tokenizer", printable(file.string()), source->size()));
  std::string text(source->size(), '\0');
  source->read(0, std::as_writable_bytes(std::span(text)));
  try {
    return parse(text);
  } catch (const Error& error) {
    throw Error(error.code(), fmt::format("'{}': {}", printable(file.string()), error.what()), error.hint());
  }
}

namespace {

Tokens arranged(const std::vector<Template::Part>& parts, std::initializer_list<const std::vector<Id>*> texts) {
  Tokens out;
  for (const Template::Part& part : parts) {
    const std::vector<Id>& ids = part.text >= 0 ? **(texts.begin() + part.text) : part.ids;
    out.ids.insert(out.ids.end(), ids.begin(), ids.end());
    out.types.insert(out.types.end(), ids.size(), part.type);
  }
  return out;
}

}  // namespace

Tokens Tokenizer::encode(std::string_view text, bool special) const {
  const std::vector<Id> ids = state_->ids(text);
  if (!special) return {ids, std::vector<std::int32_t>(ids.size(), 0)};
  return arranged(state_->around.single, {&ids, &ids});
}

Tokens Tokenizer::encode_pair(std::string_view first, std::string_view second, bool special) const {
  const std::vector<Id> a = state_->ids(first), b = state_->ids(second);
  if (!special) return arranged({{.text = 0}, {.text = 1, .type = 1}}, {&a, &b});
  return arranged(state_->around.pair, {&a, &b});
}

std::string Tokenizer::decode(std::span<const std::int32_t> ids, bool skip_special) const {
  std::vector<std::string> tokens;
  for (const Id id : ids) {
    const auto added = state_->added_by_id.find(id);
    if (added != state_->added_by_id.end()) {
      if (!(skip_special && added->second->is_special)) tokens.push_back(added->second->content);
    } else if (const std::string* token = state_->model->vocabulary().token(id)) {
      tokens.push_back(*token);
    }
  }
  state_->decode(tokens);
  std::string out;
  for (const std::string& token : tokens) out += token;
  return out;
}

std::optional<std::int32_t> Tokenizer::id_of(std::string_view token) const {
  const auto added = state_->added_by_text.find(std::string(token));
  return added != state_->added_by_text.end() ? std::optional(added->second) : state_->model->vocabulary().find(token);
}

std::optional<std::string> Tokenizer::token_of(std::int32_t id) const {
  const auto added = state_->added_by_id.find(id);
  if (added != state_->added_by_id.end()) return added->second->content;
  const std::string* token = state_->model->vocabulary().token(id);
  return token ? std::optional(*token) : std::nullopt;
}

std::size_t Tokenizer::size() const noexcept {
  std::size_t more = 0;
  for (const AddedToken& token : state_->added.all()) more += !state_->model->vocabulary().find(token.content);
  return state_->model->vocabulary().size() + more;
}

std::string Tokenizer::model() const { return state_->model->name(); }

}  // namespace tenon
