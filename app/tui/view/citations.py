"""Citations `[n]` of answers: rows below a message, and which of them the check dropped."""

import re
from collections.abc import Sequence

from app.runtime.stored_passages import StoredCitation, StoredPassage
from app.tui.glyphs import Glyphs
from app.tui.view.sources import place_of
from app.tui.view.spans import Line, Span

HREF = "citation:"
"""The scheme of the links of citations in an answer; their target is the number."""
_CODE = re.compile(r"```.*?(?:```|\Z)|`[^`\n]*`", re.DOTALL)
CITATION = re.compile(r"\[([1-9][0-9]?)\](?!\()")


def cited_numbers(text: str, count: int) -> tuple[int, ...]:
    """The numbers of existing passages that an answer cites outside of code, each once, in its order."""
    found = dict.fromkeys(int(one) for one in CITATION.findall(_CODE.sub("", text)))
    return tuple(one for one in found if one <= count)


def build_cited(
    node_id: str,
    passages: Sequence[StoredPassage],
    cited: Sequence[int],
    citations: Sequence[StoredCitation] | None,
    glyphs: Glyphs,
) -> list[Line]:
    """The rows below an answer: each cited passage with its place, and what the check found.

    Args:
        node_id: the answer.
        passages: those that it was given.
        cited: the numbers that it cites.
        citations: after their check; None before it.
        glyphs: the terminal's glyphs.
    """
    by_number = {one.n: one for one in passages}
    lines: list[Line] = []
    for n in cited:
        if n in by_number:
            click = f"app.perform_later('sources','open_citation','{node_id}/{n}')"
            place = Span(place_of(by_number[n]), "$muted", click)
            lines.append((Span(f"[{n}] ", "$accent", click), place))
    dropped = [one for one in citations or () if not one.supported]
    if dropped:
        words = "1 citation" if len(dropped) == 1 else f"{len(dropped)} citations"
        numbers = ", ".join(f"[{n}]" for n in dict.fromkeys(one.n for one in dropped))
        text = f"{glyphs.stopped} {words} dropped: {numbers} without support"
        lines.append((Span(text, "$warning"),))
    if citations is not None and passages and not any(one.supported for one in citations):
        lines.append((Span(f"{glyphs.stopped} no passage supports this answer", "$warning"),))
    return lines


def build_found(names: Sequence[str], count: int, glyphs: Glyphs) -> list[Line]:
    """The row below a message: how many passages were found for it, and where."""
    where = ", ".join(names)
    plural = "" if count == 1 else "s"
    click = "app.pane('sources')"
    return [(Span(f"{count} passage{plural} from {where}", "$faint", click),)]


def build_declined(node_id: str, reason: str, key: str, glyphs: Glyphs) -> list[Line]:
    """The rows below a message that the documents are taken not to answer.

    Args:
        node_id: the message.
        reason: the rule that decided it, in one sentence; empty for messages of older versions.
        key: the key that has it answered all the same.
        glyphs: the terminal's glyphs.
    """
    said = reason or "nothing was found in the attached documents"
    click = f"app.perform_later('sources','answer_anyway','{node_id}')"
    return [
        (Span(f"{glyphs.stopped} {said}", "$warning"),),
        (Span(f"{key} answers it anyway", "$accent", click),),
    ]
