"""`Ageing`: no policy starves anybody.

Of every `EVERY` admissions one goes to the request that has waited longest, whatever its key, once
it has waited `AFTER_S`. So a request older than that, with k older ones before it, is admitted
within `EVERY * (k + 1)` admissions, and the policy keeps all but a share of 1 / `EVERY`: raising
keys with time instead would turn every policy into first come, first served when overload lasts.
"""

import numpy as np

from engine.batch.waiting_columns import Line

EVERY = 8
AFTER_S = 10.0


class Ageing:
    """Counts admissions. Engine's thread only."""

    def __init__(self) -> None:
        self._since = 0  # admissions since one was given to the oldest

    def entitled(self, line: Line, now: float) -> int | None:
        """The place in the line whose turn it is by age, or None if the policy decides."""
        if self._since < EVERY - 1:
            return None
        oldest = int(np.argmin(line.queued_at))
        return oldest if now - line.queued_at[oldest] >= AFTER_S else None

    def admitted(self, *, by_age: bool) -> None:
        """Count an admission."""
        self._since = 0 if by_age else self._since + 1
