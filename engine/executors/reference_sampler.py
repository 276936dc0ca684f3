"""Reference implementation of sampling in plain numpy, the oracle for the samplers of the executors.

Per row, in this order: raw logits → log-probabilities (if requested) → token mask → logit bias →
repetition, presence, frequency and DRY penalties → greedy if temperature is 0 → temperature → top-k →
top-p and min-p → Gumbel-max. The noise is a function of (request seed, position, token id) only, so
a sample does not depend on the batch, on chunking or on preemption. Ties go to the lowest token id.

It sorts the whole vocabulary and is slow: for tests only, not for steps of a real model.
"""

import numpy as np
from numpy.typing import NDArray

from engine.executors.base import StepPlan, StepResult

_MAX_DRY_PENALTY = 1e6
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
    """Standard Gumbel noise for tokens at a position of a request.

    Args:
        seed: the request's seed, uint64.
        position: position of the token to be sampled.
        token_ids: [N] int64.

    Returns:
        [N] float64.
    """
    row_key = mix64(np.uint64(seed) ^ mix64(np.uint64(position)))
    with np.errstate(over="ignore"):
        h = mix64(row_key ^ (token_ids.astype(np.uint64) * _GOLDEN))
    uniform = ((h >> np.uint64(40)).astype(np.float64) + 0.5) / 2.0**24  # never 0 or 1
    noise: NDArray[np.float64] = -np.log(-np.log(uniform))
    return noise


def sample_reference(
    logits: NDArray[np.float32],
    plan: StepPlan,
    score_logits: NDArray[np.float32] | None = None,
) -> StepResult:
    """Sample all rows of a step with `needs_logits`, and compute the step's scores.

    Args:
        logits: [R + D, vocab] float32, run by run: the logits after the row's last token, then those
            after each of its drafts. A run without `needs_logits` has one entry, which is ignored.
        plan: the step.
        score_logits: [P, vocab] float32, the logits after the plan's `score_tokens`.
    """
    count, drafts = len(plan.rows), _drafts(plan)
    total, scores = sum(map(len, drafts)), len(plan.score_tokens)
    result = StepResult.empty(count, drafts=total, scores=scores, logprob_ids=len(plan.logprob_ids))
    first_draft = 0
    for index in range(count):
        mine = drafts[index]
        if plan.needs_logits[index]:
            _sample_run(index, mine, first_draft, logits[index + first_draft :], plan, result)
        first_draft += len(mine)
    if score_logits is not None:
        for at in range(scores):
            _score(at, score_logits[at], plan, result)
    return result


def _drafts(plan: StepPlan) -> list[list[int]]:
    """Each run's drafts."""
    if not plan.num_draft_tokens.size:
        return [[] for _ in plan.rows]
    ends = plan.query_start[1:]
    runs = zip((ends - plan.num_draft_tokens).tolist(), ends.tolist(), strict=True)
    return [plan.token_ids[first:end].tolist() for first, end in runs]


def _sample_run(
    index: int,
    drafts: list[int],
    first_draft: int,
    logits: NDArray[np.float32],
    plan: StepPlan,
    result: StepResult,
) -> None:
    """Sample a row token by token, as long as each sample equals the row's next draft."""
    row = int(plan.rows[index])
    masks = plan.mask_bits[plan.mask_rows == index]
    mask = masks[0] if len(masks) else None
    if mask is not None and drafts:
        raise AssertionError(f"step entry {index} has a token mask and drafts")
    listed = np.flatnonzero(plan.logprob_rows == row)
    if len(listed) and drafts:
        raise AssertionError(f"step entry {index} reports logprobs of token ids and has drafts")
    if len(listed) and not _unusable(logits[0].astype(np.float32)):
        logprobs = log_softmax(logits[0].astype(np.float32))
        result.token_id_logprobs[listed] = logprobs[plan.logprob_ids[listed]]
    for nth in range(len(drafts) + 1):
        num_tokens = int(plan.num_tokens[row]) + nth
        token, logprob, top_ids, top_logprobs = _sample_one(
            logits[nth].astype(np.float32), mask, plan, row, num_tokens
        )
        if nth < len(drafts) and token == drafts[nth]:
            at = first_draft + nth
            result.accepted[index] += 1
            result.draft_logprobs[at] = logprob
            result.draft_top_ids[at, : len(top_ids)] = top_ids
            result.draft_top_logprobs[at, : len(top_ids)] = top_logprobs
            continue
        result.sampled[index] = token
        result.failed[index] = token < 0
        result.logprobs[index] = logprob
        result.top_ids[index, : len(top_ids)] = top_ids
        result.top_logprobs[index, : len(top_ids)] = top_logprobs
        return


def _sample_one(
    logits: NDArray[np.float32],
    mask: NDArray[np.uint32] | None,
    plan: StepPlan,
    row: int,
    num_tokens: int,
) -> tuple[int, float, NDArray[np.int64], NDArray[np.float32]]:
    """The token after the row's first `num_tokens` tokens, its logprob, and alternatives.

    The token is -1 if the logits are unusable.
    """
    params = plan.sampling[row]
    if _unusable(logits):
        return -1, np.nan, np.zeros(0, np.int64), np.zeros(0, np.float32)
    allowed = logits if mask is None else _masked(logits, mask)
    if _unusable(allowed):
        return -1, np.nan, np.zeros(0, np.int64), np.zeros(0, np.float32)
    adjusted = _penalise(_bias(allowed, plan, row), plan, row, num_tokens)
    if params["dry_multiplier"] != 0:
        tokens = plan.token_table[row, :num_tokens]
        for token, penalty in dry_penalties(
            tokens, params, plan.breaker_heads, plan.breaker_tails
        ).items():
            adjusted[token] -= penalty
    if params["temperature"] == 0:
        token = int(np.argmax(adjusted))
    else:
        token = _gumbel_max(adjusted, params, position=num_tokens)
    wanted = int(params["num_logprobs"])
    if wanted < 0:
        return token, np.nan, np.zeros(0, np.int64), np.zeros(0, np.float32)
    logprobs = log_softmax(logits)
    best = np.argsort(-logprobs, kind="stable")[:wanted]
    return token, float(logprobs[token]), best, logprobs[best]


def _score(at: int, logits: NDArray[np.float32], plan: StepPlan, result: StepResult) -> None:
    """Write the log-probability of the score target `at`, its rank, and the likeliest tokens."""
    logits = logits.astype(np.float32)
    if _unusable(logits):
        return
    logprobs, target = log_softmax(logits), int(plan.score_targets[at])
    order = np.argsort(-logits, kind="stable")
    result.score_logprobs[at] = logprobs[target]
    result.score_ranks[at] = int(np.flatnonzero(order == target)[0]) + 1
    best = order[: int(plan.score_tops[at])]
    result.score_top_ids[at, : len(best)] = best
    result.score_top_logprobs[at, : len(best)] = logprobs[best]


def _unusable(logits: NDArray[np.float32]) -> bool:
    return bool(np.isnan(logits).any() or not (logits > -np.inf).any())


def log_softmax(logits: NDArray[np.float32]) -> NDArray[np.float32]:
    """[vocab] float32; the sum is computed in double precision."""
    wide = logits.astype(np.float64)
    top = wide.max()
    shifted = wide - top
    logprobs: NDArray[np.float64] = shifted - np.log(np.exp(shifted).sum())
    return logprobs.astype(np.float32)


def _masked(logits: NDArray[np.float32], mask: NDArray[np.uint32]) -> NDArray[np.float32]:
    """The logits, -inf where a mask forbids a token."""
    ids = np.arange(len(logits))
    allowed = (mask[ids // 32] >> (ids % 32).astype(np.uint32)) & 1
    return np.where(allowed == 1, logits, np.float32(-np.inf))


def _bias(logits: NDArray[np.float32], plan: StepPlan, row: int) -> NDArray[np.float32]:
    mine = plan.bias_rows == row
    adjusted = logits.copy()
    adjusted[plan.bias_ids[mine]] += plan.bias_values[mine]
    return adjusted


def _penalise(
    logits: NDArray[np.float32], plan: StepPlan, row: int, num_tokens: int
) -> NDArray[np.float32]:
    params = plan.sampling[row]
    tokens = plan.token_table[row, :num_tokens]
    output = tokens[plan.penalty_start[row] :]
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


def dry_penalties(
    tokens: NDArray[np.int32],
    params: np.void,
    breaker_heads: NDArray[np.uint32],
    breaker_tails: NDArray[np.int32],
) -> dict[int, np.float32]:
    """The DRY penalty of each token that may follow `tokens`, [n], by its definition: O(n²).

    `params` is a record of `SAMPLING_DTYPE`, the breakers are those of the plan.
    """
    last_n, allowed = int(params["dry_penalty_last_n"]), int(params["dry_allowed_length"])
    window = tokens.tolist() if last_n < 0 else tokens[max(0, len(tokens) - last_n) :].tolist()
    patterns = range(params["first_breaker"], params["first_breaker"] + params["num_breakers"])
    breakers = [
        (breaker_heads[at], [one for one in breaker_tails[at].tolist() if one >= 0])
        for at in patterns
    ]
    single = [heads for heads, tail in breakers if not tail]
    limit = _tokens_since_breaker(window, breakers)
    longest: dict[int, int] = {}
    for end in range(1, len(window)):  # the last tokens of the window also end before `end`
        length = 0
        while length < min(limit, end) and window[end - 1 - length] == window[-1 - length]:
            length += 1
        token = window[end]
        if length >= allowed and not any(_in_mask(heads, token) for heads in single):
            longest[token] = max(longest.get(token, 0), length)
    multiplier, base = float(params["dry_multiplier"]), float(params["dry_base"])
    return {
        token: np.float32(min(multiplier * _power(base, length - allowed), _MAX_DRY_PENALTY))
        for token, length in longest.items()
    }


def _tokens_since_breaker(
    tokens: list[int], breakers: list[tuple[NDArray[np.uint32], list[int]]]
) -> int:
    """Number of tokens after the last sequence breaker."""
    for start in reversed(range(len(tokens))):
        lengths = [
            len(tail)
            for heads, tail in breakers
            if _in_mask(heads, tokens[start]) and tokens[start + 1 : start + 1 + len(tail)] == tail
        ]
        if lengths:
            return len(tokens) - start - 1 - max(lengths)
    return len(tokens)


def _in_mask(mask: NDArray[np.uint32], token: int) -> bool:
    return bool(int(mask[token // 32]) >> (token % 32) & 1)


def _power(base: float, exponent: int) -> float:
    """By repeated squaring, as in the kernels; infinity instead of an error."""
    power, square = 1.0, base
    while exponent:
        if exponent & 1:
            power *= square
        square *= square
        exponent >>= 1
    return power


def _gumbel_max(logits: NDArray[np.float32], params: np.void, *, position: int) -> int:
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
