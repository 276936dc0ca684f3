"""`Mailbox`: passes generated tokens from the engine's thread to one reader.

A step writes rows of `RowTable` and no mailbox; the reader copies new tokens out of the row when it
drains. A mailbox changes only when its request gets a row, loses it or finishes:

    queued ──place──▶ placed ──detach──▶ kept ──place──▶ … ──detach──▶ kept ──set_finish──▶ finished

Write order of the engine's thread: `kept`, then `placement = None`, then (at the end) `finish`.
A reader loads `finish` first. After copying from a row it checks that `placement` is still the object
it started with, and otherwise reads again. So a reader never returns tokens of a reused row, and a
reader that has seen `finish` has every token. This relies on CPython's atomic reference loads.
"""

import threading
from collections import deque

from engine.api.request import Timings
from engine.batch.finish import Finish
from engine.batch.outputs import OutputRows, Outputs
from engine.batch.prompt_scores import PromptScores


class Placement:
    """The assignment of a request to a row. Compared by identity: each assignment is a new object."""

    __slots__ = ("row", "rows")

    def __init__(self, rows: OutputRows, row: int) -> None:
        self.rows = rows
        self.row = row


class Mailbox:
    """The reader's interface to one request.

    Attributes:
        num_logprobs: None without logprobs, else how many alternatives besides the sampled token.
        placement: the row the request is in, or None.
        kept: every output so far; current only while the request has no row.
        cached_tokens: prompt tokens found in the prefix cache when the request first got a row.
        prompt_scores: logprobs of the prompt's tokens, or None if not requested.
        text: text decoded by the engine's thread, for requests with stop strings only.
        finish: how the request finished; set last.
        done: set right after `finish`, for threads that block.
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
        self.kept = Outputs.empty(num_logprobs or 0, Timings(queued=queued))
        self.cached_tokens = 0
        self.text: deque[str] = deque()
        self.finish: Finish | None = None
        self.done = threading.Event()

    # ---- the engine's thread ----

    def place(self, rows: OutputRows, row: int) -> None:
        """Assign the request to `row`, which holds its tokens from now on."""
        self.placement = Placement(rows, row)

    def detach(self) -> Outputs:
        """Copy everything out of the row; after this the row may be reused."""
        placement = self.placement
        if placement is not None:
            self.kept = placement.rows.copy_outputs(placement.row, 0, self.num_logprobs)
            self.placement = None
        return self.kept

    def set_finish(self, finish: Finish) -> None:
        """Record the finish; the request must be detached from its row."""
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
                # If `place` ran between the two loads, `kept` is out of date but consistent.
                return kept.since(start)
            # Before the token count is read. The engine reads this flag after it raised the count, so
            # either this read sees the new token or the engine sees that the mailbox is empty.
            if drain:
                placement.rows.mark_drained(placement.row)
            outputs = placement.rows.copy_outputs(placement.row, start, self.num_logprobs)
            if self.placement is placement:
                return outputs

    def has_more_than(self, start: int) -> bool:
        """Whether `read(start)` would return a token, or text or the finish is available."""
        if self.finish is not None or self.text:
            return True
        placement = self.placement
        if placement is None:
            return len(self.kept.ids) > start
        # If the row was reassigned meanwhile, the result may be wrong: one empty drain or one step late.
        return placement.rows.num_outputs(placement.row) > start
