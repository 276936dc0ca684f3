"""Rows of the search for models on a hub."""

from typing import TYPE_CHECKING

from app.runtime.model_hub import Download
from app.text.safe_text import safe_line
from app.tui.glyphs import Glyphs, gauge
from app.tui.numbers import compact, percent, size
from app.tui.view.spans import Line, Span, fit

if TYPE_CHECKING:
    from engine.models.hub_search import FoundFile, FoundRepository

NEEDED_SHARE = 1.1
NEEDED_BYTES = 256 * 1024**2
"""A model takes its file's size times the share, and so much for buffers and a small KV pool, estimated."""
_BAR_CELLS = 30


def fits(nbytes: int, free: int | None) -> bool | None:
    """Whether a model of this size probably fits into so much free memory; None if that is not known."""
    return None if free is None else nbytes * NEEDED_SHARE + NEEDED_BYTES <= free


def build_repository(found: "FoundRepository", cells: int) -> Line:
    """Name and downloads of a repository."""
    facts = f"{compact(found.downloads)} downloads" + (", gated" if found.gated else "")
    name = fit(safe_line(found.repository), max(20, cells - len(facts) - 2))
    return (Span(name.ljust(max(20, cells - len(facts) - 2)), "bold"), Span(f"  {facts}", "$muted"))


def build_file(found: "FoundFile", free: int | None, cells: int) -> Line:
    """Name and size of a model, and whether it fits into the memory that is free."""
    does = fits(found.size, free)
    words, style = {
        True: ("fits in memory", "$muted"),
        False: ("more than the free memory", "$warning"),
        None: ("", "$muted"),
    }[does]
    room = max(20, cells - 40)
    name = fit(safe_line(found.title), room).ljust(room)
    return (Span(name, "bold"), Span(f"{size(found.size):>9}", "$muted"), Span(f"  {words}", style))


def build_download(download: Download, glyphs: Glyphs, cells: int) -> list[Line]:
    """What is downloaded and how far, or how it ended."""
    source = fit(safe_line(download.source), max(20, cells - 4))
    if not download.running:
        if download.name:
            return [(Span(f"{safe_line(download.name)} is installed.", "$success"),)]
        style = "$muted" if download.cancelled else "$error"
        return [(Span(fit(safe_line(download.error), 3 * cells), style),)]
    stage = "stopping" if download.cancelled else {
        "download": "downloading", "verify": "checking", "unpack": "unpacking"
    }.get(download.stage, download.stage)  # fmt: skip
    full, empty = gauge(glyphs, download.share, _BAR_CELLS)
    return [
        (Span(f"{stage} {source}", "$foreground"),),
        (
            Span(full, "$primary"),
            Span(empty, "$panel"),
            Span(f" {percent(download.share).rjust(4)}", "bold"),
            Span(
                f"  {size(download.done)} of {size(download.total)}" if download.total else "",
                "$muted",
            ),
        ),
    ]
