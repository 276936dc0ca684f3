"""What the deadline policies share: what counts as a deadline, and where a lost one goes."""

import numpy as np
from numpy.typing import NDArray

from engine.batch.waiting_columns import Line

PATIENCE_S = 30.0
"""A request that names no deadline is treated as one that would wait so long."""

_APART = 1e15
"""More than any instant, slack or submission number; a number added to it stays exact."""


def deadlines_of(line: Line) -> NDArray[np.float64]:
    """[n] float64, instants."""
    return np.minimum(line.deadline, line.queued_at + PATIENCE_S)


def apart(keys: NDArray[np.float64], line: Line, lost: NDArray[np.bool_]) -> NDArray[np.float64]:
    """`keys`, with those for whom no deadline counts any more set apart.

    Requests that have begun to answer come first: they are served already, and stopping them would
    waste what they hold. Lost ones, whose first token cannot come in time even if they were next
    and the machine faster than predicted by the model's usual error, come last, so that they push
    out nobody who can still be served in time. Both are in order of arrival among themselves.
    """
    keys = np.where(lost, line.arrival + _APART, keys)
    return np.where(line.begun, line.arrival - _APART, keys)
