"""`Sequence`: one live request as the scheduler knows it, and the states it goes through."""

from dataclasses import dataclass, field
from enum import Enum, auto

import numpy as np
from numpy.typing import NDArray

from engine.api.request import Request
from engine.batch.mailbox import Mailbox
from engine.batch.outputs import Outputs
from engine.grammar.matcher import Matcher
from engine.text.detokenizer import Detokenizer

NO_ROW = -1
NOT_QUEUED = -1


class SequenceState(Enum):
    """Where a request is.

    Attributes:
        WAITING_FOR_GRAMMAR: its grammar is being compiled; it is not in the request queue yet.
        WAITING: in the request queue, never admitted.
        RUNNING: it has a row.
        PREEMPTED: it lost its row and is in the request queue again.
        FINISHED: it ended; its reader may not have been told yet.
    """

    WAITING_FOR_GRAMMAR = auto()
    WAITING = auto()
    RUNNING = auto()
    PREEMPTED = auto()
    FINISHED = auto()


_TRANSITIONS: dict[SequenceState, frozenset[SequenceState]] = {
    SequenceState.WAITING_FOR_GRAMMAR: frozenset({SequenceState.WAITING, SequenceState.FINISHED}),
    SequenceState.WAITING: frozenset({SequenceState.RUNNING, SequenceState.FINISHED}),
    SequenceState.RUNNING: frozenset({SequenceState.PREEMPTED, SequenceState.FINISHED}),
    SequenceState.PREEMPTED: frozenset({SequenceState.RUNNING, SequenceState.FINISHED}),
    SequenceState.FINISHED: frozenset(),
}


@dataclass(slots=True, eq=False)
class Sequence:
    """A request with everything that was derived from it at submission.

    The submitting thread creates it; once it is accepted only the engine's thread changes it, except
    `forks`, which the lock of `LiveRequests` guards.

    While the request has a row, `RowTable` holds its progress; this object holds what outlives the
    row.

    Attributes:
        request: the caller's request.
        mailbox: where its reader finds the output.
        record: 0-d array of `REQUEST_DTYPE`, what scheduling policies read.
        tokens: [n] int32, prompt and output; out of date while the sequence has a row.
        num_prompt: how many of them are the prompt.
        penalty_start: penalties count tokens from here on as output; a fork's prompt holds some.
        max_total: the sequence ends when it has this many tokens.
        stop_ids: tokens that end it, the model's own included.
        sampling: one record of `SAMPLING_DTYPE`.
        bias_ids, bias_values: [B] logit biases.
        state: where the request is; `move_to` changes it.
        detokenizer: finds stop strings; None when there are none.
        num_detokenized: output tokens the detokenizer has seen.
        matcher: the state of the answer in its grammar; None without one, or while it is compiled.
            It follows the tokens, so a preempted sequence keeps it.
        row: the row it runs in, or `NO_ROW`.
        kept: outputs and instants saved when it was preempted, or None.
        prompt_counted: prompt tokens already counted in the metrics; a recomputation counts none.
        preemptions: how often it lost its row.
        forks: children it was forked into so far.
        swapped_tokens: tokens whose KV came from the swap tier when it was last admitted.
        donor: while waiting, the running sequence whose blocks it may share, or None.
        donor_tokens: how many leading tokens the two have in common.
        queue_index: its index in the request queue, or `NOT_QUEUED`.
        missing_blocks: while waiting, free blocks it needed when it was last considered.
    """

    request: Request
    mailbox: Mailbox
    record: NDArray[np.void]
    tokens: NDArray[np.int32]
    num_prompt: int
    penalty_start: int
    max_total: int
    stop_ids: tuple[int, ...]
    sampling: NDArray[np.void]
    bias_ids: NDArray[np.int32]
    bias_values: NDArray[np.float32]
    state: SequenceState = SequenceState.WAITING
    detokenizer: Detokenizer | None = None
    num_detokenized: int = 0
    matcher: Matcher | None = field(default=None, repr=False)
    row: int = NO_ROW
    kept: Outputs | None = field(default=None, repr=False)
    prompt_counted: int = 0
    preemptions: int = 0
    forks: int = 0
    swapped_tokens: int = 0
    donor: "Sequence | None" = field(default=None, repr=False)
    donor_tokens: int = 0
    queue_index: int = NOT_QUEUED
    missing_blocks: int = 0

    @property
    def request_id(self) -> str:
        """The request's id."""
        return self.request.request_id

    @property
    def arrival(self) -> int:
        """The submission number; first come, first served."""
        return int(self.record["arrival"])

    @property
    def queued_at(self) -> float:
        """The instant of submission, monotonic seconds."""
        return float(self.record["queued_at"])

    @property
    def finished(self) -> bool:
        """Whether it ended, though its reader may not have been told yet."""
        return self.state is SequenceState.FINISHED

    @property
    def num_reusable_tokens(self) -> int:
        """How many leading tokens may come from a cache: all but the last, whose successor is sampled.

        A prompt token that is still to be scored requires computing the tokens before it.
        """
        scores = self.mailbox.prompt_scores
        most = len(self.tokens) - 1
        return most if scores is None or scores.complete else min(most, scores.done)

    def move_to(self, state: SequenceState) -> None:
        """Change the state.

        Raises:
            AssertionError: the transition table does not allow it.
        """
        if state not in _TRANSITIONS[self.state]:
            raise AssertionError(f"{self.request_id} cannot go from {self.state} to {state}")
        self.state = state

    def update_record(self) -> None:
        """Bring the record's counts up to date with the tokens; called when it enters the queue."""
        record, count = self.record, len(self.tokens)
        cached = int(record["cached_tokens_hint"])
        record["num_pending_tokens"] = count - min(cached, count - 1)
        record["max_new_tokens"] = self.max_total - count
        kept = self.kept
        record["has_first_token"] = kept is not None and kept.timings.first_token is not None
