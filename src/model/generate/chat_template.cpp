#include "model/generate/chat_template.h"

#include <fmt/format.h>

#include "base/text/printable.h"
#include "tenon/error.h"

namespace tenon {
namespace {

bool has(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

// ChatML templates may say something as the system if nobody does: a literal between the marks. Its line end may be escaped.
std::string default_system(std::string_view jinja) {
  constexpr std::string_view end = "<|im_end|>";
  for (const std::string_view begin : {"<|im_start|>system\\n", "<|im_start|>system\n"})
    for (std::size_t at = jinja.find(begin); at != std::string_view::npos; at = jinja.find(begin, at + 1)) {
      const std::string_view rest = jinja.substr(at + begin.size());
      const std::string_view literal = rest.substr(0, rest.find(end));
      if (literal.size() < rest.size() && !literal.empty() && literal.find_first_of("'\"{}\\") == std::string_view::npos)
        return std::string(literal);
    }
  return {};
}

class Parts {
 public:
  Parts& mark(std::string_view text) {
    if (!parts_.empty() && !parts_.back().is_content)
      parts_.back().text += text;
    else
      parts_.push_back({std::string(text), false});
    return *this;
  }
  Parts& content(std::string_view text) {
    parts_.push_back({std::string(text), true});
    return *this;
  }
  std::vector<ChatPart> take() { return std::move(parts_); }

 private:
  std::vector<ChatPart> parts_;
};

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view spaces = " \t\r\n";
  const std::size_t begin = text.find_first_not_of(spaces);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(spaces) - begin + 1);
}

// [INST] formats: the system's text belongs to the first message of the user, and turns alternate.
std::vector<ChatPart> instructions(std::span<const ChatMessage> messages, bool marks_system) {
  Parts out;
  std::string_view system;
  bool expects_user = true;
  for (std::size_t i = 0; i < messages.size(); ++i) {
    const ChatMessage& message = messages[i];
    if (message.role == "system" && i == 0) {
      system = message.content;
      continue;
    }
    if ((message.role == "user") != expects_user)
      throw Error(ErrorCode::invalid_argument, "messages of the user and the assistant must alternate in this model's format");
    if (expects_user) {
      out.mark("[INST] ");
      if (!system.empty() && marks_system)
        out.mark("<<SYS>>\n").content(system).mark("\n<</SYS>>\n\n");
      else if (!system.empty())
        out.content(system).mark("\n\n");
      system = {};
      out.content(trimmed(message.content)).mark(" [/INST]");
    } else {
      out.mark(" ").content(trimmed(message.content)).mark(" </s>");
    }
    expects_user = !expects_user;
  }
  return out.take();
}

}  // namespace

std::optional<ChatTemplate> ChatTemplate::recognise(std::string_view jinja) {
  ChatTemplate out;
  if (has(jinja, "<|im_start|>")) {
    out.kind_ = Kind::chatml;
    out.default_system_ = default_system(jinja);
  } else if (has(jinja, "<|start_header_id|>")) {
    out.kind_ = Kind::llama3;
  } else if (has(jinja, "<start_of_turn>")) {
    out.kind_ = Kind::gemma;
  } else if (has(jinja, "[INST]")) {
    out.kind_ = has(jinja, "<<SYS>>") ? Kind::llama2 : Kind::mistral;
  } else if (has(jinja, "<|user|>") && has(jinja, "<|assistant|>")) {
    out.kind_ = has(jinja, "<|end|>") ? Kind::phi3 : Kind::zephyr;
  } else {
    return std::nullopt;
  }
  return out;
}

std::string ChatTemplate::name() const {
  switch (kind_) {
    case Kind::chatml: return "ChatML";
    case Kind::llama2: return "Llama 2";
    case Kind::llama3: return "Llama 3";
    case Kind::mistral: return "Mistral";
    case Kind::zephyr: return "Zephyr";
    case Kind::phi3: return "Phi 3";
    case Kind::gemma: return "Gemma";
  }
  return {};
}

std::vector<ChatPart> ChatTemplate::format(std::span<const ChatMessage> messages) const {
  if (messages.empty()) throw Error(ErrorCode::invalid_argument, "a conversation needs at least one message");
  for (const ChatMessage& message : messages)
    if (message.role != "system" && message.role != "user" && message.role != "assistant")
      throw Error(ErrorCode::invalid_argument, fmt::format("a message has the role '{}'", printable(message.role)),
                  "roles are: system, user, assistant");
  if (kind_ == Kind::llama2 || kind_ == Kind::mistral) return instructions(messages, kind_ == Kind::llama2);
  Parts out;
  if (!default_system_.empty() && messages[0].role != "system")
    out.mark("<|im_start|>system\n" + default_system_ + "<|im_end|>\n");
  std::string_view system;  // Gemma has no role for it
  for (const ChatMessage& message : messages) {
    switch (kind_) {
      case Kind::chatml: out.mark("<|im_start|>" + message.role + "\n").content(message.content).mark("<|im_end|>\n"); break;
      case Kind::llama3:
        out.mark("<|start_header_id|>" + message.role + "<|end_header_id|>\n\n")
            .content(trimmed(message.content))
            .mark("<|eot_id|>");
        break;
      case Kind::zephyr: out.mark("<|" + message.role + "|>\n").content(message.content).mark("</s>\n"); break;
      case Kind::phi3: out.mark("<|" + message.role + "|>\n").content(message.content).mark("<|end|>\n"); break;
      default:
        if (message.role == "system") {
          system = message.content;
          break;
        }
        out.mark(message.role == "user" ? "<start_of_turn>user\n" : "<start_of_turn>model\n");
        if (!system.empty() && message.role == "user") {
          out.content(trimmed(system)).mark("\n\n");
          system = {};
        }
        out.content(trimmed(message.content)).mark("<end_of_turn>\n");
    }
  }
  switch (kind_) {
    case Kind::chatml: out.mark("<|im_start|>assistant\n"); break;
    case Kind::llama3: out.mark("<|start_header_id|>assistant<|end_header_id|>\n\n"); break;
    case Kind::gemma: out.mark("<start_of_turn>model\n"); break;
    default: out.mark("<|assistant|>\n");
  }
  return out.take();
}

}  // namespace tenon
