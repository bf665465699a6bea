#include "model/generate/chat_template.h"

#include <gtest/gtest.h>

#include "model/generate/jinja/value.h"
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

TEST(ChatTemplate, NothingHoldsANamespace) {
  const std::string refused = "the chat template, line 1: a namespace cannot be kept in another value";
  const std::string ns = "{% set ns = namespace() %}";
  EXPECT_EQ(error_of(ns + "{% set d = dict(a=ns) %}{% set ns.x = d %}{{ ns }}"), refused);
  EXPECT_EQ(error_of(ns + "{% set ns.x = [{}] | map(attribute='q', default=ns) %}{{ ns }}"), refused);
  EXPECT_EQ(error_of(ns + "{% set ns.x = [nope] | map('default', ns) %}{{ ns }}"), refused);
}

TEST(ChatTemplate, ValuesAreNotDeeperThanAllowed) {
  std::string deep = "{% set d = dict() %}";
  for (int i = 0; i < 40000; ++i) deep += "{% set d = dict(a=d) %}";
  EXPECT_EQ(error_of(deep), "the chat template, line 1: a value is nested too deeply");
  EXPECT_EQ(error_of("{{ 'a' | map(filter='map') }}"), "the chat template, line 1: it is nested too deeply");
}

// A list that holds one list twice, 62 times over, takes little memory, and its text would take 2^64 bytes.
TEST(ChatTemplate, ChargesForAllThatAValueHolds) {
  const std::string twice =
      "{% set ns = namespace(x=[]) %}{% for i in range(62) %}{% set ns.x = [ns.x, ns.x] %}{% endfor %}{% set x = ns.x %}";
  for (const char* use : {"{{ x }}", "{{ [x, x] }}", "{{ ns }}", "{{ x ~ x }}", "{{ x == x }}", "{{ x is eq(x) }}",
                          "{{ [x] | join }}", "{{ [1, 2] | join(x) }}", "{{ '{}'.format(x) }}", "{{ 'a' | replace('a', x) }}",
                          "{{ {}[x] }}", "{{ [][x] }}", "{{ x is upper }}", "{{ x is lower }}", "{{ raise_exception(x) }}",
                          "{{ [x].index(x) }}", "{{ [x].count(x) }}", "{{ {'a': x} | tojson(indent=1) }}"})
    EXPECT_EQ(error_of(twice + use), "the chat template, line 1: it does more than is allowed") << use;
}

TEST(ChatTemplate, ChargesForWhatItWritesAndCompares) {
  const std::string too_much = "the chat template, line 1: it does more than is allowed";
  EXPECT_EQ(error_of("{% set n = namespace(x=range(50000) | list) %}{% for i in range(60) %}{% set n.x = [n.x] %}{% endfor %}"
                     "{{ n.x | tojson(indent=16) | length }}"),
            too_much);
  EXPECT_EQ(error_of("{{ ('\\n' * 4000000).splitlines() | length }}"), too_much);
  EXPECT_EQ(error_of("{{ ('a' * 4000000 ~ 'b') in 'a' * 8000000 }}"), too_much);
  EXPECT_EQ(error_of("{{ ('a' * 8000000).rfind('a' * 4000000 ~ 'b') }}"), too_much);
  std::string sorted = "{% set x = 'a' * 1000000 %}{{ [x";
  for (int i = 0; i < 300; ++i) sorted += ", x";
  EXPECT_EQ(error_of(sorted + "] | sort | length }}"), too_much);
  EXPECT_EQ(error_of("{{ " + std::string(100000, 'a') + " }}"), "the chat template, line 1: a name is too long");
  // Quadratic if each part were put before the others.
  EXPECT_EQ(text_of("{{ ('a' * 400000).rsplit('a', 400000) | length }}", {{"user", "U"}}), "400001");
  EXPECT_EQ(text_of("{{ ('a' * 8000000).strip('b' * 8000000 ~ 'a') | length }}", {{"user", "U"}}), "0");
}

TEST(ChatTemplate, CopiesOfTextsShareTheirBytes) {
  const jinja::Text text(std::string(1000, 'x'), true);
  jinja::Text copy = text;
  EXPECT_EQ(&copy.bytes(), &text.bytes());
  copy += "y";
  copy += copy;
  EXPECT_EQ(copy.size(), 2002u);
  EXPECT_FALSE(copy.is_content(1000));
  EXPECT_TRUE(copy.is_content(1001));
  EXPECT_EQ(text.bytes(), std::string(1000, 'x'));
  EXPECT_EQ(text.changed([](char, std::size_t) { return 'z'; }).bytes(), std::string(1000, 'z'));
  EXPECT_EQ(text.bytes(), std::string(1000, 'x'));
}

TEST(ChatTemplate, TakesTheLargestIntegers) {
  const auto made = [](std::string_view jinja) { return text_of(jinja, {{"user", "U"}}); };
  EXPECT_EQ(made("{{ 9223372036854775807 | abs }} {{ -9223372036854775807 }}"), "9223372036854775807 -9223372036854775807");
  EXPECT_EQ(made("{{ range(9223372036854775800, 9223372036854775807, 5) }}"), "[9223372036854775800, 9223372036854775805]");
  EXPECT_EQ(made("{{ range(5, 0, -2) }}{{ range(-3, 3, 2) }}{{ range(2) }}{{ range(3, 1) }}"), "[5, 3, 1][-3, -1, 1][0, 1][]");
  EXPECT_EQ(made("{{ -true }} {{ true | abs }} {{ -2 | abs }} {{ -2.5 | abs }}"), "-1 1 2 2.5");
}

TEST(ChatTemplate, SearchesTexts) {
  const auto made = [](std::string_view jinja) { return text_of(jinja, {{"user", "U"}}); };
  EXPECT_EQ(made("{{ 'abcabd'.find('abd') }} {{ 'abcabd'.rfind('abc') }} {{ 'ab'.find('abc') }} {{ 'b'.rfind('a') }}"),
            "3 0 -1 -1");
  EXPECT_EQ(made("{{ 'aaaa'.count('aa') }} {{ '' in 'a' }} {{ 'a' in '' }} {{ 'aab' in 'aaab' }}"), "2 True False True");
  EXPECT_EQ(made("{{ 'a-b-c'.rsplit('-', 1) }} {{ 'a-b-c'.rsplit('-', 9) }} {{ '-a'.split('-') }}"),
            "['a-b', 'c'] ['a', 'b', 'c'] ['', 'a']");
  EXPECT_EQ(made("{{ {'a': 1, 'b': 2} == {'b': 2, 'a': 1} }} {{ {'a': 1} == {'b': 1} }}"), "True False");
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
