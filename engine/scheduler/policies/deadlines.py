"""Functions shared by the deadline policies: effective deadlines and the order of infeasible ones."""

import numpy as np
from numpy.typing import NDArray

from engine.batch.request_record import WaitingColumns

DEFAULT_DEADLINE_S = 30.0
"""Deadline of a request that specifies none, or a later one: seconds after submission."""

_KEY_OFFSET = 1e15
"""Larger than any instant, slack or submission number; submission numbers added to it stay exact."""


def deadlines_of(columns: WaitingColumns) -> NDArray[np.float64]:
    """[n] float64, effective deadlines as instants, at most `DEFAULT_DEADLINE_S` after submission."""
    return np.minimum(columns.deadline, columns.queued_at + DEFAULT_DEADLINE_S)


def partition_keys(
    keys: NDArray[np.float64], columns: WaitingColumns, infeasible: NDArray[np.bool_]
) -> NDArray[np.float64]:
    """`keys`, with requests that have their first token moved first and infeasible ones last.

    Requests with a first token have met or missed their deadline already, and preempting them would
    waste the KV they hold. A request is infeasible if its first token would be late even if it ran
    next and the machine were faster than predicted by the model's usual error; it is moved behind
    those that can still meet their deadline. Both groups are ordered by arrival.

    Args:
        keys: [n] float64, the policy's keys.
        columns: the requests.
        infeasible: [n] bool.
    """
    keys = np.where(infeasible, columns.arrival + _KEY_OFFSET, keys)
    return np.where(columns.has_first_token, columns.arrival - _KEY_OFFSET, keys)
