"""The language of an answer that calls tools: what the model writes after the opening of its form."""

import json
from collections.abc import Iterator, Sequence
from typing import Any

from engine.api.grammar import Grammar
from engine.api.tools import Tool, ToolChoice
from engine.grammar.enforceable import enforceable_schema
from engine.grammar.integer_bounds import bound_integers
from engine.text.control_tokens import ControlTokens
from engine.text.tool_calls.argument_types import STRING, kinds_of
from engine.text.tool_calls.form import CallForm

_STYLE = {"whitespace_flexible": False, "item_separator": ", ", "key_separator": ": "}
"""JSON on one line, as chat templates write the calls of the history: fewer tokens than any other."""
_DEFINITIONS = ("$defs", "definitions")


def call_grammar(
    form: CallForm, tools: Sequence[Tool], choice: ToolChoice, controls: ControlTokens
) -> Grammar:
    """The grammar of one call or more, after `form.opening`, which belongs to the prompt.

    Args:
        form: of the model.
        tools: of the request, at least one of which may be called.
        choice: which may be called, and whether more than one.
        controls: of the model: marks of the form that are control tokens are so in the grammar.

    Raises:
        InvalidRequest: a schema cannot be expressed.
    """
    return Grammar.lark("\n".join(_CallRules(form, controls).lines(tools, choice)) + "\n")


class _CallRules:
    """Writes the rules of one grammar."""

    def __init__(self, form: CallForm, controls: ControlTokens) -> None:
        self._form = form
        self._controls = controls

    def lines(self, tools: Sequence[Tool], choice: ToolChoice) -> Iterator[str]:
        callable_ = [one for one in tools if choice.names is None or one.name in choice.names]
        calls = "call"
        if choice.parallel and not self._form.is_single:
            calls += f" ({self._text(self._form.separator)} call)*"
        yield f"start: {calls} {self._text(self._form.closing)}".rstrip()
        yield "call: " + " | ".join(f"call_{number}" for number in range(len(callable_)))
        for number, tool in enumerate(callable_):
            yield from self._call(f"call_{number}", tool)

    def _call(self, rule: str, tool: Tool) -> Iterator[str]:
        head = self._text(self._form.head.replace("NAME", tool.name))
        yield f"{rule}: {head} {rule}_arguments {self._text(self._form.tail)}".rstrip()
        match self._form.arguments:
            case "json":
                yield f"{rule}_arguments: {_json(_closed(tool.parameters))}"
            case "xml" | "keyed":
                yield from self._tagged(f"{rule}_arguments", tool)
            case "python":
                yield from self._separated(f"{rule}_arguments", tool, "=", ", ")
            case "quoted":
                yield f'{rule}_arguments: "{{" {rule}_members "}}"'
                yield from self._separated(f"{rule}_members", tool, ":", ",")

    def _tagged(self, rule: str, tool: Tool) -> Iterator[str]:
        """A tag for each argument, those that may be left out with a question mark."""
        begin, end = "<parameter={}>\n", "\n</parameter>\n"
        if self._form.arguments == "keyed":
            begin, end = "\n<arg_key>{}</arg_key>\n<arg_value>", "</arg_value>"
        members = list(_members(tool))
        names = [
            f"{rule}_{number}" + ("" if required else "?")
            for number, (_, _, required) in enumerate(members)
        ]
        yield f"{rule}: " + (" ".join(names) or '""')
        for number, (key, schema, _) in enumerate(members):
            yield f"{rule}_{number}: {self._text(begin.format(key))} {rule}_{number}_value"
            if kinds_of(tool, key) != STRING:
                yield f"{rule}_{number}_value: {_json(schema)} {self._text(end)}"
            elif choices := _choices(schema):
                texts = " | ".join(self._text(one) for one in choices)
                yield f"{rule}_{number}_value: ({texts}) {self._text(end)}"
            else:
                yield f"{rule}_{number}_value[suffix={json.dumps(end)}]: /(.|\\n)*/"

    def _separated(self, rule: str, tool: Tool, between: str, comma: str) -> Iterator[str]:
        """Members with commas between them; `rule_N` are those from the N-th on, the first written or not."""
        members = list(_members(tool))
        yield f"{rule}: {rule}_first_0"
        for number, (key, schema, required) in enumerate(members):
            member = f"{self._text(key + between)} {rule}_{number}"
            first, rest = f"{rule}_first_{number}", f"{rule}_rest_{number}"
            after = f"{rule}_rest_{number + 1}"
            skipped = "" if required else f" | {rule}_first_{number + 1}"
            yield f"{first}: {member} {after}{skipped}"
            if number:
                given = f"({self._text(comma)} {member})" + ("" if required else "?")
                yield f"{rest}: {given} {after}"
            yield from self._value(f"{rule}_{number}", tool, key, schema)
        yield f'{rule}_first_{len(members)}: ""'
        yield f'{rule}_rest_{len(members)}: ""'

    def _value(self, rule: str, tool: Tool, key: str, schema: Any) -> Iterator[str]:
        """An argument in the style of `python` or `quoted`."""
        if self._form.arguments != "quoted" or kinds_of(tool, key) != STRING:
            yield f"{rule}: {_json(schema)}"
            return
        quote, choices = self._text(self._form.quote), _choices(schema)
        if choices:
            yield f"{rule}: {quote} ({' | '.join(map(self._text, choices))}) {quote}"
        elif self._form.quote in self._controls.spellings:
            yield f"{rule}: {quote} /(.|\\n)*/ {quote}"
        else:
            yield f"{rule}: {quote} {rule}_text"
            yield f"{rule}_text[suffix={quote}]: /(.|\\n)*/"

    def _text(self, text: str) -> str:
        """A literal text; control tokens in it by their ids."""
        parts: list[str] = []
        for plain, control in self._controls.split(text):
            if plain:
                parts.append(json.dumps(plain, ensure_ascii=False))
            if control:
                parts.append(f"<[{self._controls.spellings[control]}]>")
        return " ".join(parts)


def _members(tool: Tool) -> Iterator[tuple[str, Any, bool]]:
    """Name, schema and whether it is required, of each argument."""
    required = tool.parameters.get("required")
    names = required if isinstance(required, list) else []
    definitions = {name: tool.parameters[name] for name in _DEFINITIONS if name in tool.parameters}
    for key, schema in tool.properties.items():
        if isinstance(schema, dict):
            schema = {**schema, **definitions}
        yield key, schema, key in names


def _closed(parameters: Any) -> dict[str, Any]:
    """The schema of an object of the declared arguments only, if it declares any and does not say."""
    schema: dict[str, Any] = {"type": "object", **parameters}
    if schema.get("properties"):
        schema.setdefault("additionalProperties", False)
    return schema


def _choices(schema: Any) -> list[str]:
    """The texts that a schema lists."""
    if not isinstance(schema, dict):
        return []
    listed = [schema["const"]] if "const" in schema else schema.get("enum", [])
    return [one for one in listed if isinstance(one, str)] if isinstance(listed, list) else []


def _json(schema: Any) -> str:
    enforced, _ = enforceable_schema(schema)
    if enforced is True:
        enforced = {}
    return "%json " + json.dumps({**bound_integers(enforced), "x-guidance": _STYLE})
