"""The sampling parameters of one step's rows, as tensors on the executor's device."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from engine.executors.base import StepPlan

_Put = Callable[[NDArray[Any]], torch.Tensor]


@dataclass(frozen=True, slots=True)
class Penalties:
    """The rows with penalties, and the tokens these count.

    Attributes:
        rows: [P] int64, indices into the step's sampled rows.
        repetition, presence, frequency: [P, 1] float32.
        tokens: [P, L] int64, known tokens, padded with 0.
        known: [P, L] bool, which of them are no padding.
        written: [P, L] bool, which of them were sampled rather than given.
    """

    rows: torch.Tensor
    repetition: torch.Tensor
    presence: torch.Tensor
    frequency: torch.Tensor
    tokens: torch.Tensor
    known: torch.Tensor
    written: torch.Tensor


@dataclass(frozen=True, slots=True)
class SamplingBatch:
    """Parameters of the N rows that sample in this step.

    Attributes:
        temperature, min_p, top_p: [N] float32.
        top_k: [N] int64; 0 keeps all.
        seeds: [N] int64, bits of the uint64 seeds.
        positions: [N] int64, positions of the tokens to be drawn.
        logprobs: [N] int64, alternatives wanted; -1 for no logprob at all.
        mask: (rows [G] int64, words [G, W] int32: the plan's `mask_bits`), or None.
        bias: (rows [B] int64, token ids [B] int64, values [B] float32), or None.
        penalties: the rows that have any, or None.
        drawn: any row has a temperature.
        filtered: any row has a top-k or a top-p.
        most_logprobs: the largest of `logprobs`.
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
    penalties: Penalties | None
    drawn: bool
    filtered: bool
    most_logprobs: int


def sampling_batch(
    plan: StepPlan,
    sampled: NDArray[np.int64],
    draft_index: NDArray[np.int64],
    device: torch.device,
) -> SamplingBatch:
    """Gather the parameters of the rows that sample.

    Args:
        plan: the step.
        sampled: [N] batch positions of these rows.
        draft_index: [N] how many of a row's drafts the sample takes for known.
        device: where the logits are.
    """
    rows = plan.rows[sampled]
    known = plan.num_tokens[rows] + draft_index
    params = plan.sampling[rows]

    def put(array: NDArray[Any]) -> torch.Tensor:
        return torch.from_numpy(np.ascontiguousarray(array)).to(device)

    drawn = params["temperature"] > 0
    return SamplingBatch(
        temperature=put(params["temperature"]),
        min_p=put(params["min_p"]),
        top_p=put(params["top_p"]),
        top_k=put(params["top_k"].astype(np.int64)),
        seeds=put(params["seed"].view(np.int64)),
        positions=put(known.astype(np.int64)),
        logprobs=put(params["num_logprobs"].astype(np.int64)),
        mask=_mask(plan, sampled, put),
        bias=_bias(plan, rows, put),
        penalties=_penalties(plan, rows, known, params, put),
        drawn=bool(drawn.any()),
        filtered=bool((drawn & ((params["top_k"] > 0) | (params["top_p"] < 1))).any()),
        most_logprobs=int(params["num_logprobs"].max(initial=-1)),
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
    """The biases of these rows; the plan may hold those of rows that do not sample now."""
    if not len(plan.bias_rows):
        return None
    first = np.searchsorted(plan.bias_rows, rows, side="left")
    counts = np.searchsorted(plan.bias_rows, rows, side="right") - first
    total = int(counts.sum())
    if not total:
        return None
    before = np.cumsum(counts) - counts
    entries = np.arange(total) + np.repeat(first - before, counts)
    return (
        put(np.repeat(np.arange(len(rows)), counts)),
        put(plan.bias_ids[entries].astype(np.int64)),
        put(plan.bias_values[entries]),
    )


def _penalties(
    plan: StepPlan,
    rows: NDArray[np.int32],
    known_tokens: NDArray[np.int64],
    params: NDArray[np.void],
    put: _Put,
) -> Penalties | None:
    """What the rows with penalties count: of each, its first `known_tokens`."""
    penalised = np.flatnonzero(
        (params["repetition_penalty"] != 1)
        | (params["presence_penalty"] != 0)
        | (params["frequency_penalty"] != 0)
    )
    if not len(penalised):
        return None
    mine, params = rows[penalised], params[penalised]
    lengths = known_tokens[penalised][:, None]
    column = np.arange(int(lengths.max()))[None, :]
    known = column < lengths
    tokens = np.where(known, plan.token_table[mine, : column.shape[1]], 0)
    return Penalties(
        rows=put(penalised),
        repetition=put(params["repetition_penalty"][:, None]),
        presence=put(params["presence_penalty"][:, None]),
        frequency=put(params["frequency_penalty"][:, None]),
        tokens=put(tokens.astype(np.int64)),
        known=put(known),
        written=put(known & (column >= plan.penalty_start[mine][:, None])),
    )
