"""Scoring: log-probabilities and ranks of given tokens (prompt logprobs)."""

from dataclasses import dataclass

import torch

from engine.executors.base import MAX_TOP_LOGPROBS
from engine.executors.torch.top_tokens import top_tokens

_ROWS_AT_ONCE = 32  # bounds the double-precision copy of the logits


@dataclass(frozen=True, slots=True)
class Scored:
    """The scores of P tokens; see `StepResult`.

    Attributes:
        logprobs: [P] float32, NaN where the logits contain a NaN or are all -inf.
        ranks: [P] int64, 0 there.
        top_ids: [P, K] int64, zeros beyond the requested number.
        top_logprobs: [P, K] float32.
    """

    logprobs: torch.Tensor
    ranks: torch.Tensor
    top_ids: torch.Tensor
    top_logprobs: torch.Tensor


def score(logits: torch.Tensor, targets: torch.Tensor, tops: torch.Tensor) -> Scored:
    """Score one token per row with the raw logits.

    Args:
        logits: [P, vocab] float32.
        targets: [P] int64, the tokens to score.
        tops: [P] int64, number of alternatives requested.
    """
    starts = range(0, len(logits), _ROWS_AT_ONCE)
    several = [slice(start, start + _ROWS_AT_ONCE) for start in starts]
    parts = [_score(logits[some], targets[some], tops[some]) for some in several]
    return Scored(
        logprobs=torch.cat([part.logprobs for part in parts]),
        ranks=torch.cat([part.ranks for part in parts]),
        top_ids=torch.cat([part.top_ids for part in parts]),
        top_logprobs=torch.cat([part.top_logprobs for part in parts]),
    )


def _score(logits: torch.Tensor, targets: torch.Tensor, tops: torch.Tensor) -> Scored:
    failed = logits.isnan().any(1) | ~(logits > float("-inf")).any(1)
    raw = torch.where(failed[:, None], 0.0, logits)
    logprobs = raw.double().log_softmax(1).float()
    own = raw.gather(1, targets[:, None])
    earlier = torch.arange(raw.shape[1], device=raw.device)[None, :] < targets[:, None]
    ranks = ((raw > own) | ((raw == own) & earlier)).sum(1) + 1
    count, vocab = raw.shape
    top_ids = torch.zeros(count, MAX_TOP_LOGPROBS, dtype=torch.int64, device=raw.device)
    top = torch.zeros(count, MAX_TOP_LOGPROBS, device=raw.device)
    width = min(int(tops.max()), vocab)
    if width:
        ids = top_tokens(raw, width)
        shown = torch.arange(width, device=raw.device)[None, :] < tops[:, None]
        top_ids[:, :width] = torch.where(shown, ids, 0)
        top[:, :width] = torch.where(shown, logprobs.gather(1, ids), 0.0)
    return Scored(
        logprobs.gather(1, targets[:, None]).squeeze(1).masked_fill(failed, float("nan")),
        ranks.masked_fill(failed, 0),
        top_ids,
        top,
    )
