"""`QuietTime`: how long a dialog ignores keys after it opened.

Somebody who typed just then must not answer it.
"""

from collections.abc import Callable

QUIET_S = 0.35


class QuietTime:
    """Begins when the dialog opens, and anew with each key that it ignores."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._since = clock()

    def begin(self) -> None:
        """Begin anew: the dialog is shown now."""
        self._since = self._clock()

    def ignores_key(self) -> bool:
        """Whether a key comes too early; then the time begins anew."""
        if self._clock() - self._since >= QUIET_S:
            return False
        self.begin()
        return True
