#include <fmt/format.h>

#include <limits>
#include <queue>

#include "model/tokenizer/normalize/unicode.h"
#include "model/tokenizer/vocabulary/vocabulary.h"

namespace tenon::tokenizer {
namespace {

struct Merge {
  std::uint32_t rank;
  Id into;
};

std::uint64_t pair_key(Id left, Id right) {
  return static_cast<std::uint64_t>(static_cast<std::uint32_t>(left)) << 32 | static_cast<std::uint32_t>(right);
}

// Letters of a word, joined pair by pair in the order in which the pairs were learned.
class BytePairs final : public TokenModel {
 public:
  explicit BytePairs(const Fields& fields)
      : TokenModel("BPE"),
        prefix_(fields.text("continuing_subword_prefix", "")),
        suffix_(fields.text("end_of_word_suffix", "")),
        fuses_unknown_(fields.boolean("fuse_unk", false)),
        has_byte_fallback_(fields.boolean("byte_fallback", false)),
        takes_whole_(fields.boolean("ignore_merges", false)) {
    read_vocabulary(fields);
    if (fields.has("unk_token")) unknown_ = vocabulary_.find(fields.text("unk_token"));
    std::uint32_t rank = 0;
    for (const boost::json::value& each : fields.array("merges")) add_merge(fields, each, rank++);
  }

  void encode(std::u32string_view piece, std::vector<Id>& out) const override {
    if (piece.empty()) return;
    if (takes_whole_)
      if (const std::optional<Id> whole = vocabulary_.find(encode_utf8(piece))) return out.push_back(*whole);
    std::vector<Symbol> symbols = letters(piece);
    join(symbols);
    for (const Symbol& symbol : symbols)
      if (symbol.is_alive) out.push_back(symbol.id);
  }

 private:
  struct Symbol {
    Id id;
    int previous, next;
    bool is_alive = true;
  };
  struct Candidate {
    std::uint32_t rank;
    int left;
    Id left_id, right_id;  // as they were; a candidate whose symbols changed is void
    bool operator<(const Candidate& other) const { return rank != other.rank ? rank > other.rank : left > other.left; }
  };

  void add_merge(const Fields& fields, const boost::json::value& value, std::uint32_t rank) {
    std::string left, right;
    if (value.is_array() && value.get_array().size() == 2) {
      left = string_of(value.get_array()[0], "model.merges");
      right = string_of(value.get_array()[1], "model.merges");
    } else {
      const std::string both = string_of(value, "model.merges");
      const std::size_t space = both.find(' ');
      if (space == std::string::npos) fields.fail(fmt::format("merge {} is not two tokens", rank));
      left = both.substr(0, space);
      right = both.substr(space + 1);
    }
    const std::string tail = !prefix_.empty() && right.starts_with(prefix_) ? right.substr(prefix_.size()) : right;
    const std::optional<Id> a = vocabulary_.find(left), b = vocabulary_.find(right), into = vocabulary_.find(left + tail);
    if (!a || !b || !into) fields.fail(fmt::format("merge {} uses a token that is not in the vocabulary", rank));
    merges_.try_emplace(pair_key(*a, *b), Merge{rank, *into});
  }

  std::vector<Symbol> letters(std::u32string_view piece) const {
    std::vector<Symbol> out;
    bool after_unknown = false;
    const auto add = [&](Id id) { out.push_back({id, static_cast<int>(out.size()) - 1, static_cast<int>(out.size()) + 1}); };
    for (std::size_t i = 0; i < piece.size(); ++i) {
      std::string letter;
      append_utf8(letter, piece[i]);
      std::string token = (i > 0 ? prefix_ : "") + letter + (i + 1 == piece.size() ? suffix_ : "");
      if (const std::optional<Id> id = vocabulary_.find(token)) {
        add(*id);
        after_unknown = false;
      } else if (has_byte_fallback_ && add_bytes(letter, add)) {
        after_unknown = false;
      } else if (unknown_ && !(after_unknown && fuses_unknown_)) {
        add(*unknown_);
        after_unknown = true;
      }
    }
    if (!out.empty()) out.back().next = -1;
    return out;
  }

  template <class Add>
  bool add_bytes(const std::string& letter, const Add& add) const {
    std::vector<Id> ids;
    for (const char byte : letter) {
      const std::optional<Id> id = vocabulary_.find(fmt::format("<0x{:02X}>", static_cast<unsigned char>(byte)));
      if (!id) return false;
      ids.push_back(*id);
    }
    for (const Id id : ids) add(id);
    return true;
  }

  void join(std::vector<Symbol>& symbols) const {
    std::priority_queue<Candidate> queue;
    const auto consider = [&](int left) {
      if (left < 0 || symbols[static_cast<std::size_t>(left)].next < 0) return;
      const Symbol &a = symbols[static_cast<std::size_t>(left)], &b = symbols[static_cast<std::size_t>(a.next)];
      const auto found = merges_.find(pair_key(a.id, b.id));
      if (found != merges_.end()) queue.push({found->second.rank, left, a.id, b.id});
    };
    for (std::size_t i = 0; i < symbols.size(); ++i) consider(static_cast<int>(i));
    while (!queue.empty()) {
      const Candidate best = queue.top();
      queue.pop();
      Symbol& a = symbols[static_cast<std::size_t>(best.left)];
      if (!a.is_alive || a.id != best.left_id || a.next < 0) continue;
      Symbol& b = symbols[static_cast<std::size_t>(a.next)];
      if (b.id != best.right_id) continue;
      a.id = merges_.at(pair_key(a.id, b.id)).into;
      b.is_alive = false;
      a.next = b.next;
      if (a.next >= 0) symbols[static_cast<std::size_t>(a.next)].previous = best.left;
      consider(a.previous);
      consider(best.left);
    }
  }

  std::string prefix_, suffix_;
  bool fuses_unknown_, has_byte_fallback_, takes_whole_;
  std::optional<Id> unknown_;
  std::unordered_map<std::uint64_t, Merge> merges_;
};

}  // namespace

std::unique_ptr<TokenModel> make_bpe(const Fields& fields) {
  if (fields.has("dropout") && !(fields.value("dropout").is_number() && fields.value("dropout").to_number<double>() == 0))
    fields.refuse("'dropout'");
  return std::make_unique<BytePairs>(fields);
}

}  // namespace tenon::tokenizer
