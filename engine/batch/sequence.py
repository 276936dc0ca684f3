"""`Sequence`: one live request as the scheduler knows it."""

import math
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from engine.api.request import Request
from engine.batch.mailbox import Mailbox, Outputs
from engine.grammar.matcher import Matcher
from engine.text.detokenizer import Decoder

NO_ROW = -1
NOT_IN_LINE = -1


@dataclass(slots=True, eq=False)
class Sequence:
    """A request with everything that was derived from it at submission. Engine's thread only.

    While the request has a row, `RowTable` holds its state; this object holds what outlives the
    row.

    Attributes:
        request: what was asked.
        mailbox: where the answer is read.
        arrival: submission number; first come, first served.
        tokens: [n] int32, every known token; out of date while the sequence has a row.
        num_prompt: how many of them are the prompt.
        penalty_start: penalties count tokens from here on as output; a fork's prompt holds some.
        max_total: the sequence ends when it has this many tokens.
        stop_ids: tokens that end it, the model's own included.
        sampling: one record of `SAMPLING_DTYPE`.
        bias_ids, bias_values: [B] logit biases.
        decoder: finds stop strings; None when there are none.
        decoded: output tokens the decoder has seen.
        matcher: how far the answer has come in its grammar; None without one, or while it is built.
            It follows the tokens, so a preempted sequence takes it along.
        row: the row it runs in, or `NO_ROW`.
        kept: outputs and instants saved when it was preempted, or None.
        prompt_counted: prompt tokens already counted in the metrics; a recomputation counts none.
        preemptions: how often it lost its row.
        forks: children it was forked into so far.
        swapped_tokens: tokens whose KV came from the swap tier when it was last admitted.
        donor: while waiting, the running sequence whose blocks it may share, or None.
        donor_tokens: how many first tokens the two have in common.
        deadline: instant by which the first token is wanted, monotonic seconds; inf for none.
        likely_cached: tokens that the prefix cache had when the request was submitted; a hint.
        place: its place in the queue, or `NOT_IN_LINE`.
        room_needed: while waiting, free blocks it lacked when it was last looked at.
        ended: it ended, though its reader may not have been told yet.
    """

    request: Request
    mailbox: Mailbox
    arrival: int
    tokens: NDArray[np.int32]
    num_prompt: int
    penalty_start: int
    max_total: int
    stop_ids: tuple[int, ...]
    sampling: NDArray[np.void]
    bias_ids: NDArray[np.int32]
    bias_values: NDArray[np.float32]
    queued_at: float
    decoder: Decoder | None = None
    decoded: int = 0
    matcher: Matcher | None = field(default=None, repr=False)
    row: int = NO_ROW
    kept: Outputs | None = field(default=None, repr=False)
    prompt_counted: int = 0
    preemptions: int = 0
    forks: int = 0
    swapped_tokens: int = 0
    donor: "Sequence | None" = field(default=None, repr=False)
    donor_tokens: int = 0
    deadline: float = math.inf
    likely_cached: int = 0
    place: int = NOT_IN_LINE
    room_needed: int = 0
    ended: bool = False

    @property
    def request_id(self) -> str:
        """The request's id."""
        return self.request.request_id

    @property
    def reusable_tokens(self) -> int:
        """How many first tokens need not be computed: all but the last, whose successor is sampled.

        A token that is still to be scored must be known by computing the ones before it.
        """
        scores = self.mailbox.prompt_scores
        most = len(self.tokens) - 1
        return most if scores is None or scores.complete else min(most, scores.done)

    @property
    def begun(self) -> bool:
        """Whether a sequence without a row has had its first token."""
        return self.kept is not None and self.kept.timings.first_token is not None
