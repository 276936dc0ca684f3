"""Rows of the slash commands and file names that complete what is typed."""

from app.slash.attachments import complete_path
from app.slash.parse import matches
from app.text.safe_text import safe_line
from app.tui.view.spans import Line, Span

_COMPLETIONS = 7


def build_completions(text: str) -> list[Line]:
    """Rows of the commands that complete the text, and the number of further ones."""
    found = matches(text)
    if not found:
        return _paths(text)
    lines: list[Line] = [
        (Span(f"/{one.name} {one.argument}".ljust(24), "$accent"), Span(one.help, "$muted"))
        for one in found[:_COMPLETIONS]
    ]
    if len(found) > _COMPLETIONS:
        lines.append((Span(f"{len(found) - _COMPLETIONS} more; f1 lists all", "$faint"),))
    return lines


def _paths(text: str) -> list[Line]:
    """Rows of the files that complete the name after the last `@`."""
    found = complete_path(text.rsplit("\n", 1)[-1])
    lines: list[Line] = [
        (Span(safe_line(one.rpartition("@")[2]), "$accent"),) for one in found[:_COMPLETIONS]
    ]
    if len(found) > _COMPLETIONS:
        lines.append((Span(f"{len(found) - _COMPLETIONS} more; tab completes", "$faint"),))
    return lines
