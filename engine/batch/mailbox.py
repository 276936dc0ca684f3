"""`Mailbox`: how tokens get from the engine's thread to their reader, without a push per token.

Hot by neglect: a step writes a row of `RowTable` and touches no mailbox. The reader copies the row
when it wants to. A mailbox changes hands only when its request gets a row, loses it or ends:

    queued ──place──▶ placed ──detach──▶ kept ──place──▶ … ──detach──▶ kept ──close──▶ finished

The engine's thread writes, in this order, `kept`, then `placement = None`, then (at the end)
`finish`. A reader loads `finish` first, and after copying from a row looks whether `placement` is
still the object it began with; if not, it reads again. So a reused row is never mistaken for one's
own, and a reader that has seen `finish` has every token. (CPython's atomic reference loads make
this sound.)
"""

import threading
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from engine.api.request import FinishReason, Timings
from engine.batch.prompt_scores import PromptScores

if TYPE_CHECKING:
    from engine.batch.rows import RowTable


class Placement:
    """One stay of a request in a row. Compared by identity: the next stay is another object."""

    __slots__ = ("row", "table")

    def __init__(self, table: "RowTable", row: int) -> None:
        self.table = table
        self.row = row


@dataclass(frozen=True, slots=True)
class Outputs:
    """Generated tokens [start, stop) of a request, copied.

    Attributes:
        ids: [N] int32.
        logprobs: [N] float32; empty unless asked for.
        top_ids: [N, k] int32; k = 0 unless asked for.
        top_logprobs: [N, k] float32.
        timings: the request's instants when this was copied.
    """

    ids: NDArray[np.int32]
    logprobs: NDArray[np.float32]
    top_ids: NDArray[np.int32]
    top_logprobs: NDArray[np.float32]
    timings: Timings

    def since(self, start: int) -> "Outputs":
        """The part from output position `start` on."""
        if start == 0:
            return self
        return Outputs(
            ids=self.ids[start:],
            logprobs=self.logprobs[start:],
            top_ids=self.top_ids[start:],
            top_logprobs=self.top_logprobs[start:],
            timings=self.timings,
        )


@dataclass(frozen=True, slots=True)
class Finish:
    """How a request ended."""

    reason: FinishReason
    error: str | None = None


class Mailbox:
    """The reader's end of one request.

    Attributes:
        num_logprobs: None for none, else how many alternatives beside the sampled token's logprob.
        placement: the row the request is in, or None.
        kept: every output so far, while the request is in no row.
        cached_tokens: prompt tokens that were found computed when the request first got a row.
        prompt_scores: logprobs of the prompt's tokens, or None if nobody asked.
        text: text found by the engine's thread, for requests with stop strings only.
        finish: how the request ended; set last.
        done: set together with `finish`, for threads that wait.
    """

    __slots__ = (
        "cached_tokens",
        "done",
        "finish",
        "kept",
        "num_logprobs",
        "placement",
        "prompt_scores",
        "text",
    )

    def __init__(
        self,
        *,
        num_logprobs: int | None,
        queued: float,
        prompt_scores: PromptScores | None = None,
    ) -> None:
        self.num_logprobs = num_logprobs
        self.prompt_scores = prompt_scores
        self.placement: Placement | None = None
        self.kept = _nothing(num_logprobs or 0, queued)
        self.cached_tokens = 0
        self.text: deque[str] = deque()
        self.finish: Finish | None = None
        self.done = threading.Event()

    # ---- the engine's thread ----

    def place(self, table: "RowTable", row: int) -> None:
        """The request's tokens are in `row` from now on."""
        self.placement = Placement(table, row)

    def detach(self) -> Outputs:
        """Copy everything out of the row; after this the row may be reused."""
        if self.placement is not None:
            self.kept = self._copy(self.placement, 0)
            self.placement = None
        return self.kept

    def close(self, finish: Finish) -> None:
        """The request ended. Its row, if any, was detached before."""
        self.finish = finish
        self.done.set()

    # ---- the reader's thread ----

    def read(self, start: int) -> Outputs:
        """Outputs from position `start` on. Never blocks."""
        return self._read(start, drain=True)

    def peek(self) -> Outputs:
        """Every output so far, without counting as a drain. Never blocks."""
        return self._read(0, drain=False)

    def _read(self, start: int, *, drain: bool) -> Outputs:
        while True:
            placement = self.placement
            if placement is None:
                kept = self.kept
                # `place` may have come between the two loads; `kept` is then merely old.
                return kept.since(start)
            # Before the count is read: the engine looks at this after it raised the count, so
            # either we see the new token or the engine sees that our mailbox is empty.
            if drain:
                placement.table.drained[placement.row] = True
            outputs = self._copy(placement, start)
            if self.placement is placement:
                return outputs

    def has_more_than(self, start: int) -> bool:
        """Whether `read(start)` would return a token, or stop-checked text or the end is there."""
        if self.finish is not None or self.text:
            return True
        placement = self.placement
        if placement is None:
            return len(self.kept.ids) > start
        table, row = placement.table, placement.row
        # A wrong answer from a row reassigned meanwhile costs one empty drain or waits one step.
        return bool(table.num_tokens[row] - table.num_prompt_tokens[row] > start)

    def _copy(self, placement: Placement, start: int) -> Outputs:
        table, row = placement.table, placement.row
        prompt = int(table.num_prompt_tokens[row])
        stop = int(table.num_tokens[row])
        begin = min(prompt + start, stop)
        alternatives = self.num_logprobs or 0
        wanted = self.num_logprobs is not None
        logprobs = table.logprob_table[row, begin:stop].copy() if wanted else _NO_LOGPROBS
        if alternatives:
            tops = table.top_logprobs.copy(row, begin - prompt, stop - prompt, alternatives)
        else:
            tops = np.zeros((stop - begin, 0), np.int32), np.zeros((stop - begin, 0), np.float32)
        return Outputs(
            ids=table.token_table[row, begin:stop].copy(),
            logprobs=logprobs,
            top_ids=tops[0],
            top_logprobs=tops[1],
            timings=table.timings(row),
        )


_NO_LOGPROBS: NDArray[np.float32] = np.zeros(0, np.float32)


def _nothing(alternatives: int, queued: float) -> Outputs:
    return Outputs(
        ids=np.zeros(0, np.int32),
        logprobs=_NO_LOGPROBS,
        top_ids=np.zeros((0, alternatives), np.int32),
        top_logprobs=np.zeros((0, alternatives), np.float32),
        timings=Timings(queued=queued),
    )
