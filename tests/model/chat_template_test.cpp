#include "model/generate/chat_template.h"

#include <gtest/gtest.h>

#include "tenon/error.h"

namespace tenon {
namespace {

std::string text_of(std::string_view jinja, const std::vector<ChatMessage>& messages) {
  std::string out;
  for (const ChatPart& part : ChatTemplate::parse(jinja, {{"eos_token", "</s>"}}).format(messages)) out += part.text;
  return out;
}

std::string error_of(std::string_view jinja, const std::vector<ChatMessage>& messages = {{"user", "U"}}) {
  try {
    text_of(jinja, messages);
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

// model.own_chats and model.chats compare whole templates with what Jinja makes of them.
TEST(ChatTemplate, KnowsWhichBytesCameFromMessages) {
  const auto marked = [](std::string_view jinja) {
    std::string out;
    for (const ChatPart& part : ChatTemplate::parse(jinja, {}).format(std::vector<ChatMessage>{{"user", " Ab-cd "}}))
      out += part.is_content ? "[" + part.text + "]" : part.text;
    return out;
  };
  EXPECT_EQ(marked("<u>{{ messages[0].content }}</u>"), "<u>[ Ab-cd ]</u>");
  EXPECT_EQ(marked("{% set x = '<' + messages[0].content|trim ~ '>' %}{{ x }}"), "<[Ab-cd]>");
  EXPECT_EQ(marked("{{ ('<' + messages[0].content.strip() + '>')[1:4] }}"), "[Ab-]");
  EXPECT_EQ(marked("{{ messages[0].content.split('-') | join('/') }}"), "[ Ab]/[cd ]");
  EXPECT_EQ(marked("{{ ('x' + messages[0].content).replace('-', '=') | upper }}"), "X[ AB]=[CD ]");
  EXPECT_EQ(marked("{{ messages[0] | tojson }}"), R"({"role": "user", "content": "[ Ab-cd ]"})");
  EXPECT_EQ(marked("{% macro f(x) %}({{ x }}){% endmacro %}{% set y %}{{ f(messages[0].content) }}{% endset %}{{ y }}"),
            "([ Ab-cd ])");
  EXPECT_EQ(marked("{% for c in messages[0].content %}{{ c }},{% endfor %}"), "[ ],[A],[b],[-],[c],[d],[ ],");
}

TEST(ChatTemplate, NamesPublishedFormats) {
  EXPECT_EQ(ChatTemplate::parse("{{ '<|im_start|>' }}", {}).name(), "ChatML");
  EXPECT_EQ(ChatTemplate::parse("[INST] <<SYS>>", {}).name(), "Llama 2");
  EXPECT_EQ(ChatTemplate::parse("{{ messages }}", {}).name(), "Jinja");
}

TEST(ChatTemplate, ErrorsSayWhere) {
  EXPECT_EQ(error_of("a\nb {% if %}"), "the chat template, line 2: an expression is not complete");
  EXPECT_EQ(error_of("\n\n{{ messages[0].missing.deeper }}"),
            "the chat template, line 3: 'missing' is undefined and has no 'deeper'");
  EXPECT_EQ(error_of("{{ 'a' + 1 }}"), "the chat template, line 1: '+' of a text and an integer");
  EXPECT_EQ(error_of("{% include 'x' %}"), "the chat template, line 1: the statement 'include' is not supported");
  EXPECT_EQ(error_of("{{ 1 | wordwrap }}"), "the chat template, line 1: the filter 'wordwrap' is not supported");
  EXPECT_EQ(error_of("{{ raise_exception('not today') }}"), "the model's chat template refuses these messages: not today");
  EXPECT_EQ(error_of("{% for x in y %}"), "the chat template, line 1: 'endfor' is missing");
  EXPECT_EQ(error_of("{{ 'a"), "the chat template, line 1: a text in quotes does not end");
  EXPECT_EQ(error_of("{{ messages }}", {{"robot", "x"}}), "a message has the role 'robot'");
  EXPECT_EQ(error_of("{{ messages }}", {}), "a conversation needs at least one message");
}

TEST(ChatTemplate, EndsWithinItsLimits) {
  const auto is_bounded = [](const std::string& jinja) {
    try {
      text_of(jinja, {{"user", "U"}});
    } catch (const Error& error) {
      return error.code() == ErrorCode::resource_exhausted || error.code() == ErrorCode::invalid_argument;
    }
    return false;
  };
  // Steps, text, recursion, and values that are deep or hold one another many times.
  const std::string many = "{% for a in range(99999) %}{% for b in range(99999) %}";
  EXPECT_TRUE(is_bounded(many + "{% endfor %}{% endfor %}"));
  EXPECT_TRUE(
      is_bounded("{% set n = namespace(x='ab') %}{% for i in range(99) %}{% set n.x = n.x ~ n.x %}{% endfor %}{{ n.x }}"));
  EXPECT_TRUE(is_bounded("{{ 'x' * 999999999999 }}"));
  EXPECT_TRUE(is_bounded("{% macro f(x) %}{{ f(x) }}{% endmacro %}{{ f(1) }}"));
  EXPECT_TRUE(is_bounded("{% set n = namespace(x=[]) %}{% for i in range(9999) %}{% set n.x = [n.x] %}{% endfor %}"));
  EXPECT_TRUE(
      is_bounded("{% set n = namespace(x=[1]) %}{% for i in range(60) %}{% set n.x = [n.x, n.x] %}{% endfor %}{{ n.x }}"));
  EXPECT_TRUE(is_bounded("{% set n = namespace() %}{% set n.self = n %}"));
  EXPECT_TRUE(is_bounded("{{ " + std::string(5000, '(') + "1" + std::string(5000, ')') + " }}"));
  std::string sum = "{{ 1";
  for (int i = 0; i < 20000; ++i) sum += " + 1";
  EXPECT_TRUE(is_bounded(sum + " }}"));
  std::string nested;
  for (int i = 0; i < 5000; ++i) nested += "{% if true %}";
  EXPECT_TRUE(is_bounded(nested));
}

TEST(ChatTemplate, TakesLongConversations) {
  std::vector<ChatMessage> messages;
  for (int i = 0; i < 500; ++i)
    messages.push_back({i % 2 == 0 ? "user" : "assistant", std::string(2000, static_cast<char>('a' + i % 26))});
  const std::string text =
      text_of("{% for m in messages %}{{ '<' + m.role + '>' + m.content | trim + eos_token }}{% endfor %}", messages);
  EXPECT_EQ(text.size(), 500u * 2004 + 250u * (6 + 11));
}

}  // namespace
}  // namespace tenon
