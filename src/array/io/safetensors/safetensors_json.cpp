#include "array/io/safetensors/safetensors_json.h"

#include <fmt/format.h>

#include <boost/json/basic_parser_impl.hpp>
#include <limits>
#include <span>

#include "tenon/error.h"

namespace tenon {
namespace {

using ErrorCodeRef = boost::json::error_code&;
using Text = boost::json::string_view;

// Receives the JSON in pieces; the state tells what may come next.
class Handler {
 public:
  static constexpr std::size_t max_object_size = std::size_t(-1);
  static constexpr std::size_t max_array_size = std::size_t(-1);
  static constexpr std::size_t max_key_size = std::size_t(-1);
  static constexpr std::size_t max_string_size = std::size_t(-1);

  SafetensorsJson result;

  bool on_document_begin(ErrorCodeRef) { return true; }
  bool on_document_end(ErrorCodeRef) { return true; }

  bool on_object_begin(ErrorCodeRef) {
    switch (place_) {
      case Place::outside: place_ = Place::top; break;
      case Place::tensor_or_metadata:
        if (key_ == "__metadata__") {
          if (has_metadata_) refuse("__metadata__ appears twice");
          has_metadata_ = true;
          place_ = Place::metadata;
        } else {
          result.records.emplace_back().name = std::move(key_);
          has_dtype_ = has_shape_ = has_offsets_ = false;
          place_ = Place::tensor;
        }
        break;
      default: unexpected("an object");
    }
    key_.clear();
    return true;
  }

  bool on_object_end(std::size_t, ErrorCodeRef) {
    if (place_ == Place::tensor) {
      if (!has_dtype_) refuse(fmt::format("{} has no dtype", tensor()));
      if (!has_shape_) refuse(fmt::format("{} has no shape", tensor()));
      if (!has_offsets_) refuse(fmt::format("{} has no data_offsets", tensor()));
    }
    place_ = place_ == Place::top ? Place::outside : Place::top;
    return true;
  }

  bool on_array_begin(ErrorCodeRef) {
    if (place_ != Place::shape && place_ != Place::offsets) unexpected("a list");
    if (in_list_) refuse(fmt::format("{} has a nested list", tensor()));
    in_list_ = true;
    numbers_ = 0;
    return true;
  }

  bool on_array_end(std::size_t, ErrorCodeRef) {
    if (place_ == Place::shape) record().rank = numbers_;
    if (place_ == Place::offsets && numbers_ != 2) refuse(fmt::format("{} does not have two data_offsets", tensor()));
    in_list_ = false;
    place_ = Place::tensor;
    return true;
  }

  bool on_key_part(Text part, std::size_t, ErrorCodeRef) {
    key_.append(part.data(), part.size());
    return true;
  }

  bool on_key(Text part, std::size_t, ErrorCodeRef) {
    key_.append(part.data(), part.size());
    switch (place_) {
      case Place::top: place_ = Place::tensor_or_metadata; break;
      case Place::metadata: place_ = Place::metadata_value; break;
      default: tensor_key(); break;
    }
    return true;
  }

  bool on_string_part(Text part, std::size_t, ErrorCodeRef) {
    string_.append(part.data(), part.size());
    return true;
  }

  bool on_string(Text part, std::size_t, ErrorCodeRef) {
    string_.append(part.data(), part.size());
    if (place_ == Place::metadata_value) {
      const auto [position, is_new] = result.metadata.try_emplace(std::move(key_), std::move(string_));
      if (!is_new) refuse(fmt::format("metadata '{}' appears twice", position->first));
      place_ = Place::metadata;
    } else if (place_ == Place::dtype) {
      record().dtype = std::move(string_);
      place_ = Place::tensor;
    } else {
      unexpected("a string");
    }
    key_.clear();
    string_.clear();
    return true;
  }

  bool on_number_part(Text, ErrorCodeRef) { return true; }
  bool on_int64(std::int64_t value, Text, ErrorCodeRef) {
    if (value < 0) refuse(fmt::format("{} has a negative number", where()));
    return number(static_cast<std::uint64_t>(value));
  }
  bool on_uint64(std::uint64_t value, Text, ErrorCodeRef) { return number(value); }
  bool on_double(double, Text, ErrorCodeRef) { refuse(fmt::format("{} has a number that is not a 64-bit integer", where())); }
  bool on_bool(bool, ErrorCodeRef) { unexpected("true or false"); }
  bool on_null(ErrorCodeRef) { unexpected("null"); }
  bool on_comment_part(Text, ErrorCodeRef) { return true; }
  bool on_comment(Text, ErrorCodeRef) { return true; }

 private:
  enum class Place {
    outside,             // before and after the object
    top,                 // in the object, before a name
    tensor_or_metadata,  // after a name
    metadata,            // in __metadata__, before a key
    metadata_value,      // after such a key
    tensor,              // in a tensor, before a key
    dtype,               // after that key
    shape,
    offsets,
  };

  [[noreturn]] static void refuse(const std::string& why) { throw Error(ErrorCode::invalid_argument, why); }

  [[noreturn]] void unexpected(std::string_view what) const {
    if (place_ == Place::metadata_value) refuse(fmt::format("metadata '{}' is {}, not a string", key_, what));
    refuse(fmt::format("{} has {} in an unexpected place", where(), what));
  }

  std::string tensor() const { return fmt::format("tensor '{}'", result.records.back().name); }
  std::string where() const {
    if (place_ == Place::outside || place_ == Place::top) return "the header";
    if (place_ == Place::tensor_or_metadata) return fmt::format("'{}'", key_);
    if (place_ == Place::metadata || place_ == Place::metadata_value) return "__metadata__";
    return tensor();
  }
  SafetensorsRecord& record() { return result.records.back(); }

  void tensor_key() {
    bool* seen = nullptr;
    if (key_ == "dtype") seen = &has_dtype_, place_ = Place::dtype;
    if (key_ == "shape") seen = &has_shape_, place_ = Place::shape;
    if (key_ == "data_offsets") seen = &has_offsets_, place_ = Place::offsets;
    if (seen == nullptr) refuse(fmt::format("{} has an unknown key '{}'", tensor(), key_));
    if (*seen) refuse(fmt::format("{} has '{}' twice", tensor(), key_));
    *seen = true;
    key_.clear();
  }

  bool number(std::uint64_t value) {
    if (!in_list_) unexpected("a number");
    if (place_ == Place::offsets) {
      if (numbers_ == 2) refuse(fmt::format("{} does not have two data_offsets", tensor()));
      (numbers_ == 0 ? record().begin : record().end) = value;
    } else {
      if (numbers_ == kMaxRank) refuse(fmt::format("{} has more than {} axes", tensor(), kMaxRank));
      if (value > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()))
        refuse(fmt::format("{} has an extent that does not fit in 63 bits", tensor()));
      record().dims[static_cast<std::size_t>(numbers_)] = static_cast<std::int64_t>(value);
    }
    ++numbers_;
    return true;
  }

  Place place_ = Place::outside;
  std::string key_, string_;
  int numbers_ = 0;
  bool in_list_ = false;
  bool has_metadata_ = false;
  bool has_dtype_ = false, has_shape_ = false, has_offsets_ = false;
};

}  // namespace

SafetensorsJson parse_safetensors_json(std::string_view text) {
  boost::json::parse_options options;
  options.max_depth = 4;  // one more than is valid, so that the handler reports the error
  boost::json::basic_parser<Handler> parser(options);
  boost::json::error_code error;
  const std::size_t used = parser.write_some(false, text.data(), text.size(), error);
  if (error)
    throw Error(ErrorCode::invalid_argument, fmt::format("the header is not valid JSON at byte {}: {}", used, error.message()));
  if (text.find_first_not_of(' ', used) != std::string_view::npos)
    throw Error(ErrorCode::invalid_argument, fmt::format("the header has extra text after its JSON, at byte {}", used));
  return std::move(parser.handler().result);
}

}  // namespace tenon
