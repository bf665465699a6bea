#include "tenon/model/tokenizer.h"

#include <gtest/gtest.h>

#include "tenon/error.h"

namespace tenon {
namespace {

using Ids = std::vector<std::int32_t>;

constexpr const char* kWordPiece = R"({
  "added_tokens": [{"id": 1, "content": "[CLS]", "special": true}, {"id": 2, "content": "[SEP]", "special": true}],
  "normalizer": {"type": "BertNormalizer", "lowercase": true},
  "pre_tokenizer": {"type": "BertPreTokenizer"},
  "post_processor": {"type": "BertProcessing", "sep": ["[SEP]", 2], "cls": ["[CLS]", 1]},
  "decoder": {"type": "WordPiece"},
  "model": {"type": "WordPiece", "unk_token": "[UNK]",
            "vocab": {"[UNK]": 0, "[CLS]": 1, "[SEP]": 2, "un": 3, "##aff": 4, "##able": 5, "hello": 6, ",": 7, "ete": 8}}})";

TEST(Tokenizer, SplitsWordsIntoTheLongestPieces) {
  const Tokenizer tokenizer = Tokenizer::parse(kWordPiece);
  EXPECT_EQ(tokenizer.encode("Hello, unaffable").ids, (Ids{1, 6, 7, 3, 4, 5, 2}));
  EXPECT_EQ(tokenizer.encode("été xyz", false).ids, (Ids{8, 0}));
  EXPECT_EQ(tokenizer.decode(Ids{1, 6, 7, 3, 4, 5, 2}), "hello, unaffable");
  EXPECT_EQ(tokenizer.size(), 9u);
}

TEST(Tokenizer, FindsSpecialTokensInText) {
  EXPECT_EQ(Tokenizer::parse(kWordPiece).encode("hello[SEP]hello", false).ids, (Ids{6, 2, 6}));
}

TEST(Tokenizer, MarksTheSecondOfTwoTexts) {
  const Tokens both = Tokenizer::parse(kWordPiece).encode_pair("hello", "un");
  EXPECT_EQ(both.ids, (Ids{1, 6, 2, 3, 2}));
  EXPECT_EQ(both.types, (Ids{0, 0, 0, 1, 1}));
}

TEST(Tokenizer, JoinsPairsInTheOrderTheyWereLearned) {
  const Tokenizer tokenizer = Tokenizer::parse(
      R"({"model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "c": 2, "bc": 3, "ab": 4, "abc": 5}, "merges": ["b c", "a b", "a bc"]}})");
  EXPECT_EQ(tokenizer.encode("abc").ids, (Ids{5}));
  EXPECT_EQ(tokenizer.encode("ab").ids, (Ids{4}));
  EXPECT_EQ(tokenizer.encode("bcab").ids, (Ids{3, 4}));
}

TEST(Tokenizer, TakesTheLikeliestSplit) {
  const Tokenizer tokenizer = Tokenizer::parse(
      R"({"model": {"type": "Unigram", "unk_id": 0, "vocab": [["<unk>", 0], ["a", -3], ["b", -3], ["ab", -5]]}})");
  EXPECT_EQ(tokenizer.encode("ab").ids, (Ids{3}));
  EXPECT_EQ(tokenizer.encode("b??a").ids, (Ids{2, 0, 1}));  // unknown letters in a row are one token
}

TEST(Tokenizer, RefusesUnknownComponentsByName) {
  for (const auto& [json, name] :
       {std::pair{R"({"normalizer": {"type": "Frobnicate"}, "model": {}})", "Frobnicate"},
        std::pair{R"({"pre_tokenizer": {"type": "Split", "pattern": {"Regex": "(a|b)+"}, "behavior": "Isolated"}, "model": {}})",
                  "(a|b)+"},
        std::pair{R"({"model": {"type": "Markov"}})", "Markov"}}) {
    try {
      Tokenizer::parse(json);
      FAIL() << json;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::unimplemented);
      EXPECT_NE(std::string(error.what()).find(name), std::string::npos) << error.what();
    }
  }
}

}  // namespace
}  // namespace tenon
