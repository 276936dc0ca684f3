"""`CitedText`: the text of an answer with its citations checked, as it is shown while it arrives.

The server and the screen show answers through it. It is `VerifyingStream` with what follows an answer that no
passage supports: the closest sentences of the passages.
"""

from collections.abc import Sequence

from engine.retrieval.answering.closest_quotes import closest_quotes
from engine.retrieval.answering.support import SupportJudge
from engine.retrieval.answering.verification import Citation, VerifiedAnswer, VerifyingStream


class CitedText:
    """One answer; `feed` its pieces, then `finish` it. One thread at a time.

    `feed` and `finish` embed complete sentences, which takes milliseconds each.
    """

    def __init__(self, judge: SupportJudge, query: str, *, small_model: bool) -> None:
        """Begin an answer.

        Args:
            judge: has the sources.
            query: what was searched for.
            small_model: whether a small model writes it, of which only supported sentences of the first
                paragraph are shown.
        """
        self._judge, self._query = judge, query
        self._stream = VerifyingStream(judge, one_paragraph=small_model, supported_only=small_model)
        self._shown: list[str] = []
        self._closest: tuple[Citation, ...] = ()

    @property
    def ended(self) -> bool:
        """Whether nothing more is shown: the answer repeats itself, or leaves its passages."""
        return self._stream.ended

    @property
    def text(self) -> str:
        """Everything that was shown."""
        return "".join(self._shown)

    @property
    def closest(self) -> tuple[Citation, ...]:
        """The sources of the sentences that were added because nothing is supported; else empty."""
        return self._closest

    def feed(self, piece: str) -> str:
        """The text to show after this piece."""
        return self._show(self._stream.feed(piece))

    def finish(self) -> str:
        """The rest of the text and, if nothing is supported, the closest sentences."""
        rest = self._show(self._stream.finish())
        if self._stream.answer().is_supported:
            return rest
        answered = bool(self.text.strip())
        closest = closest_quotes(self._judge, self._query, behind_answer=answered)
        self._closest = closest.citations
        return rest + self._show(f"\n\n{closest.text}" if answered else closest.text)

    def answer(self) -> VerifiedAnswer:
        """What the check found, after `finish`; without the sentences that were added."""
        return self._stream.answer()

    def citations(self) -> Sequence[Citation]:
        """The sources that the shown text cites, after `finish`."""
        return self._closest or self._stream.answer().citations

    def _show(self, text: str) -> str:
        self._shown.append(text)
        return text
