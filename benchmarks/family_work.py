"""`FamilyWork`: the minimum work of a step of a family's shape: its bytes and operations on weights.

A step reads each matrix once, single rows of embeddings that are not the LM head, and of each layer's
experts those that its rows choose; of each stream it reads the keys and values that its layers attend to, and
reads and writes its states, which are kept in 32 bits.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import gguf

from benchmarks.family_shapes import FamilyShape
from engine.benchmark.step_work import StepWork

KV_BYTES = {"f32": 4.0, "f16": 2.0, "bf16": 2.0, "int8": 1.0}
"""Type of the KV cache → bytes of an element, without scales."""
STATE_BYTES = 4


@dataclass(frozen=True, slots=True)
class FamilyWork:
    """The work of one engine's steps.

    Attributes:
        shape: sizes of the model.
        tensor_bytes: tensor → its bytes as the engine stores it.
        kv_bytes: bytes of an element of the KV cache.
    """

    shape: FamilyShape
    tensor_bytes: Mapping[str, float]
    kv_bytes: float

    @classmethod
    def of(cls, shape: FamilyShape, path: Path, weight_bytes: int, kv_dtype: str) -> "FamilyWork":
        """The work of an engine that stores a file's weights in so many bytes, all widened alike.

        Args:
            shape: sizes of the model.
            path: its file.
            weight_bytes: bytes of all weights in the engine.
            kv_dtype: a key of `KV_BYTES`.
        """
        tensors = gguf.GGUFReader(str(path)).tensors
        stored = sum(int(one.n_bytes) for one in tensors)
        packed = {one.name: int(one.n_bytes) * weight_bytes / stored for one in tensors}
        return cls(shape, packed, KV_BYTES[kv_dtype])

    def decode(self, streams: int, context: float) -> StepWork:
        """The work of a step that decodes one token per stream, with `context` tokens each."""
        read = sum(self._share_read(name, streams) * n for name, n in self.tensor_bytes.items())
        seen = sum(n * min(context, window or context) for window, n in self.shape.kv_reads)
        states = 2 * STATE_BYTES * self.shape.state_elements
        nbytes = int(read + streams * (seen * self.kv_bytes + states))
        return StepWork(nbytes, 2.0 * self._multiplied(head=True) * streams)

    def prefill(self, tokens: int) -> StepWork:
        """The work of prefilling `tokens` tokens; the LM head runs on the last one only."""
        read = sum(self._share_read(name, tokens) * n for name, n in self.tensor_bytes.items())
        return StepWork(int(read), 2.0 * self._multiplied(head=False) * tokens)

    @property
    def _head(self) -> str:
        untied = "output.weight" in self.shape.tensors
        return "output.weight" if untied else "token_embd.weight"

    def _is_lookup(self, name: str) -> bool:
        """Whether a step reads single rows of a matrix."""
        return "token_embd.weight" in name and name != self._head

    def _share_read(self, name: str, rows: int) -> float:
        """The share of a tensor that a step of so many rows reads, if they choose experts at random."""
        if self._is_lookup(name):
            return 0.0
        if "_exps." in name:
            count, used = self.shape.experts
            return 1.0 - (1.0 - used / count) ** rows
        return 1.0

    def _multiplied(self, *, head: bool) -> float:
        """Number of weights that a token is multiplied with."""
        count, used = self.shape.experts
        total = 0.0
        for name, dims in self.shape.tensors.items():
            if len(dims) > 1 and not self._is_lookup(name) and (head or name != self._head):
                total += math.prod(dims) * (used / count if "_exps." in name else 1.0)
        return total
