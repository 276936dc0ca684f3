"""Ordering: the order in which requests are admitted, run and preempted.

A `Prioritiser` is a policy: it gives every request a sort key. `Ranking` applies it to running rows
and to the request queue: a higher service class goes first, and the policy orders requests of one class.
`Ageing` bounds how long a request can starve. Each policy has a file in `engine.scheduler.policies`.
Nothing here loops over requests: keys are numpy expressions over `WaitingColumns`.
"""

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from engine.batch.request_queue import RequestQueue
from engine.batch.request_record import WaitingColumns
from engine.batch.rows import RowTable

AGEING_PERIOD = 8
"""Of this many admissions, one goes to the oldest request if it has waited `AGEING_AFTER_S`."""
AGEING_AFTER_S = 10.0
"""Seconds a request waits before ageing applies to it."""


class Prioritiser(Protocol):
    """A scheduling policy. It orders requests; the scheduler enforces blocks and budgets.

    Called by the engine's thread only.

    Attributes:
        static: whether a request's key never changes, so that the order of running rows stays valid
            until a row is placed.
    """

    static: bool

    def keys(self, columns: WaitingColumns, now: float) -> NDArray[np.float64]:
        """[n] float64, lowest first. Ties: the longer cached prefix, then the earlier arrival."""
        ...


class Ageing:
    """Counts admissions, so that no policy starves a request. Engine's thread only.

    One of every `AGEING_PERIOD` admissions goes to the request that has waited longest, whatever its
    key, if it has waited `AGEING_AFTER_S`. So a request older than that, with k older ones before it,
    is admitted within `AGEING_PERIOD * (k + 1)` admissions, and the policy decides all other
    admissions. Keys that change with age instead would turn every policy into first come, first
    served under sustained overload.
    """

    def __init__(self) -> None:
        self._since_oldest = 0  # admissions since one was given to the oldest

    def oldest_if_due(self, columns: WaitingColumns, now: float) -> int | None:
        """The queue index of the oldest request if ageing admits it next; None: the policy decides."""
        if self._since_oldest < AGEING_PERIOD - 1:
            return None
        oldest = int(np.argmin(columns.queued_at))
        return oldest if now - columns.queued_at[oldest] >= AGEING_AFTER_S else None

    def admitted(self, *, by_age: bool) -> None:
        """Record an admission, by age or by policy."""
        self._since_oldest = 0 if by_age else self._since_oldest + 1


class Ranking:
    """Orders running rows and picks from the request queue. Engine's thread only.

    Attributes:
        prioritiser: the policy; may be replaced at any time.
    """

    def __init__(self, prioritiser: Prioritiser) -> None:
        self.prioritiser = prioritiser
        self._ageing = Ageing()
        self._by_age = False  # whether ageing made the last pick

    @property
    def static(self) -> bool:
        """Whether an order of rows stays valid until a row is placed."""
        return self.prioritiser.static

    def order(self, table: RowTable, rows: NDArray[np.int32], now: float) -> NDArray[np.int32]:
        """`rows`, [R] int32, by class, then in the policy's order. The last row is preempted first."""
        columns = table.columns(rows)
        keys = self.prioritiser.keys(columns, now)
        return rows[np.lexsort((columns.arrival, keys, columns.service_class))]

    def pick(
        self, waiting: RequestQueue, now: float, *, lowest_served: int | None = None
    ) -> int | None:
        """Queue index of the sequence to admit next.

        Args:
            waiting: the queue.
            now: instant of the engine's clock.
            lowest_served: rank of the lowest class that may be admitted; None admits all.

        Returns:
            None if no request of these classes waits that is not held.
        """
        columns = waiting.columns()
        free = np.flatnonzero(~columns.held)
        if not len(free):
            return None
        columns = columns.take(free) if len(free) < len(columns) else columns
        if lowest_served is None:
            oldest = self._ageing.oldest_if_due(columns, now)
            self._by_age = oldest is not None
            if oldest is not None:
                return int(free[oldest])
        self._by_age = False
        highest = columns.service_class.min()
        if lowest_served is not None and highest > lowest_served:
            return None
        chosen = np.flatnonzero(columns.service_class == highest)
        if len(chosen) < len(columns):
            columns = columns.take(chosen)
            free = free[chosen]
        keys = self.prioritiser.keys(columns, now)
        ties = np.flatnonzero(keys == keys.min())
        if len(ties) == 1:
            return int(free[ties[0]])
        cached, arrival = columns.cached_tokens_hint[ties], columns.arrival[ties]
        return int(free[ties[np.lexsort((arrival, -cached))[0]]])

    def pick_shortest(
        self, waiting: RequestQueue, *, lowest_served: int | None = None
    ) -> int | None:
        """As `pick`, but the sequence of the highest class with the fewest pending tokens."""
        columns = waiting.columns()
        self._by_age = False
        if columns.held.all():
            return None
        order = (
            columns.arrival,
            columns.num_pending_tokens,
            columns.service_class,
            columns.held,
        )
        index = int(np.lexsort(order)[0])
        if lowest_served is not None and columns.service_class[index] > lowest_served:
            return None
        return index

    def admitted(self) -> None:
        """Record that the request picked last was admitted."""
        self._ageing.admitted(by_age=self._by_age)
