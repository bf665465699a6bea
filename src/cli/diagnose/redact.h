// Redactor: takes secrets out of text that is going to be shown to others.
//
// What counts as a secret: the values of variables whose names say so (HF_TOKEN, DB_PASSWORD), wherever those values stand; what
// follows such a name in any text (api_key = "...", --token ..., "secret": "..."); passwords in addresses; and text that has the
// form of a well-known kind of key. Rather too much than too little goes.
//
//   Redactor redactor;
//   redactor.add_variable("HF_TOKEN", "hf_...");
//   redactor.redact(text)
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tenon::cli {

// Whether something of this name is a secret: one of its words is token, password, secret, credentials ...; or key, with another
// word before it.
bool is_secret_name(std::string_view name);

class Redactor {
 public:
  static constexpr const char* kMark = "[redacted]";

  // Its value is taken out of every text from now on if its name is a secret's.
  void add_variable(std::string_view name, std::string_view value);
  // The user's folder is written as ~.
  void set_home(std::string_view path);

  std::string redact(std::string_view text) const;

 private:
  std::vector<std::string> values_;  // the longest first
  std::string home_;
};

}  // namespace tenon::cli
