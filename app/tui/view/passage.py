"""The text of a passage in its document, wrapped, with the cited words lit."""

import re
from collections.abc import Iterable, Sequence

from rich.cells import cell_len, chop_cells

from app.runtime.source_views import OpenedPassage, Piece
from app.runtime.stored_passages import StoredPassage
from app.text.safe_text import safe_line, safe_text
from app.tui.glyphs import Glyphs
from app.tui.view.sources import place_of
from app.tui.view.spans import Line, Span, cut
from app.tui.view.wrapping import TAB

_STYLES = {"around": "$muted", "passage": "$foreground", "cited": "bold reverse $accent"}
_WORD = re.compile(r"\n|[^\S\n]+|\S+")


def build_passage_head(
    passage: StoredPassage, verdict: str, position: str, glyphs: Glyphs, cells: int
) -> list[Line]:
    """Which passage it is, where it is from, and what the check found."""
    facts = [
        f"bytes {passage.start}-{passage.end}",
        f"{passage.tokens} tokens",
        f"from {passage.collection}",
    ]
    if passage.spans_of == "text":
        facts[0] += " of its extracted text"
    head = (
        Span(f"[{passage.n}] ", "bold $accent"),
        Span(place_of(passage), "bold"),
        Span(f"  {position}", "$faint"),
    )
    lines = [
        cut(head, cells),
        cut((Span(safe_line(passage.file), "$muted"),), cells),
        cut((Span(f" {glyphs.separator} ".join(facts), "$faint"),), cells),
    ]
    if verdict:
        lines.append(cut((Span(f"{glyphs.stopped} {verdict}", "$warning"),), cells))
    return lines


def build_passage(opened: OpenedPassage, cells: int) -> tuple[list[Line], int]:
    """The rows of the text, and the index of the first one that is lit."""
    lines: list[Line] = []
    if opened.note:
        lines += [cut((Span(opened.note, "$warning"),), cells), ()]
    above = len(lines)
    rows = wrap_spans((_span(piece) for piece in opened.pieces), cells)
    lit = next(
        (at for at, row in enumerate(rows) if any(one.style == _STYLES["cited"] for one in row)), 0
    )
    return [*lines, *rows], above + lit


def _span(piece: Piece) -> Span:
    return Span(safe_text(piece.text), _STYLES[piece.part])


def wrap_spans(spans: Iterable[Span], cells: int) -> list[Line]:
    """Rows of at most `cells`, broken between words, and through words that are too long."""
    cells = max(1, cells)
    rows: list[Line] = []
    row: list[Span] = []
    used = 0
    for span in spans:
        for word in _WORD.findall(span.text.replace("\t", TAB)):
            if word == "\n":
                rows.append(tuple(row))
                row, used = [], 0
                continue
            for part in _parts(word, cells):
                length = cell_len(part)
                if used + length > cells:
                    rows.append(tuple(row))
                    row, used = [], 0
                    if part.isspace():
                        continue
                row.append(span._replace(text=part))
                used += length
    if row:
        rows.append(tuple(row))
    return [_joined(one) for one in rows]


def _parts(word: str, cells: int) -> Sequence[str]:
    return [word] if cell_len(word) <= cells else chop_cells(word, cells)


def _joined(row: Line) -> Line:
    """The row with neighbours of one style as one span."""
    joined: list[Span] = []
    for span in row:
        if joined and joined[-1].style == span.style:
            joined[-1] = joined[-1]._replace(text=joined[-1].text + span.text)
        else:
            joined.append(span)
    return tuple(joined)
