"""`CallRules`: the rules of a grammar of calls, in llguidance's Lark, for every form of calls.

Each schema is a JSON document of its own in its rule, so `#/$defs/X` leads to the tool's own definitions.
"""

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any

from engine.api.tools import Tool
from engine.text.control_tokens import ControlTokens
from engine.text.tool_calls.argument_types import STRING, kinds_of
from engine.text.tool_calls.form import CallForm

_STYLE = {"whitespace_flexible": False, "item_separator": ", ", "key_separator": ": "}
"""JSON on one line, as chat templates write the calls of the history: fewer tokens than any other."""
_DEFINITIONS = ("$defs", "definitions")
_ANY_TEXT = r"/(.|\n)*/"


class CallRules:
    """Writes grammars of calls in one form."""

    def __init__(self, form: CallForm, controls: ControlTokens) -> None:
        """Write calls in a form.

        Args:
            form: of the model.
            controls: of the model: marks of the form that are control tokens are so in the grammar.
        """
        self._form = form
        self._controls = controls

    def text(self, tools: Sequence[Tool], *, least: int, most: int | None, begun: str) -> str:
        """A grammar in Lark.

        Args:
            tools: those that may be called, with schemas that the library implements.
            least, most: number of calls; None is any number.
            begun: what the prompt has of the first call already; every call begins with it.
        """
        return "\n".join(self._lines(tools, least, most, begun)) + "\n"

    def _lines(
        self, tools: Sequence[Tool], least: int, most: int | None, begun: str
    ) -> Iterator[str]:
        further = ""
        if most != 1:
            count = f"{{{least - 1},{'' if most is None else most - 1}}}"
            further = f" ({self._text(self._form.separator)} call){count}"
            yield f"call: {self._options(tools, '')}"
        yield f"start: first{further} {self._text(self._form.closing)}".rstrip()
        yield f"first: {self._options(tools, begun)}"
        for number, tool in enumerate(tools):
            yield f"call_{number}: call_{number}_arguments {self._text(self._form.tail)}".rstrip()
            yield from self._arguments(f"call_{number}_arguments", tool)

    def _options(self, tools: Sequence[Tool], begun: str) -> str:
        heads = [self._form.head.replace("NAME", one.name).removeprefix(begun) for one in tools]
        return " | ".join(f"{self._text(head)} call_{number}" for number, head in enumerate(heads))

    def _arguments(self, rule: str, tool: Tool) -> Iterator[str]:
        match self._form.arguments:
            case "json":
                yield f"{rule}: {_json(tool.parameters)}"
            case "tagged":
                yield from self._tagged(rule, tool)
            case "python":
                yield from self._separated(rule, tool, "=", ", ")
            case "quoted":
                yield f'{rule}: "{{" {rule}_members "}}"'
                yield from self._separated(f"{rule}_members", tool, ":", ",")

    def _tagged(self, rule: str, tool: Tool) -> Iterator[str]:
        """A tag for each argument, those that may be left out with a question mark."""
        begin, end = self._form.tags
        members = list(_members(tool))
        names = [
            f"{rule}_{number}" + ("" if required else "?")
            for number, (_, _, required) in enumerate(members)
        ]
        yield f"{rule}: " + (" ".join(names) or '""')
        for number, (key, schema, _) in enumerate(members):
            is_text = kinds_of(tool, key) == STRING
            before = begin.replace("IS_TEXT", str(is_text).lower()).replace("KEY", key)
            yield f"{rule}_{number}: {self._text(before)} {rule}_{number}_value"
            if not is_text:
                yield f"{rule}_{number}_value: {_json(schema)} {self._text(end)}"
            elif choices := _choices(schema):
                texts = " | ".join(self._text(one) for one in choices)
                yield f"{rule}_{number}_value: ({texts}) {self._text(end)}"
            else:
                yield from self._text_before(f"{rule}_{number}_value", end)

    def _text_before(self, rule: str, end: str) -> Iterator[str]:
        """Any text, up to its end."""
        plain, control = next(iter(self._controls.split(end)))
        if not control:
            yield f"{rule}[suffix={json.dumps(end)}]: {_ANY_TEXT}"
            return
        # No text has a control token, so it ends there; the text before that is read with it.
        before = re.escape(plain).replace("/", "\\/")
        yield f"{rule}: /(.|\\n)*{before}/ {self._text(end.removeprefix(plain))}"

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
            yield f"{rule}: {quote} {_ANY_TEXT} {quote}"
        else:
            yield f"{rule}: {quote} {rule}_text"
            yield f"{rule}_text[suffix={quote}]: {_ANY_TEXT}"

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


def _choices(schema: Any) -> list[str]:
    """The texts that a schema lists."""
    if not isinstance(schema, dict):
        return []
    listed = [schema["const"]] if "const" in schema else schema.get("enum", [])
    return [one for one in listed if isinstance(one, str)] if isinstance(listed, list) else []


def _json(schema: Any) -> str:
    document = schema if isinstance(schema, dict) else {}
    return "%json " + json.dumps({**document, "x-guidance": _STYLE})
