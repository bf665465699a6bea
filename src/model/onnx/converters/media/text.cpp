#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "model/onnx/converters/families.h"

namespace tenon::onnx {
namespace {

using namespace build;

// Letters of ASCII only: a locale would make results depend on the machine.
std::string changed(std::string word, const std::string& action) {
  for (char& c : word) {
    if (action == "LOWER" && c >= 'A' && c <= 'Z') c = static_cast<char>(c + 32);
    if (action == "UPPER" && c >= 'a' && c <= 'z') c = static_cast<char>(c - 32);
  }
  return word;
}

Results string_normalizer(const NodeContext& node) {
  const Value& x = *node.value(0);
  if (!x.is_string() || x.shape.rank() > 2) node.fail("expected one row of strings");
  const std::string action = node.text("case_change_action", "NONE");
  const bool is_sensitive = node.integer("is_case_sensitive", 0) != 0;
  std::set<std::string> stopwords;
  for (const std::string& word : node.texts("stopwords")) stopwords.insert(is_sensitive ? word : changed(word, "LOWER"));
  std::vector<std::string> out;
  for (const std::string& word : *x.strings)
    if (!stopwords.contains(is_sensitive ? word : changed(word, "LOWER"))) out.push_back(changed(word, action));
  if (out.empty()) out.emplace_back();
  const auto count = static_cast<std::int64_t>(out.size());
  const Shape shape = x.shape.rank() == 2 ? Shape{1, count} : Shape{count};
  return {text(shape, std::move(out))};
}

std::size_t broadcast_place(const Shape& from, const Shape& to, std::int64_t index) {
  const Strides strides = contiguous_strides(from), outer = contiguous_strides(to);
  std::int64_t offset = 0;
  for (int i = 0; i < from.rank(); ++i) {
    const int axis = i + to.rank() - from.rank();
    if (from[i] > 1) offset += index / outer[static_cast<std::size_t>(axis)] % to[axis] * strides[static_cast<std::size_t>(i)];
  }
  return static_cast<std::size_t>(offset);
}

Results string_concat(const NodeContext& node) {
  const Value &a = *node.value(0), &b = *node.value(1);
  if (!a.is_string() || !b.is_string()) node.fail("expected strings");
  const Shape shape = tenon::broadcast(a.shape, b.shape);
  std::vector<std::string> out;
  for (std::int64_t i = 0; i < shape.elements(); ++i)
    out.push_back((*a.strings)[broadcast_place(a.shape, shape, i)] + (*b.strings)[broadcast_place(b.shape, shape, i)]);
  return {text(shape, std::move(out))};
}

std::vector<std::string> split(const std::string& text, const std::string& delimiter, std::int64_t limit) {
  std::vector<std::string> parts;
  const bool by_space = delimiter.empty();
  constexpr std::string_view spaces = " \t\n\r\f\v";
  std::size_t at = 0;
  if (by_space) at = std::min(text.find_first_not_of(spaces), text.size());
  while (at <= text.size()) {
    if (by_space && at == text.size()) break;
    const std::size_t end = limit >= 0 && static_cast<std::int64_t>(parts.size()) >= limit ? std::string::npos
                            : by_space                                                     ? text.find_first_of(spaces, at)
                                                                                           : text.find(delimiter, at);
    if (end == std::string::npos) {
      parts.push_back(text.substr(at));
      break;
    }
    parts.push_back(text.substr(at, end - at));
    at = by_space ? std::min(text.find_first_not_of(spaces, end), text.size()) : end + delimiter.size();
  }
  return parts;
}

Results string_split(const NodeContext& node) {
  const Value& x = *node.value(0);
  if (!x.is_string()) node.fail("expected strings");
  const std::string delimiter = node.text("delimiter", "");
  const std::int64_t limit = node.integer("maxsplit", -1);
  std::vector<std::vector<std::string>> all;
  Dims counts;
  std::size_t widest = 0;
  for (const std::string& each : *x.strings) {
    all.push_back(split(each, delimiter, limit));
    counts.push_back(static_cast<std::int64_t>(all.back().size()));
    widest = std::max(widest, all.back().size());
  }
  std::vector<std::string> out;
  for (std::vector<std::string>& row : all) {
    row.resize(widest);
    out.insert(out.end(), row.begin(), row.end());
  }
  Dims extents = dims(x.shape);
  extents.push_back(static_cast<std::int64_t>(widest));
  return {text(Shape(extents), std::move(out)), HostArray::from<std::int64_t>(x.shape, counts)};
}

// Counts of n-grams, which may leave out elements between theirs.
Results tfidf_vectorizer(const NodeContext& node) {
  const Value& x = *node.value(0);
  const Dims starts = node.integers("ngram_counts"), indexes = node.integers("ngram_indexes");
  const std::vector<float> weights = node.numbers("weights");
  const std::int64_t shortest = node.integer("min_gram_length"), longest = node.integer("max_gram_length"),
                     skips = node.integer("max_skip_count");
  // Elements as texts, so that words and numbers take one way.
  std::vector<std::string> pool = node.texts("pool_strings"), elements;
  for (const std::int64_t each : node.integers("pool_int64s")) pool.push_back(std::to_string(each));
  if (x.is_string())
    elements = *x.strings;
  else
    for (const std::int64_t each : node.host_integers(0)) elements.push_back(std::to_string(each));
  std::map<std::vector<std::string>, std::size_t> grams;
  std::size_t number = 0;
  for (std::size_t n = 0; n < starts.size(); ++n) {
    const std::int64_t end = n + 1 < starts.size() ? starts[n + 1] : static_cast<std::int64_t>(pool.size());
    for (std::int64_t at = starts[n]; at + static_cast<std::int64_t>(n) < end; at += static_cast<std::int64_t>(n) + 1)
      grams.emplace(std::vector<std::string>(pool.begin() + at, pool.begin() + at + static_cast<std::int64_t>(n) + 1), number++);
  }
  if (number > indexes.size() || indexes.empty()) node.fail("ngram_indexes does not fit the pool");
  const std::int64_t columns = *std::max_element(indexes.begin(), indexes.end()) + 1;
  const bool is_batch = x.shape.rank() == 2;
  const std::int64_t rows = is_batch ? x.shape[0] : 1, width = is_batch ? x.shape[1] : x.shape.elements();
  HostArray out = HostArray::zeros(DType::f32, is_batch ? Shape{rows, columns} : Shape{columns});
  const std::string mode = node.text("mode", "TF");
  for (std::int64_t row = 0; row < rows; ++row)
    for (std::int64_t n = shortest; n <= longest; ++n)
      for (std::int64_t skip = 0; skip <= (n == 1 ? 0 : skips); ++skip)
        for (std::int64_t start = 0; start + (n - 1) * (skip + 1) < width; ++start) {
          std::vector<std::string> gram;
          for (std::int64_t i = 0; i < n; ++i)
            gram.push_back(elements[static_cast<std::size_t>(row * width + start + i * (skip + 1))]);
          const auto found = grams.find(gram);
          if (found == grams.end()) continue;
          float& count = out.mutable_view<float>()[static_cast<std::size_t>(row * columns + indexes[found->second])];
          const float weight = found->second < weights.size() ? weights[found->second] : 1.0f;
          if (mode == "TF")
            count += 1;
          else if (mode == "IDF")
            count = weight;
          else
            count += weight;
        }
  return {out};
}

}  // namespace

void add_text(ConverterTable& table) {
  table.add("StringNormalizer", string_normalizer);
  table.add("StringConcat", string_concat);
  table.add("StringSplit", string_split);
  table.add("TfIdfVectorizer", tfidf_vectorizer);
}

}  // namespace tenon::onnx
