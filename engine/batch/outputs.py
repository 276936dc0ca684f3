"""`Outputs`: generated tokens of a request, copied out of its row."""

from dataclasses import dataclass
from typing import Protocol, Self

import numpy as np
from numpy.typing import NDArray

from engine.api.request import Timings


@dataclass(frozen=True, slots=True)
class Outputs:
    """A copy of the generated tokens [start, stop) of one request.

    Attributes:
        ids: [N] int32, token ids.
        logprobs: [N] float32; empty unless requested.
        top_ids: [N, k] int32; empty without logprobs.
        top_logprobs: [N, k] float32.
        token_id_logprobs: [N, K] float32, of the request's K `logprob_token_ids`; [0, 0] without any.
        drafted: [N] bool, whether the token is an accepted draft token.
        timings: the request's timestamps at the time of the copy.
    """

    ids: NDArray[np.int32]
    logprobs: NDArray[np.float32]
    top_ids: NDArray[np.int32]
    top_logprobs: NDArray[np.float32]
    token_id_logprobs: NDArray[np.float32]
    drafted: NDArray[np.bool_]
    timings: Timings

    @classmethod
    def empty(cls, num_logprobs: int, timings: Timings) -> Self:
        """Outputs without tokens, with `num_logprobs` alternatives per token."""
        return cls(
            ids=np.zeros(0, np.int32),
            logprobs=np.zeros(0, np.float32),
            top_ids=np.zeros((0, num_logprobs), np.int32),
            top_logprobs=np.zeros((0, num_logprobs), np.float32),
            token_id_logprobs=np.zeros((0, 0), np.float32),
            drafted=np.zeros(0, np.bool_),
            timings=timings,
        )

    def since(self, start: int) -> "Outputs":
        """The part from output position `start` on."""
        if start == 0:
            return self
        return Outputs(
            ids=self.ids[start:],
            logprobs=self.logprobs[start:],
            top_ids=self.top_ids[start:],
            top_logprobs=self.top_logprobs[start:],
            token_id_logprobs=self.token_id_logprobs[start:],
            drafted=self.drafted[start:],
            timings=self.timings,
        )


class OutputRows(Protocol):
    """The reader's view of the row table. Every method may be called from any thread."""

    def copy_outputs(self, row: int, start: int, num_logprobs: int | None) -> Outputs:
        """Copy the outputs of a row from output position `start` on."""
        ...

    def num_outputs(self, row: int) -> int:
        """How many tokens the row has generated."""
        ...

    def mark_drained(self, row: int) -> None:
        """Record that a reader is about to copy every output of the row."""
        ...
