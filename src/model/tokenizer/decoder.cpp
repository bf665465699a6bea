#include <fmt/format.h>

#include <charconv>

#include "model/tokenizer/normalize/normalizer.h"
#include "model/tokenizer/normalize/unicode.h"
#include "model/tokenizer/post_processor.h"
#include "model/tokenizer/pre_tokenizer.h"

namespace tenon::tokenizer {
namespace {

void replace_all(std::string& text, std::string_view from, std::string_view to) {
  if (from.empty()) return;
  for (std::size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size()))
    text.replace(at, from.size(), to);
}

Decoder word_piece(const Fields& fields) {
  const std::string prefix = fields.text("prefix", "##");
  const bool cleans = fields.boolean("cleanup", true);
  return [=](std::vector<std::string>& tokens) {
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      if (i > 0) tokens[i] = tokens[i].starts_with(prefix) ? tokens[i].substr(prefix.size()) : " " + tokens[i];
      if (!cleans) continue;
      for (const auto& [from, to] : {std::pair{" .", "."},
                                     {" ?", "?"},
                                     {" !", "!"},
                                     {" ,", ","},
                                     {" ' ", "'"},
                                     {" n't", "n't"},
                                     {" 'm", "'m"},
                                     {" do not", " don't"},
                                     {" 's", "'s"},
                                     {" 've", "'ve"},
                                     {" 're", "'re"}})
        replace_all(tokens[i], from, to);
    }
  };
}

Decoder metaspace(const Fields& fields) {
  const std::string mark = fields.text("replacement", "\u2581"),
                    scheme = fields.text("prepend_scheme", fields.boolean("add_prefix_space", true) ? "always" : "never");
  return [=](std::vector<std::string>& tokens) {
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      replace_all(tokens[i], mark, " ");
      if (i == 0 && scheme != "never" && tokens[i].starts_with(' ')) tokens[i].erase(0, 1);
    }
  };
}

void join(std::vector<std::string>& tokens) {
  std::string all;
  for (const std::string& token : tokens) all += token;
  tokens = {all};
}

// <0xE2> <0x82> ... are the bytes of a letter; bytes that are none become U+FFFD, one each.
void byte_fallback(std::vector<std::string>& tokens) {
  std::vector<std::string> out;
  std::string bytes;
  const auto flush = [&] {
    if (bytes.empty()) return;
    const std::u32string decoded = decode_utf8(bytes);
    if (encode_utf8(decoded) == bytes)
      out.push_back(bytes);
    else
      for (std::size_t i = 0; i < bytes.size(); ++i) out.emplace_back("\ufffd");
    bytes.clear();
  };
  for (const std::string& token : tokens) {
    unsigned byte = 0;
    if (token.size() == 6 && token.starts_with("<0x") && token.back() == '>' &&
        std::from_chars(token.data() + 3, token.data() + 5, byte, 16).ptr == token.data() + 5) {
      bytes += static_cast<char>(byte);
      continue;
    }
    flush();
    out.push_back(token);
  }
  flush();
  tokens = std::move(out);
}

void byte_level(std::vector<std::string>& tokens) {
  std::string bytes;
  for (const std::string& token : tokens) {
    std::string part;
    bytes += characters_as_bytes(decode_utf8(token), part) ? part : token;
  }
  tokens = {encode_utf8(decode_utf8(bytes))};
}

Decoder strip(const Fields& fields) {
  const std::string content = fields.text("content");
  const std::int64_t start = fields.integer("start", 0), stop = fields.integer("stop", 0);
  return [=](std::vector<std::string>& tokens) {
    for (std::string& token : tokens) {
      for (std::int64_t i = 0; i < start && !content.empty() && token.starts_with(content); ++i) token.erase(0, content.size());
      for (std::int64_t i = 0; i < stop && !content.empty() && token.ends_with(content); ++i)
        token.resize(token.size() - content.size());
    }
  };
}

}  // namespace

Decoder make_decoder(const boost::json::value& value, const std::string& where) {
  if (value.is_null())
    return [](std::vector<std::string>& tokens) {
      for (std::size_t i = 1; i < tokens.size(); ++i) tokens[i].insert(0, " ");
    };
  const Fields fields(value, where);
  const std::string type = fields.text("type");
  if (type == "WordPiece") return word_piece(fields);
  if (type == "ByteLevel") return byte_level;
  if (type == "Metaspace") return metaspace(fields);
  if (type == "ByteFallback") return byte_fallback;
  if (type == "Fuse") return join;
  if (type == "Strip") return strip(fields);
  if (type == "Replace") {
    const Pattern pattern = make_pattern(fields, "pattern");
    if (pattern.is_spaces) fields.refuse("a pattern of spaces");
    const std::string from = encode_utf8(pattern.literal), to = fields.text("content");
    return [=](std::vector<std::string>& tokens) {
      for (std::string& token : tokens) replace_all(token, from, to);
    };
  }
  if (type == "BPEDecoder") {
    const std::string suffix = fields.text("suffix", "</w>");
    return [=](std::vector<std::string>& tokens) {
      for (std::size_t i = 0; i < tokens.size(); ++i) replace_all(tokens[i], suffix, i + 1 == tokens.size() ? "" : " ");
    };
  }
  if (type == "Sequence") {
    std::vector<Decoder> all;
    std::size_t i = 0;
    for (const boost::json::value& each : fields.array("decoders"))
      all.push_back(make_decoder(each, fmt::format("{}.decoders[{}]", where, i++)));
    return [all](std::vector<std::string>& tokens) {
      for (const Decoder& each : all) each(tokens);
    };
  }
  fields.refuse(fmt::format("the decoder '{}'", type));
}

}  // namespace tenon::tokenizer
