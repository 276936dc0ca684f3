"""`RunningCheck`: the citations of an answer are checked on another thread while it is generated."""

import logging
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TYPE_CHECKING

from app.runtime.stored_passages import StoredCitation, dump_citations
from engine.conversations.passage_source import CheckedAnswer

if TYPE_CHECKING:
    from engine.retrieval.answering.cited_text import CitedText

_log = logging.getLogger(__name__)


class RunningCheck:
    """A `CitationCheck`. Pieces that arrive while a sentence is being checked are taken together."""

    def __init__(
        self,
        begin: "Callable[[], CitedText]",
        on_thread: Callable[[Callable[[], None]], "Future[None]"],
    ) -> None:
        """Begin a check.

        Args:
            begin: makes the text, on the other thread.
            on_thread: runs work on that thread, one after another, and wakes the front end after it.
        """
        self._begin, self._on_thread = begin, on_thread
        self._lock = (
            threading.Lock()
        )  # for what follows, but for `_text`, which is the other thread's
        self._pieces: list[str] = []
        self._shown: list[str] = []
        self._is_complete = self._is_scheduled = False
        self._ended = False
        self._result: CheckedAnswer | None = None
        self._done = threading.Event()
        self._text: CitedText | None = None

    @property
    def ended(self) -> bool:
        """See `CitationCheck.ended`."""
        return self._ended

    @property
    def done(self) -> bool:
        """See `CitationCheck.done`."""
        return self._done.is_set()

    @property
    def result(self) -> CheckedAnswer | None:
        """See `CitationCheck.result`."""
        return self._result

    def feed(self, piece: str) -> None:
        """See `CitationCheck.feed`."""
        if piece:
            with self._lock:
                self._pieces.append(piece)
            self._schedule()

    def finish(self) -> None:
        """See `CitationCheck.finish`."""
        with self._lock:
            self._is_complete = True
        self._schedule()

    def take(self) -> str:
        """See `CitationCheck.take`."""
        with self._lock:
            shown, self._shown = self._shown, []
        return "".join(shown)

    def wait(self, seconds: float) -> None:
        """See `CitationCheck.wait`."""
        self._done.wait(seconds)

    def _schedule(self) -> None:
        with self._lock:
            if self._is_scheduled or self._done.is_set():
                return
            self._is_scheduled = True
        self._on_thread(self._work).add_done_callback(self._worked)

    def _worked(self, work: "Future[None]") -> None:
        """End the check if its thread has ended."""
        if work.cancelled() or work.exception() is not None:
            self._done.set()

    def _work(self) -> None:
        """On the other thread: check what has arrived."""
        try:
            self._check()
        except Exception:
            _log.exception("the citations of an answer could not be checked")
            self._done.set()

    def _check(self) -> None:
        if self._text is None:
            self._text = self._begin()
        while True:
            with self._lock:
                pieces, self._pieces = self._pieces, []
                is_complete = self._is_complete
                if not pieces and not is_complete:
                    self._is_scheduled = False
                    return
            shown = self._text.feed("".join(pieces)) if pieces else ""
            if is_complete:
                shown += self._text.finish()
            with self._lock:
                self._shown.append(shown)
                self._ended = self._text.ended
            if is_complete:
                self._result = checked_answer(self._text)
                self._done.set()
                return


def checked_answer(text: "CitedText") -> CheckedAnswer:
    """A finished text as it is stored, with the words of the passages that it cites."""
    citations = [
        StoredCitation(
            citation.n,
            True,
            citation.source.start if quote.start is None else quote.start,
            citation.source.end if quote.end is None else quote.end,
        )
        for citation in text.citations()
        for quote in citation.quotes
    ]
    citations += [StoredCitation(one.n, False, 0, 0) for one in text.answer().dropped]
    return CheckedAnswer(text.text, dump_citations(citations))
