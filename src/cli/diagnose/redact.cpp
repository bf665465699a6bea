#include "cli/diagnose/redact.h"

#include <algorithm>
#include <array>
#include <cctype>

namespace tenon::cli {
namespace {

// Values shorter than this are words like "yes"; taking them out everywhere would tear up the text.
constexpr std::size_t kShortestValue = 6;

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0; }
bool is_name(char c) { return is_word(c) || c == '_' || c == '-' || c == '.'; }
bool is_space(char c) { return c == ' ' || c == '\t'; }
bool is_quote(char c) { return c == '"' || c == '\''; }

// "apiKey" and "API_KEY" have the words api and key.
std::vector<std::string> words_of(std::string_view name) {
  std::vector<std::string> words(1);
  for (std::size_t i = 0; i < name.size(); ++i) {
    if (!is_word(name[i])) {
      words.emplace_back();
      continue;
    }
    const bool is_hump = i > 0 && std::isupper(static_cast<unsigned char>(name[i])) != 0 &&
                         std::islower(static_cast<unsigned char>(name[i - 1])) != 0;
    if (is_hump) words.emplace_back();
    words.back() += static_cast<char>(std::tolower(static_cast<unsigned char>(name[i])));
  }
  std::erase(words, "");
  return words;
}

void replace_all(std::string& text, const std::string& what, const std::string& with) {
  for (std::size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += with.size())
    text.replace(at, what.size(), with);
}

// The end of a value that begins at |at|: of the quoted part, or of the word.
std::size_t end_of_value(std::string_view text, std::size_t at) {
  if (at < text.size() && is_quote(text[at])) {
    std::size_t end = at + 1;
    while (end < text.size() && text[end] != text[at] && text[end] != '\n')
      end += text[end] == '\\' && end + 1 < text.size() ? 2 : 1;
    return std::min(text.size(), end);
  }
  std::size_t end = at;
  while (end < text.size() && std::isspace(static_cast<unsigned char>(text[end])) == 0 && !is_quote(text[end]) &&
         text[end] != ',' && text[end] != ';' && text[end] != '&')
    ++end;
  return end;
}

// What follows a secret's name: where its value begins, or nowhere.
std::size_t begin_of_value(std::string_view text, std::size_t name_begin, std::size_t at) {
  const bool is_option = text.substr(name_begin).starts_with("--");
  if (at < text.size() && text[at] == '\\') ++at;  // JSON within JSON
  if (at < text.size() && is_quote(text[at])) ++at;
  const std::size_t behind_name = at;
  while (at < text.size() && is_space(text[at])) ++at;
  if (at < text.size() && (text[at] == '=' || text[at] == ':')) {
    ++at;
    while (at < text.size() && is_space(text[at])) ++at;
    if (at + 1 < text.size() && text[at] == '\\' && is_quote(text[at + 1])) ++at;
    return at;
  }
  return is_option && at > behind_name ? at : std::string_view::npos;
}

std::string redact_named(std::string_view text) {
  std::string made;
  std::size_t at = 0;
  while (at < text.size()) {
    if (!is_name(text[at])) {
      made += text[at++];
      continue;
    }
    std::size_t end = at;
    while (end < text.size() && is_name(text[end])) ++end;
    const std::size_t begin = is_secret_name(text.substr(at, end - at)) ? begin_of_value(text, at, end) : std::string_view::npos;
    if (begin == std::string_view::npos || begin >= text.size()) {
      made += text.substr(at, end - at);
      at = end;
      continue;
    }
    std::size_t value = begin;
    // "Authorization: Bearer abc": the scheme is no secret.
    for (const std::string_view scheme : {"Bearer ", "Basic ", "bearer ", "basic "})
      if (text.substr(value).starts_with(scheme)) value += scheme.size();
    const std::size_t value_end = end_of_value(text, value);
    const bool is_quoted = is_quote(text[value]);
    made += text.substr(at, value - at);
    if (value_end - value > (is_quoted ? 1U : 0U))
      made += (is_quoted ? std::string(1, text[value]) : "") + Redactor::kMark;
    else
      made += text.substr(value, value_end - value);
    at = value_end;
  }
  return made;
}

// https://user:password@host, also with a '/' in the password; but not https://host/a@b, whose first '/' no ':' precedes.
void redact_addresses(std::string& text) {
  for (std::size_t at = 0; (at = text.find("://", at)) != std::string::npos;) {
    at += 3;
    std::size_t end = at, last = std::string::npos;
    bool has_password = false;
    for (; end < text.size() && std::isspace(static_cast<unsigned char>(text[end])) == 0 && !is_quote(text[end]); ++end) {
      if (text[end] == '/' && !has_password) break;
      // A port is no password: "host:80/a@b".
      if (text[end] == ':' && end + 1 < text.size()) has_password = std::isdigit(static_cast<unsigned char>(text[end + 1])) == 0;
      if (text[end] == '@') last = end;
    }
    if (last != std::string::npos && last > at) {
      text.replace(at, last - at, Redactor::kMark);
      at += std::string_view(Redactor::kMark).size();
    }
  }
}

// "Bearer abc" wherever it stands. A word that follows in a sentence is no token: those are long, or have more than letters.
void redact_bearers(std::string& text) {
  for (const std::string_view scheme : {"Bearer ", "bearer "})
    for (std::size_t at = 0; (at = text.find(scheme, at)) != std::string::npos;) {
      at += scheme.size();
      const std::size_t end = end_of_value(text, at);
      const std::string_view value = std::string_view(text).substr(at, end - at);
      const bool is_word_only = std::all_of(value.begin(), value.end(),
                                            [](char c) { return std::islower(static_cast<unsigned char>(c)) != 0 || c == '.'; });
      if (value.empty() || (is_word_only && value.size() < 16)) continue;
      text.replace(at, end - at, Redactor::kMark);
    }
}

// Keys that tell by their beginning what they are.
void redact_known_keys(std::string& text) {
  struct Form {
    std::string_view prefix;
    std::size_t least;  // characters after it
  };
  constexpr std::array<Form, 14> forms = {{{"ghp_", 20},
                                           {"gho_", 20},
                                           {"ghs_", 20},
                                           {"github_pat_", 20},
                                           {"glpat-", 16},
                                           {"hf_", 20},
                                           {"sk-", 20},
                                           {"xoxb-", 16},
                                           {"xoxp-", 16},
                                           {"AKIA", 16},
                                           {"ASIA", 16},
                                           {"AIza", 30},
                                           {"eyJ", 30},
                                           {"nvapi-", 20}}};
  for (const Form& form : forms)
    for (std::size_t at = 0; (at = text.find(form.prefix, at)) != std::string::npos;) {
      std::size_t end = at + form.prefix.size();
      while (end < text.size() && is_name(text[end])) ++end;
      const bool begins = at == 0 || !is_word(text[at - 1]);
      if (begins && end - at >= form.prefix.size() + form.least) {
        text.replace(at, end - at, Redactor::kMark);
        at += std::string_view(Redactor::kMark).size();
      } else {
        at = end;
      }
    }
  constexpr std::string_view block = "-----BEGIN ", key_end = "-----END ";
  for (std::size_t at = 0; (at = text.find(block, at)) != std::string::npos;) {
    const std::size_t end = text.find(key_end, at);
    const std::string_view kind = std::string_view(text).substr(at, 60);
    if (kind.find("PRIVATE KEY") == std::string_view::npos) {
      at += block.size();
      continue;
    }
    text.replace(at, end == std::string::npos ? std::string::npos : end - at, Redactor::kMark);
  }
}

}  // namespace

bool is_secret_name(std::string_view name) {
  constexpr std::array secrets = {"token",  "tokens",     "password",   "passwd",      "passphrase",    "pass",    "pwd",
                                  "secret", "secrets",    "credential", "credentials", "authorization", "cookie",  "apikey",
                                  "auth",   "privatekey", "accesskey",  "secretkey",   "dsn",           "license", "licence"};
  if (name == "PWD" || name == "OLDPWD") return false;  // the shell's folders
  const std::vector<std::string> words = words_of(name);
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (std::find(secrets.begin(), secrets.end(), words[i]) != secrets.end()) return true;
    if ((words[i] == "key" || words[i] == "keys") && (i > 0 || name.starts_with("--"))) return true;
    if (words[i] == "pw" && i + 1 == words.size()) return true;
  }
  return false;
}

void Redactor::add_variable(std::string_view name, std::string_view value) {
  if (value.size() < kShortestValue || !is_secret_name(name)) return;
  values_.emplace_back(value);
  std::string in_json;
  for (const char c : value) in_json += (c == '"' || c == '\\' ? "\\" : "") + std::string(1, c);
  if (in_json != value) values_.push_back(std::move(in_json));
  std::sort(values_.begin(), values_.end(), [](const std::string& a, const std::string& b) { return a.size() > b.size(); });
}

void Redactor::set_home(std::string_view path) {
  if (path.size() > 1) home_ = path;
}

std::string Redactor::redact(std::string_view text) const {
  std::string made(text);
  for (const std::string& value : values_) replace_all(made, value, kMark);
  redact_known_keys(made);
  redact_addresses(made);
  redact_bearers(made);
  made = redact_named(made);
  if (!home_.empty())
    for (std::size_t at = 0; (at = made.find(home_, at)) != std::string::npos;) {
      const std::size_t end = at + home_.size();
      // /home/ada is not /home/adam
      if (end < made.size() && (is_word(made[end]) || made[end] == '_' || made[end] == '-')) {
        at = end;
        continue;
      }
      made.replace(at, home_.size(), "~");
      ++at;
    }
  return made;
}

}  // namespace tenon::cli
