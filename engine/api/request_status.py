"""`RequestStatus`: one live request as the request table of a front end shows it."""

from dataclasses import dataclass
from enum import StrEnum

from engine.api.service_class import ServiceClass

MAX_STATUSES = 256
"""Default limit of a request table: building one entry takes microseconds of the caller's thread."""


class RequestState(StrEnum):
    """What a live request is doing.

    Attributes:
        QUEUED: waiting for its first row.
        GRAMMAR: waiting until its grammar is compiled.
        PREFILL: running, its prompt is being computed.
        DECODE: running, it has its first token.
        PREEMPTED: lost its row; its KV stays cached until it is evicted, and is computed again then.
        SWAPPED: lost its row; its KV is saved to the swap tier when it is evicted.
    """

    QUEUED = "queued"
    GRAMMAR = "grammar"
    PREFILL = "prefill"
    DECODE = "decode"
    PREEMPTED = "preempted"
    SWAPPED = "swapped"


@dataclass(frozen=True, slots=True)
class RequestStatus:
    """One live request at about one instant; its fields may be a step apart.

    Attributes:
        request_id: its id.
        state: what it is doing.
        prompt_tokens: tokens of its prompt.
        computed_tokens: tokens whose KV is in its blocks; 0 without a row.
        generated_tokens: tokens sampled so far.
        cached_tokens: prompt tokens found in a cache when it was first admitted.
        blocks: KV blocks that it holds, shared ones included.
        preemptions: how often it lost its row.
        priority: as submitted; lower goes first.
        queued_at: when it was submitted, on the clock of `EngineSnapshot.time`.
        deadline: when its first token is due, on the same clock; None without a deadline.
        ttft: seconds from submission to the first token; None before it.
        itl: mean seconds between two tokens; None before the second one.
        service_class: as submitted; an older server reports none, and has one class.
    """

    request_id: str
    state: RequestState
    prompt_tokens: int
    computed_tokens: int
    generated_tokens: int
    cached_tokens: int
    blocks: int
    preemptions: int
    priority: int
    queued_at: float
    deadline: float | None
    ttft: float | None
    itl: float | None
    service_class: ServiceClass = "interactive"
