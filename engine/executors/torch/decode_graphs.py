"""`DecodeGraphs`: decode steps as CUDA graphs, with one launch instead of hundreds.

A graph has fixed addresses and shapes, so a step of R rows runs in the next larger graph, padded with
rows that read and write the scratch block (`GraphInputs`). Larger steps, and steps with prefill, draft
or scored tokens, run without a graph.

A graph contains the model, its output head and the choice of the likeliest tokens; any other sampling
runs outside. All graphs share one memory pool, so a replay overwrites the outputs of the one before.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import torch

from engine.api.errors import ModelError
from engine.executors.base import StepPlan
from engine.executors.torch.attention import PagedStep
from engine.executors.torch.graph_inputs import GraphInputs
from engine.executors.torch.kv_pool import KvPool
from engine.executors.torch.sampler import likeliest
from engine.executors.torch.step_layout import StepLayout
from engine.executors.torch.triton_attention import StepTensors, TritonStep

Compute = Callable[[torch.Tensor, torch.Tensor, PagedStep], torch.Tensor]
"""(input ids [1, B], positions [1, B], step) → logits [B, vocab]."""


class Decoded(NamedTuple):
    """A decode step's logits [R, vocab] float32, and their likeliest tokens [R] int64, as sampled."""

    logits: torch.Tensor
    likeliest: torch.Tensor


Replay = Callable[[], Decoded]
Record = Callable[[Replay], Replay]
"""Records a computation on fixed buffers, and returns a function that replays it."""

MAX_GRAPH_ROWS = 256
"""Rows of the largest graph: recording takes time and memory, and above this computing takes most of it."""

_TOLERANCE = 0.05


def graph_sizes(max_rows: int) -> list[int]:
    """Row counts of the graphs, largest first: 1, 2, 4, multiples of 8, from 64 on of 16, `max_rows`."""
    sizes = (1, 2, 4, *range(8, 64, 8), *range(64, max_rows, 16))
    return sorted({max_rows, *(size for size in sizes if size < max_rows)}, reverse=True)


class DecodeGraphs:
    """CUDA graphs of the decode steps of one loaded model."""

    def __init__(
        self,
        compute: Compute,
        pool: KvPool,
        *,
        max_rows: int,
        max_model_len: int,
        device: torch.device,
        record: Record,
    ) -> None:
        """Record a graph for each size, and compare its logits with a run without a graph.

        Args:
            compute: the model and its output head.
            pool: the KV pool.
            max_rows: rows of the largest graph.
            max_model_len: longest context.
            device: the device of model and pool.
            record: `CudaRecorder`, or a fake in tests.

        Raises:
            ModelError: the model cannot be recorded, or a graph's logits differ.
        """
        self._pool = pool
        max_blocks = -(-max_model_len // pool.block_size)
        self._inputs = GraphInputs(pool, max_rows=max_rows, max_blocks=max_blocks, device=device)
        self._graphs: dict[int, Replay] = {}
        # A graph reads the memory of its closure's tensors, but does not keep them alive.
        self._closures: list[Replay] = []
        for size in graph_sizes(max_rows):
            closure = self._closure(compute, size, max_model_len)
            try:
                replay = record(closure)
                got, expected = replay().logits.clone(), closure().logits
            except RuntimeError as error:
                raise ModelError(f"The decode step of {size} rows cannot be recorded.") from error
            if not torch.allclose(got, expected, rtol=_TOLERANCE, atol=_TOLERANCE):
                raise ModelError(f"The logits of the graph of {size} rows differ from the model's.")
            self._graphs[size] = replay
            self._closures.append(closure)

    def run(self, plan: StepPlan, layout: StepLayout) -> Decoded | None:
        """A decode step's output, valid until the next call; None if no graph applies."""
        rows = len(plan.rows)
        size = min((size for size in self._graphs if size >= rows), default=None)
        if size is None or len(plan.token_ids) != rows or len(layout.sampled_rows) != rows:
            return None  # too large, or a step with prefill, draft or scored tokens
        self._inputs.fill(plan, layout)
        logits, likeliest = self._graphs[size]()
        return Decoded(logits[:rows], likeliest[:rows])

    def _closure(self, compute: Compute, size: int, max_model_len: int) -> Replay:
        starts = np.arange(size + 1, dtype=np.int32)
        inputs = self._inputs
        tensors = StepTensors(
            slots=inputs.slots[:size],
            query_start=torch.from_numpy(starts).to(inputs.slots.device),
            context_lens=inputs.context_lens[:size],
            block_tables=inputs.tables[:size],
            host_query_start=starts,
            longest=max_model_len,
        )
        step = TritonStep(self._pool, tensors)
        ids, positions = inputs.ids[None, :size], inputs.positions[None, :size]

        def decode() -> Decoded:
            logits = compute(ids, positions, step)
            return Decoded(logits, likeliest(logits))

        return decode


class CudaRecorder:
    """`Record` with CUDA graphs that share one memory pool."""

    def __init__(self) -> None:
        """Nothing is recorded yet."""
        self._memory = torch.cuda.graph_pool_handle()

    def __call__(self, closure: Replay) -> Replay:
        """Warm up (compile kernels, allocate buffers), then record."""
        side = torch.cuda.Stream()  # type: ignore[no-untyped-call]
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(2):
                closure()
        torch.cuda.current_stream().wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, pool=self._memory):
            output = closure()

        def replay() -> Decoded:
            graph.replay()
            return output

        return replay
