#include "model/gguf/gguf_tokenizer.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json.hpp>
#include <unordered_map>

#include "base/text/printable.h"
#include "tenon/error.h"

namespace tenon::gguf {
namespace {

namespace json = boost::json;

// What the list tokenizer.ggml.token_type says about a token.
enum class TokenType : int { unknown = 2, control = 3, user_defined = 4 };

struct Words {
  const std::vector<std::string>& tokens;
  std::vector<int> types;
  std::unordered_map<std::string_view, std::size_t> ids;  // the first of equal ones
};

Words words_of(const Source& file) {
  const List* tokens = file.list("tokenizer.ggml.tokens");
  if (!tokens || !tokens->is_text || tokens->texts.empty())
    throw Error(ErrorCode::invalid_argument, "the file has no tokens", "use a file that includes its tokenizer");
  Words words{tokens->texts, std::vector<int>(tokens->size(), 1), {}};
  if (const List* types = file.list("tokenizer.ggml.token_type"); types && !types->is_text)
    for (std::size_t i = 0; i < std::min(types->size(), words.types.size()); ++i)
      words.types[i] = static_cast<int>(std::clamp(types->numbers[i], 0.0, 100.0));
  for (std::size_t i = 0; i < words.tokens.size(); ++i) words.ids.try_emplace(words.tokens[i], i);
  return words;
}

json::object vocabulary_of(const Words& words) {
  json::object out;
  for (std::size_t i = 0; i < words.tokens.size(); ++i)
    if (words.ids.at(words.tokens[i]) == i) out[words.tokens[i]] = static_cast<std::int64_t>(i);
  return out;
}

json::array added_tokens(const Words& words, bool finds_control_tokens) {
  json::array out;
  for (std::size_t i = 0; i < words.tokens.size(); ++i) {
    const auto type = static_cast<TokenType>(words.types[i]);
    const bool is_special = type == TokenType::control || type == TokenType::unknown;
    if (words.tokens[i].empty() || (type != TokenType::user_defined && !(is_special && finds_control_tokens))) continue;
    out.push_back(
        {{"id", static_cast<std::int64_t>(i)}, {"content", words.tokens[i]}, {"special", is_special}, {"normalized", false}});
  }
  return out;
}

json::value byte_level(bool uses_regex) {
  return {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", uses_regex}};
}
json::value sequence(json::value first, json::value second) {
  return {{"type", "Sequence"}, {"pretokenizers", json::array{std::move(first), std::move(second)}}};
}
json::value split(std::string_view regex) {
  return {{"type", "Split"}, {"pattern", {{"Regex", regex}}}, {"behavior", "Isolated"}, {"invert", false}};
}

// How text is cut into words, by the name that converters gave to it.
json::value pre_tokenizer_of(const std::string& name) {
  constexpr std::string_view kThreeDigits =
      R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
  constexpr std::string_view kOneDigit =
      R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
  const auto is_one_of = [&](std::initializer_list<std::string_view> names) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  if (is_one_of({"gpt-2", "gpt2", "phi-2", "mpt", "olmo", "jais", "roberta-bpe"})) return byte_level(true);
  if (is_one_of({"smollm", "starcoder", "refact", "command-r", "codeshell", "exaone"}))
    return sequence({{"type", "Digits"}, {"individual_digits", true}}, byte_level(true));
  if (is_one_of({"llama-bpe", "llama3", "llama-v3", "smaug-bpe", "dbrx"}))
    return sequence(split(kThreeDigits), byte_level(false));
  if (is_one_of({"qwen2", "deepseek-r1-qwen", "stablelm2", "megrez"})) return sequence(split(kOneDigit), byte_level(false));
  throw Error(ErrorCode::unimplemented, fmt::format("the pre-tokenizer '{}' is not supported", printable(name)));
}

void add_byte_pairs(const Source& file, const Words& words, json::object& root) {
  const std::string pre = file.text("tokenizer.ggml.pre").value_or("gpt-2");
  const List* merges = file.list("tokenizer.ggml.merges");
  if (!merges || !merges->is_text) throw Error(ErrorCode::invalid_argument, "the tokenizer of the file has no merges");
  json::array list;
  for (const std::string& merge : merges->texts) list.emplace_back(merge);
  // Llama 3 keeps words that are tokens although no merges lead to them.
  const bool takes_whole = pre == "llama-bpe" || pre == "llama3" || pre == "llama-v3";
  root["model"] = {{"type", "BPE"}, {"vocab", vocabulary_of(words)}, {"merges", std::move(list)}, {"ignore_merges", takes_whole}};
  root["pre_tokenizer"] = pre_tokenizer_of(pre);
  root["decoder"] = {{"type", "ByteLevel"}};
}

// SentencePiece joins the pair whose piece has the best score. As merges: every way to make a piece of two, best pieces first.
void add_pieces(const Source& file, const Words& words, json::object& root) {
  const List* scores = file.list("tokenizer.ggml.scores");
  if (!scores || scores->is_text || scores->size() != words.tokens.size())
    throw Error(ErrorCode::invalid_argument, "the tokenizer of the file has no score for each token");
  struct Merge {
    double score;
    std::size_t left, right;
  };
  constexpr std::size_t kLongest = 256;  // bytes of a piece; the splits of one are quadratic in them
  std::vector<Merge> merges;
  for (std::size_t i = 0; i < words.tokens.size(); ++i) {
    const std::string_view piece = words.tokens[i];
    if (words.types[i] != 1 || words.ids.at(piece) != i || piece.size() > kLongest) continue;
    for (std::size_t cut = 1; cut < piece.size(); ++cut) {
      const auto left = words.ids.find(piece.substr(0, cut)), right = words.ids.find(piece.substr(cut));
      if (left != words.ids.end() && right != words.ids.end())
        merges.push_back({scores->numbers[i], left->second, right->second});
    }
  }
  std::sort(merges.begin(), merges.end(), [](const Merge& a, const Merge& b) {
    return a.score != b.score ? a.score > b.score : a.left != b.left ? a.left < b.left : a.right < b.right;
  });
  json::array list;
  for (const Merge& merge : merges) list.push_back(json::array{words.tokens[merge.left], words.tokens[merge.right]});
  json::object model{
      {"type", "BPE"}, {"vocab", vocabulary_of(words)}, {"merges", std::move(list)}, {"byte_fallback", true}, {"fuse_unk", true}};
  const std::int64_t unknown = file.integer("tokenizer.ggml.unknown_token_id").value_or(0);
  if (unknown >= 0 && static_cast<std::size_t>(unknown) < words.tokens.size())
    model["unk_token"] = words.tokens[static_cast<std::size_t>(unknown)];
  root["model"] = std::move(model);
  json::array steps;
  if (file.boolean("tokenizer.ggml.add_space_prefix").value_or(true)) steps.push_back({{"type", "Prepend"}, {"prepend", "▁"}});
  steps.push_back({{"type", "Replace"}, {"pattern", {{"String", " "}}}, {"content", "▁"}});
  root["normalizer"] = {{"type", "Sequence"}, {"normalizers", std::move(steps)}};
  root["decoder"] = {{"type", "Sequence"},
                     {"decoders",
                      {{{"type", "Replace"}, {"pattern", {{"String", "▁"}}}, {"content", " "}},
                       {{"type", "ByteFallback"}},
                       {{"type", "Fuse"}},
                       {{"type", "Strip"}, {"content", " "}, {"start", 1}, {"stop", 0}}}}};
}

void add_template(const Source& file, const Words& words, bool adds_first, json::object& root) {
  const std::optional<std::int64_t> first = file.integer("tokenizer.ggml.bos_token_id");
  if (!file.boolean("tokenizer.ggml.add_bos_token").value_or(adds_first) || !first) return;
  if (*first < 0 || static_cast<std::size_t>(*first) >= words.tokens.size())
    throw Error(ErrorCode::invalid_argument, fmt::format("the first token {} is not in the vocabulary", *first));
  const json::value special{{"SpecialToken", {{"id", "first"}, {"type_id", 0}}}};
  const auto text = [](const char* id) { return json::value{{"Sequence", {{"id", id}, {"type_id", 0}}}}; };
  root["post_processor"] = {{"type", "TemplateProcessing"},
                            {"single", json::array{special, text("A")}},
                            {"pair", json::array{special, text("A"), text("B")}},
                            {"special_tokens", {{"first", {{"id", "first"}, {"ids", json::array{*first}}}}}}};
}

}  // namespace

std::string tokenizer_json(const Source& file, bool finds_control_tokens) {
  const std::string kind = file.text("tokenizer.ggml.model").value_or("");
  if (kind != "gpt2" && kind != "llama")
    throw Error(ErrorCode::unimplemented, kind.empty() ? std::string("the file has no tokenizer")
                                                       : fmt::format("the tokenizer '{}' is not supported", printable(kind)));
  const Words words = words_of(file);
  json::object root{{"version", "1.0"}, {"added_tokens", added_tokens(words, finds_control_tokens)}};
  if (kind == "gpt2")
    add_byte_pairs(file, words, root);
  else
    add_pieces(file, words, root);
  add_template(file, words, kind == "llama", root);
  return json::serialize(root);
}

}  // namespace tenon::gguf
