"""The sampling algorithm in plain numpy: the oracle for every executor's own sampler.

Per row, in this order: raw logits → log-probabilities (where asked for) → token mask → logit bias →
repetition, presence and frequency penalties → greedy if temperature is 0 → temperature → top-k →
top-p and min-p → Gumbel-max. The noise is a function of (request seed, position, token id) and of nothing
else, so a draw does not depend on the batch, on chunking or on preemption. Ties go to the lowest
token id.

Slow on purpose: it sorts whole vocabularies. Do not call it in a step of a real model.
"""

import numpy as np
from numpy.typing import NDArray

from engine.executors.base import MAX_TOP_LOGPROBS, StepPlan, StepResult

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2 = np.uint64(0x94D049BB133111EB)


def mix64(value: NDArray[np.uint64] | np.uint64) -> NDArray[np.uint64]:
    """The finaliser of splitmix64 (Steele et al. 2014), element by element, modulo 2**64."""
    z = np.asarray(value, np.uint64)
    with np.errstate(over="ignore"):
        z = (z ^ (z >> np.uint64(30))) * _MIX_1
        z = (z ^ (z >> np.uint64(27))) * _MIX_2
    return z ^ (z >> np.uint64(31))


def gumbel_noise(seed: int, position: int, token_ids: NDArray[np.int64]) -> NDArray[np.float64]:
    """Standard Gumbel noise of tokens at a position of a request: [N] float64."""
    row_key = mix64(np.uint64(seed) ^ mix64(np.uint64(position)))
    with np.errstate(over="ignore"):
        h = mix64(row_key ^ (token_ids.astype(np.uint64) * _GOLDEN))
    uniform = ((h >> np.uint64(40)).astype(np.float64) + 0.5) / 2.0**24  # never 0 or 1
    noise: NDArray[np.float64] = -np.log(-np.log(uniform))
    return noise


def sample_reference(logits: NDArray[np.float32], plan: StepPlan) -> StepResult:
    """Sample every row of a step that needs logits.

    Args:
        logits: [R, vocab] float32; rows that need none are ignored.
        plan: the step.
    """
    count = len(plan.rows)
    result = StepResult(
        sampled=np.full(count, -1, np.int32),
        logprobs=np.full(count, np.nan, np.float32),
        top_ids=np.zeros((count, MAX_TOP_LOGPROBS), np.int32),
        top_logprobs=np.zeros((count, MAX_TOP_LOGPROBS), np.float32),
        failed=np.zeros(count, np.uint8),
    )
    for index in np.flatnonzero(plan.needs_logits):
        _sample_row(int(index), logits[index].astype(np.float32), plan, result)
    return result


def _sample_row(
    index: int, logits: NDArray[np.float32], plan: StepPlan, result: StepResult
) -> None:
    row = int(plan.rows[index])
    params = plan.sampling[row]
    if np.isnan(logits).any() or not (logits > -np.inf).any():
        result.failed[index] = 1
        return
    allowed = _mask(index, logits, plan)
    if not (allowed > -np.inf).any():
        result.failed[index] = 1
        return
    adjusted = _penalise(_bias(allowed, plan, row), plan, row)
    if params["temperature"] == 0:
        token = int(np.argmax(adjusted))
    else:
        token = _draw(adjusted, params, position=int(plan.num_tokens[row]))
    result.sampled[index] = token
    wanted = int(params["num_logprobs"])
    if wanted >= 0:
        logprobs = log_softmax(logits)
        result.logprobs[index] = logprobs[token]
        best = np.argsort(-logprobs, kind="stable")[:wanted]
        result.top_ids[index, : len(best)] = best
        result.top_logprobs[index, : len(best)] = logprobs[best]


def log_softmax(logits: NDArray[np.float32]) -> NDArray[np.float32]:
    """[vocab] float32, summed in double precision."""
    wide = logits.astype(np.float64)
    top = wide.max()
    shifted = wide - top
    logprobs: NDArray[np.float64] = shifted - np.log(np.exp(shifted).sum())
    return logprobs.astype(np.float32)


def _mask(index: int, logits: NDArray[np.float32], plan: StepPlan) -> NDArray[np.float32]:
    """The logits, -inf where the mask of batch entry `index` forbids a token."""
    mine = np.flatnonzero(plan.mask_rows == index)
    if not len(mine):
        return logits
    ids = np.arange(len(logits))
    bits = plan.mask_bits[mine[0]]
    allowed = (bits[ids // 32] >> (ids % 32).astype(np.uint32)) & 1
    return np.where(allowed == 1, logits, np.float32(-np.inf))


def _bias(logits: NDArray[np.float32], plan: StepPlan, row: int) -> NDArray[np.float32]:
    mine = plan.bias_rows == row
    adjusted = logits.copy()
    adjusted[plan.bias_ids[mine]] += plan.bias_values[mine]
    return adjusted


def _penalise(logits: NDArray[np.float32], plan: StepPlan, row: int) -> NDArray[np.float32]:
    params = plan.sampling[row]
    tokens = plan.token_table[row, : plan.num_tokens[row]]
    output = tokens[plan.num_prompt_tokens[row] :]
    repetition = params["repetition_penalty"]
    if repetition != 1:
        seen = np.unique(tokens)
        values = logits[seen]
        logits[seen] = np.where(values > 0, values / repetition, values * repetition)
    if params["presence_penalty"] != 0 or params["frequency_penalty"] != 0:
        ids, counts = np.unique(output, return_counts=True)
        logits[ids] -= params["presence_penalty"]
        logits[ids] -= params["frequency_penalty"] * counts.astype(np.float32)
    return logits


def _draw(logits: NDArray[np.float32], params: np.void, *, position: int) -> int:
    scaled = logits / np.float32(params["temperature"])
    order = np.argsort(-scaled, kind="stable")  # likeliest first, ties by lowest id
    top_k = int(params["top_k"])
    if top_k > 0:
        order = order[:top_k]
    shares = np.exp(scaled[order].astype(np.float64) - float(scaled[order[0]]))
    keep = shares >= float(params["min_p"])
    if params["top_p"] < 1:
        reached = np.cumsum(shares / shares.sum())
        last = int(np.searchsorted(reached, float(params["top_p"]), side="left"))
        keep[last + 1 :] = False
    keep[0] = True
    kept = np.sort(order[keep & (shares > 0)])
    noisy = scaled[kept].astype(np.float64) + gumbel_noise(int(params["seed"]), position, kept)
    return int(kept[np.argmax(noisy)])
