"""The progress bar of a model's first fetch, on standard error."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from engine.models.progress import FetchProgress, ProgressCallback


@contextmanager
def fetch_bar() -> "Iterator[ProgressCallback]":
    """A callback that draws a bar from its first report on; no output without a terminal."""
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        DownloadColumn,
        Progress,
        TaskID,
        TextColumn,
        TransferSpeedColumn,
    )

    progress = Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        DownloadColumn(binary_units=True),
        TransferSpeedColumn(),
        console=Console(stderr=True),
    )
    tasks: dict[tuple[str, str], TaskID] = {}

    def report(event: "FetchProgress") -> None:
        if not tasks:
            progress.start()
        key = (event.stage, event.item)
        if key not in tasks:
            tasks[key] = progress.add_task(f"{event.stage} {event.item}", total=event.total or None)
        progress.update(tasks[key], completed=event.done, total=event.total or None)

    try:
        yield report
    finally:
        progress.stop()
