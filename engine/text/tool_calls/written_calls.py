"""Text of calls in the form of a family, for chat templates that leave calls out."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from engine.text.tool_calls.form import CallForm


def can_write(form: CallForm) -> bool:
    """Whether `written_calls` knows the form; the templates of the other families render calls themselves."""
    return form.arguments in ("json", "python")


def written_calls(form: CallForm, calls: Sequence[Mapping[str, Any]]) -> str:
    """The calls of a message, as the model would write them.

    Args:
        form: one that `can_write`.
        calls: as in a chat message, with arguments as objects.

    Raises:
        RecursionError: the arguments of a call are nested too deep.
    """
    texts = []
    for call in calls:
        function = call["function"]
        head = form.head.replace("NAME", function["name"])
        texts.append(head + _arguments(form, function["arguments"]) + form.tail)
    return form.opening + form.separator.join(texts) + form.closing


def _arguments(form: CallForm, arguments: Mapping[str, Any]) -> str:
    if form.arguments == "json":
        return json.dumps(arguments, ensure_ascii=False)
    return ", ".join(f"{name}={_literal(value)}" for name, value in arguments.items())


def _literal(value: Any) -> str:
    """A JSON value as a Python expression, texts between double quotes."""
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, list):
        return f"[{', '.join(map(_literal, value))}]"
    if isinstance(value, dict):
        members = (f"{_literal(name)}: {_literal(member)}" for name, member in value.items())
        return f"{{{', '.join(members)}}}"
    return repr(value)
