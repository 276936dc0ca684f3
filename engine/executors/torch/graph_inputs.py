"""`GraphInputs`: the buffers that recorded decode steps read, and the one copy that fills them."""

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from engine.executors.base import StepPlan
from engine.executors.torch.kv_pool import KvPool
from engine.executors.torch.step_layout import StepLayout

_FIELDS = {"ids": np.int64, "positions": np.int64, "slots": np.int64, "context_lens": np.int32}


class GraphInputs:
    """Inputs of decode steps of up to `max_rows` rows, at addresses that do not change.

    Rows beyond a step's are padding: one token at position 0 of the scratch block. The host keeps a
    copy of all buffers, so that it writes, and copies to the device, only what a step changes.

    Attributes:
        ids, positions, slots: [max_rows] int64, on the device.
        context_lens: [max_rows] int32.
        tables: [max_rows, max_blocks] int32.
    """

    def __init__(
        self, pool: KvPool, *, max_rows: int, max_blocks: int, device: torch.device
    ) -> None:
        """Allocate the buffers; every row is padding."""
        kinds = {name: np.dtype(kind) for name, kind in _FIELDS.items()}
        self._pinned = device.type == "cuda"
        self._packed = np.zeros(sum(max_rows * kind.itemsize for kind in kinds.values()), np.uint8)
        self._packed_on_device = torch.from_numpy(self._packed.copy()).to(device)
        self._host: dict[str, NDArray[Any]] = {}
        parts: dict[str, torch.Tensor] = {}
        start = 0
        for name, kind in kinds.items():
            part = slice(start, start + max_rows * kind.itemsize)
            self._host[name] = self._packed[part].view(kind)
            torch_kind = torch.int64 if kind == np.int64 else torch.int32
            parts[name] = self._packed_on_device[part].view(torch_kind)
            start = part.stop
        self.ids, self.positions = parts["ids"], parts["positions"]
        self.slots, self.context_lens = parts["slots"], parts["context_lens"]
        self._host_tables = np.zeros((max_rows, max_blocks), np.int32)
        self.tables = torch.zeros(max_rows, max_blocks, dtype=torch.int32, device=device)
        self._scratch = pool.scratch_block
        self._scratch_slot = pool.scratch_block * pool.block_size
        self._rows = max_rows
        self._pad(0, max_rows)
        self._send_tables(max_rows, 1)
        self._send_rows()

    def fill(self, plan: StepPlan, layout: StepLayout) -> None:
        """Write the inputs of a step in which every row computes one token."""
        rows, before = len(plan.rows), self._rows
        self._rows = rows
        self._host["ids"][:rows] = plan.token_ids
        self._host["positions"][:rows] = plan.positions
        self._host["slots"][:rows] = layout.slots
        self._host["context_lens"][:rows] = layout.context_lens
        self._pad(rows, before)
        self._send_rows()
        width = layout.block_tables.shape[1]
        tables = self._host_tables[:rows, :width]
        if before > rows or not np.array_equal(tables, layout.block_tables):
            tables[...] = layout.block_tables
            self._send_tables(max(rows, before), width)

    def _pad(self, first: int, end: int) -> None:
        """Make rows [first, end) padding, in the host's copy."""
        rows = slice(first, end)
        self._host["ids"][rows] = 0
        self._host["positions"][rows] = 0
        self._host["slots"][rows] = self._scratch_slot
        self._host["context_lens"][rows] = 1
        self._host_tables[rows, 0] = self._scratch

    def _send_rows(self) -> None:
        self._packed_on_device.copy_(self._staged(self._packed), non_blocking=True)

    def _send_tables(self, rows: int, width: int) -> None:
        tables = self._staged(self._host_tables[:rows, :width])
        self.tables[:rows, :width].copy_(tables, non_blocking=True)

    def _staged(self, array: NDArray[Any]) -> torch.Tensor:
        """A copy in pinned memory, which torch does not reuse while a copy out of it runs."""
        source = torch.from_numpy(array)
        staging = torch.empty(source.shape, dtype=source.dtype, pin_memory=self._pinned)
        return staging.copy_(source)
