"""`ReasoningTokens`: counts the tokens of an answer's reasoning, its markers included."""

from collections import deque
from collections.abc import Iterable


class ReasoningTokens:
    """Counts one answer as its tokens arrive.

    Attributes:
        count: tokens of the reasoning so far.
    """

    def __init__(
        self, opening_ids: tuple[int, ...], closing_ids: tuple[int, ...], *, begun: bool
    ) -> None:
        """Count an answer; `begun` if its prompt has begun the reasoning."""
        self._opening = opening_ids
        self._closing = closing_ids
        self._recent: deque[int] = deque(maxlen=max(len(opening_ids), len(closing_ids)))
        self._seen = 0
        self._reasons: bool | None = True if begun else None  # None: the opening may still come
        self.count = 0

    def feed(self, token_ids: Iterable[int]) -> None:
        """Count further tokens."""
        for token in token_ids:
            if self._reasons is False:
                return
            self._seen += 1
            self._recent.append(token)
            if self._reasons is None:
                self._begin()
            else:
                self.count += 1
                if self._ends_with(self._closing):
                    self._reasons = False

    def _begin(self) -> None:
        if self._ends_with(self._opening):
            self._reasons, self.count = True, len(self._opening)
        elif self._seen > len(self._opening) + 1:  # a line feed may stand before it
            self._reasons = False

    def _ends_with(self, marker: tuple[int, ...]) -> bool:
        return tuple(self._recent)[-len(marker) :] == marker
