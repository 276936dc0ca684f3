"""`Ranking`: a policy applied, to rows and to the waiting line.

Cost: `order` is a fixed number of numpy calls over the rows, `pick` over the line; nothing loops.
"""

import numpy as np
from numpy.typing import NDArray

from engine.batch.request_queue import RequestQueue
from engine.batch.rows import RowTable
from engine.batch.waiting_columns import Line
from engine.scheduler.ageing import Ageing
from engine.scheduler.prioritiser import Prioritiser


class Ranking:
    """Orders running rows and picks from the line. Engine's thread only.

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
        """`rows`, best first. The last is the first victim of preemption."""
        line = line_of(table, rows)
        keys = self.prioritiser.keys(line, now)
        return rows[np.lexsort((line.arrival, keys))]

    def pick(self, waiting: RequestQueue, now: float) -> int:
        """Place in the (non-empty) line of the sequence to admit next."""
        line = waiting.line()
        entitled = self._ageing.entitled(line, now)
        self._by_age = entitled is not None
        if entitled is not None:
            return entitled
        keys = self.prioritiser.keys(line, now)
        ties = np.flatnonzero(keys == keys.min())
        if len(ties) == 1:
            return int(ties[0])
        return int(ties[np.lexsort((line.arrival[ties], -line.cached[ties]))[0]])

    def admitted(self) -> None:
        """What was picked last got a row."""
        self._ageing.admitted(by_age=self._by_age)


def line_of(table: RowTable, rows: NDArray[np.int32]) -> Line:
    """What policies may know of running rows."""
    num_tokens = table.num_tokens[rows]
    return Line(
        arrival=table.arrival[rows],
        priority=table.priority[rows],
        queued_at=table.queued_at[rows],
        deadline=table.deadline[rows],
        prefill=num_tokens - table.num_computed[rows],
        cached=np.zeros(len(rows), np.int32),
        answer=table.max_total[rows] - num_tokens,
        begun=~np.isnan(table.first_token_at[rows]),
    )
