#!/usr/bin/env python3
"""Writes tests/data/jinja_golden.jsonl: templates, contexts, and what Jinja itself renders, in the environment that
transformers sets up for chat templates. The C++ interpreter must give the same text, or fail where Jinja fails.

Needs jinja2 >= 3.1.6:  python3 tests/make_jinja_golden.py
A line is {"new_context": {…}}, numbered from 0, or a row {"name", "template", "context": number, "text"}, which has
{"error": type of the exception} instead of text where Jinja fails. A row without "template" has that of the row before.
"""
import json
import pathlib
import sys

import jinja2
import jinja2.ext
import jinja2.nodes
import jinja2.utils
from jinja2.sandbox import ImmutableSandboxedEnvironment

import jinja_chat_templates
import jinja_snippets

HERE = pathlib.Path(__file__).parent


class Generation(jinja2.ext.Extension):
    """{% generation %} … {% endgeneration %}: a body in a scope of its own."""

    tags = {"generation"}

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(["name:endgeneration"], drop_needle=True)
        return jinja2.nodes.CallBlock(self.call_method("run"), [], [], body).set_lineno(line)

    def run(self, caller):
        return caller()


def raise_exception(message):
    raise jinja2.exceptions.TemplateError(message)


def tojson(x, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
    return json.dumps(x, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


class Namespace(jinja2.utils.Namespace):
    """As transformers has it: no attribute begins with an underscore."""

    def __init__(*args, **kwargs):
        self, args = args[0], args[1:]
        attributes = dict(*args, **kwargs)
        for name in attributes:
            Namespace.check(name)
        jinja2.utils.Namespace.__init__(self, attributes)

    def __setitem__(self, name, value):
        Namespace.check(name)
        jinja2.utils.Namespace.__setitem__(self, name, value)

    @staticmethod
    def check(name):
        if isinstance(name, str) and name.startswith("_"):
            raise jinja2.exceptions.SecurityError(name)


def environment():
    env = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[Generation, jinja2.ext.loopcontrols]
    )
    env.filters["tojson"] = tojson
    env.globals["raise_exception"] = raise_exception
    env.globals["namespace"] = Namespace
    return env


def main():
    env = environment()
    lines, numbers, rows = [], {}, []
    last_template = None
    for name, template, contexts in jinja_snippets.cases() + jinja_chat_templates.cases():
        for context in contexts:
            key = json.dumps(context)
            if key not in numbers:
                numbers[key] = len(numbers)
                lines.append({"new_context": context})
            row = {"name": name, "template": template, "context": numbers[key]}
            try:
                row["text"] = env.from_string(template).render(**context)
                row["text"].encode("utf-8")
            except Exception as fault:  # whatever Python raises, the C++ side must raise an error too
                row.pop("text", None)
                row["error"] = type(fault).__name__
            if template == last_template:
                del row["template"]
            last_template = template
            rows.append(row)
            lines.append(row)
    out = HERE / "data" / "jinja_golden.jsonl"
    with open(out, "w", encoding="utf-8") as f:
        for line in lines:
            f.write(json.dumps(line, ensure_ascii=False, separators=(",", ":")) + "\n")
    failed = sum("error" in row for row in rows)
    print(f"{out}: {len(rows)} rows, {failed} of them errors, jinja2 {jinja2.__version__}", file=sys.stderr)


if __name__ == "__main__":
    main()
