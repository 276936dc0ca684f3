"""The calls of a node of the kind `tool`, as they are stored: JSON with one object for each call."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from engine.api.tools import CallResult, ToolCall

STOPPED = "The call was stopped."
"""What the model reads of calls that have no result."""


@dataclass(frozen=True, slots=True)
class MadeCall:
    """A call.

    Attributes:
        name: of the tool.
        arguments: JSON text.
        state: `ok`, `failed` or `denied`; empty while it runs, and if it was stopped.
        seconds: that it took; None without a result.
    """

    name: str
    arguments: str
    state: str = ""
    seconds: float | None = None


def begun_calls(calls: Iterable[ToolCall]) -> str:
    """The stored form of calls without results."""
    return _stored({"id": one.id, "name": one.name, "arguments": one.arguments} for one in calls)


def finished_calls(results: Iterable[CallResult]) -> str:
    """The stored form of calls with their results, whose texts are the node's."""
    return _stored(
        {
            "id": one.call.id,
            "name": one.call.name,
            "arguments": one.call.arguments,
            "state": one.state.value,
            "seconds": one.seconds,
        }
        for one in results
    )


def read_calls(stored: str | None) -> list[MadeCall]:
    """The calls of a node; none if it has none, or an imported one has something else."""
    try:
        value = orjson.loads(stored or "[]")
    except orjson.JSONDecodeError:
        return []
    found = []
    for one in value if isinstance(value, list) else ():
        if isinstance(one, dict) and isinstance(one.get("name"), str):
            seconds = one.get("seconds")
            found.append(
                MadeCall(
                    one["name"],
                    str(one.get("arguments", "")),
                    str(one.get("state", "")),
                    float(seconds) if isinstance(seconds, (int, float)) else None,
                )
            )
    return found


def results_text(texts: Sequence[str], names: Sequence[str]) -> str:
    """What the model reads: the only result, or all of them under the names of their tools."""
    if len(texts) == 1:
        return texts[0]
    return "\n\n".join(f"{name}:\n{text}" for name, text in zip(names, texts, strict=True))


def _stored(values: Iterable[dict[str, Any]]) -> str:
    return orjson.dumps(list(values)).decode()
