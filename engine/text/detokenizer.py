"""`Detokenizer`: token ids to text, up to a stop token or stop string.

It runs on the reader's thread for requests without stop strings, and on the engine's thread for those
with stop strings, because a stop string finishes the request. The result does not depend on how the
tokens are grouped into `feed` calls.
"""

from collections.abc import Sequence as Ids
from collections.abc import Set as AbstractSet

from engine.text.incremental_detokenizer import IncrementalDetokenizer


class StopScanner:
    """Finds the first stop string in text that arrives in pieces.

    Attributes:
        stopped: whether a stop string was found.
    """

    def __init__(self, stops: Ids[str], *, include_stop: bool) -> None:
        self._stops = tuple(stops)
        self._include_stop = include_stop
        self._held = ""
        self._num_inherited = 0  # leading characters of `_held` that are not to be returned
        self.stopped = False

    def resume_after(self, text: str) -> None:
        """Continue after `text`, which is not returned again. A stop string may start in it.

        `text` must not contain a complete stop string.
        """
        keep = self._partial_stop_length(text)
        self._held, self._num_inherited = text[len(text) - keep :], keep

    def feed(self, text: str) -> str:
        """The text that precedes any possible stop string; empty after a stop string was found."""
        if self.stopped:
            return ""
        buffer = self._held + text
        found = self._first_stop(buffer)
        if found is not None:
            start, end = found
            self.stopped, self._held = True, ""
            return self._drop_inherited(buffer[: end if self._include_stop else start])
        keep = self._partial_stop_length(buffer)
        self._held = buffer[len(buffer) - keep :]
        return self._drop_inherited(buffer[: len(buffer) - keep])

    def flush(self) -> str:
        """The text that was held back as a possible stop string."""
        held, self._held = self._held, ""
        return self._drop_inherited(held)

    def _drop_inherited(self, text: str) -> str:
        dropped = min(self._num_inherited, len(text))
        self._num_inherited -= dropped
        return text[dropped:]

    def _first_stop(self, text: str) -> tuple[int, int] | None:
        """Half-open range of the stop string that ends first; the longest if several do."""
        best: tuple[int, int] | None = None
        for stop in self._stops:
            start = text.find(stop)
            if start < 0:
                continue
            end = start + len(stop)
            if best is None or (end, start) < (best[1], best[0]):
                best = (start, end)
        return best

    def _partial_stop_length(self, text: str) -> int:
        """Length of the longest suffix of `text` that is a proper prefix of a stop string."""
        longest = 0
        for stop in self._stops:
            for length in range(min(len(stop) - 1, len(text)), longest, -1):
                if text.endswith(stop[:length]):
                    longest = length
                    break
        return longest


class Detokenizer:
    """Detokenizes one answer. Not thread-safe.

    Args:
        stream: the incremental detokenizer of the sequence.
        stop_ids: tokens that end the text and are not part of it.
        stops: stop strings.
        include_stop: keep the stop string in the text.
    """

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
        """Continue after tokens of another answer, a fork's parent. Call before any `feed`.

        A character that starts in them is returned whole here, and a stop string that starts in them
        stops this answer.
        """
        text = self._stream.feed(ids) if ids else ""
        if self._scanner is not None:
            self._scanner.resume_after(text)

    @property
    def stopped(self) -> bool:
        """Whether a stop string was found."""
        return self._scanner is not None and self._scanner.stopped

    def feed(self, ids: Ids[int]) -> str:
        """The text that new tokens add, up to a stop token."""
        for index, token in enumerate(ids):
            if token in self._stop_ids:
                ids = ids[:index]
                break
        if not ids:
            return ""
        return self._scan(self._stream.feed(ids))

    def flush(self) -> str:
        """The remaining text at the end of the answer."""
        text = self._scan(self._stream.flush())
        if self._scanner is not None and not self._scanner.stopped:
            text += self._scanner.flush()
        return text

    def _scan(self, text: str) -> str:
        return text if self._scanner is None else self._scanner.feed(text)
