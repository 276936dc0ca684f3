"""`Detokenizer`: token ids to text, up to a stop token or stop string.

It runs on the reader's thread for requests without stop strings, and on the engine's thread for those
with stop strings, because a stop string finishes the request. The result does not depend on how the
tokens are grouped into `feed` calls.
"""

from collections.abc import Sequence as Ids
from collections.abc import Set as AbstractSet

from engine.text.incremental_detokenizer import IncrementalDetokenizer
from engine.text.stop_scanner import StopScanner


class Detokenizer:
    """Detokenizes one answer. Not thread-safe.

    Args:
        stream: the incremental detokenizer of the sequence.
        stop_ids: tokens that end the text and are not part of it.
        stops: stop strings; they may spell control tokens (`StopScanner`).
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
        if self._scanner is None:
            self._stream.feed(ids)
            return
        pieces: list[tuple[str, bool]] = []
        for token in ids:
            pieces += [(self._stream.feed([token]), True), (self._stream.spelling(token), False)]
        self._scanner.resume_after([piece for piece in pieces if piece[0]])

    @property
    def stopped(self) -> bool:
        """Whether a stop string was found."""
        return self._scanner is not None and self._scanner.stopped

    @property
    def stop_string(self) -> str | None:
        """The stop string that was found."""
        return None if self._scanner is None else self._scanner.found

    def feed(self, ids: Ids[int]) -> str:
        """The text that new tokens add, up to a stop token."""
        if self._scanner is not None:
            return self._scan_tokens(ids, self._scanner)
        for index, token in enumerate(ids):
            if token in self._stop_ids:
                ids = ids[:index]
                break
        return self._stream.feed(ids) if ids else ""

    def _scan_tokens(self, ids: Ids[int], scanner: StopScanner) -> str:
        """`feed` with stop strings; a stop token may complete one that begins in the text before it."""
        text = ""
        for token in ids:
            is_stop = token in self._stop_ids
            if not is_stop:
                text += scanner.feed(self._stream.feed([token]))
            text += scanner.feed_hidden(self._stream.spelling(token))
            if is_stop or scanner.stopped:
                break
        return text

    def flush(self) -> str:
        """The remaining text at the end of the answer."""
        text = self._stream.flush()
        if self._scanner is None:
            return text
        text = self._scanner.feed(text)
        return text if self._scanner.stopped else text + self._scanner.flush()
