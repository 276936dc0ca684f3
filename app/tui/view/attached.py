"""Rows of attached files: in the transcript and above the prompt."""

from collections.abc import Sequence

from app.text.safe_text import safe_line
from app.tui.glyphs import Glyphs
from app.tui.numbers import compact
from app.tui.view.spans import Line, Span, cut, fit, width

_NAME_CELLS = 40
_GAP = "   "


def build_facts(name: str, glyphs: Glyphs, pages: int = 0, tokens: int | None = None) -> str:
    """`report.pdf · 12 pages · 3,400 tok`, as far as it is known."""
    parts = [fit(safe_line(name), _NAME_CELLS)]
    if pages:
        parts.append(f"{pages:,} page{'' if pages == 1 else 's'}")
    if tokens is not None:
        parts.append(f"{tokens:,} tok")
    return f" {glyphs.separator} ".join(parts)


def build_attached(
    name: str,
    glyphs: Glyphs,
    pages: int,
    tokens: int | None,
    *,
    shown: bool,
    key: str,
    click: str,
) -> Line:
    """The row of a file in the transcript; a click or the key shows its text, or hides it again.

    Args:
        key: named behind the file; empty to name none.
    """
    arrow = glyphs.more_down if shown else glyphs.current
    hint = f"  {key} {'hides' if shown else 'shows'} it" if key else ""
    return (
        Span(f"{arrow} ", "$accent", click),
        Span(build_facts(name, glyphs, pages, tokens), "$muted", click),
        Span(hint, "$faint", click),
    )


def build_draft_files(files: Sequence[Span], cells: int) -> Line:
    """The files of a draft in one row; of those without room the number."""
    spans: list[Span] = []
    for at, one in enumerate(files):
        left = len(files) - at
        more = Span(f"+{left} more", "$faint")
        gap = Span(_GAP) if spans else Span("")
        room = cells - width(spans) - width([gap]) - (width([more]) + len(_GAP) if left > 1 else 0)
        if spans and width([one]) > room:
            return (*spans, gap, more)
        spans += [gap, *cut([one], max(room, 8))]
    return tuple(spans)


def build_size(tokens: int, left: int) -> str:
    """`312 tok, 7.1k left`: what the draft takes, and what the context has room for beside it."""
    if tokens > left:
        return f"{compact(tokens)} tok, only {compact(max(left, 0))} left"
    return f"{compact(tokens)} tok, {compact(left - tokens)} left"
