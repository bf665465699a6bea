// EncoderWriter: what the encoders of checkpoints have in common, as nodes of an ONNX model.
//
//   EncoderWriter w(config, weights, {"bert."});
//   const std::string x = w.linear("encoder.dense", "input", 24, 24);
//   w.finish("last_hidden_state", x);
//
// Names of weights are those of the checkpoint after a prefix; nodes are numbered. Lifetime: refers to the weights.
#pragma once

#include <boost/json.hpp>
#include <initializer_list>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "model/checkpoint/onnx_writer.h"
#include "tenon/array/io.h"

namespace tenon::checkpoint {

class EncoderConfig {
 public:
  explicit EncoderConfig(std::string_view text);
  // By the first of the names that is there. Throws invalid_argument unless it is a size.
  std::int64_t size(std::initializer_list<std::string_view> names) const;
  std::int64_t size(std::initializer_list<std::string_view> names, std::int64_t fallback) const;
  double number(std::initializer_list<std::string_view> names, double fallback) const;
  std::string text(std::string_view name, std::string_view fallback) const;
  bool flag(std::string_view name, bool fallback) const;
  const boost::json::value* find(std::string_view name) const;
  // Whether the model gives a number for each label, not a vector for each token.
  bool is_classifier() const;

 private:
  boost::json::object object_;
};

class EncoderWriter {
 public:
  // |prefixes|: what names of tensors may begin with; |known| is a tensor that every such model has.
  EncoderWriter(const EncoderConfig& config, const ArrayFile& weights, std::initializer_list<std::string_view> prefixes,
                std::string_view known, bool has_types);

  // From now on a product or a norm without its bias is an error, as in models that always have them.
  void require_biases() { requires_biases_ = true; }

  bool has(const std::string& name) const { return find(name) != nullptr; }
  const HostArray& tensor(const std::string& name, const Shape& shape) const;
  // Rows of a matrix with so many columns; 1 if there is none.
  std::int64_t rows(const std::string& name) const;

  // The names of weights and results.
  std::string weight(const std::string& name, const Shape& shape);
  std::string value(const HostArray& array);
  std::string integers(const std::vector<std::int64_t>& values);  // i64 [n]
  std::string integer(std::int64_t value);                        // i64 []
  std::string node(std::string_view op, std::initializer_list<std::string_view> inputs,
                   std::initializer_list<OnnxWriter::Attribute> attributes = {});

  std::string embedded(const std::string& table, std::int64_t width, std::string_view ids);
  // Rows [first, first + out) of the matrix, all if |first| < 0; with their biases, if there are any.
  std::string linear(const std::string& name, std::string_view x, std::int64_t in, std::int64_t out, std::int64_t first = -1);
  std::string layer_norm(const std::string& name, std::string_view x, std::int64_t width, double eps);
  std::string rms_norm(const std::string& name, std::string_view x, std::int64_t width, double eps);
  std::string activated(std::string_view function, std::string_view x);
  std::string sum(std::string_view a, std::string_view b) { return node("Add", {a, b}); }
  // |mask|: true for keys that a query sees, or what is added to scores. |scale| 0: by the width of a head.
  std::string attention(std::string_view q, std::string_view k, std::string_view v, std::string_view mask, std::int64_t heads,
                        double scale = 0);
  // The first token of each text, [batch, width].
  std::string first_token(std::string_view x);

  // 0, 1, ... up to the length, i64 [sequence].
  const std::string& places();
  // The distances from queries to keys, i64 [sequence, sequence].
  const std::string& distances();
  // Which keys count: [batch, 1, 1, sequence].
  const std::string& mask();
  // A bias for each distance: the columns of |table| [buckets, heads] that |bucket| chooses, and minus infinity where the mask
  // hides: [batch, heads, sequence, sequence]. |most|: the longest distance.
  template <class Bucket>
  std::string distance_bias(const std::string& table, std::int64_t heads, std::int64_t most, Bucket bucket) {
    std::vector<std::int64_t> rows;
    for (std::int64_t distance = -most; distance <= most; ++distance) rows.push_back(bucket(distance));
    return distance_bias(table, heads, most, rows);
  }

  std::vector<std::byte> finish(std::string_view output, std::string_view x);

 private:
  const HostArray* find(const std::string& name) const;
  std::string distance_bias(const std::string& table, std::int64_t heads, std::int64_t most,
                            const std::vector<std::int64_t>& rows);
  std::string matrix(const std::string& name, std::int64_t in, std::int64_t out, std::int64_t first);

  const ArrayFile& weights_;
  std::string prefix_, places_, distances_, mask_;
  std::set<std::string> written_;
  std::int64_t values_ = 0;
  bool requires_biases_ = false;
  OnnxWriter onnx_{23};
};

// The row of a table of biases for the distance from a query to a key: exact for near ones, then by its logarithm.
std::int64_t bias_bucket(std::int64_t distance, std::int64_t buckets, std::int64_t farthest);

}  // namespace tenon::checkpoint
