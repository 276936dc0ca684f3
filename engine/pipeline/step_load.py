"""`StepLoad`: what makes a step long, in three numbers."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class StepLoad(NamedTuple):
    """The work in a step.

    Attributes:
        prefill_tokens: tokens computed by rows that compute several.
        decode_rows: rows that compute one token.
        kv_tokens: pairs of a computed token and a token it attends to; for decodes, the KV tokens
            that are read.
    """

    prefill_tokens: int
    decode_rows: int
    kv_tokens: int


def load_of(
    grant: NDArray[np.int32],
    end: NDArray[np.int32],
    total: int,
    drafts: NDArray[np.int32] | None = None,
) -> StepLoad:
    """The load of a step. A draft token counts as another decode.

    Args:
        grant: [R] int32, tokens each row computes.
        end: [R] int32, tokens each row has computed after it.
        total: the sum of `grant`.
        drafts: [R] int32, how many of them are draft tokens; None if there are none.
    """
    rows = len(grant)
    if total == rows:
        return StepLoad(0, rows, int(end.sum()))
    wide = grant.astype(np.int64)  # a chunk of 2**16 tokens at the end of 2**24
    pairs = int((wide * end - wide * (wide - 1) // 2).sum())
    known = grant if drafts is None else grant - drafts
    decodes = int(grant[known == 1].sum())
    return StepLoad(total - decodes, decodes, pairs)
