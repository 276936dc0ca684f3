"""`Grammar`: the formal language that constrains an answer, as a caller specifies it.

It is checked and compiled in `engine.grammar` and applied as a token mask in the executors' samplers.
Frozen and hashable, because it is the key of the compiler's cache.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, Self

import orjson

from engine.api.errors import InvalidRequest

GrammarKind = Literal["json_object", "json_schema", "regex", "choice", "lark", "tool_calls"]


@dataclass(frozen=True, slots=True)
class Grammar:
    """A formal language. A complete answer is one of its texts, a truncated one a prefix of one.

    Attributes:
        kind: the format of `source`.
        source: `json_object`: empty. `json_schema`: a schema as JSON text; properties are generated
            in its order. `regex`: an expression without look-around that matches the whole answer. `choice`:
            a JSON array of strings. `lark`: a grammar in llguidance's variant of Lark. `tool_calls`: what
            `engine.grammar.call_grammar` writes.
    """

    kind: GrammarKind
    source: str = ""

    @classmethod
    def json_object(cls) -> Self:
        """Any JSON object."""
        return cls("json_object")

    @classmethod
    def json_schema(cls, schema: str | bool | Mapping[str, Any]) -> Self:
        """JSON that is valid under a schema. A string is the schema's JSON text and is not parsed here.

        Raises:
            InvalidRequest: the mapping cannot be written as JSON.
        """
        return cls("json_schema", schema if isinstance(schema, str) else _dump(schema))

    @classmethod
    def regex(cls, expression: str) -> Self:
        """Text that the expression matches as a whole."""
        return cls("regex", expression)

    @classmethod
    def choice(cls, choices: Iterable[str]) -> Self:
        """One of the given strings.

        Raises:
            InvalidRequest: they cannot be written as JSON.
        """
        return cls("choice", _dump(list(choices)))

    @classmethod
    def lark(cls, grammar: str) -> Self:
        """Text that a Lark grammar derives from its `start` rule."""
        return cls("lark", grammar)


def _dump(value: Any) -> str:
    try:
        return orjson.dumps(value).decode()
    except (TypeError, orjson.JSONEncodeError) as error:
        raise InvalidRequest(
            f"The grammar cannot be written as JSON ({error}).", param="grammar"
        ) from error
