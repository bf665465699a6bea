#include "model/generate/chat_template.h"

#include <fmt/format.h>

#include "base/text/printable.h"
#include "tenon/error.h"

namespace tenon {
namespace {

// By the marks that a template writes.
std::string name_of(std::string_view jinja) {
  const auto has = [&](std::string_view part) { return jinja.find(part) != std::string_view::npos; };
  if (has("<|im_start|>")) return "ChatML";
  if (has("<|start_header_id|>")) return "Llama 3";
  if (has("<start_of_turn>")) return "Gemma";
  if (has("[INST]")) return has("<<SYS>>") ? "Llama 2" : "Mistral";
  if (has("<|user|>") && has("<|assistant|>")) return has("<|end|>") ? "Phi 3" : "Zephyr";
  return "Jinja";
}

jinja::Value messages_of(std::span<const ChatMessage> messages) {
  jinja::List list;
  for (const ChatMessage& message : messages) {
    if (message.role != "system" && message.role != "user" && message.role != "assistant")
      throw Error(ErrorCode::invalid_argument, fmt::format("a message has the role '{}'", printable(message.role)),
                  "roles are: system, user, assistant");
    jinja::Map map;
    map.emplace_back(jinja::Text("role"), jinja::Value::text(message.role));
    map.emplace_back(jinja::Text("content"), jinja::Text(message.content, true));
    list.emplace_back(std::move(map));
  }
  return list;
}

}  // namespace

ChatTemplate ChatTemplate::parse(std::string_view jinja, const std::map<std::string, std::string>& special_tokens) {
  constexpr std::size_t kLongest = 1 << 20;
  if (jinja.size() > kLongest) throw Error(ErrorCode::resource_exhausted, "the chat template of the model is too long");
  ChatTemplate out(jinja::Template::parse(jinja));
  out.special_tokens_ = special_tokens;
  out.name_ = name_of(jinja);
  return out;
}

std::vector<ChatPart> ChatTemplate::format(std::span<const ChatMessage> messages) const {
  if (messages.empty()) throw Error(ErrorCode::invalid_argument, "a conversation needs at least one message");
  std::map<std::string, jinja::Value> globals{{"messages", messages_of(messages)},
                                              {"add_generation_prompt", true},
                                              {"tools", jinja::None{}},
                                              {"documents", jinja::None{}}};
  for (const auto& [name, text] : special_tokens_) globals.insert_or_assign(name, jinja::Value::text(text));
  const jinja::Text text = template_.render(std::move(globals));
  std::vector<ChatPart> parts;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (parts.empty() || parts.back().is_content != text.is_content(i)) parts.push_back({{}, text.is_content(i)});
    parts.back().text += text.bytes()[i];
  }
  return parts;
}

}  // namespace tenon
