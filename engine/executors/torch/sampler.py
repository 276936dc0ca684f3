"""Sampling with torch, for all rows of a step at once.

Algorithm, order and random numbers are those of `engine.executors.reference_sampler`, the oracle.
Penalties, filters and logprobs are computed only if a row of the step needs them.
"""

from dataclasses import dataclass

import torch

from engine.executors.base import MAX_TOP_LOGPROBS
from engine.executors.torch.gumbel import gumbel_noise
from engine.executors.torch.sampling_batch import Penalties, SamplingBatch
from engine.executors.torch.top_tokens import top_tokens


@dataclass(frozen=True, slots=True)
class Sampled:
    """The samples of N rows.

    Attributes:
        tokens: [N] int64, -1 where the row failed.
        logprobs: [N] float32, NaN where not requested or failed.
        top_ids: [N, K] int64, likeliest first, zeros beyond the requested number.
        top_logprobs: [N, K] float32.
        token_id_logprobs: (indices [B] int64 into the plan's `logprob_ids`, logprobs [B] float32, NaN
            where the row failed), or None.
        failed: [N] bool, the logits contain a NaN, or are all -inf before or after the mask.
    """

    tokens: torch.Tensor
    logprobs: torch.Tensor
    top_ids: torch.Tensor
    top_logprobs: torch.Tensor
    token_id_logprobs: tuple[torch.Tensor, torch.Tensor] | None
    failed: torch.Tensor


def sample(logits: torch.Tensor, batch: SamplingBatch) -> Sampled:
    """Sample one token per row.

    Args:
        logits: [N, vocab] float32; not modified.
        batch: the rows' parameters.
    """
    masked = _mask(logits, batch)
    failed = logits.isnan().any(1) | ~(masked > float("-inf")).any(1)
    # NaN rows are replaced, so that no sort or reduction over the batch sees a NaN.
    raw = torch.where(failed[:, None], 0.0, logits)
    masked = torch.where(failed[:, None], 0.0, masked) if batch.mask is not None else raw
    adjusted = _dry(_penalise(_bias(masked, batch), batch.penalties), batch)
    tokens = adjusted.argmax(1)
    if batch.stochastic:
        tokens = torch.where(batch.temperature > 0, _gumbel_max(adjusted, batch), tokens)
    logprobs, top_ids, top_logprobs = _logprobs(raw, tokens, failed, batch)
    return Sampled(
        tokens.masked_fill(failed, -1),
        logprobs.masked_fill(failed, float("nan")),
        top_ids,
        top_logprobs,
        _token_id_logprobs(raw, failed, batch),
        failed,
    )


def _mask(logits: torch.Tensor, batch: SamplingBatch) -> torch.Tensor:
    """The logits, -inf where a row's mask forbids a token."""
    if batch.mask is None:
        return logits
    rows, words = batch.mask
    ids = torch.arange(logits.shape[1], device=logits.device)
    allowed = (words[:, ids // 32] >> (ids % 32).int()) & 1
    mine = logits[rows].masked_fill(allowed == 0, float("-inf"))
    return logits.index_copy(0, rows, mine)


def _bias(logits: torch.Tensor, batch: SamplingBatch) -> torch.Tensor:
    if batch.bias is None:
        return logits
    rows, ids, values = batch.bias
    return logits.index_put((rows, ids), values, accumulate=True)


def _penalise(logits: torch.Tensor, penalties: Penalties | None) -> torch.Tensor:
    """Apply penalties: repetition to prompt and output tokens, presence and frequency to output."""
    if penalties is None:
        return logits
    mine = logits[penalties.rows]
    seen = torch.zeros_like(mine).scatter_add_(1, penalties.tokens, penalties.valid.float()) > 0
    counts = torch.zeros_like(mine).scatter_add_(1, penalties.tokens, penalties.output.float())
    repeated = torch.where(mine > 0, mine / penalties.repetition, mine * penalties.repetition)
    mine = torch.where(seen, repeated, mine)
    mine = torch.where(counts > 0, mine - penalties.presence, mine)
    mine = torch.where(counts > 0, mine - penalties.frequency * counts, mine)
    return logits.index_copy(0, penalties.rows, mine)


def _dry(logits: torch.Tensor, batch: SamplingBatch) -> torch.Tensor:
    if batch.dry is None:
        return logits
    rows, ids, values = batch.dry
    return logits.index_put((rows, ids), -values, accumulate=True)


def _gumbel_max(logits: torch.Tensor, batch: SamplingBatch) -> torch.Tensor:
    """Gumbel-max over the tokens kept by top-k, top-p and min-p, after temperature: [N] int64."""
    heat = torch.where(batch.temperature > 0, batch.temperature, 1.0)
    scaled = logits / heat[:, None]
    if batch.filtered:
        order = scaled.sort(dim=1, descending=True, stable=True).indices
        keep = torch.zeros_like(scaled, dtype=torch.bool)
        keep.scatter_(1, order, _kept_in_order(scaled.gather(1, order), batch))
    else:
        keep = _kept_by_share(scaled, scaled.amax(1, keepdim=True), batch)
        keep.scatter_(1, scaled.argmax(1, keepdim=True), value=True)
    noise = gumbel_noise(batch.seeds, batch.positions, logits.shape[1])
    noisy = (scaled.double() + noise).masked_fill_(~keep, float("-inf"))
    return noisy.argmax(1)


def _kept_by_share(
    scaled: torch.Tensor, highest: torch.Tensor, batch: SamplingBatch
) -> torch.Tensor:
    shares = torch.exp(scaled.double() - highest.double())
    return (shares >= batch.min_p.double()[:, None]) & (shares > 0)


def _kept_in_order(scaled: torch.Tensor, batch: SamplingBatch) -> torch.Tensor:
    """Which tokens are kept, likeliest first: [N, vocab] bool.

    Args:
        scaled: [N, vocab] float32, descending.
        batch: the rows' parameters.
    """
    rank = torch.arange(scaled.shape[1], device=scaled.device)[None, :]
    within = (batch.top_k[:, None] == 0) | (rank < batch.top_k[:, None])
    shares = torch.exp(scaled.double() - scaled[:, :1].double()).masked_fill_(~within, 0.0)
    keep = within & (shares >= batch.min_p.double()[:, None]) & (shares > 0)
    reached = (shares / shares.sum(1, keepdim=True)).cumsum(1)
    top_p = batch.top_p.double()[:, None]
    last = (reached < top_p).sum(1, keepdim=True)
    keep &= (top_p >= 1) | (rank <= last)
    keep[:, 0] = True
    return keep


def _logprobs(
    raw: torch.Tensor, tokens: torch.Tensor, failed: torch.Tensor, batch: SamplingBatch
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Raw log-probabilities of the sampled tokens, and the likeliest alternatives."""
    count, vocab = raw.shape
    own = torch.full((count,), float("nan"), device=raw.device)
    top_ids = torch.zeros(count, MAX_TOP_LOGPROBS, dtype=torch.int64, device=raw.device)
    top = torch.zeros(count, MAX_TOP_LOGPROBS, device=raw.device)
    if batch.max_logprobs < 0:
        return own, top_ids, top
    logprobs = raw.double().log_softmax(1).float()
    wanted = batch.logprobs >= 0
    own = torch.where(wanted, logprobs.gather(1, tokens[:, None]).squeeze(1), own)
    width = min(batch.max_logprobs, vocab)
    if width > 0:
        ids = top_tokens(logprobs, width)
        shown = torch.arange(width, device=raw.device)[None, :] < batch.logprobs[:, None]
        shown &= ~failed[:, None]
        top_ids[:, :width] = torch.where(shown, ids, 0)
        top[:, :width] = torch.where(shown, logprobs.gather(1, ids), 0.0)
    return own, top_ids, top


def _token_id_logprobs(
    raw: torch.Tensor, failed: torch.Tensor, batch: SamplingBatch
) -> tuple[torch.Tensor, torch.Tensor] | None:
    """Raw log-probabilities of the chosen token ids, as in `Sampled`."""
    if batch.logprob_ids is None:
        return None
    rows, ids, entries = batch.logprob_ids
    log_sums = raw.double().logsumexp(1)
    logprobs = (raw[rows, ids].double() - log_sums[rows]).float()
    return entries, logprobs.masked_fill(failed[rows], float("nan"))
