"""The log pane's rows: the newest matching records that fit, from a given record upwards."""

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from app.text.log_ring import LogEntry
from app.tui.view.spans import Line, Span, cut, fit, width
from app.tui.view.wrapping import wrap_cells

LEVELS = (logging.INFO, logging.WARNING, logging.ERROR)
"""The lowest levels that can be chosen, in the order of the key."""
_WORDS = {logging.INFO: "all", logging.WARNING: "warnings and errors", logging.ERROR: "errors"}
_MAX_ROWS = 6
"""Rows of one record; the rest of a longer one is in the log file."""


@dataclass(frozen=True, slots=True)
class LogFilter:
    """Which records are shown: from a level on, and with a text in message or logger."""

    level: int = logging.INFO
    text: str = ""

    def __call__(self, entry: LogEntry) -> bool:
        """Whether the record is shown."""
        wanted = self.text.casefold()
        return entry.level >= self.level and (
            wanted in entry.text.casefold() or wanted in entry.logger.casefold()
        )

    @property
    def next_level(self) -> int:
        """The level that the key changes to."""
        return LEVELS[(LEVELS.index(self.level) + 1) % len(LEVELS)]


def build_log_head(
    wanted: LogFilter, shown: int, kept: int, below: int, keys: tuple[str, str], cells: int
) -> Line:
    """The pane's title: what is shown, how many records follow below, and the keys that filter.

    Args:
        wanted: the filter.
        shown: records that match it.
        kept: records in the ring.
        below: matching records after the last one on screen.
        keys: the keys of level and text.
        cells: width.
    """
    level, text = keys
    found = f"{shown} of {kept}" if shown != kept else f"{kept}"
    spans = [
        Span("Log", "bold $primary"),
        Span(f"  {found} record{'' if kept == 1 else 's'}", "$muted"),
        Span(f"  {level} ", "$accent"),
        Span(_WORDS[wanted.level], "$muted"),
    ]
    if wanted.text:
        spans += [Span(f"  {text} ", "$accent"), Span(f"“{wanted.text}”", "$foreground")]
    else:
        spans += [Span(f"  {text} ", "$accent"), Span("find", "$muted")]
    if below:
        spans.append(Span(f"  {below} newer below", "bold $accent"))
    return cut(spans, cells)


def build_log_rows(
    entries: Sequence[LogEntry],
    cells: int,
    rows: int,
    *,
    local: Callable[[float], time.struct_time] = time.localtime,
) -> list[Line]:
    """The last `rows` rows of these records; costs O(rows × cells), however many records there are.

    Args:
        entries: records, oldest first.
        cells: width.
        rows: most rows.
        local: time of day of an instant.
    """
    lines: list[Line] = []
    for entry in reversed(entries):
        lines[:0] = _rows_of(entry, cells, local)
        if len(lines) >= rows:
            break
    return lines[-rows:] if rows > 0 else []


def _rows_of(entry: LogEntry, cells: int, local: Callable[[float], time.struct_time]) -> list[Line]:
    style = _style(entry.level)
    names = 26 if cells >= 100 else 14 if cells >= 60 else 0
    head = [
        Span(time.strftime("%H:%M:%S ", local(entry.time)), "$faint"),
        Span(f"{logging.getLevelName(entry.level)[:7].lower():<8}", style),
    ]
    if names:
        head.append(Span(f"{_short(entry.logger, names - 1):<{names}}", "$muted"))
    indent = width(head)
    pieces = wrap_cells(entry.text, max(1, cells - indent))
    if len(pieces) > _MAX_ROWS:
        pieces = [*pieces[: _MAX_ROWS - 1], f"{pieces[_MAX_ROWS - 1]} …"]
    text_style = style if entry.level >= logging.WARNING else ""
    first, *others = pieces
    return [
        cut((*head, Span(first, text_style)), cells),
        *(cut((Span(" " * indent), Span(piece, text_style)), cells) for piece in others),
    ]


def _short(logger: str, cells: int) -> str:
    """The end of a logger's name, which tells more than its beginning."""
    return logger if len(logger) <= cells else fit(logger.rpartition(".")[2], cells)


def _style(level: int) -> str:
    if level >= logging.ERROR:
        return "$error"
    if level >= logging.WARNING:
        return "$warning"
    return "$muted"
