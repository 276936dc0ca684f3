"""`SamplingBatch`: the sampling parameters of a step's rows as tensors on the executor's device."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from engine._core import dry_penalties
from engine.executors.base import StepPlan

_Put = Callable[[NDArray[Any]], torch.Tensor]


@dataclass(frozen=True, slots=True)
class Penalties:
    """The penalties of P rows, and the tokens they apply to.

    Attributes:
        rows: [P] int64, indices into the step's sampled rows.
        repetition, presence, frequency: [P, 1] float32.
        tokens: [P, L] int64, prompt and output tokens, padded with 0.
        valid: [P, L] bool, False for padding.
        output: [P, L] bool, True for output tokens.
    """

    rows: torch.Tensor
    repetition: torch.Tensor
    presence: torch.Tensor
    frequency: torch.Tensor
    tokens: torch.Tensor
    valid: torch.Tensor
    output: torch.Tensor


@dataclass(frozen=True, slots=True)
class SamplingBatch:
    """Parameters of the N samples of a step.

    Attributes:
        temperature, min_p, top_p: [N] float32.
        top_k: [N] int64; 0 keeps all tokens.
        seeds: [N] int64, bits of the uint64 seeds.
        positions: [N] int64, positions of the tokens to be sampled.
        logprobs: [N] int64, number of alternatives requested; -1 for no logprob at all.
        mask: (rows [G] int64, words [G, W] int32: the plan's `mask_bits`), or None.
        bias: (rows [B] int64, token ids [B] int64, values [B] float32), or None.
        penalties: the rows with repetition, presence or frequency penalties, or None.
        logprob_ids: (rows [B] int64, token ids [B] int64, indices [B] int64 into the plan's `logprob_ids`),
            or None.
        dry: (rows [B] int64, token ids [B] int64, penalties [B] float32), or None.
        stochastic: whether any row has a temperature above 0.
        filtered: whether any row has a top-k or a top-p.
        max_logprobs: maximum of `logprobs`.
    """

    temperature: torch.Tensor
    min_p: torch.Tensor
    top_p: torch.Tensor
    top_k: torch.Tensor
    seeds: torch.Tensor
    positions: torch.Tensor
    logprobs: torch.Tensor
    mask: tuple[torch.Tensor, torch.Tensor] | None
    bias: tuple[torch.Tensor, torch.Tensor, torch.Tensor] | None
    logprob_ids: tuple[torch.Tensor, torch.Tensor, torch.Tensor] | None
    penalties: Penalties | None
    dry: tuple[torch.Tensor, torch.Tensor, torch.Tensor] | None
    stochastic: bool
    filtered: bool
    max_logprobs: int


def sampling_batch(
    plan: StepPlan,
    sampled: NDArray[np.int64],
    draft_index: NDArray[np.int64],
    device: torch.device,
) -> SamplingBatch:
    """Gather the parameters of the rows that sample.

    Args:
        plan: the step.
        sampled: [N] int64, batch index of each sample.
        draft_index: [N] int64, number of the row's draft tokens before the sample.
        device: the device of the logits.
    """
    rows = plan.rows[sampled]
    num_tokens = plan.num_tokens[rows] + draft_index
    params = plan.sampling[rows]

    def put(array: NDArray[Any]) -> torch.Tensor:
        return torch.from_numpy(np.ascontiguousarray(array)).to(device)

    stochastic = params["temperature"] > 0
    return SamplingBatch(
        temperature=put(params["temperature"]),
        min_p=put(params["min_p"]),
        top_p=put(params["top_p"]),
        top_k=put(params["top_k"].astype(np.int64)),
        seeds=put(params["seed"].view(np.int64)),
        positions=put(num_tokens.astype(np.int64)),
        logprobs=put(params["num_logprobs"].astype(np.int64)),
        mask=_mask(plan, sampled, put),
        bias=_bias(plan, rows, put),
        logprob_ids=_logprob_ids(plan, rows, put),
        penalties=_penalties(plan, rows, num_tokens, params, put),
        dry=_dry(plan, rows, num_tokens, params, put),
        stochastic=bool(stochastic.any()),
        filtered=bool((stochastic & ((params["top_k"] > 0) | (params["top_p"] < 1))).any()),
        max_logprobs=int(params["num_logprobs"].max(initial=-1)),
    )


def _mask(
    plan: StepPlan, sampled: NDArray[np.int64], put: _Put
) -> tuple[torch.Tensor, torch.Tensor] | None:
    """The masks of these rows; `sampled` is ascending, as `mask_rows` is."""
    if not len(plan.mask_rows):
        return None
    mine = np.isin(plan.mask_rows, sampled)
    where = np.searchsorted(sampled, plan.mask_rows[mine])
    return put(where.astype(np.int64)), put(plan.mask_bits[mine].view(np.int32))


def _bias(
    plan: StepPlan, rows: NDArray[np.int32], put: _Put
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor] | None:
    """The biases of these rows; the plan may contain biases of rows that do not sample."""
    samples, entries = _entries_of(plan.bias_rows, rows)
    if not len(entries):
        return None
    return (
        put(samples),
        put(plan.bias_ids[entries].astype(np.int64)),
        put(plan.bias_values[entries]),
    )


def _logprob_ids(
    plan: StepPlan, rows: NDArray[np.int32], put: _Put
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor] | None:
    """The token ids of these rows whose logprobs are reported."""
    samples, entries = _entries_of(plan.logprob_rows, rows)
    if not len(entries):
        return None
    return put(samples), put(plan.logprob_ids[entries].astype(np.int64)), put(entries)


def _entries_of(
    sorted_rows: NDArray[np.int32], rows: NDArray[np.int32]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Where `rows`, [N], occur in `sorted_rows`: [B] int64 each, indices into `rows` and into it."""
    first = np.searchsorted(sorted_rows, rows, side="left")
    counts = np.searchsorted(sorted_rows, rows, side="right") - first
    before = np.cumsum(counts) - counts
    entries = np.arange(int(counts.sum())) + np.repeat(first - before, counts)
    return np.repeat(np.arange(len(rows)), counts), entries


def _penalties(
    plan: StepPlan,
    rows: NDArray[np.int32],
    num_tokens: NDArray[np.int64],
    params: NDArray[np.void],
    put: _Put,
) -> Penalties | None:
    """The penalties, applied to each row's first `num_tokens` tokens; None if no row has any."""
    penalised = np.flatnonzero(
        (params["repetition_penalty"] != 1)
        | (params["presence_penalty"] != 0)
        | (params["frequency_penalty"] != 0)
    )
    if not len(penalised):
        return None
    mine, params = rows[penalised], params[penalised]
    lengths = num_tokens[penalised][:, None]
    column = np.arange(int(lengths.max()))[None, :]
    valid = column < lengths
    tokens = np.where(valid, plan.token_table[mine, : column.shape[1]], 0)
    return Penalties(
        rows=put(penalised),
        repetition=put(params["repetition_penalty"][:, None]),
        presence=put(params["presence_penalty"][:, None]),
        frequency=put(params["frequency_penalty"][:, None]),
        tokens=put(tokens.astype(np.int64)),
        valid=put(valid),
        output=put(valid & (column >= plan.penalty_start[mine][:, None])),
    )


def _dry(
    plan: StepPlan,
    rows: NDArray[np.int32],
    num_tokens: NDArray[np.int64],
    params: NDArray[np.void],
    put: _Put,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor] | None:
    """The DRY penalties after each row's first `num_tokens` tokens, computed by the Rust core."""
    found: list[tuple[int, int, float]] = []
    for at in np.flatnonzero(params["dry_multiplier"] != 0).tolist():
        own = params[at]
        first = int(own["first_breaker"])
        patterns = slice(first, first + int(own["num_breakers"]))
        penalties = dry_penalties(
            plan.token_table[rows[at], : num_tokens[at]],
            multiplier=float(own["dry_multiplier"]),
            base=float(own["dry_base"]),
            allowed_length=int(own["dry_allowed_length"]),
            penalty_last_n=int(own["dry_penalty_last_n"]),
            breaker_heads=plan.breaker_heads[patterns],
            breaker_tails=plan.breaker_tails[patterns],
        )
        found += [(at, token, penalty) for token, penalty in penalties]
    if not found:
        return None
    indices, ids, values = zip(*found, strict=True)
    return (
        put(np.array(indices, np.int64)),
        put(np.array(ids, np.int64)),
        put(np.array(values, np.float32)),
    )
