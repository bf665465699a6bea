// What the files beside a model say of the encoder that it is part of.
#include <algorithm>
#include <boost/json.hpp>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <string_view>

#include "tenon/model/encoder.h"

namespace tenon {
namespace {

// What cannot be read, or is longer than such files are, says nothing.
boost::json::object json_of(const std::filesystem::path& file) {
  constexpr std::size_t kMost = 1 << 20;
  std::error_code error;
  if (!std::filesystem::is_regular_file(file, error)) return {};
  std::ifstream in(file, std::ios::binary);
  std::string text(kMost, '\0');
  in.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(std::max<std::streamsize>(in.gcount(), 0)));
  boost::system::error_code parse_error;
  const boost::json::value value = boost::json::parse(text, parse_error);
  return !parse_error && value.is_object() ? value.get_object() : boost::json::object();
}

std::optional<std::int64_t> positive(const boost::json::object& object, std::string_view name) {
  const boost::json::value* value = object.if_contains(name);
  return value != nullptr && value->is_int64() && value->get_int64() > 0 ? std::optional(value->get_int64()) : std::nullopt;
}

// Some models count positions from their padding's on, so that less than max_position_embeddings is left; all take the default.
std::optional<std::int64_t> tokens_of(const std::filesystem::path& folder) {
  const std::optional<std::int64_t> positions = positive(json_of(folder / "config.json"), "max_position_embeddings");
  std::optional<std::int64_t> most = positive(json_of(folder / "sentence_bert_config.json"), "max_seq_length");
  if (!most && positions) most = std::min(EncoderOptions::kMaxTokens, *positions);
  if (most && positions) most = std::min(*most, *positions);
  return most;
}

}  // namespace

EncoderOptions EncoderOptions::completed(const std::filesystem::path& folder) const {
  EncoderOptions options = *this;
  if (options.max_tokens == 0) options.max_tokens = tokens_of(folder).value_or(0);
  if (options.pooling) return options;
  const boost::json::object file = json_of(folder / "1_Pooling" / "config.json");
  for (const auto& [name, how] :
       {std::pair("pooling_mode_cls_token", Pooling::first), {"pooling_mode_mean_tokens", Pooling::mean}}) {
    const boost::json::value* const says = file.if_contains(name);
    if (!options.pooling && says != nullptr && says->is_bool() && says->get_bool()) options.pooling = how;
  }
  return options;
}

}  // namespace tenon
