"""`ServiceClassGate`: holds lower service classes back while a higher one computes a prompt.

While a request of some class waits for its prompt or computes it, a step serves no request of a lower
class: neither its prefill nor its decode, each of which would delay the first token of the higher one.
Held rows keep their blocks. Lower classes go on as soon as no such prompt can be computed, and in one
of every `MAX_HELD_STEPS + 1` steps in any case, so that a stream of prompts starves nobody.

Without requests of a lower class the gate costs a few microseconds in passes that are not steady.
"""

import numpy as np

from engine.batch.request_queue import RequestQueue
from engine.batch.rows import RowTable
from engine.scheduler.running_rows import RunningRows

MAX_HELD_STEPS = 8
"""Consecutive steps for which lower classes may be held."""


class ServiceClassGate:
    """Decides, per scheduling pass, which classes it serves. Owned by the scheduler."""

    def __init__(self, table: RowTable, running: RunningRows, waiting: RequestQueue) -> None:
        self._table = table
        self._running = running
        self._waiting = waiting
        self._held_steps = 0

    def lowest_served(self) -> int | None:
        """Rank of the lowest class that the next step serves; None: it serves all."""
        table, rows = self._table, self._running.rows
        columns = self._waiting.columns()
        running, waiting = table.service_class[rows], columns.service_class[~columns.held]
        lowest = max(running.max(initial=0), waiting.max(initial=0))
        if lowest == 0:
            return None
        highest = lowest
        prompts = np.isnan(table.first_token_at[rows])
        prompts |= table.num_tokens[rows] - table.num_computed[rows] > 1
        highest = min(highest, running[prompts].min(initial=highest))
        if len(waiting) and table.num_free:
            highest = min(highest, waiting.min())
        if highest == lowest or self._held_steps == MAX_HELD_STEPS:
            self.open()
            return None
        self._held_steps += 1
        return int(highest)

    def open(self) -> None:
        """Record that a step serves every class."""
        self._held_steps = 0
