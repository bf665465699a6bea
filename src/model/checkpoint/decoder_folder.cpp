#include "model/checkpoint/decoder_folder.h"

#include <fmt/format.h>

#include <boost/json.hpp>
#include <set>

#include "array/io/safetensors/safetensors.h"
#include "base/text/printable.h"
#include "model/checkpoint/decoder_config.h"
#include "tenon/error.h"

namespace tenon::checkpoint {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kMostConfigBytes = 1 << 20, kMostIndexBytes = 64 << 20;
constexpr std::size_t kMostShards = 4096;
constexpr const char *kWhole = "model.safetensors", *kIndex = "model.safetensors.index.json";

bool is_file(const fs::path& path) {
  std::error_code error;
  return fs::is_regular_file(path, error);
}

// The files that the index names.
std::set<std::string> shards_of(const fs::path& index) {
  boost::system::error_code error;
  boost::json::parse_options options;
  options.max_depth = 16;
  const boost::json::value value = boost::json::parse(folder_text(index, kMostIndexBytes), error, {}, options);
  const boost::json::value* map = !error && value.is_object() ? value.get_object().if_contains("weight_map") : nullptr;
  if (!map || !map->is_object()) throw Error(ErrorCode::invalid_argument, fmt::format("{} has no 'weight_map'", kIndex));
  std::set<std::string> names;
  for (const auto& [tensor, file] : map->get_object()) {
    const std::string name = file.is_string() ? std::string(file.get_string()) : "";
    if (name.empty() || name.front() == '.' || name.find_first_of(std::string_view("/\\\0", 3)) != std::string::npos)
      throw Error(ErrorCode::invalid_argument, fmt::format("{} names the file '{}'", kIndex, printable(name)),
                  "weights must lie in the folder of the model");
    names.insert(name);
    if (names.size() > kMostShards) throw Error(ErrorCode::resource_exhausted, fmt::format("{} names too many files", kIndex));
  }
  return names;
}

void refuse_link(const fs::path& path) {
  std::error_code error;
  if (fs::is_symlink(fs::symlink_status(path, error)))
    throw Error(ErrorCode::invalid_argument, fmt::format("'{}' is a link", printable(path.filename().string())),
                "copy the files of the model into its folder");
}

std::optional<gguf::BlockType> block_type(const SafetensorsEntry& entry) {
  if (entry.code != nullptr) return std::nullopt;
  if (entry.dtype == DType::f32) return gguf::BlockType::f32;
  if (entry.dtype == DType::f16) return gguf::BlockType::f16;
  if (entry.dtype == DType::bf16) return gguf::BlockType::bf16;
  return std::nullopt;
}

}  // namespace

std::string folder_text(const fs::path& file, std::uint64_t most) {
  const std::unique_ptr<ByteSource> source = open_source(file);
  if (source->size() > most)
    throw Error(ErrorCode::resource_exhausted, fmt::format("{} is longer than {} bytes", file.filename().string(), most));
  std::string text(static_cast<std::size_t>(source->size()), '\0');
  source->read(0, std::as_writable_bytes(std::span(text)));
  return text;
}

bool is_decoder_folder(const fs::path& folder) {
  if (!is_file(folder / kWhole) && !is_file(folder / kIndex)) return false;
  try {
    return is_decoder_config(folder_text(folder / "config.json", kMostConfigBytes));
  } catch (const Error&) {
    return false;
  }
}

void DecoderFolder::add_file(const fs::path& path) {
  std::shared_ptr<const ByteSource> source = open_source(path);
  const SafetensorsHeader header = read_safetensors_header(*source);
  for (const SafetensorsEntry& entry : header.entries) {
    if (packed_ && packed_->add(source, header.data_begin, entry)) continue;
    gguf::TensorInfo info;
    info.name = gguf_name(type_, entry.name);
    if (info.name.empty() || (ties_embedding_ && info.name == "output.weight")) continue;
    const std::optional<gguf::BlockType> type = block_type(entry);
    if (!type)
      throw Error(ErrorCode::unimplemented, fmt::format("the type of the tensor '{}' is not supported", printable(entry.name)),
                  "save the model as float32, float16 or bfloat16");
    info.type = *type;
    info.shape.assign(entry.shape.dims().begin(), entry.shape.dims().end());
    if (info.shape.empty() || info.shape.size() > (info.name.ends_with("_exps.weight") ? 3 : 2) || entry.shape.elements() == 0)
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("the tensor '{}' has the shape {}", printable(entry.name), to_string(entry.shape)));
    info.is_transposed = info.shape.size() == 2 && is_stored_transposed(type_, info.name);
    if (info.is_transposed) std::swap(info.shape[0], info.shape[1]);
    info.offset = header.data_begin + entry.begin;
    info.bytes = entry.end - entry.begin;
    info.file = files_.size();
    const std::string name = info.name;
    if (!add(std::move(info)))
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("the tensor '{}' is there twice, as '{}'", printable(entry.name), name));
  }
  files_.push_back(std::move(source));
}

void DecoderFolder::add_packed() {
  if (!packed_) return;
  for (PackedWeights::Matrix& each : packed_->matrices()) {
    gguf::TensorInfo info;
    info.name = gguf_name(type_, each.name);
    if (info.name.empty() || (ties_embedding_ && info.name == "output.weight")) continue;
    info.type = each.type;
    info.shape = {each.rows, each.columns};
    info.bytes = each.source->size();
    info.file = files_.size();
    files_.push_back(std::move(each.source));
    const std::string name = info.name;
    if (is_stored_transposed(type_, name) || !add(std::move(info)))
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("the quantised matrix '{}' does not fit the model", printable(each.name)));
  }
  packed_.reset();
}

DecoderFolder DecoderFolder::open(const fs::path& folder) {
  DecoderConfig config = decoder_config(folder_text(folder / "config.json", kMostConfigBytes));
  DecoderFolder out;
  out.type_ = config.type;
  out.ties_embedding_ = config.ties_embedding.value_or(false);
  if (config.packing) out.packed_.emplace(*config.packing);
  for (auto& [key, value] : config.settings) out.set(key, std::move(value));
  if (is_file(folder / kWhole)) {
    out.add_file(folder / kWhole);
  } else {
    for (const std::string& name : shards_of(folder / kIndex)) {
      refuse_link(folder / name);
      out.add_file(folder / name);
    }
  }
  out.add_packed();
  if (config.ties_embedding == false && !out.find_tensor("output.weight"))
    throw Error(ErrorCode::invalid_argument, "the matrix of logits is missing, but config.json says that it is not tied");
  return out;
}

}  // namespace tenon::checkpoint
