"""The progress bar of an index run on standard error, and Ctrl+C as a request to stop."""

import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import FrameType

    from engine.retrieval.indexing.report import Cancelled, IndexProgress, Progress


@contextmanager
def index_run() -> "Iterator[tuple[Progress, Cancelled]]":
    """The callbacks of an index run. The first Ctrl+C ends it in order, the second at once."""
    stop = threading.Event()
    with on_interrupt(stop.set), _bar() as report:
        yield report, stop.is_set


@contextmanager
def on_interrupt(stop: Callable[[], None]) -> Iterator[None]:
    """Call `stop` at the first Ctrl+C; the second raises `KeyboardInterrupt`."""

    def handle(number: int, frame: "FrameType | None") -> None:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        stop()

    former = signal.signal(signal.SIGINT, handle)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, former)


@contextmanager
def _bar() -> "Iterator[Progress]":
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn

    bar = Progress(
        TextColumn("{task.fields[files]}", markup=False),
        BarColumn(),
        TextColumn("{task.fields[rate]}", markup=False),
        console=Console(stderr=True),
        transient=True,
    )
    task = bar.add_task("", total=None, files="", rate="")

    def report(event: "IndexProgress") -> None:
        bar.update(
            task,
            total=event.bytes or None,
            completed=event.bytes_done,
            files=files_text(event),
            rate=rate_text(event),
        )

    with bar:
        yield report


def files_text(event: "IndexProgress") -> str:
    """How many files are done."""
    failed = f", {event.failed:,} unreadable" if event.failed else ""
    return f"{event.files_done:,} of {event.files:,} files{failed}"


def rate_text(event: "IndexProgress") -> str:
    """Chunks per second, and the time left where it can be estimated."""
    rate = f"{event.chunks:,} chunks, {event.chunks_per_s:,.0f}/s"
    if event.seconds_left is None:
        return rate
    minutes, seconds = divmod(round(event.seconds_left), 60)
    return f"{rate}, {minutes}:{seconds:02} left"
