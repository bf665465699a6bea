#include "model/generate/model_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json.hpp>

#include "base/text/printable.h"
#include "model/checkpoint/decoder_folder.h"
#include "model/gguf/gguf_file.h"
#include "model/gguf/gguf_tokenizer.h"
#include "model/gguf/model_info.h"
#include "tenon/error.h"

namespace tenon {
namespace {

namespace fs = std::filesystem;
namespace json = boost::json;

constexpr std::uint64_t kMostConfigBytes = 16 << 20, kMostTokenizerBytes = 256 << 20;

bool ends_a_turn(std::string_view text) {
  for (const std::string_view each :
       {"<|im_end|>", "<|eot_id|>", "<|end_of_text|>", "<end_of_turn>", "<|end|>", "<|endoftext|>", "</s>"})
    if (text == each) return true;
  return false;
}

// --- GGUF ---

void add_gguf_tokens(ModelFiles& files) {
  constexpr double kControl = 3;
  const gguf::Source& source = files.source;
  const gguf::List *tokens = source.list("tokenizer.ggml.tokens"), *types = source.list("tokenizer.ggml.token_type");
  const auto size = tokens && tokens->is_text ? static_cast<std::int64_t>(tokens->size()) : 0;
  for (const char* key : {"eos", "eot", "eom"})
    if (const auto id = source.integer(fmt::format("tokenizer.ggml.{}_token_id", key)); id && *id >= 0 && *id < size)
      files.ends.insert(static_cast<std::int32_t>(*id));
  for (const char* key : {"bos", "eos", "unk", "pad"}) {
    const std::string_view name = key == std::string_view("unk") ? "unknown" : key == std::string_view("pad") ? "padding" : key;
    if (const auto id = source.integer(fmt::format("tokenizer.ggml.{}_token_id", name)); id && *id >= 0 && *id < size)
      files.special_tokens[fmt::format("{}_token", key)] = tokens->texts[static_cast<std::size_t>(*id)];
  }
  if (size == 0 || !types || types->is_text) return;
  for (std::size_t i = 0; i < std::min(tokens->texts.size(), types->size()); ++i) {
    const std::string& text = tokens->texts[i];
    if (types->numbers[i] != kControl || text.empty()) continue;
    files.control_texts.push_back(text);
    // Files name one token that ends a text, but models also end their turn with others.
    if (ends_a_turn(text)) files.ends.insert(static_cast<std::int32_t>(i));
  }
}

ModelFiles gguf_files(const fs::path& path) {
  gguf::GgufFile file = gguf::GgufFile::open(path);
  ModelFiles files;
  files.info = gguf::model_info(file, fmt::format("GGUF {}", file.version()));
  files.source = std::move(file);
  files.tokenizer_json = [source = files.source](bool finds) { return gguf::tokenizer_json(source, finds); };
  files.chat_template = files.source.text("tokenizer.chat_template");
  add_gguf_tokens(files);
  return files;
}

// --- Folders ---

bool is_file(const fs::path& path) {
  std::error_code error;
  return fs::is_regular_file(path, error);
}

json::object object_of(const std::string& text, std::string_view name) {
  boost::system::error_code error;
  json::value value = json::parse(text, error);
  if (error || !value.is_object()) throw Error(ErrorCode::invalid_argument, fmt::format("{} is not a JSON object", name));
  return std::move(value.get_object());
}

json::object object_if_there(const fs::path& file) {
  return is_file(file) ? object_of(checkpoint::folder_text(file, kMostConfigBytes), file.filename().string()) : json::object();
}

std::string text_or_content(const json::value& value) {
  if (value.is_string()) return std::string(value.get_string());
  if (!value.is_object()) return {};
  const json::value* content = value.get_object().if_contains("content");
  return content && content->is_string() ? std::string(content->get_string()) : "";
}

void add_special_tokens(const json::object& config, ModelFiles& files) {
  for (const auto& [key, value] : config)
    if (std::string_view(key).ends_with("_token"))
      if (std::string text = text_or_content(value); !text.empty()) files.special_tokens[std::string(key)] = std::move(text);
}

// One text, or several with names.
std::optional<std::string> template_in(const json::object& config) {
  const json::value* value = config.if_contains("chat_template");
  if (!value) return std::nullopt;
  if (value->is_string()) return std::string(value->get_string());
  if (value->is_array())
    for (const json::value& each : value->get_array())
      if (each.is_object() && each.get_object().contains("name") && text_or_content(each.at("name")) == "default")
        if (const json::value* text = each.get_object().if_contains("template"); text && text->is_string())
          return std::string(text->get_string());
  return std::nullopt;
}

void add_ends(const json::object& config, ModelFiles& files) {
  const json::value* value = config.if_contains("eos_token_id");
  const auto add = [&](const json::value& id) {
    if (id.is_int64() && id.get_int64() >= 0 && id.get_int64() < (1 << 30))
      files.ends.insert(static_cast<std::int32_t>(id.get_int64()));
  };
  if (value && value->is_array())
    for (const json::value& each : value->get_array()) add(each);
  else if (value)
    add(*value);
}

std::string folder_tokenizer(const fs::path& folder, bool finds_control_tokens) {
  const fs::path file = folder / "tokenizer.json";
  if (!is_file(file))
    throw Error(ErrorCode::unimplemented, "the folder has no tokenizer.json",
                "save the tokenizer again with transformers, which writes one");
  std::string text = checkpoint::folder_text(file, kMostTokenizerBytes);
  if (finds_control_tokens) return text;
  json::object root = object_of(text, "tokenizer.json");
  if (json::value* added = root.if_contains("added_tokens"); added && added->is_array()) {
    json::array kept;
    for (json::value& each : added->get_array()) {
      const json::value* special = each.is_object() ? each.get_object().if_contains("special") : nullptr;
      if (!special || !special->is_bool() || !special->get_bool()) kept.push_back(std::move(each));
    }
    *added = std::move(kept);
  }
  return json::serialize(root);
}

void add_folder_tokens(const fs::path& folder, const std::string& tokenizer, ModelFiles& files) {
  add_ends(object_if_there(folder / "config.json"), files);
  add_ends(object_if_there(folder / "generation_config.json"), files);
  const bool has_ends = !files.ends.empty();
  const json::object root = object_of(tokenizer, "tokenizer.json");
  const json::value* added = root.if_contains("added_tokens");
  if (!added || !added->is_array()) return;
  for (const json::value& each : added->get_array()) {
    const json::value* special = each.is_object() ? each.get_object().if_contains("special") : nullptr;
    const std::string text = text_or_content(each);
    if (!special || !special->is_bool() || !special->get_bool() || text.empty()) continue;
    files.control_texts.push_back(text);
    const json::value* id = each.get_object().if_contains("id");
    if (!has_ends && ends_a_turn(text) && id && id->is_int64()) files.ends.insert(static_cast<std::int32_t>(id->get_int64()));
  }
}

// The folder that a path means: itself, or that of its weights. "" if it means a file.
fs::path folder_of(const fs::path& path) {
  std::error_code error;
  if (fs::is_directory(path, error)) return path;
  const std::string name = path.filename().string();
  if (name != "model.safetensors" && name != "model.safetensors.index.json") return {};
  return path.has_parent_path() ? path.parent_path() : fs::path(".");
}

ModelFiles folder_files(const fs::path& folder) {
  ModelFiles files;
  files.source = checkpoint::DecoderFolder::open(folder);
  files.info = gguf::model_info(files.source, "safetensors");
  files.tokenizer_json = [folder](bool finds) { return folder_tokenizer(folder, finds); };
  add_folder_tokens(folder, files.tokenizer_json(true), files);
  add_special_tokens(object_if_there(folder / "special_tokens_map.json"), files);
  const json::object config = object_if_there(folder / "tokenizer_config.json");
  add_special_tokens(config, files);
  files.chat_template = template_in(config);
  if (!files.chat_template) files.chat_template = template_in(object_if_there(folder / "chat_template.json"));
  if (is_file(folder / "chat_template.jinja"))
    files.chat_template = checkpoint::folder_text(folder / "chat_template.jinja", kMostConfigBytes);
  return files;
}

}  // namespace

bool is_language_model(const fs::path& path) {
  if (path.extension() == ".gguf") return true;
  return checkpoint::is_decoder_folder(folder_of(path));
}

ModelFiles open_model_files(const fs::path& path) {
  const fs::path folder = folder_of(path);
  return folder.empty() ? gguf_files(path) : folder_files(folder);
}

}  // namespace tenon
