"""Joins neighbouring parts of an answer that are of one kind."""

from collections.abc import Sequence
from itertools import groupby

from engine.api.answer_parts import (
    AnswerPart,
    AnswerReasoning,
    AnswerText,
    CallArguments,
    CallBegun,
)


def join_parts(parts: Sequence[AnswerPart]) -> list[AnswerPart]:
    """The parts with one text, piece of reasoning or of a call's arguments instead of several in a row.

    Cost: linear in their length; readers yield a part for each character.
    """
    if len(parts) < 2:
        return [*parts]
    joined: list[AnswerPart] = []
    for (kind, index), run in groupby(parts, key=_kind):
        if kind is CallBegun:
            joined += run
            continue
        text = "".join(part.text for part in run if not isinstance(part, CallBegun))
        if kind is AnswerText:
            joined.append(AnswerText(text))
        elif kind is AnswerReasoning:
            joined.append(AnswerReasoning(text))
        else:
            joined.append(CallArguments(index, text))
    return joined


def _kind(part: AnswerPart) -> tuple[type[AnswerPart], int]:
    return type(part), part.index if isinstance(part, CallBegun | CallArguments) else 0
