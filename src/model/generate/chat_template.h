// ChatTemplate: how a model expects a conversation, one of the published formats.
//
// Files carry a template in Jinja, a programming language. It is not run: the format is recognised by the marks that it uses.
// Thread safety: const calls may run concurrently.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tenon/model/generator.h"

namespace tenon {

// A stretch of a conversation. Only text of the format itself may contain control tokens.
struct ChatPart {
  std::string text;
  bool is_content = false;
};

class ChatTemplate {
 public:
  // nullopt for a template that is not known.
  static std::optional<ChatTemplate> recognise(std::string_view jinja);

  std::string name() const;
  // Throws invalid_argument for an unknown role or turns in an order that the format cannot express.
  std::vector<ChatPart> format(std::span<const ChatMessage> messages) const;

 private:
  enum class Kind { chatml, llama2, llama3, mistral, zephyr, phi3, gemma };
  Kind kind_ = Kind::chatml;
  std::string default_system_;  // said if a conversation does not begin with a system message
};

}  // namespace tenon
