"""The roofline of a model on this machine: a lower bound of a step's duration.

The bound is the larger of two times: the bytes read (weights once, plus the KV of all streams) divided
by the read bandwidth measured at that footprint, and the operations on weights divided by the measured
peak of the integer dot product. Williams et al., "Roofline", 2009.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Self

from engine.models.spec import ModelSpec

if TYPE_CHECKING:
    from engine.runtime.engine import AsyncPravahaEngine


@dataclass(frozen=True, slots=True)
class StepWork:
    """The minimum work of a step.

    Attributes:
        nbytes: bytes read.
        operations: operations on weights; a multiply-add is two operations.
    """

    nbytes: int
    operations: float


_INTEGER_FORMATS = ("Q", "IQ", "INT", "MXFP")
"""What the names of formats begin with whose weights the native executor multiplies as integers."""


@dataclass(frozen=True, slots=True)
class ModelWork:
    """The quantities of a model that determine a step's work.

    Attributes:
        weight_bytes: bytes of the weights as packed in memory.
        kv_bytes_per_token: bytes of KV per token, summed over layers.
        parameters: number of weights.
        head_parameters: number of weights in lm_head, which only tokens with logits use.
        lookup_parameters: number of weights in embedding matrices that are not lm_head as well. A step
            reads single rows of them and multiplies nothing. 0 if unknown (models of transformers).
        integer: whether weights are quantised to integers and multiplied as integers.
        kv_reads: which KV a token reads: pairs of a window (0 for all tokens) and the share of
            `kv_bytes_per_token` that the layers with this window read of each token in it. Layers that read
            the keys of others make the shares add up to more than 1.
        expert_parameters: number of weights of all experts.
        used_expert_parameters: of these, number that a token uses. A step reads the experts that its tokens
            choose, as many as if they chose at random.
    """

    weight_bytes: int
    kv_bytes_per_token: float
    parameters: int
    head_parameters: int
    lookup_parameters: int
    integer: bool
    kv_reads: Sequence[tuple[int, float]] = ((0, 1.0),)
    expert_parameters: int = 0
    used_expert_parameters: int = 0

    @classmethod
    def of(cls, engine: "AsyncPravahaEngine") -> Self:
        """Read the quantities from a ready engine."""
        info, spec, snapshot = engine.model_info, engine.spec, engine.snapshot()
        blocks, windows = snapshot.blocks, snapshot.windows
        head = spec.vocab_size * spec.hidden_size
        experts, used = spec.expert_parameters if isinstance(spec, ModelSpec) else (0, 0)
        return cls(
            weight_bytes=info.weight_bytes,
            kv_bytes_per_token=(blocks.block_bytes + windows.block_bytes) / blocks.block_size,
            parameters=info.parameters,
            head_parameters=head,
            lookup_parameters=_lookup_parameters(spec) if isinstance(spec, ModelSpec) else 0,
            integer=info.weight_format.upper().startswith(_INTEGER_FORMATS),
            kv_reads=_kv_reads(spec) if isinstance(spec, ModelSpec) else ((0, 1.0),),
            expert_parameters=experts,
            used_expert_parameters=used,
        )

    def decode(self, streams: int, context: float) -> StepWork:
        """The work of a step that decodes one token per stream, with `context` tokens each."""
        seen = sum(share * min(context, window or context) for window, share in self.kv_reads)
        nbytes = int(self._read_bytes(streams) + streams * seen * self.kv_bytes_per_token)
        return StepWork(nbytes, 2.0 * self._multiplied * streams)

    def prefill(self, tokens: int) -> StepWork:
        """The work of prefilling `tokens` tokens; lm_head is excluded, as it runs on last tokens only."""
        return StepWork(
            int(self._read_bytes(tokens)),
            2.0 * (self._multiplied - self.head_parameters) * tokens,
        )

    @property
    def _multiplied(self) -> int:
        """Number of weights that a token with logits is multiplied with."""
        unused = self.expert_parameters - self.used_expert_parameters
        return self.parameters - self.lookup_parameters - unused

    def _read_bytes(self, tokens: int) -> float:
        """Bytes of the weights that a step of so many tokens reads, as if all weights had the same width."""
        read = float(self.parameters - self.lookup_parameters)
        if self.expert_parameters:
            unused = 1.0 - self.used_expert_parameters / self.expert_parameters
            read -= self.expert_parameters * unused**tokens
        return self.weight_bytes * read / self.parameters

    def to_dict(self) -> dict[str, Any]:
        """The fields as a dictionary of constructor arguments."""
        return asdict(self)


def _kv_reads(spec: ModelSpec) -> tuple[tuple[int, float], ...]:
    """See `ModelWork.kv_reads`; heads of different sizes are counted by their elements."""
    stored = 0
    read: Counter[int] = Counter()
    for attention in spec.attentions:
        elements = attention.num_kv_heads * attention.head_dim
        read[attention.window] += elements
        stored += elements if attention.kv_layer is None else 0
    return tuple((window, elements / stored) for window, elements in sorted(read.items()) if stored)


def _lookup_parameters(spec: ModelSpec) -> int:
    """Number of weights in matrices of which a step reads single rows."""
    tokens = 0 if spec.tied_embeddings else spec.vocab_size * spec.hidden_size
    positions = spec.context_length * spec.hidden_size
    per_layer = spec.vocab_size * spec.num_layers * spec.per_layer_width
    return tokens + per_layer + (positions if "position_embedding" in spec.tensors else 0)


@dataclass(frozen=True, slots=True)
class Ceilings:
    """Measured ceilings of the machine.

    Attributes:
        read_bytes_per_second: footprint in bytes to read bandwidth, summed over compute threads.
        int8_ops_per_second: peak of the integer dot product, where a multiply-add is two operations;
            None if weights are not integers.
    """

    read_bytes_per_second: Mapping[int, float]
    int8_ops_per_second: float | None

    @classmethod
    def measure(
        cls,
        footprints: Iterable[int],
        *,
        threads: int | None,
        integer: bool,
        seconds_each: float,
    ) -> Self:
        """Measure the ceilings.

        Args:
            footprints: buffer sizes in bytes.
            threads: number of compute threads; None for the engine's default.
            integer: whether to measure the integer dot product.
            seconds_each: duration of each measurement.

        Raises:
            MemoryError: a footprint does not fit into memory.
        """
        from engine import _core

        return cls(
            {
                size: _core.measure_read_bandwidth(size, threads, seconds_each)
                for size in sorted(set(footprints))
            },
            _core.measure_int8_dot(threads, seconds_each) if integer else None,
        )

    def best(self, other: "Ceilings") -> "Ceilings":
        """The higher of both measurements of each ceiling: interference can only lower one."""
        mine, theirs = self.read_bytes_per_second, other.read_bytes_per_second
        read = {size: max(mine.get(size, 0.0), theirs.get(size, 0.0)) for size in {*mine, *theirs}}
        peaks = [p for p in (self.int8_ops_per_second, other.int8_ops_per_second) if p is not None]
        return Ceilings(dict(sorted(read.items())), max(peaks, default=None))

    def seconds(self, work: StepWork) -> float:
        """Lower bound of the time for `work`; the bandwidth is that of the nearest footprint."""
        nearest = min(self.read_bytes_per_second, key=lambda size: abs(size - work.nbytes))
        by_bytes = work.nbytes / self.read_bytes_per_second[nearest]
        if self.int8_ops_per_second is None:
            return by_bytes
        return max(by_bytes, work.operations / self.int8_ops_per_second)
