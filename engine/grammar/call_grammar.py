"""The language of an answer that calls tools: what the model writes after the opening of its form."""

from collections.abc import Sequence

import orjson

from engine.api.errors import InvalidRequest
from engine.api.grammar import Grammar
from engine.api.tools import Tool, ToolChoice
from engine.text.control_tokens import ControlTokens
from engine.text.tool_calls.form import CallForm


def call_grammar(
    form: CallForm,
    tools: Sequence[Tool],
    choice: ToolChoice,
    controls: ControlTokens,
    *,
    calls: int | None = None,
    begun: str = "",
) -> Grammar:
    """The grammar of one call or more, after `form.opening`, which belongs to the prompt.

    What of the tools' schemas a grammar cannot express is not enforced; no schema makes it invalid.

    Args:
        form: of the model.
        tools: of the request, at least one of which may be called.
        choice: which may be called, and whether more than one.
        controls: of the model: marks of the form that are control tokens are so in the grammar.
        calls: their number; None is any number that `choice` allows.
        begun: what the prompt has of the first call already (`CallForm.begun`).

    Raises:
        InvalidRequest: the tools cannot be written as JSON.
    """
    is_single = form.is_single or not choice.parallel
    source = {
        "form": form.name,
        "controls": {mark: id_ for mark, id_ in controls.spellings.items() if mark in form.marks},
        "tools": [
            [one.name, one.parameters]
            for one in tools
            if choice.names is None or one.name in choice.names
        ],
        "calls": [1, 1] if is_single else [calls or 1, calls],
        "begun": begun,
    }
    try:
        return Grammar("tool_calls", orjson.dumps(source).decode())
    except (TypeError, orjson.JSONEncodeError) as error:
        raise InvalidRequest(
            f"The tools cannot be written as JSON ({error}).", param="tools"
        ) from error
