"""`DecodeGraphs`: decode steps as CUDA graphs, with one launch instead of hundreds.

A graph has fixed addresses and shapes, so a step of R rows is copied into the buffers of the next
larger graph and padded with rows that read and write the scratch block. Larger steps, and steps with
prefill tokens, run without a graph.

A graph contains the model and its output head; sampling runs outside. Not run on a GPU yet: see
docs/torch.md.
"""

from collections.abc import Callable

import numpy as np
import torch

from engine.api.errors import ModelError
from engine.executors.base import StepPlan
from engine.executors.torch.attention import PagedStep
from engine.executors.torch.kv_pool import KvPool
from engine.executors.torch.step_layout import StepLayout
from engine.executors.torch.triton_attention import StepTensors, TritonStep

Compute = Callable[[torch.Tensor, torch.Tensor, PagedStep], torch.Tensor]
"""(input ids [1, B], positions [1, B], step) → logits [B, vocab]."""

Replay = Callable[[], torch.Tensor]
Record = Callable[[Replay], Replay]
"""Records a computation on fixed buffers, and returns a function that replays it."""

_TOLERANCE = 0.05


def graph_sizes(max_rows: int) -> list[int]:
    """Row counts of the graphs, largest first: 1, 2, 4, multiples of 8, and `max_rows`."""
    sizes = [size for size in (1, 2, 4) if size < max_rows]
    return sorted({*sizes, *range(8, max_rows, 8), max_rows}, reverse=True)


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
        self._max_blocks = -(-max_model_len // pool.block_size)
        self._ids = torch.zeros(1, max_rows, dtype=torch.long, device=device)
        self._positions = torch.zeros(1, max_rows, dtype=torch.long, device=device)
        self._slots = torch.zeros(max_rows, dtype=torch.long, device=device)
        self._context_lens = torch.ones(max_rows, dtype=torch.int32, device=device)
        self._tables = torch.zeros(max_rows, self._max_blocks, dtype=torch.int32, device=device)
        self._pad(0)
        self._graphs: dict[int, Replay] = {}
        # A graph reads the memory of its closure's tensors, but does not keep them alive.
        self._closures: list[Replay] = []
        for size in graph_sizes(max_rows):
            closure = self._closure(compute, size, max_model_len)
            try:
                replay = record(closure)
                got, expected = replay().clone(), closure()
            except RuntimeError as error:
                raise ModelError(f"The decode step of {size} rows cannot be recorded.") from error
            if not torch.allclose(got, expected, rtol=_TOLERANCE, atol=_TOLERANCE):
                raise ModelError(f"The logits of the graph of {size} rows differ from the model's.")
            self._graphs[size] = replay
            self._closures.append(closure)

    def run(self, plan: StepPlan, layout: StepLayout) -> torch.Tensor | None:
        """Logits [R, vocab] of a decode step, valid until the next call; None if no graph applies."""
        rows = len(plan.rows)
        size = min((size for size in self._graphs if size >= rows), default=None)
        if size is None or len(plan.token_ids) != rows or len(layout.sampled_rows) != rows:
            return None  # too large, or a step with prefill, draft or scored tokens
        self._pad(rows)
        self._ids[0, :rows] = torch.from_numpy(plan.token_ids)
        self._positions[0, :rows] = torch.from_numpy(plan.positions)
        self._slots[:rows] = torch.from_numpy(layout.slots)
        self._context_lens[:rows] = torch.from_numpy(layout.context_lens)
        width = layout.block_tables.shape[1]
        self._tables[:rows, :width] = torch.from_numpy(layout.block_tables)
        return self._graphs[size]()[:rows]

    def _pad(self, rows: int) -> None:
        """Set the rows from `rows` on to padding: one token at position 0 of the scratch block."""
        scratch = self._pool.scratch_block
        self._ids[0, rows:] = 0
        self._positions[0, rows:] = 0
        self._slots[rows:] = scratch * self._pool.block_size
        self._context_lens[rows:] = 1
        self._tables[rows:, 0] = scratch

    def _closure(self, compute: Compute, size: int, max_model_len: int) -> Replay:
        starts = np.arange(size + 1, dtype=np.int32)
        tensors = StepTensors(
            slots=self._slots[:size],
            query_start=torch.from_numpy(starts).to(self._slots.device),
            context_lens=self._context_lens[:size],
            block_tables=self._tables[:size],
            host_query_start=starts,
            longest=max_model_len,
        )
        step = TritonStep(self._pool, tensors)
        ids, positions = self._ids[:, :size], self._positions[:, :size]
        return lambda: compute(ids, positions, step)


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

        def replay() -> torch.Tensor:
            graph.replay()
            return output

        return replay
