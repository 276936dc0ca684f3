"""The request record: the fields of a request that scheduling policies read, as one numpy record.

Intake creates the record. The sequence owns it, the request queue and the row table hold copies, and
policies read columns of either. A new input for policies is a new field here.
"""

import math
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

REQUEST_DTYPE = np.dtype(
    [
        ("arrival", np.int64),
        ("priority", np.int32),
        ("service_class", np.int8),
        ("queued_at", np.float64),
        ("deadline", np.float64),
        ("num_pending_tokens", np.int32),
        ("cached_tokens_hint", np.int32),
        ("max_new_tokens", np.int32),
        ("has_first_token", np.bool_),
        ("may_be_held", np.bool_),
        ("held", np.bool_),
    ],
    align=True,
)
"""The fields of a request record; `WaitingColumns` describes them."""


def request_record(
    *,
    queued_at: float,
    priority: int = 0,
    service_class: int = 0,
    deadline: float = math.inf,
    may_be_held: bool = False,
    arrival: int = 0,
) -> NDArray[np.void]:
    """The record of a new request, a 0-d array of `REQUEST_DTYPE`; `Sequence` updates the other fields."""
    record: NDArray[np.void] = np.zeros((), REQUEST_DTYPE)
    record["arrival"] = arrival
    record["queued_at"] = queued_at
    record["priority"] = priority
    record["service_class"] = service_class
    record["deadline"] = deadline
    record["may_be_held"] = may_be_held
    return record


@dataclass(frozen=True, slots=True)
class WaitingColumns:
    """The records of n requests, one numpy column per field.

    Waiting and running requests have the same columns, so that a policy is one numpy expression for
    both. The columns are views: valid until a request enters or leaves the queue.

    Attributes:
        arrival: [n] int64, submission numbers, ascending in time.
        priority: [n] int32, lower goes first.
        service_class: [n] int8, index in `SERVICE_CLASSES`, lower goes first whatever the policy.
        queued_at: [n] float64, instants of submission, monotonic seconds.
        deadline: [n] float64, instants by which the first token is due; inf without a deadline.
        num_pending_tokens: [n] int32, tokens to compute before the next one can be sampled.
        cached_tokens_hint: [n] int32, tokens found in the prefix cache at submission; 0 for running
            rows.
        max_new_tokens: [n] int32, tokens that may still be generated.
        has_first_token: [n] bool, whether the first token was sampled; the deadline no longer matters.
        may_be_held: [n] bool, whether the request belongs to a run that may be held.
        held: [n] bool, whether it is held now and must not be admitted (`engine.scheduler.run_gate`).
    """

    arrival: NDArray[np.int64]
    priority: NDArray[np.int32]
    service_class: NDArray[np.int8]
    queued_at: NDArray[np.float64]
    deadline: NDArray[np.float64]
    num_pending_tokens: NDArray[np.int32]
    cached_tokens_hint: NDArray[np.int32]
    max_new_tokens: NDArray[np.int32]
    has_first_token: NDArray[np.bool_]
    may_be_held: NDArray[np.bool_]
    held: NDArray[np.bool_]

    @classmethod
    def of(cls, records: NDArray[np.void]) -> Self:
        """The columns of [n] records."""
        return cls(**{name: records[name] for name in REQUEST_DTYPE.names or ()})

    def take(self, indices: NDArray[np.intp]) -> Self:
        """A copy of the columns of some requests; `indices` is [m]."""
        names = REQUEST_DTYPE.names or ()
        return type(self)(**{name: getattr(self, name)[indices] for name in names})

    def __len__(self) -> int:
        return len(self.arrival)
