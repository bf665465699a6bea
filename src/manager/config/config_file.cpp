// The reader of configuration files, in TOML. toml++ is optional: without it files are refused with an explanation.
#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <sstream>

#include "manager/config/settings.h"
#include "tenon/error.h"

#if __has_include(<toml++/toml.h>)
#define TENON_HAS_TOML 1
#define TOML_HEADER_ONLY 1
#define TOML_EXCEPTIONS 1
#include <toml++/toml.h>
#else
#define TENON_HAS_TOML 0
#endif

namespace tenon {

bool can_read_config_files() noexcept { return TENON_HAS_TOML != 0; }

#if TENON_HAS_TOML
namespace {

// A configuration is a page of text; what is larger is some other file.
constexpr std::size_t kMaxBytes = 1 << 20;
// toml++ builds and destroys dotted keys recursively, without a limit of its own. Our deepest setting has three parts.
constexpr std::ptrdiff_t kMaxKeyParts = 32;

[[noreturn]] void refuse(const std::string& path, const toml::node& node, const std::string& message) {
  throw Error(ErrorCode::invalid_argument, fmt::format("{} line {}: {}", path, node.source().begin.line, message));
}

std::string scalar_text(const std::string& path, const std::string& name, const toml::node& node) {
  if (const auto* text = node.as_string()) return text->get();
  if (const auto* number = node.as_integer()) return fmt::format("{}", number->get());
  if (const auto* number = node.as_floating_point()) return fmt::format("{}", number->get());
  if (const auto* flag = node.as_boolean()) return flag->get() ? "true" : "false";
  refuse(path, node, fmt::format("{} must be a text, a number, true or false", name));
}

std::string value_text(const std::string& path, const std::string& name, const toml::node& node) {
  const toml::array* list = node.as_array();
  if (list == nullptr) return scalar_text(path, name, node);
  std::string text;
  for (const toml::node& element : *list) text += (text.empty() ? "" : ",") + scalar_text(path, name, element);
  return text;
}

// {architecture = "wormhole", open = 0.1} as "wormhole,open=0.1".
std::string simulated_text(const std::string& path, const toml::node& node) {
  const toml::table* table = node.as_table();
  if (table == nullptr) return scalar_text(path, "sim", node);
  const toml::node* architecture = table->get("architecture");
  if (architecture == nullptr) refuse(path, node, "an entry of sim needs an architecture, e.g. architecture = \"wormhole\"");
  std::string text = scalar_text(path, "sim.architecture", *architecture);
  for (const auto& [key, value] : *table)
    if (key != "architecture")
      text += fmt::format(",{}={}", key.str(), scalar_text(path, fmt::format("sim.{}", key.str()), value));
  return text;
}

void add_value(std::vector<FileValue>& values, const std::string& path, const std::string& name, const toml::node& node) {
  const auto line = [](const toml::node& at) { return static_cast<int>(at.source().begin.line); };
  if (name == "sim" && (node.is_array() || node.is_table())) {
    if (node.is_table()) return values.push_back({name, simulated_text(path, node), line(node)});
    for (const toml::node& element : *node.as_array()) values.push_back({name, simulated_text(path, element), line(element)});
    return;
  }
  const toml::table* table = node.as_table();
  if (table == nullptr) return values.push_back({name, value_text(path, name, node), line(node)});
  for (const auto& [key, value] : *table) {
    const std::string entry = fmt::format("{}.{}", name, key.str());
    values.push_back({entry, scalar_text(path, entry, value), line(value)});
  }
  // A table nobody knows is an error even when it is empty.
  if (table->empty()) find_setting(name);
}

std::string read_text(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in)
    throw Error(ErrorCode::permission_denied, fmt::format("cannot read the configuration file {}", path),
                "check its permissions");
  std::string text(kMaxBytes + 1, '\0');
  in.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(in.gcount()));
  if (in.bad()) throw Error(ErrorCode::invalid_argument, fmt::format("{} is no file with text", path));
  if (text.size() > kMaxBytes)
    throw Error(ErrorCode::resource_exhausted, fmt::format("the configuration file {} is larger than 1 MiB", path));
  return text;
}

void check_depth(const std::string& path, const std::string& text) {
  std::istringstream lines(text);
  std::string line;
  for (int number = 1; std::getline(lines, line); ++number) {
    const std::size_t begin = std::min(line.find_first_not_of(" \t"), line.size());
    const bool is_header = begin < line.size() && line[begin] == '[';
    const std::size_t end = is_header ? line.size() : std::min(line.find('='), line.size());
    if (std::count(line.begin(), line.begin() + static_cast<std::ptrdiff_t>(end), '.') > kMaxKeyParts)
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("{} line {}: a key has more than {} parts", path, number, kMaxKeyParts),
                  "the file must be TOML, e.g. prefer = \"gpu\"");
  }
}

}  // namespace

std::vector<FileValue> read_config_file(const std::string& path) {
  const std::string text = read_text(path);
  check_depth(path, text);
  try {
    const toml::table document = toml::parse(text);
    std::vector<FileValue> values;
    for (const auto& [key, node] : document) add_value(values, path, std::string(key.str()), node);
    return values;
  } catch (const toml::parse_error& error) {
    throw Error(ErrorCode::invalid_argument, fmt::format("{} line {}: {}", path, error.source().begin.line, error.description()),
                "the file must be TOML, e.g. prefer = \"gpu\"");
  }
}

#else

std::vector<FileValue> read_config_file(const std::string& path) {
  throw Error(ErrorCode::unimplemented, fmt::format("{} cannot be read: this build has no reader of configuration files", path),
              "build with libtomlplusplus-dev, or use environment variables and --set");
}

#endif

}  // namespace tenon
