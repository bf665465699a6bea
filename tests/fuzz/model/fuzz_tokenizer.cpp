#include "fuzz/fuzzer.h"
#include "tenon/model/tokenizer.h"

namespace tenon {
namespace {

std::string file_of(std::string_view model, std::string_view parts) {
  return std::string(R"({"version":"1.0","added_tokens":[{"id":0,"content":"[UNK]","special":true}],)") + std::string(parts) +
         R"("model":)" + std::string(model) + "}";
}

fuzz::Target make_target() {
  fuzz::Target target{.name = "tokenizer"};
  const std::string pieces = R"({"type":"WordPiece","unk_token":"[UNK]","vocab":{"[UNK]":0,"a":1,"##b":2}})";
  const std::string pairs =
      R"({"type":"BPE","vocab":{"a":0,"b":1,"ab":2},"merges":["a b"],"unk_token":"a","byte_fallback":true})";
  const std::string unigram = R"({"type":"Unigram","unk_id":0,"vocab":[["[UNK]",0.0],["a",-1.5],["ab",-2]]})";
  target.seeds = {
      file_of(
          pieces,
          R"("normalizer":{"type":"BertNormalizer","lowercase":true},"pre_tokenizer":{"type":"BertPreTokenizer"},"decoder":{"type":"WordPiece"},)"),
      file_of(
          pairs,
          R"("normalizer":{"type":"Sequence","normalizers":[{"type":"NFC"},{"type":"Replace","pattern":{"String":" "},"content":"_"}]},"pre_tokenizer":{"type":"ByteLevel","add_prefix_space":true},)"),
      file_of(
          unigram,
          R"("normalizer":{"type":"Precompiled","precompiled_charsmap":"BAAAAAAAAAAAYQA="},"pre_tokenizer":{"type":"Metaspace","replacement":"_","prepend_scheme":"first"},"post_processor":{"type":"TemplateProcessing","single":[{"SpecialToken":{"id":"x","type_id":0}},{"Sequence":{"id":"A","type_id":0}}],"pair":[{"Sequence":{"id":"B","type_id":1}}],"special_tokens":{"x":{"ids":[1]}}},)")};
  target.words = {"{",
                  "}",
                  "[",
                  "]",
                  "\"",
                  ":",
                  ",",
                  "null",
                  "-1",
                  "1e400",
                  "9223372036854775807",
                  "\"type\"",
                  "\"vocab\"",
                  "\"merges\"",
                  "\"NFKC\"",
                  "\"Split\"",
                  "\"Digits\"",
                  "\\u0000",
                  "\\ud800",
                  "\xf0\x9f\x98\x80",
                  "true"};
  target.parse = [](fuzz::Bytes bytes) {
    const Tokenizer tokenizer = Tokenizer::parse(fuzz::text_of(bytes));
    // What loads must also run, on any text: here its own file and bytes that are no text.
    const Tokens one = tokenizer.encode(fuzz::text_of(bytes)), two = tokenizer.encode_pair("ab [UNK] \xff\xc3", "\xe2\x82");
    fuzz::require(one.ids.size() == one.types.size(), "ids without types");
    (void)tokenizer.decode(one.ids);
    (void)tokenizer.decode(two.ids, false);
  };
  target.bound = [](std::size_t bytes) { return 4096 * bytes + (1 << 20); };
  return target;
}

}  // namespace

const fuzz::Target& fuzz::target() {
  static const Target target = make_target();
  return target;
}

}  // namespace tenon
