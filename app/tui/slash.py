"""Rows of the slash commands, collections and file names that complete what is typed."""

from collections.abc import Collection

from app.slash.attachments import complete_path
from app.slash.parse import matches
from app.slash.sources import complete_source
from app.text.safe_text import safe_line
from app.tui.view.spans import Line, Span

_COMPLETIONS = 7


def build_completions(text: str, sources: Collection[str] = ()) -> list[Line]:
    """Rows of the commands that complete the text, and the number of further ones.

    Args:
        text: the text before the cursor.
        sources: the names of the collections, which are listed before the files.
    """
    found = matches(text)
    if not found:
        return _after_at(text, sources)
    lines: list[Line] = [
        (Span(f"/{one.name} {one.argument}".ljust(24), "$accent"), Span(one.help, "$muted"))
        for one in found[:_COMPLETIONS]
    ]
    if len(found) > _COMPLETIONS:
        lines.append((Span(f"{len(found) - _COMPLETIONS} more; f1 lists all", "$faint"),))
    return lines


def _after_at(text: str, sources: Collection[str]) -> list[Line]:
    """Rows of the collections and files that complete the name after the last `@`."""
    line = text.rsplit("\n", 1)[-1]
    collections, files = complete_source(line, sources), complete_path(line)
    found = [*collections, *files]
    lines: list[Line] = [
        (
            Span(
                safe_line(one.rpartition("@")[2]).ljust(24 if at < len(collections) else 0),
                "$accent",
            ),
            *((Span("collection of documents", "$muted"),) if at < len(collections) else ()),
        )
        for at, one in enumerate(found[:_COMPLETIONS])
    ]
    if len(found) > _COMPLETIONS:
        lines.append((Span(f"{len(found) - _COMPLETIONS} more; tab completes", "$faint"),))
    return lines
