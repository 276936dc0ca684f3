"""Ordering: which request runs first, which waits, which is preempted.

A `Prioritiser` is a policy: it gives every request a key. `Ranking` applies it to running rows and to
the request queue, and `Ageing` bounds how long any policy can starve a request. The policies are one
file each in `engine.scheduler.policies`. Nothing here loops over requests: keys are numpy expressions
over `WaitingColumns`.
"""

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from engine.batch.request_queue import RequestQueue
from engine.batch.request_record import WaitingColumns
from engine.batch.rows import RowTable

AGEING_PERIOD = 8
"""One of so many admissions goes to the oldest request, once it is old enough."""
AGEING_AFTER_S = 10.0
"""How long a request waits before ageing applies to it."""


class Prioritiser(Protocol):
    """A scheduling policy. It orders requests; the scheduler counts blocks and budgets.

    Called by the engine's thread.

    Attributes:
        static: a request's key never changes, so the order of running rows may be kept until a row
            is placed.
    """

    static: bool

    def keys(self, columns: WaitingColumns, now: float) -> NDArray[np.float64]:
        """[n] float64, lowest first. Ties: the longer cached prefix, then the earlier arrival."""
        ...


class Ageing:
    """Counts admissions, so that no policy starves a request. Engine's thread only.

    Of every `AGEING_PERIOD` admissions one goes to the request that has waited longest, whatever its
    key, once it has waited `AGEING_AFTER_S`. So a request older than that, with k older ones before
    it, is admitted within `AGEING_PERIOD * (k + 1)` admissions, and the policy decides all but a share
    of 1 / `AGEING_PERIOD`. Changing keys with age instead would turn every policy into first come,
    first served under lasting overload.
    """

    def __init__(self) -> None:
        self._since_oldest = 0  # admissions since one was given to the oldest

    def entitled(self, columns: WaitingColumns, now: float) -> int | None:
        """The queue index of the request whose turn it is by age, or None if the policy decides."""
        if self._since_oldest < AGEING_PERIOD - 1:
            return None
        oldest = int(np.argmin(columns.queued_at))
        return oldest if now - columns.queued_at[oldest] >= AGEING_AFTER_S else None

    def admitted(self, *, by_age: bool) -> None:
        """Count an admission."""
        self._since_oldest = 0 if by_age else self._since_oldest + 1


class Ranking:
    """Orders running rows and picks from the request queue. Engine's thread only.

    Attributes:
        prioritiser: the policy; may be replaced at any time.
    """

    def __init__(self, prioritiser: Prioritiser) -> None:
        self.prioritiser = prioritiser
        self._ageing = Ageing()
        self._by_age = False  # whether the last pick was one by age

    @property
    def static(self) -> bool:
        """Whether an order stays valid until a row is placed."""
        return self.prioritiser.static

    def order(self, table: RowTable, rows: NDArray[np.int32], now: float) -> NDArray[np.int32]:
        """`rows`, best first. The last is the first to be preempted."""
        columns = table.columns(rows)
        keys = self.prioritiser.keys(columns, now)
        return rows[np.lexsort((columns.arrival, keys))]

    def pick(self, waiting: RequestQueue, now: float) -> int:
        """Queue index, in the (non-empty) queue, of the sequence to admit next."""
        columns = waiting.columns()
        entitled = self._ageing.entitled(columns, now)
        self._by_age = entitled is not None
        if entitled is not None:
            return entitled
        keys = self.prioritiser.keys(columns, now)
        ties = np.flatnonzero(keys == keys.min())
        if len(ties) == 1:
            return int(ties[0])
        cached, arrival = columns.cached_tokens_hint[ties], columns.arrival[ties]
        return int(ties[np.lexsort((arrival, -cached))[0]])

    def admitted(self) -> None:
        """The request picked last got a row."""
        self._ageing.admitted(by_age=self._by_age)
