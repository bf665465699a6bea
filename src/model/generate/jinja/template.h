// Template: a chat template in Jinja, run within limits.
//
//   jinja::Template chat = jinja::Template::parse(text);
//   jinja::Text prompt = chat.render({{"messages", messages}, {"add_generation_prompt", true}});
//
// A subset of Jinja as transformers runs it (trim_blocks, lstrip_blocks, loop controls, its tojson): what templates of published
// models use. upper, lower, title and capitalize change ASCII letters only. Nothing is read or called outside the template, and
// steps, nesting and the bytes of texts are bounded, so a hostile template ends with an error.
//
// Lifetime: a value; copies share the tree. Thread safety: const calls may run concurrently.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "model/generate/jinja/syntax.h"
#include "model/generate/jinja/value.h"

namespace tenon::jinja {

class Template {
 public:
  // Throws invalid_argument for what is not Jinja, unimplemented for a statement that is not supported, both with the line.
  static Template parse(std::string_view source);

  // Throws invalid_argument if the template raises an exception or does something that fails, unimplemented for a filter, test or
  // function that is not supported, resource_exhausted beyond the limits.
  Text render(std::map<std::string, Value> globals) const;

 private:
  explicit Template(std::shared_ptr<const Node> root) : root_(std::move(root)) {}
  std::shared_ptr<const Node> root_;
};

}  // namespace tenon::jinja
