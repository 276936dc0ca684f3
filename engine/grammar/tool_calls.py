"""Grammars of calls of tools, in llguidance's Lark; every tool's schema is a JSON document of its own.

So `#/$defs/X` leads to the tool's own definitions, whatever the other tools define. What of a schema cannot
be enforced is left out for its tool alone. Beyond their schemas, arguments have no properties that the tool
does not declare, unless it says `additionalProperties` itself, and unbounded arrays and integers have limits.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from engine.api.tools import Tool
from engine.grammar.call_rules import CallRules
from engine.grammar.endless import is_endless
from engine.grammar.enforceable import enforceable_schema
from engine.grammar.integer_bounds import bound_integers
from engine.grammar.length_bounds import bound_lengths
from engine.grammar.nesting import is_too_deep
from engine.text.control_tokens import ControlTokens
from engine.text.tool_calls.choosing import FORMS

_OPENERS = frozenset(
    {"additionalProperties", "patternProperties", "$ref", "anyOf", "allOf", "unevaluatedProperties"}
)
"""Keywords by which a schema allows properties that `properties` does not list."""


@dataclass(frozen=True, slots=True)
class ToolCalls:
    """The source of a grammar of calls.

    Attributes:
        rules: write the calls in the model's form.
        tools: the schema of the arguments by name.
        least, most: number of calls; None is any number.
        begun: the beginning of the first call that is written already.
    """

    rules: CallRules
    tools: Mapping[str, Any]
    least: int
    most: int | None
    begun: str = ""

    def lark(self, schemas: Mapping[str, Any]) -> str:
        """The grammar of the calls with schemas that the library implements."""
        tools = [Tool(name, "", schema) for name, schema in schemas.items()]
        return self.rules.text(tools, least=self.least, most=self.most, begun=self.begun)


@dataclass(frozen=True, slots=True)
class CallsText:
    """A grammar in llguidance's Lark, and the names of what it does not enforce, as `TOOL:KEYWORD`."""

    lark: str
    not_enforced: tuple[str, ...]


def read_tool_calls(source: str) -> ToolCalls:
    """What `call_grammar` wrote.

    Raises:
        ValueError: it is not of that form; the message says what is missing.
    """
    value = orjson.loads(source)
    try:
        form = FORMS[value["form"]]
        rules = CallRules(form, ControlTokens(value["controls"]))
        least, most = value["calls"]
        calls = ToolCalls(rules, dict(value["tools"]), least, most, value["begun"])
    except (TypeError, KeyError, ValueError, AttributeError) as error:
        raise ValueError("it is no list of tools") from error
    if not calls.tools or not all(isinstance(name, str) and name for name in calls.tools):
        raise ValueError("it must have a tool, and each a name")
    if not form.head.startswith(calls.begun):
        raise ValueError("what is written of the first call must begin every call")
    return calls


def texts(calls: ToolCalls, can_build: Callable[[str], bool]) -> Iterator[CallsText]:
    """Grammars of the same calls, each weaker than the one before; the first that can be built is to be used.

    Args:
        calls: the calls.
        can_build: whether a grammar can be built; asked about single tools once the first grammar cannot.
    """
    schemas = {name: enforced(schema) for name, schema in calls.tools.items()}
    left_out = {name: names for name, (_, names) in schemas.items()}

    def text(values: Mapping[str, Any], loose: frozenset[str]) -> CallsText:
        named = {name: ("parameters",) if name in loose else left_out[name] for name in schemas}
        return CallsText(
            calls.lark(values),
            tuple(f"{name}:{keyword}" for name, keywords in named.items() for keyword in keywords),
        )

    full = {name: schema for name, (schema, _) in schemas.items()}
    unreadable = frozenset(name for name, schema in full.items() if schema is None)
    loose = {name: loosened(calls.tools[name]) for name in full}
    first = {name: loose[name] if name in unreadable else full[name] for name in full}
    yield text(first, unreadable)
    failing = frozenset(
        name
        for name in full
        if name not in unreadable and not can_build(calls.lark({name: full[name]}))
    )
    if failing:
        weak = unreadable | failing
        yield text({name: loose[name] if name in weak else full[name] for name in full}, weak)
    yield text(loose, frozenset(full))
    yield text({name: {"type": "object"} for name in full}, frozenset(full))


def loose_lark(source: str) -> str:
    """A grammar of the calls that `call_grammar` wrote, which demands of arguments their names only.

    It can be built whatever the schemas say.

    Raises:
        ValueError: as `read_tool_calls`.
    """
    calls = read_tool_calls(source)
    return calls.lark({name: loosened(schema) for name, schema in calls.tools.items()})


def enforced(schema: Any) -> tuple[Any, tuple[str, ...]]:
    """The schema that a tool's arguments are held to, and the keywords of the given one that are left out.

    The schema is None if nothing of it can be used.
    """
    if schema is None or schema is True:
        schema = {}
    if not isinstance(schema, dict) or is_too_deep(schema):
        return None, ()
    rewritten, left_out = enforceable_schema(schema)
    if not isinstance(rewritten, dict) or is_endless({"type": "object", **rewritten}):
        return None, ()
    if "anyOf" not in rewritten and "$ref" not in rewritten:
        rewritten["type"] = "object"
    if not _OPENERS & rewritten.keys():
        rewritten["additionalProperties"] = False
    return bound_lengths(bound_integers(rewritten)), left_out


def loosened(schema: Any) -> dict[str, Any]:
    """A schema that demands the names of the properties only, not their values."""
    declared = schema.get("properties") if isinstance(schema, dict) else None
    if not isinstance(declared, dict):
        return {"type": "object"}
    required = schema.get("required")
    names = required if isinstance(required, list) else []
    return {
        "type": "object",
        "properties": {name: {} for name in declared},
        "required": [name for name in declared if name in names],
    }
