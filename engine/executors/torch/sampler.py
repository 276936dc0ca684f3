"""Sampling with torch, for all rows of a step at once.

Algorithm, order and random numbers are those of `engine.executors.reference_sampler`, the oracle.
Penalties, filters and logprobs are computed only if a row of the step needs them.
"""

from dataclasses import dataclass

import torch

from engine.executors.torch.gumbel import gumbel_noise
from engine.executors.torch.sampling_batch import Noise, Penalties, SamplingBatch
from engine.executors.torch.top_tokens import top_tokens


@dataclass(frozen=True, slots=True)
class Sampled:
    """The samples of N rows.

    Attributes:
        tokens: [N] int64, -1 where the row failed: the logits contain a NaN, or are all -inf before or
            after the mask.
        logprobs: [N] float32, NaN where not requested or failed; None if no row requests any.
        top_ids: [N, width] int64, likeliest first, zeros beyond the requested number; None if no row
            requests alternatives.
        top_logprobs: [N, width] float32, or None.
        token_id_logprobs: [B] float32 in the order of the batch's `logprob_ids`, NaN where the row
            failed; or None.
    """

    tokens: torch.Tensor
    logprobs: torch.Tensor | None = None
    top_ids: torch.Tensor | None = None
    top_logprobs: torch.Tensor | None = None
    token_id_logprobs: torch.Tensor | None = None


def sample(
    logits: torch.Tensor, batch: SamplingBatch, greedy: torch.Tensor | None = None
) -> Sampled:
    """Sample one token per row.

    Args:
        logits: [N, vocab] float32; not modified.
        batch: the rows' parameters.
        greedy: `likeliest(logits)` if it is known.
    """
    if batch.plain:
        return Sampled(likeliest(logits) if greedy is None else greedy)
    masked = _mask(logits, batch)
    failed = _unusable(logits)
    if batch.mask is not None:
        failed |= _unusable(masked)
    # NaN rows are replaced, so that no sort or reduction over the batch sees a NaN.
    raw = torch.where(failed[:, None], 0.0, logits)
    masked = torch.where(failed[:, None], 0.0, masked) if batch.mask is not None else raw
    adjusted = _dry(_penalise(_bias(masked, batch), batch.penalties), batch)
    tokens = adjusted.argmax(1)
    if batch.noise is not None:
        hot = batch.noise.temperature > 0
        drawn = _gumbel_max(adjusted, batch.noise, filtered=batch.filtered)
        tokens = torch.where(hot, drawn, tokens)
    logprobs, top_ids, top_logprobs = _logprobs(raw, tokens, failed, batch)
    return Sampled(
        tokens.masked_fill(failed, -1),
        logprobs,
        top_ids,
        top_logprobs,
        _token_id_logprobs(raw, failed, batch),
    )


def likeliest(logits: torch.Tensor) -> torch.Tensor:
    """The likeliest token of each row, [N] int64, as in `Sampled`: the greedy sample in one pass."""
    values, tokens = logits.max(1)  # NaN if there is one; the lowest id among equals
    failed = tokens.new_full((), -1)  # on the device: CUDA graphs cannot record a copy of a number
    return torch.where(values > float("-inf"), tokens, failed)


def _unusable(logits: torch.Tensor) -> torch.Tensor:
    """[N] bool, whether a row has a NaN, which a maximum would be, or nothing above -inf."""
    return ~(logits.amax(1) > float("-inf"))


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


def _gumbel_max(logits: torch.Tensor, rows: Noise, *, filtered: bool) -> torch.Tensor:
    """Gumbel-max over the tokens kept by top-k, top-p and min-p, after temperature: [N] int64."""
    heat = torch.where(rows.temperature > 0, rows.temperature, 1.0)
    scaled = logits / heat[:, None]
    if filtered:
        order = scaled.sort(dim=1, descending=True, stable=True).indices
        keep = torch.zeros_like(scaled, dtype=torch.bool)
        keep.scatter_(1, order, _kept_in_order(scaled.gather(1, order), rows))
    else:
        keep = _kept_by_share(scaled, scaled.amax(1, keepdim=True), rows)
        keep.scatter_(1, scaled.argmax(1, keepdim=True), value=True)
    noise = gumbel_noise(rows.seeds, rows.positions, logits.shape[1])
    noisy = (scaled.double() + noise).masked_fill_(~keep, float("-inf"))
    return noisy.argmax(1)


def _kept_by_share(scaled: torch.Tensor, highest: torch.Tensor, rows: Noise) -> torch.Tensor:
    shares = torch.exp(scaled.double() - highest.double())
    return (shares >= rows.min_p.double()[:, None]) & (shares > 0)


def _kept_in_order(scaled: torch.Tensor, rows: Noise) -> torch.Tensor:
    """Which tokens are kept, likeliest first: [N, vocab] bool.

    Args:
        scaled: [N, vocab] float32, descending.
        rows: their parameters.
    """
    rank = torch.arange(scaled.shape[1], device=scaled.device)[None, :]
    within = (rows.top_k[:, None] == 0) | (rank < rows.top_k[:, None])
    shares = torch.exp(scaled.double() - scaled[:, :1].double()).masked_fill_(~within, 0.0)
    keep = within & (shares >= rows.min_p.double()[:, None]) & (shares > 0)
    reached = (shares / shares.sum(1, keepdim=True)).cumsum(1)
    top_p = rows.top_p.double()[:, None]
    last = (reached < top_p).sum(1, keepdim=True)
    keep &= (top_p >= 1) | (rank <= last)
    keep[:, 0] = True
    return keep


def _logprobs(
    raw: torch.Tensor, tokens: torch.Tensor, failed: torch.Tensor, batch: SamplingBatch
) -> tuple[torch.Tensor | None, torch.Tensor | None, torch.Tensor | None]:
    """Raw log-probabilities of the sampled tokens, and the likeliest alternatives."""
    if batch.logprobs is None:
        return None, None, None
    logprobs = raw.double().log_softmax(1).float()
    wanted = (batch.logprobs >= 0) & ~failed
    own = logprobs.gather(1, tokens[:, None]).squeeze(1).masked_fill(~wanted, float("nan"))
    width = min(batch.max_logprobs, raw.shape[1])
    if width == 0:
        return own, None, None
    ids = top_tokens(logprobs, width)
    shown = torch.arange(width, device=raw.device)[None, :] < batch.logprobs[:, None]
    shown &= ~failed[:, None]
    top = torch.where(shown, logprobs.gather(1, ids), 0.0)
    return own, torch.where(shown, ids, 0), top


def _token_id_logprobs(
    raw: torch.Tensor, failed: torch.Tensor, batch: SamplingBatch
) -> torch.Tensor | None:
    """Raw log-probabilities of the chosen token ids, as in `Sampled`."""
    if batch.logprob_ids is None:
        return None
    rows, ids = batch.logprob_ids
    log_sums = raw.double().logsumexp(1)
    logprobs = (raw[rows, ids].double() - log_sums[rows]).float()
    return logprobs.masked_fill(failed[rows], float("nan"))
