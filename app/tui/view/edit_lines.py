"""Rows of an edit that an answer offers: the row below the answer, the diff, and the keys of its dialog."""

from collections.abc import Sequence

from agents.edits import FileEdit
from app.runtime.edited_files import Offer
from app.text.safe_text import safe_line, safe_text
from app.tui.glyphs import Glyphs
from app.tui.view.spans import Line, Span, cut, fit
from app.tui.view.wrapping import wrap_cells

_NAMED = 3
_NAMES_CELLS = 30


def build_offer(
    offer: Offer, glyphs: Glyphs, *, applied: bool, key: str, click: str, last: bool
) -> list[Line]:
    """The rows below an answer.

    Args:
        offer: what it would change.
        glyphs: of the terminal.
        applied: whether it was written.
        key: opens the dialog.
        click: the same for the mouse.
        last: whether the answer is the last one: reasons why code is not offered are of the last one only.
    """
    lines: list[Line] = []
    if offer.edits:
        mark = Span(f"{glyphs.passed} applied to ", "$success", click)
        if not applied:
            mark = Span(f"{glyphs.current} changes ", "$accent", click)
        what = f"  {key} tests it or takes it back" if applied else f"  {key} or /apply shows it"
        lines.append((mark, *_files(offer.edits, click), Span(what, "$faint", click)))
    if last and not applied:
        lines += [
            (Span(f"{glyphs.stopped} {safe_line(one)}", "$warning"),) for one in offer.refused
        ]
    return lines


def _files(edits: Sequence[FileEdit], click: str) -> list[Span]:
    spans: list[Span] = []
    for number, one in enumerate(edits[:_NAMED]):
        added, removed = one.counts
        spans.append(Span(", " if number else "", "$muted", click))
        spans.append(Span(safe_line(one.path), "bold", click))
        spans.append(Span(" (new)" if one.before is None else "", "$muted", click))
        spans.append(Span(f" +{added}", "$success", click))
        spans.append(Span(f" -{removed}", "$error", click))
        if one.names and len(edits) == 1:
            names = fit(", ".join(one.names), _NAMES_CELLS)
            spans.append(Span(f" {safe_line(names)}", "$muted", click))
    if len(edits) > _NAMED:
        spans.append(Span(f" and {len(edits) - _NAMED} more files", "$muted", click))
    return spans


def build_diff(diff: str, cells: int) -> list[Line]:
    """A unified diff: a row or, where a line is too long, several for each of its lines."""
    lines: list[Line] = []
    texts = diff.rstrip("\n").split("\n")
    heads = _heads(texts)
    for at, text in enumerate(texts):
        style = "bold $muted" if at in heads else _style(text)
        mark, body = (text[:1], text[1:]) if text[:1] in ("+", "-", " ") else ("", text)
        if at in heads:
            mark, body = "", text
        rows = wrap_cells(safe_text(body), max(1, cells - 1))
        lines += [
            (Span((mark if not number else " ") + row if mark else row, style),)
            for number, row in enumerate(rows)
        ]
    return lines


def _heads(texts: Sequence[str]) -> set[int]:
    """The lines that name a file: two above a hunk. A removed line that begins with `-- ` is none."""
    return {
        row
        for at in range(len(texts) - 1)
        if texts[at].startswith("--- ") and texts[at + 1].startswith("+++ ")
        if at + 2 >= len(texts) or texts[at + 2].startswith("@@")
        for row in (at, at + 1)
    }


def _style(line: str) -> str:
    if line.startswith("@@"):
        return "$accent"
    return {"+": "$success", "-": "$error"}.get(line[:1], "$foreground")


def build_edit(offer: Offer, cells: int, *, applied: bool) -> list[Line]:
    """The text of the dialog: what changes where, what to know about it, and the diffs."""
    title = "Applied" if applied else "The answer changes"
    lines: list[Line] = []
    for one in offer.edits:
        head = [Span(f"{title} ", "$muted"), *_files([one], "")]
        lines.append(cut(head, cells))
        if one.left_out:
            what = "statement" if one.left_out == 1 else "statements"
            lines.append(
                cut((Span(f"{one.left_out} {what} of an example left out", "$muted"),), cells)
            )
        if one.path in offer.unread:
            lines.append(
                cut(
                    (Span("the model has not read this file in this conversation", "$warning"),),
                    cells,
                )
            )
    lines.append(cut((Span("in ", "$muted"), Span(safe_line(str(offer.root)))), cells))
    for one in offer.edits:
        lines += [(), *build_diff(one.diff, cells)]
    return lines


def build_edit_keys(*, applied: bool, cells: int) -> list[Line]:
    """The keys of the dialog, a row each."""
    words = (
        (("t", "run the project's tests"), ("u", "take it back"), ("esc", "close"))
        if applied
        else (
            ("y", "apply"),
            ("t", "apply, then run the project's tests in the sandbox"),
            ("esc", "leave the files as they are"),
        )
    )
    return [
        cut((Span(f"{key:>3}", "bold $accent"), Span(f"  {word}", "$muted")), cells)
        for key, word in words
    ]
