"""`StepLoad`: what makes a step long, in three numbers."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class StepLoad:
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


def loads_of(
    grant: NDArray[np.int32], end: NDArray[np.int32], drafts: NDArray[np.int32] | None = None
) -> tuple[StepLoad, StepLoad]:
    """The load of a step, and that of its decodes alone. A draft token counts as another decode.

    Args:
        grant: [R] int32, tokens each row computes.
        end: [R] int32, tokens each row has computed after it.
        drafts: [R] int32, how many of these are draft tokens; None or empty for none.
    """
    if drafts is not None and drafts.size:
        return _loads_with_drafts(grant, end, drafts)
    total, rows = int(grant.sum()), len(grant)
    if total == rows:
        decodes = StepLoad(0, rows, int(end.sum()))
        return decodes, decodes
    single = grant == 1
    decodes = StepLoad(0, int(np.count_nonzero(single)), int(end[single].sum()))
    wide = grant.astype(np.int64)  # a chunk of 2**16 tokens at the end of 2**24
    pairs = int((wide * end - wide * (wide - 1) // 2).sum())
    return StepLoad(total - decodes.decode_rows, decodes.decode_rows, pairs), decodes


def _loads_with_drafts(
    grant: NDArray[np.int32], end: NDArray[np.int32], drafts: NDArray[np.int32]
) -> tuple[StepLoad, StepLoad]:
    wide = grant.astype(np.int64)
    pairs = wide * end - wide * (wide - 1) // 2
    decoding = grant - drafts == 1
    count = int(grant[decoding].sum())
    decodes = StepLoad(0, count, int(pairs[decoding].sum()))
    return StepLoad(int(grant.sum()) - count, count, int(pairs.sum())), decodes
