"""`Line`: what a policy may know of the requests it orders, one numpy column a fact.

Running rows and waiting requests are described alike, so a policy is one expression over columns
and never loops.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

LINE_DTYPE = np.dtype(
    [
        ("arrival", np.int64),
        ("priority", np.int32),
        ("queued_at", np.float64),
        ("deadline", np.float64),
        ("prefill", np.int32),
        ("cached", np.int32),
        ("answer", np.int32),
        ("begun", np.bool_),
    ],
    align=True,
)
"""One request's facts; see `Line`."""


@dataclass(frozen=True, slots=True)
class Line:
    """Facts of n requests. Views: valid until a request enters or leaves.

    Attributes:
        arrival: [n] int64, submission numbers.
        priority: [n] int32, lower goes first.
        queued_at: [n] float64, instants of submission, monotonic seconds.
        deadline: [n] float64, instants by which the first token is wanted; inf where none is named.
        prefill: [n] int32, tokens to compute before the next one can be sampled.
        cached: [n] int32, tokens found in the prefix cache at submission; 0 for running rows.
        answer: [n] int32, tokens that may still be generated.
        begun: [n] bool, the first token was sampled: the deadline is met or missed for good.
    """

    arrival: NDArray[np.int64]
    priority: NDArray[np.int32]
    queued_at: NDArray[np.float64]
    deadline: NDArray[np.float64]
    prefill: NDArray[np.int32]
    cached: NDArray[np.int32]
    answer: NDArray[np.int32]
    begun: NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.arrival)
