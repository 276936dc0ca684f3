"""`Grammar`: what form an answer must have, as a caller states it.

Stated here, checked and compiled in `engine.grammar`, and applied as a token mask in the
executors' samplers. Frozen and hashable: it is a cache key and crosses every transport.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, Self

import orjson

from engine.api.errors import InvalidRequest

GrammarKind = Literal["json_object", "json_schema", "regex", "choice", "lark"]


@dataclass(frozen=True, slots=True)
class Grammar:
    """A formal language; the answer is one of its texts, or the beginning of one if cut short.

    Attributes:
        kind: how to read `source`.
        source: `json_object`: empty. `json_schema`: a schema as JSON text; properties are written
            in its order. `regex`: an expression without look-around, matched as a whole. `choice`:
            a JSON array of strings. `lark`: a grammar in llguidance's variant of Lark.
    """

    kind: GrammarKind
    source: str = ""

    @classmethod
    def json_object(cls) -> Self:
        """Any JSON object."""
        return cls("json_object")

    @classmethod
    def json_schema(cls, schema: str | bool | Mapping[str, Any]) -> Self:
        """JSON that a schema describes; text is taken as it is.

        Raises:
            InvalidRequest: the schema is no JSON.
        """
        return cls("json_schema", schema if isinstance(schema, str) else _dump(schema))

    @classmethod
    def regex(cls, expression: str) -> Self:
        """Text that an expression matches from its first to its last character."""
        return cls("regex", expression)

    @classmethod
    def choice(cls, choices: Iterable[str]) -> Self:
        """One of several texts."""
        return cls("choice", _dump(list(choices)))

    @classmethod
    def lark(cls, grammar: str) -> Self:
        """Text that a Lark grammar derives from its `start`."""
        return cls("lark", grammar)


def _dump(value: Any) -> str:
    try:
        return orjson.dumps(value).decode()
    except (TypeError, orjson.JSONEncodeError) as error:
        raise InvalidRequest(f"The grammar is no JSON ({error}).", param="grammar") from error
