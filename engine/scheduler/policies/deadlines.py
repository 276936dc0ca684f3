"""What the deadline policies share: what counts as a deadline, and where a lost one goes."""

import numpy as np
from numpy.typing import NDArray

from engine.batch.request_record import WaitingColumns

PATIENCE_S = 30.0
"""A request that names no deadline is treated as one that would wait so long."""

_APART = 1e15
"""More than any instant, slack or submission number; a number added to it stays exact."""


def deadlines_of(columns: WaitingColumns) -> NDArray[np.float64]:
    """[n] float64, instants."""
    return np.minimum(columns.deadline, columns.queued_at + PATIENCE_S)


def apart(
    keys: NDArray[np.float64], columns: WaitingColumns, lost: NDArray[np.bool_]
) -> NDArray[np.float64]:
    """`keys`, with those for whom no deadline counts any more set apart.

    Requests that have begun to answer come first: they are served already, and stopping them would
    waste what they hold. Lost ones, whose first token cannot come in time even if they were next
    and the machine faster than predicted by the model's usual error, come last, so that they push
    out nobody who can still be served in time. Both are in order of arrival among themselves.
    """
    keys = np.where(lost, columns.arrival + _APART, keys)
    return np.where(columns.has_first_token, columns.arrival - _APART, keys)
