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


def dropped_places(citations: Sequence[StoredCitation]) -> frozenset[tuple[int, int]]:
    """The citations that are not supported: the number, and the how-manieth with this number, from 0."""
    seen: dict[int, int] = {}
    dropped = set()
    for one in citations:
        at = seen.get(one.n, 0)
        seen[one.n] = at + 1
        if not one.supported:
            dropped.add((one.n, at))
    return frozenset(dropped)


def dropped_numbers(citations: Sequence[StoredCitation]) -> frozenset[int]:
    """The numbers of which no citation is supported."""
    supported = {one.n for one in citations if one.supported}
    return frozenset(one.n for one in citations if one.n not in supported)


def build_cited(
    node_id: str,
    passages: Sequence[StoredPassage],
    cited: Sequence[int],
    citations: Sequence[StoredCitation],
    glyphs: Glyphs,
) -> list[Line]:
    """The rows below an answer: each cited passage with its place, and what the check dropped.

    Args:
        node_id: the answer.
        passages: those that it was given.
        cited: the numbers that it cites.
        citations: after their check; empty before it.
        glyphs: the terminal's glyphs.
    """
    by_number = {one.n: one for one in passages}
    dropped = dropped_numbers(citations)
    lines: list[Line] = []
    for n in cited:
        passage = by_number.get(n)
        if passage is None:
            continue
        click = f"app.perform_later('sources','open_citation',{node_id!r},{n})"
        if n not in dropped:
            lines.append(
                (Span(f"[{n}] ", "$accent", click), Span(place_of(passage), "$muted", click))
            )
        else:
            words = f"{glyphs.stopped} [{n}] dropped: its passage does not support it"
            lines.append((Span(words, "$warning", click),))
    return lines


def build_found(names: Sequence[str], count: int, glyphs: Glyphs) -> list[Line]:
    """The row below a message: how many passages were found for it, and where."""
    where = ", ".join(names)
    if not count:
        return [
            (Span(f"{glyphs.stopped} nothing was found in the attached documents", "$warning"),)
        ]
    plural = "" if count == 1 else "s"
    click = "app.pane('sources')"
    return [(Span(f"{count} passage{plural} from {where}", "$faint", click),)]
