"""`SamplingBatch`: the sampling parameters of a step's rows as tensors on the executor's device."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from engine._core import dry_penalties
from engine.executors.base import StepPlan
from engine.executors.torch.packed_copy import to_device

_Arrays = tuple[NDArray[Any], ...]
_NOTHING: NDArray[np.int64] = np.zeros(0, np.int64)


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
class Noise:
    """How stochastic rows sample; a row with temperature 0 stays greedy.

    Attributes:
        temperature, min_p, top_p: [N] float32.
        top_k: [N] int64; 0 keeps all tokens.
        seeds: [N] int64, bits of the uint64 seeds.
        positions: [N] int64, positions of the tokens to be sampled.
    """

    temperature: torch.Tensor
    min_p: torch.Tensor
    top_p: torch.Tensor
    top_k: torch.Tensor
    seeds: torch.Tensor
    positions: torch.Tensor


@dataclass(frozen=True, slots=True)
class SamplingBatch:
    """Parameters of the N samples of a step; None for what no row of the step needs.

    Attributes:
        noise: of the stochastic rows.
        filtered: whether any of them has a top-k or a top-p.
        logprobs: [N] int64, number of alternatives requested; -1 for no logprob at all.
        max_logprobs: maximum of `logprobs`; -1 if it is None.
        mask: (rows [G] int64, words [G, W] int32: the plan's `mask_bits`).
        bias: (rows [B] int64, token ids [B] int64, values [B] float32).
        penalties: the rows with repetition, presence or frequency penalties.
        logprob_ids: (rows [B] int64, token ids [B] int64).
        logprob_entries: [B] int64, on the host: their indices into the plan's `logprob_ids`.
        dry: (rows [B] int64, token ids [B] int64, penalties [B] float32).
    """

    noise: Noise | None
    filtered: bool
    logprobs: torch.Tensor | None
    max_logprobs: int
    mask: tuple[torch.Tensor, torch.Tensor] | None
    bias: tuple[torch.Tensor, torch.Tensor, torch.Tensor] | None
    penalties: Penalties | None
    logprob_ids: tuple[torch.Tensor, torch.Tensor] | None
    logprob_entries: NDArray[np.int64] | None
    dry: tuple[torch.Tensor, torch.Tensor, torch.Tensor] | None

    @property
    def plain(self) -> bool:
        """Whether every row takes the likeliest token and reports nothing else."""
        return self is _PLAIN


_PLAIN = SamplingBatch(None, False, None, -1, None, None, None, None, None, None)


def sampling_batch(
    plan: StepPlan,
    sampled: NDArray[np.int64],
    draft_index: NDArray[np.int64],
    device: torch.device,
) -> SamplingBatch:
    """Gather the parameters of the rows that sample, in one copy to the device, or none if plain.

    Args:
        plan: the step.
        sampled: [N] int64, batch index of each sample.
        draft_index: [N] int64, number of the row's draft tokens before the sample.
        device: the device of the logits.
    """
    rows = plan.rows[sampled]
    num_tokens = plan.num_tokens[rows] + draft_index
    params = plan.sampling[rows]
    stochastic = params["temperature"] > 0
    max_logprobs = int(params["num_logprobs"].max(initial=-1))
    logprob_ids, entries = _logprob_ids(plan, rows)
    groups: dict[str, _Arrays] = {
        "noise": _noise(params, num_tokens) if stochastic.any() else (),
        "logprobs": (params["num_logprobs"].astype(np.int64),) if max_logprobs >= 0 else (),
        "mask": _mask(plan, sampled),
        "bias": _bias(plan, rows),
        "penalties": _penalties(plan, rows, num_tokens, params),
        "logprob_ids": logprob_ids,
        "dry": _dry(plan, rows, num_tokens, params),
    }
    if not any(groups.values()):
        return _PLAIN
    put = _put(groups, device)
    noise, penalties = put["noise"], put["penalties"]
    filtered = (stochastic & ((params["top_k"] > 0) | (params["top_p"] < 1))).any()
    return SamplingBatch(
        noise=Noise(*noise) if noise else None,
        filtered=bool(filtered),
        logprobs=put["logprobs"][0] if put["logprobs"] else None,
        max_logprobs=max_logprobs,
        mask=put["mask"] or None,
        bias=put["bias"] or None,
        penalties=Penalties(*penalties) if penalties else None,
        logprob_ids=put["logprob_ids"] or None,
        logprob_entries=entries if logprob_ids else None,
        dry=put["dry"] or None,
    )


def _put(groups: Mapping[str, _Arrays], device: torch.device) -> dict[str, tuple[Any, ...]]:
    """The same groups of tensors, in one copy."""
    flat = {
        f"{name} {index}": array
        for name, arrays in groups.items()
        for index, array in enumerate(arrays)
    }
    tensors = iter(to_device(flat, device).values())
    return {name: tuple(next(tensors) for _ in arrays) for name, arrays in groups.items()}


def _noise(params: NDArray[np.void], num_tokens: NDArray[np.int64]) -> _Arrays:
    return (
        params["temperature"],
        params["min_p"],
        params["top_p"],
        params["top_k"].astype(np.int64),
        params["seed"].astype(np.uint64).view(np.int64),
        num_tokens.astype(np.int64),
    )


def _mask(plan: StepPlan, sampled: NDArray[np.int64]) -> _Arrays:
    """The masks of these rows; `sampled` is ascending, as `mask_rows` is."""
    if not len(plan.mask_rows):
        return ()
    mine = np.isin(plan.mask_rows, sampled)
    where = np.searchsorted(sampled, plan.mask_rows[mine])
    return where.astype(np.int64), plan.mask_bits[mine].view(np.int32)


def _bias(plan: StepPlan, rows: NDArray[np.int32]) -> _Arrays:
    """The biases of these rows; the plan may contain biases of rows that do not sample."""
    samples, entries = _entries_of(plan.bias_rows, rows)
    if not len(entries):
        return ()
    return samples, plan.bias_ids[entries].astype(np.int64), plan.bias_values[entries]


def _logprob_ids(plan: StepPlan, rows: NDArray[np.int32]) -> tuple[_Arrays, NDArray[np.int64]]:
    """The token ids of these rows whose logprobs are reported, and their indices in the plan."""
    samples, entries = _entries_of(plan.logprob_rows, rows)
    if not len(entries):
        return (), entries
    return (samples, plan.logprob_ids[entries].astype(np.int64)), entries


def _entries_of(
    sorted_rows: NDArray[np.int32], rows: NDArray[np.int32]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Where `rows`, [N], occur in `sorted_rows`: [B] int64 each, indices into `rows` and into it."""
    if not len(sorted_rows):
        return _NOTHING, _NOTHING
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
) -> _Arrays:
    """The arrays of `Penalties`, of each row's first `num_tokens` tokens; empty if no row has any."""
    penalised = np.flatnonzero(
        (params["repetition_penalty"] != 1)
        | (params["presence_penalty"] != 0)
        | (params["frequency_penalty"] != 0)
    )
    if not len(penalised):
        return ()
    mine, params = rows[penalised], params[penalised]
    lengths = num_tokens[penalised][:, None]
    column = np.arange(int(lengths.max()))[None, :]
    valid = column < lengths
    tokens = np.where(valid, plan.token_table[mine, : column.shape[1]], 0)
    return (
        penalised,
        params["repetition_penalty"][:, None],
        params["presence_penalty"][:, None],
        params["frequency_penalty"][:, None],
        tokens.astype(np.int64),
        valid,
        valid & (column >= plan.penalty_start[mine][:, None]),
    )


def _dry(
    plan: StepPlan,
    rows: NDArray[np.int32],
    num_tokens: NDArray[np.int64],
    params: NDArray[np.void],
) -> _Arrays:
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
        return ()
    indices, ids, values = zip(*found, strict=True)
    return np.array(indices, np.int64), np.array(ids, np.int64), np.array(values, np.float32)
