"""Builds the request table on the reader's thread: the engine's thread does nothing for it.

A row is read without a lock. As in `engine.batch.mailbox`, the reader checks afterwards that the request is
still in the row that it read, and otherwise reads again, so fields of two requests are never mixed.
"""

from collections.abc import Iterable

import numpy as np

from engine.api.request import Timings
from engine.api.request_status import MAX_STATUSES, RequestState, RequestStatus
from engine.batch.mailbox import Placement
from engine.batch.rows import RowTable
from engine.batch.sequence import Sequence, SequenceState

_WITHOUT_ROW = {
    SequenceState.WAITING_FOR_GRAMMAR: RequestState.GRAMMAR,
    SequenceState.WAITING: RequestState.QUEUED,
    SequenceState.PREEMPTED: RequestState.PREEMPTED,
}


def build_request_table(
    live: Iterable[Sequence], table: RowTable, limit: int = MAX_STATUSES
) -> tuple[RequestStatus, ...]:
    """The status of live requests: those with a row first, both kinds in order of arrival.

    Args:
        live: the live requests.
        table: the rows.
        limit: maximum number of entries; the last to arrive are left out.
    """
    ordered = sorted(live, key=lambda one: (one.mailbox.placement is None, one.arrival))
    statuses = (_status(sequence, table) for sequence in ordered[:limit])
    return tuple(status for status in statuses if status is not None)


def _status(sequence: Sequence, table: RowTable) -> RequestStatus | None:
    """The status of one request; None once it has finished."""
    mailbox = sequence.mailbox
    while not sequence.finished:
        placement = mailbox.placement
        status = _waiting(sequence) if placement is None else _running(sequence, table, placement)
        if mailbox.placement is placement:
            return status
    return None


def _running(sequence: Sequence, table: RowTable, placement: Placement) -> RequestStatus:
    row = placement.row
    generated = int(table.num_tokens[row]) - sequence.num_prompt
    times = table.first_token_at[row], table.last_token_at[row]
    first, last = (None if np.isnan(time) else float(time) for time in times)
    return _build(
        sequence,
        RequestState.PREFILL if first is None else RequestState.DECODE,
        computed=int(table.num_computed[row]),
        generated=max(generated, 0),
        blocks=int(table.num_blocks[row]),
        first=first,
        last=last,
    )


def _waiting(sequence: Sequence) -> RequestStatus:
    state = _WITHOUT_ROW.get(sequence.state, RequestState.QUEUED)
    if state is RequestState.PREEMPTED and sequence.swap_on_eviction:
        state = RequestState.SWAPPED
    kept = sequence.mailbox.kept
    timings: Timings = kept.timings
    return _build(
        sequence,
        state,
        computed=0,
        generated=len(kept.ids),
        blocks=0,
        first=timings.first_token,
        last=timings.last_token,
    )


def _build(
    sequence: Sequence,
    state: RequestState,
    *,
    computed: int,
    generated: int,
    blocks: int,
    first: float | None,
    last: float | None,
) -> RequestStatus:
    queued = sequence.queued_at
    deadline = float(sequence.record["deadline"])
    itl = None
    if first is not None and last is not None and generated > 1:
        itl = (last - first) / (generated - 1)
    return RequestStatus(
        request_id=sequence.request_id,
        state=state,
        prompt_tokens=sequence.num_prompt,
        computed_tokens=computed,
        generated_tokens=generated,
        cached_tokens=sequence.mailbox.cached_tokens,
        blocks=blocks,
        preemptions=sequence.preemptions,
        priority=int(sequence.record["priority"]),
        queued_at=queued,
        deadline=deadline if np.isfinite(deadline) else None,
        ttft=None if first is None else first - queued,
        itl=itl,
        service_class=sequence.request.service_class,
    )
