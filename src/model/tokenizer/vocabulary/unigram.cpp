#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "model/tokenizer/normalize/unicode.h"
#include "model/tokenizer/vocabulary/vocabulary.h"

namespace tenon::tokenizer {
namespace {

// The split of a text into tokens whose scores have the largest sum.
class Unigram final : public TokenModel {
 public:
  explicit Unigram(const Fields& fields) : TokenModel("Unigram"), has_byte_fallback_(fields.boolean("byte_fallback", false)) {
    double lowest = std::numeric_limits<double>::infinity();
    for (const boost::json::value& each : fields.array("vocab")) {
      if (!each.is_array() || each.get_array().size() != 2 || !each.get_array()[1].is_number())
        fields.fail("'vocab' is not a list of tokens with scores");
      const std::string token = string_of(each.get_array()[0], "model.vocab");
      vocabulary_.add(token, static_cast<Id>(scores_.size()));
      scores_.push_back(each.get_array()[1].to_number<double>());
      lowest = std::min(lowest, scores_.back());
      longest_ = std::max(longest_, decode_utf8(token).size());
    }
    if (fields.has("unk_id")) unknown_ = static_cast<Id>(fields.integer("unk_id", 0));
    if (unknown_ && static_cast<std::size_t>(*unknown_) >= scores_.size()) fields.fail("unk_id is out of range");
    unknown_score_ = lowest - 10;
  }

  void encode(std::u32string_view piece, std::vector<Id>& out) const override {
    struct Best {
      double score = -std::numeric_limits<double>::infinity();
      std::size_t begin = 0;
      Id id = -1;  // -1: unknown
    };
    std::vector<Best> best(piece.size() + 1);
    best[0].score = 0;
    for (std::size_t begin = 0; begin < piece.size(); ++begin) {
      if (best[begin].score == -std::numeric_limits<double>::infinity()) continue;
      std::string token;
      bool has_single = false;
      for (std::size_t end = begin + 1; end <= piece.size() && end - begin <= longest_; ++end) {
        append_utf8(token, piece[end - 1]);
        const std::optional<Id> id = vocabulary_.find(token);
        if (!id) continue;
        const double score = best[begin].score + scores_[static_cast<std::size_t>(*id)];
        if (score > best[end].score) best[end] = {score, begin, *id};
        has_single = has_single || end == begin + 1;
      }
      if (!has_single && best[begin].score + unknown_score_ > best[begin + 1].score)
        best[begin + 1] = {best[begin].score + unknown_score_, begin, -1};
    }
    std::vector<std::pair<std::size_t, std::size_t>> stretches;
    std::vector<Id> ids;
    for (std::size_t end = piece.size(); end > 0; end = best[end].begin) {
      // Unknown letters in a row are one unknown token.
      if (best[end].id < 0 && !ids.empty() && ids.back() < 0)
        stretches.back().first = best[end].begin;
      else {
        ids.push_back(best[end].id);
        stretches.emplace_back(best[end].begin, end);
      }
    }
    for (std::size_t i = ids.size(); i-- > 0;)
      put(piece.substr(stretches[i].first, stretches[i].second - stretches[i].first), ids[i], out);
  }

 private:
  void put(std::u32string_view text, Id id, std::vector<Id>& out) const {
    if (id >= 0) return out.push_back(id);
    if (has_byte_fallback_) {
      std::vector<Id> bytes;
      for (const char byte : encode_utf8(text))
        if (const std::optional<Id> each = vocabulary_.find(fmt::format("<0x{:02X}>", static_cast<unsigned char>(byte))))
          bytes.push_back(*each);
      if (bytes.size() == encode_utf8(text).size()) {
        out.insert(out.end(), bytes.begin(), bytes.end());
        return;
      }
    }
    if (unknown_) out.push_back(*unknown_);
  }

  std::vector<double> scores_;
  std::size_t longest_ = 0;
  bool has_byte_fallback_;
  std::optional<Id> unknown_;
  double unknown_score_ = 0;
};

}  // namespace

std::unique_ptr<TokenModel> make_unigram(const Fields& fields) { return std::make_unique<Unigram>(fields); }

}  // namespace tenon::tokenizer
