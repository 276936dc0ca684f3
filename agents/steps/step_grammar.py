"""`step_grammar`: the grammar of one ReAct step, built anew for every step from what is possible then.

    {"thought": "…", "action": "read", "input": {"path": "a.py", "start": 1}}

Written in llguidance's Lark. A value that was used alone before is taken out: of an enumeration by leaving it
out, of free text by intersection with a complement (JSON Schema's `not` is not implemented there). Every text
has a bound, so the longest step is known.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from agents.steps.bounded_schema import STYLE, longest_text
from engine.api.grammar import Grammar

FINAL_ANSWER = "final_answer"
MAX_THOUGHT_CHARS = 200
MAX_USED = 64
"""Used values of free text that are taken out; older ones are caught by the executor's hash."""
_CHARACTER = r'([^"\\\x00-\x1f\x7f]|\\["\\nt])'


@dataclass(frozen=True, slots=True)
class Argument:
    """An argument of an action.

    Attributes:
        name: its name.
        schema: bounded JSON schema of its value.
        required: whether a call must have it.
        values: the only values that exist, or None for any value of the schema.
        is_line: whether it is a line number of the file that the main argument names.
    """

    name: str
    schema: Mapping[str, Any]
    required: bool = True
    values: tuple[str, ...] | None = None
    is_line: bool = False

    @property
    def is_text(self) -> bool:
        """Whether it is free text, from which used values can be taken out."""
        return (
            self.values is None
            and set(self.schema) <= {"type", "maxLength", "minLength"}
            and (self.schema.get("type") == "string")
        )


@dataclass(frozen=True, slots=True)
class Action:
    """A tool as it may be called now.

    Attributes:
        name: the tool's.
        arguments: required ones first; the first one is the main argument.
        used: values that the main argument had alone in earlier calls; None stands for a call without any.
        lines: number of lines by value of the main argument, for arguments that are line numbers.
    """

    name: str
    arguments: tuple[Argument, ...] = ()
    used: frozenset[str | None] = frozenset()
    lines: Mapping[str, int] = field(default_factory=dict)


class _Rules:
    """Collects the rules of a grammar; equal ones once."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self._names: dict[str, str] = {}

    def add(self, prefix: str, body: str) -> str:
        """The name of a rule or terminal with this body."""
        if body not in self._names:
            self._names[body] = name = f"{prefix}{len(self._names)}"
            self.lines.append(f"{name}: {body}")
        return self._names[body]

    def schema(self, schema: Mapping[str, Any]) -> str:
        """A rule for a JSON schema, without whitespace."""
        return self.add("json", "%json " + json.dumps({"x-guidance": STYLE, **schema}))

    def values(self, values: Iterable[str]) -> str:
        """A terminal for one of several JSON strings."""
        return self.add("VALUES", " | ".join(_literal(_json(value)) for value in values))

    def text(self, characters: int, least: int, without: Iterable[str] = ()) -> str:
        """A terminal for a JSON string of at most so many characters, less some values."""
        string = self.add("TEXT", f'/"{_CHARACTER}{{{least},{characters}}}"/')
        used = sorted(without)
        if not used:
            return string
        return self.add("UNUSED", f"{string} & ~{self.values(used)}")


def step_grammar(
    actions: Sequence[Action], answer: Mapping[str, Any], *, thought: bool
) -> tuple[Grammar, int]:
    """The grammar of the next step, and an upper bound of its length in characters, escapes not counted.

    Args:
        actions: the tools that may be called now; those without a possible call are left out.
        answer: bounded schema of the final answer.
        thought: whether a step begins with a thought.
    """
    rules = _Rules()
    calls, longest = [], 0
    for action in actions:
        call = _call(rules, action)
        if call is not None:
            calls.append(rules.add("call", f"{_literal(_begin(action.name))} {call}"))
            longest = max(longest, len(_begin(action.name)) + _longest_input(action))
    calls.append(f"{_literal(_begin(FINAL_ANSWER))} {rules.schema(answer)}")
    longest = max(longest, len(_begin(FINAL_ANSWER)) + longest_text(answer))
    start, opening = _literal("{"), 2
    if thought:
        start += f" {_literal(_THOUGHT)} {rules.text(MAX_THOUGHT_CHARS, 0)} {_literal(', ')}"
        opening += len(_THOUGHT) + 4 + MAX_THOUGHT_CHARS
    head = f"start: {start} call {_literal('}')}\ncall: " + " | ".join(calls)
    return Grammar.lark("\n".join([head, *rules.lines])), opening + longest


_THOUGHT = '"thought": '


def _begin(name: str) -> str:
    return f'"action": {_json(name)}, "input": '


def _call(rules: _Rules, action: Action) -> str | None:
    """The input of an action, or None if no call of it is possible."""
    if not action.arguments:
        return None if None in action.used else _literal("{}")
    main, *others = action.arguments
    optional = [one for one in others if not one.required]
    required = [one for one in others if one.required]
    choices: list[str] = []
    if not main.required and None not in action.used:
        choices.append(_literal("{}"))
    if not required:
        alone = _value(rules, main, action.used)
        if alone is not None:
            choices.append(f"{_literal(_open(main))} {alone} {_literal('}')}")
    if others:
        for value, lines in _with_lines(action):
            chosen = _value(rules, main) if value is None else _literal(_json(value))
            rest = _rest(rules, required, optional, lines)
            if chosen is not None and rest is not None:
                choices.append(f"{_literal(_open(main))} {chosen} {rest} {_literal('}')}")
    return rules.add("input", " | ".join(choices)) if choices else None


def _with_lines(action: Action) -> Iterable[tuple[str | None, int | None]]:
    """The values of the main argument with their numbers of lines; one None where lines do not matter."""
    values = action.arguments[0].values
    if values is None or not action.lines:
        return [(None, None)]
    return [(value, action.lines[value]) for value in values if value in action.lines]


def _rest(
    rules: _Rules, required: Sequence[Argument], optional: Sequence[Argument], lines: int | None
) -> str | None:
    """The other arguments: all required ones, or at least one optional one."""

    def member(argument: Argument) -> str | None:
        value = _value(rules, argument, lines=lines)
        return None if value is None else f"{_literal(f', {_json(argument.name)}: ')} {value}"

    needed = [member(one) for one in required]
    if any(one is None for one in needed):
        return None
    free = [one for one in map(member, optional) if one is not None]
    if needed:
        return " ".join([*filter(None, needed), *(f"({one})?" for one in free)])
    starts = [
        " ".join([one, *(f"({later})?" for later in free[at + 1 :])]) for at, one in enumerate(free)
    ]
    return rules.add("rest", " | ".join(starts)) if starts else None


def _value(
    rules: _Rules,
    argument: Argument,
    used: frozenset[str | None] = frozenset(),
    lines: int | None = None,
) -> str | None:
    without = [value for value in used if value is not None]
    if argument.values is not None:
        left = [value for value in argument.values if value not in used]
        return rules.values(left) if left else None
    if argument.is_text:
        least = int(argument.schema.get("minLength", 1))
        return rules.text(int(argument.schema["maxLength"]), least, without[:MAX_USED])
    if lines is not None and argument.is_line:
        return rules.schema({"type": "integer", "minimum": 1, "maximum": max(1, lines)})
    return rules.schema(argument.schema)


def _longest_input(action: Action) -> int:
    return 2 + sum(
        len(_json(one.name))
        + 4
        + (
            longest_text(one.schema)
            if one.values is None
            else max((len(_json(value)) for value in one.values), default=0)
        )
        for one in action.arguments
    )


def _open(argument: Argument) -> str:
    return f"{{{_json(argument.name)}: "


def _json(value: str) -> str:
    """The spelling that the grammar's strings have: quotes, backslashes, line ends and tabs are escaped."""
    return json.dumps(value, ensure_ascii=False)


def _literal(text: str) -> str:
    """A string of the grammar."""
    return json.dumps(text, ensure_ascii=False)
