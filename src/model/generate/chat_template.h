// ChatTemplate: how a model expects a conversation, by the template in Jinja that its files carry.
//
// Thread safety: const calls may run concurrently.
#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/generate/jinja/template.h"
#include "tenon/model/generator.h"

namespace tenon {

// A stretch of a conversation: text of the format itself, or of messages.
struct ChatPart {
  std::string text;
  bool is_content = false;
};

class ChatTemplate {
 public:
  // |special_tokens|: what the template may name, such as "bos_token". Throws invalid_argument for what is not Jinja,
  // unimplemented for a statement that is not supported, both with the line.
  static ChatTemplate parse(std::string_view jinja, const std::map<std::string, std::string>& special_tokens);

  // Of a published format, "Jinja" for others.
  const std::string& name() const noexcept { return name_; }
  // Up to where the assistant speaks. Throws invalid_argument for an unknown role and for messages that the template refuses.
  std::vector<ChatPart> format(std::span<const ChatMessage> messages) const;

 private:
  explicit ChatTemplate(jinja::Template parsed) : template_(std::move(parsed)) {}

  jinja::Template template_;
  std::map<std::string, std::string> special_tokens_;
  std::string name_;
};

}  // namespace tenon
