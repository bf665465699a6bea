#!/usr/bin/env python3
"""Writes what Jinja makes of chat templates, one case per line, for tenon_chat_cases.

    make_chats.py OUTPUT TEMPLATE.jinja...

Templates run as transformers runs them: trim_blocks, lstrip_blocks, loop controls, its tojson, raise_exception, strftime_now and the
generation tag. A case has the messages and the text, the first one of a template the template too, or "error" if the template refuses them. Times are written as
<time FORMAT>, because the set is older than the day on which it is used.
"""
import json
import os
import sys

import jinja2
from jinja2.ext import Extension
from jinja2.sandbox import ImmutableSandboxedEnvironment

SPECIAL = {"bos_token": "<|bos|>", "eos_token": "<|eos|>", "pad_token": "<|pad|>", "unk_token": "<|unk|>"}
USER, SYSTEM, ASSISTANT = "user", "system", "assistant"
CONVERSATIONS = [
    [(USER, "Hello")],
    [(SYSTEM, "Be brief."), (USER, "What is a lease?")],
    [(USER, "One"), (ASSISTANT, "Two"), (USER, "Three")],
    [(SYSTEM, "  Spaces around. \n"), (USER, "\n a \"quoted\" text, <b> & 'more' \\ \t"), (ASSISTANT, " answer \n\n"), (USER, "žluťoučký kůň 馬 🐎\u3000")],
    [(SYSTEM, "S"), (USER, "think"), (ASSISTANT, "<think>\nFirst this,\nthen that.\n</think>\n\nDone."), (USER, "again"), (ASSISTANT, "<think>x</think>y"), (USER, "last")],
    [(USER, "/no_think now"), (ASSISTANT, "ok"), (USER, "{{ messages }} {% if %} [INST] <|im_end|>")],
    [(ASSISTANT, "I begin"), (USER, "really?")],
    [(USER, "twice"), (USER, "in a row")],
    [(USER, "a"), (SYSTEM, "late"), (USER, "b")],
    [(SYSTEM, "only the system")],
    [(USER, "continue"), (ASSISTANT, "the last is mine")],
    [(USER, "")],
]


class Generation(Extension):
    """{% generation %} marks what is trained on; here only its body counts."""
    tags = {"generation"}

    def parse(self, parser):
        next(parser.stream)
        return parser.parse_statements(("name:endgeneration",), drop_needle=True)


def environment():
    def refuse(message):
        raise jinja2.exceptions.TemplateError(message)

    def tojson(value, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
        return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)

    made = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True, extensions=[Generation, "jinja2.ext.loopcontrols"])
    made.filters["tojson"] = tojson
    made.globals["raise_exception"] = refuse
    made.globals["strftime_now"] = lambda form: f"<time {form}>"
    return made


jinja = environment()
with open(sys.argv[1], "w", encoding="utf-8") as out:
    for path in sorted(sys.argv[2:]):
        with open(path, encoding="utf-8") as file:
            text = file.read()
        template = jinja.from_string(text)
        for i, conversation in enumerate(CONVERSATIONS):
            messages = [{"role": role, "content": content} for role, content in conversation]
            case = {"name": os.path.basename(path), "messages": messages}
            if i == 0:
                case["template"] = text
            try:
                case["text"] = template.render(messages=messages, tools=None, documents=None, add_generation_prompt=True, **SPECIAL)
            except Exception as error:  # what a template does with messages that it does not expect may be anything
                case["error"] = f"{type(error).__name__}: {error}"
            out.write(json.dumps(case) + "\n")
