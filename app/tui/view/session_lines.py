"""The stats pane's part about sessions: what the prompts of each conversation have cost."""

from collections.abc import Sequence
from typing import Protocol

from app.text.safe_text import safe_line
from app.tui.numbers import compact, percent
from app.tui.view.spans import Line, Span, fit, justify

ROWS = 8
"""Sessions that are listed."""
_FIGURES = ("prompts", "tokens", "hit", "re-read")
_CELLS = 8


class SessionFigures(Protocol):
    """The figures of one session, as `GET /v1/sessions` has them."""

    @property
    def name(self) -> str:
        """Of the session."""
        ...

    @property
    def requests(self) -> int:
        """How many were answered."""
        ...

    @property
    def prompt_tokens(self) -> int:
        """The sum of all prompts."""
        ...

    @property
    def reread_tokens(self) -> int:
        """Those that were computed although the session had them before."""
        ...

    @property
    def hit_rate(self) -> float:
        """The share of the prompts' tokens that was not computed."""
        ...


def build_sessions(sessions: Sequence[SessionFigures], cells: int) -> list[Line]:
    """A heading, and a row for each of the sessions that were used last; nothing without any."""
    if not sessions:
        return []
    room = cells - _CELLS * len(_FIGURES) - 1
    heading = "".join(word.rjust(_CELLS) for word in _FIGURES)
    lines: list[Line] = [
        (),
        justify([Span("Sessions", "bold $primary")], [Span(heading, "$faint")], cells),
    ]
    for one in sessions[:ROWS]:
        figures = (
            str(one.requests),
            compact(one.prompt_tokens),
            percent(one.hit_rate),
            compact(one.reread_tokens),
        )
        style = "bold $warning" if one.reread_tokens else "bold"
        lines.append(
            justify(
                [Span(fit(safe_line(one.name), max(8, room)), "$muted")],
                [
                    Span("".join(one.rjust(_CELLS) for one in figures[:3]), "bold"),
                    Span(figures[3].rjust(_CELLS), style),
                ],
                cells,
            )
        )
    if len(sessions) > ROWS:
        lines.append((Span(f"{len(sessions) - ROWS} more in GET /v1/sessions", "$faint"),))
    return lines
