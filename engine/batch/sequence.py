"""`Sequence`: the scheduler's state of one request, and the state machine it follows."""

from dataclasses import dataclass, field
from enum import Enum, auto
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from engine.api.request import Request
from engine.batch.mailbox import Mailbox
from engine.batch.outputs import Outputs
from engine.grammar.matcher import Matcher
from engine.grammar.reasoning_matcher import ReasoningMatcher
from engine.text.detokenizer import Detokenizer
from engine.text.sequence_breakers import SequenceBreakers

NO_ROW = -1
NOT_QUEUED = -1


class SequenceState(Enum):
    """The state of a request; `_TRANSITIONS` lists the allowed changes.

    Attributes:
        WAITING_FOR_GRAMMAR: its grammar is being compiled; it is not in the request queue yet.
        WAITING: in the request queue, never admitted.
        RUNNING: it has a row.
        PREEMPTED: it lost its row and is in the request queue again.
        FINISHED: it finished; the finish may not be delivered to its reader yet.
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


class Start(NamedTuple):
    """What a sequence started with when it was last admitted, besides swapped-in blocks.

    Attributes:
        tokens: tokens whose KV was in the pool.
        blocks: blocks that hold them, the copied one included.
        copied_block: the copy of a partly used block, or None.
        parent_id: the running request that it shares the blocks with; None if they were cached.
    """

    tokens: int = 0
    blocks: int = 0
    copied_block: int | None = None
    parent_id: str | None = None


NO_START = Start()
_NO_IDS: NDArray[np.int32] = np.zeros(0, np.int32)


@dataclass(slots=True, eq=False)
class Sequence:
    """A request and the state that outlives its row.

    The submitting thread creates it; after submission only the engine's thread changes it, except
    `forks`, which the lock of `LiveRequests` guards.

    While the request has a row, `RowTable` holds its progress.

    Attributes:
        request: the caller's request.
        mailbox: passes output to its reader.
        record: 0-d array of `REQUEST_DTYPE`, read by scheduling policies.
        tokens: [n] int32, prompt and output; out of date while the sequence has a row.
        num_prompt: length of the prompt.
        penalty_start: position from which penalties count tokens as output; inside the prompt of a
            fork.
        max_total: number of tokens at which the sequence finishes.
        stop_ids: stop token ids, the model's own included.
        cache_salt: `engine.memory.kv_identity.cache_salt_digest` of the request's cache salt.
        sampling: 0-d array of `SAMPLING_DTYPE`.
        bias_ids, bias_values: [B] int32 and float32, logit biases.
        logprob_ids: [K] int32, token ids whose logprobs are reported.
        breakers: compiled sequence breakers of the DRY penalty; None without it.
        state: the current state; changed by `move_to`.
        detokenizer: finds stop strings; None without stop strings.
        num_detokenized: output tokens fed to the detokenizer.
        matcher: of the grammar and the reasoning, advanced by every output token; kept across preemption.
            None without either, or while the grammar is compiled.
        row: the row it runs in, or `NO_ROW`.
        kept: outputs and timestamps saved when it lost its row, or None.
        prompt_counted: prompt tokens already counted in the metrics; recomputed ones count once.
        preemptions: number of preemptions.
        forks: number of forks made from it.
        swapped_tokens: tokens whose KV came from the swap tier when it was last admitted.
        start: the KV it started with when it was last admitted.
        swap_on_eviction: whether it was preempted and its blocks are saved to the swap tier when they
            are evicted.
        donor: while waiting, the running sequence whose blocks it may share, or None.
        donor_tokens: number of leading tokens the two have in common.
        queue_index: its index in the request queue, or `NOT_QUEUED`.
        missing_blocks: while waiting, free blocks it needed at the last admission attempt.
        missing_window_blocks: as many window blocks.
    """

    request: Request
    mailbox: Mailbox
    record: NDArray[np.void]
    tokens: NDArray[np.int32]
    num_prompt: int
    penalty_start: int
    max_total: int
    stop_ids: tuple[int, ...]
    cache_salt: bytes
    sampling: NDArray[np.void]
    bias_ids: NDArray[np.int32]
    bias_values: NDArray[np.float32]
    logprob_ids: NDArray[np.int32] = field(default_factory=lambda: _NO_IDS)
    breakers: SequenceBreakers | None = None
    state: SequenceState = SequenceState.WAITING
    detokenizer: Detokenizer | None = None
    num_detokenized: int = 0
    matcher: Matcher | ReasoningMatcher | None = field(default=None, repr=False)
    row: int = NO_ROW
    kept: Outputs | None = field(default=None, repr=False)
    prompt_counted: int = 0
    preemptions: int = 0
    forks: int = 0
    swapped_tokens: int = 0
    start: Start = NO_START
    swap_on_eviction: bool = False
    donor: "Sequence | None" = field(default=None, repr=False)
    donor_tokens: int = 0
    queue_index: int = NOT_QUEUED
    missing_blocks: int = 0
    missing_window_blocks: int = 0

    @property
    def request_id(self) -> str:
        """The request's id."""
        return self.request.request_id

    @property
    def arrival(self) -> int:
        """The submission number: lower is earlier."""
        return int(self.record["arrival"])

    @property
    def queued_at(self) -> float:
        """The instant of submission, monotonic seconds."""
        return float(self.record["queued_at"])

    @property
    def finished(self) -> bool:
        """Whether it finished; the finish may not be delivered to its reader yet."""
        return self.state is SequenceState.FINISHED

    @property
    def num_reusable_tokens(self) -> int:
        """Number of leading tokens whose KV may come from a cache.

        At most all but the last: sampling needs the last token's logits. With prompt logprobs, tokens
        from position `num_scored` on must be computed.
        """
        scores = self.mailbox.prompt_scores
        most = len(self.tokens) - 1
        return most if scores is None or scores.complete else min(most, scores.num_scored)

    @property
    def waits_for_scores(self) -> bool:
        """Whether another sequence, which has a row, is computing the prompt scores the two share."""
        scores = self.mailbox.prompt_scores
        if scores is None or scores.complete or scores.scorer is None:
            return False
        return scores.scorer is not self and scores.scorer.row != NO_ROW

    def move_to(self, state: SequenceState) -> None:
        """Change the state.

        Raises:
            AssertionError: the transition table does not allow it.
        """
        if state not in _TRANSITIONS[self.state]:
            raise AssertionError(f"{self.request_id} cannot go from {self.state} to {state}")
        self.state = state

    def update_record(self) -> None:
        """Update the record's token counts; called when the sequence enters the queue."""
        record, count = self.record, len(self.tokens)
        cached = int(record["cached_tokens_hint"])
        record["num_pending_tokens"] = count - min(cached, count - 1)
        record["max_new_tokens"] = self.max_total - count
        kept = self.kept
        record["has_first_token"] = kept is not None and kept.timings.first_token is not None
        record["held"] = False
