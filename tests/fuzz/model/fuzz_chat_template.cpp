// Changed chat templates: what parses is run, and ends within its limits.
#include "fuzz/fuzzer.h"
#include "model/generate/jinja/template.h"

namespace tenon {
namespace {

jinja::Value conversation() {
  jinja::List messages;
  for (const char* role : {"system", "user", "assistant", "user"}) {
    jinja::Map message;
    message.emplace_back(jinja::Text("role"), jinja::Value::text(role));
    message.emplace_back(jinja::Text("content"), jinja::Text(" one\ntwo \xe9\xa6\xac </think> ", true));
    messages.emplace_back(std::move(message));
  }
  return messages;
}

fuzz::Target make_target() {
  fuzz::Target target{.name = "chat_template"};
  target.seeds = {
      "{%- for m in messages %}{{ '<|' + m['role'] + '|>\\n' + m.content|trim + eos_token }}{% if loop.last %}x{% endif %}{% "
      "endfor %}",
      "{% set ns = namespace(a=0, b='') %}{% for m in messages[::-1] if m.role != 'system' %}{% set ns.a = ns.a + loop.index0 %}"
      "{% set ns.b = ns.b ~ m.content.split('</think>')[-1].lstrip('\\n') %}{% else %}-{% endfor %}{{ ns.a }}{{ ns.b | tojson }}",
      "{% macro f(a, b=1) -%}{{ a * b }}{% if b < 3 %}{{ f(a, b + 1) }}{% endif %}{% endmacro %}{{ f('ab') | upper | "
      "replace('A', 'x') }}",
      "{{ messages | selectattr('role', 'equalto', 'user') | map(attribute='content') | join(', ') | length }}{{ {'a': [1, 2.5, "
      "none]} | tojson(indent=2) }}",
      "{# c -#} {% raw %}{{ x }}{% endraw %}{% if a is defined and a is not none %}1{% elif 'a' in 'abc' %}2{% else %}{{ "
      "raise_exception('no') }}{% endif %}",
      "{% set ns = namespace(x=[]) %}{% for i in range(40) %}{% set ns.x = [ns.x, ns.x] %}{% endfor %}{% set d = dict(a=1, "
      "b=ns.y) "
      "%}{{ [{}] | map(attribute='q', default=d) | list }}{{ 'a-b'.rsplit('-', 1) }}{{ 'a b'.splitlines() | sort }}{{ "
      "[d].index(d) }}{{ '{}'.format(d) }}",
      "{% for i in range(9) %}{% if i is odd %}{% continue %}{% endif %}{{ 'abc'[i:] ~ i // 2 }}{% break %}{% endfor %}{% set x "
      "%}y{% endset %}{% filter trim %} z {% endfilter %}"};
  target.words = {"{%",       "%}",      "{{",        "}}",      "{%-",      "-%}",         "{#",
                  "#}",       "for",     "in",        "if",      "elif",     "else",        "endif",
                  "endfor",   "set",     "endset",    "macro",   "endmacro", "namespace(",  "dict(",
                  "ns",       "ns.x",    "filter=",   "default", "format(",  "index(",      "9223372036854775807",
                  "range(",   "loop",    "recursive", "is",      "not",      "and",         "or",
                  "messages", "content", "role",      "[::-1]",  "[",        "]",           "(",
                  ")",        "{",       "}",         "|",       "~",        "**",          "//",
                  "tojson",   "join",    "map",       "select",  "sort",     "'x' * 99999", "99999999999999",
                  "-1",       ".",       ",",         "\\u0041", "''",       "generation",  "endgeneration",
                  "break",    "filter"};
  target.parse = [](fuzz::Bytes bytes) {
    const jinja::Template chat = jinja::Template::parse(fuzz::text_of(bytes));
    const jinja::Text text = chat.render({{"messages", conversation()},
                                          {"add_generation_prompt", true},
                                          {"tools", jinja::None{}},
                                          {"eos_token", jinja::Value::text("</s>")}});
    fuzz::require(text.size() <= std::size_t{1} << 27, "more text than is allowed");
  };
  // What a template makes is bounded by its budget of steps and bytes, not by its own size.
  target.bound = [](std::size_t bytes) { return 4096 * bytes + (std::uint64_t{1} << 29); };
  return target;
}

}  // namespace

const fuzz::Target& fuzz::target() {
  static const Target target = make_target();
  return target;
}

}  // namespace tenon
