#include "server/models/model_folder.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <tuple>

#include "base/text/printable.h"
#include "model/generate/model_files.h"
#include "tenon/error.h"

namespace tenon::server {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMaxModels = 4096;

bool is_name(std::string_view name) {
  const auto fits = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_' || c == '.';
  };
  return !name.empty() && name.size() <= 128 && name.front() != '.' && !name.starts_with("op.") &&
         std::all_of(name.begin(), name.end(), fits);
}

bool is_file(const fs::path& path) {
  std::error_code error;
  return fs::is_regular_file(path, error);
}

std::optional<fs::path> model_in(const fs::path& folder) {
  for (const char* name : {"model.onnx", "model.gguf", "onnx/model.onnx"})
    if (is_file(folder / name)) return folder / name;
  if (is_file(folder / "config.json"))
    for (const char* name : {"model.safetensors", "model.safetensors.index.json"})
      if (is_file(folder / name)) return folder / name;
  std::error_code error;
  std::vector<fs::path> ggufs;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, error))
    if (entry.path().extension() == ".gguf" && is_file(entry.path())) ggufs.push_back(entry.path());
  if (ggufs.size() == 1) return ggufs.front();
  return std::nullopt;
}

std::optional<fs::path> tokenizer_of(const fs::path& folder, const fs::path& file) {
  for (const fs::path& place : {file.parent_path(), folder})
    if (is_file(place / "tokenizer.json")) return place / "tokenizer.json";
  return std::nullopt;
}

std::optional<std::int64_t> version_of(const std::string& name) {
  std::int64_t version = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), version);
  return error == std::errc{} && end == name.data() + name.size() && version > 0 ? std::optional(version) : std::nullopt;
}

std::vector<std::int64_t> served_versions(const ModelConfig& config, std::vector<std::int64_t> found) {
  std::sort(found.begin(), found.end());
  switch (config.versions) {
    case ModelConfig::Versions::all: break;
    case ModelConfig::Versions::latest:
      if (found.size() > static_cast<std::size_t>(config.latest)) found.erase(found.begin(), found.end() - config.latest);
      break;
    case ModelConfig::Versions::specific:
      std::erase_if(found, [&](std::int64_t each) {
        return std::find(config.specific.begin(), config.specific.end(), each) == config.specific.end();
      });
  }
  return found;
}

void add_folder(const fs::path& folder, const std::string& name, std::vector<ModelSource>& out) {
  ModelSource base{.name = name};
  std::error_code error;
  std::vector<std::int64_t> versions;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, error))
    if (const auto version = version_of(entry.path().filename().string()); version && entry.is_directory(error))
      versions.push_back(*version);
  const std::optional<fs::path> plain = model_in(folder);
  if (versions.empty() && !plain && !is_file(folder / "config.pbtxt")) return;  // not a model
  try {
    base.config = load_model_config(folder, plain ? plain->parent_path() : folder, name);
    versions = served_versions(base.config, versions);
    if (versions.empty() && !plain) base.problem = "there is no model.onnx in the folder or in a folder of a served version";
  } catch (const Error& problem) {
    base.problem = problem.what();
  }
  if (!base.problem.empty()) return out.push_back(base);
  if (versions.empty()) {
    base.file = *plain;
    base.is_generator = is_language_model(*plain);
    base.tokenizer = tokenizer_of(folder, *plain);
    return out.push_back(base);
  }
  for (const std::int64_t version : versions) {
    ModelSource source = base;
    source.version = version;
    const fs::path files = folder / std::to_string(version);
    if (const auto file = model_in(files)) {
      source.file = *file;
      source.is_generator = is_language_model(*file);
      source.tokenizer = tokenizer_of(folder, *file);
    } else {
      source.problem = fmt::format("there is no model.onnx in the folder {}", version);
    }
    out.push_back(std::move(source));
  }
}

}  // namespace

std::vector<ModelSource> scan_models(const fs::path& root) {
  std::error_code error;
  fs::directory_iterator entries(root, error);
  if (error)
    throw Error(error == std::errc::permission_denied ? ErrorCode::permission_denied : ErrorCode::not_found,
                fmt::format("the folder of models '{}' cannot be read: {}", printable(root.string()), error.message()));
  std::vector<ModelSource> out;
  for (const fs::directory_entry& entry : entries) {
    if (out.size() >= kMaxModels) break;
    const std::string file_name = entry.path().filename().string();
    const std::string extension = entry.path().extension().string();
    if (entry.is_directory(error)) {
      if (is_name(file_name)) add_folder(entry.path(), file_name, out);
    } else if ((extension == ".onnx" || extension == ".gguf") && is_name(entry.path().stem().string())) {
      out.push_back({.name = entry.path().stem().string(), .file = entry.path(), .is_generator = extension == ".gguf"});
    }
  }
  std::sort(out.begin(), out.end(), [&](const ModelSource& a, const ModelSource& b) {
    const bool is_plain_a = a.file.parent_path() == root, is_plain_b = b.file.parent_path() == root;
    return std::tie(a.name, a.version, is_plain_a) < std::tie(b.name, b.version, is_plain_b);
  });
  // NAME/ and NAME.onnx: the folder is served.
  out.erase(std::unique(out.begin(), out.end(),
                        [](const ModelSource& a, const ModelSource& b) { return a.name == b.name && a.version == b.version; }),
            out.end());
  return out;
}

}  // namespace tenon::server
