"""`Detokenizer`: token ids to text, cut at stop tokens and stop strings.

Text is found where it is wanted: a request without stop strings is decoded by its reader, one with
stop strings on the engine's thread, because the stop decides when to end. The same class serves
both. The result does not depend on how the tokens were grouped into `feed` calls.
"""

from collections.abc import Sequence as Ids
from collections.abc import Set as AbstractSet
from typing import Protocol


class IncrementalDetokenizer(Protocol):
    """Incremental detokenisation (`engine.text.tokenizer.IncrementalDetokenizer`)."""

    def feed(self, ids: Ids[int], /) -> str:
        """New whole characters."""
        ...

    def flush(self) -> str:
        """Whatever was held back."""
        ...


class StopScanner:
    """Finds the first stop string in text that arrives in pieces."""

    def __init__(self, stops: Ids[str], *, include_stop: bool) -> None:
        self._stops = tuple(stops)
        self._include_stop = include_stop
        self._held = ""
        self._foreign = 0
        self.stopped = False

    def resume_after(self, text: str) -> None:
        """Begin after `text`, which somebody else has: a stop may begin in it, but not end there.

        What comes out later is what follows `text`, never a part of it.
        """
        keep = self._possible_stop(text)
        self._held, self._foreign = text[len(text) - keep :], keep

    def feed(self, text: str) -> str:
        """Text that is certainly before any stop. After a stop nothing more comes out."""
        if self.stopped:
            return ""
        buffer = self._held + text
        found = self._first_stop(buffer)
        if found is not None:
            start, end = found
            self.stopped, self._held = True, ""
            return self._own(buffer[: end if self._include_stop else start])
        keep = self._possible_stop(buffer)
        self._held = buffer[len(buffer) - keep :]
        return self._own(buffer[: len(buffer) - keep])

    def flush(self) -> str:
        """The held-back tail: no stop came of it."""
        held, self._held = self._held, ""
        return self._own(held)

    def _own(self, text: str) -> str:
        dropped = min(self._foreign, len(text))
        self._foreign -= dropped
        return text[dropped:]

    def _first_stop(self, text: str) -> tuple[int, int] | None:
        """Half-open range of the stop that is complete first; the longest of those that tie."""
        best: tuple[int, int] | None = None
        for stop in self._stops:
            start = text.find(stop)
            if start < 0:
                continue
            end = start + len(stop)
            if best is None or (end, start) < (best[1], best[0]):
                best = (start, end)
        return best

    def _possible_stop(self, text: str) -> int:
        """Length of the longest tail of `text` that begins a stop string."""
        longest = 0
        for stop in self._stops:
            for length in range(min(len(stop) - 1, len(text)), longest, -1):
                if text.endswith(stop[:length]):
                    longest = length
                    break
        return longest


class Detokenizer:
    """Decodes one answer. Not thread-safe."""

    def __init__(
        self,
        stream: IncrementalDetokenizer,
        *,
        stop_ids: AbstractSet[int],
        stops: Ids[str] = (),
        include_stop: bool = False,
    ) -> None:
        self._stream = stream
        self._stop_ids = stop_ids
        self._scanner = StopScanner(stops, include_stop=include_stop) if stops else None

    def resume_after(self, ids: Ids[int]) -> None:
        """Begin after tokens that another answer has: a fork's parent's. Before any `feed`.

        A character that began in them comes out whole here; a stop string that began in them ends
        this answer.
        """
        text = self._stream.feed(ids) if ids else ""
        if self._scanner is not None:
            self._scanner.resume_after(text)

    @property
    def stopped(self) -> bool:
        """Whether a stop string was found."""
        return self._scanner is not None and self._scanner.stopped

    def feed(self, ids: Ids[int]) -> str:
        """Text that new tokens add. A stop token ends the answer and is no part of its text."""
        for index, token in enumerate(ids):
            if token in self._stop_ids:
                ids = ids[:index]
                break
        if not ids:
            return ""
        return self._scan(self._stream.feed(ids))

    def flush(self) -> str:
        """What is left at the end of the answer."""
        text = self._scan(self._stream.flush())
        if self._scanner is not None and not self._scanner.stopped:
            text += self._scanner.flush()
        return text

    def _scan(self, text: str) -> str:
        return text if self._scanner is None else self._scanner.feed(text)
