"""What a step must at least do, and how fast this machine could do it: the roofline of one model.

Two times that no step can beat: its bytes (weights once, plus the KV its streams hold) over the read
bandwidth measured at that footprint, and its multiply-adds with weights over the measured peak of the integer
dot product. Williams et al., "Roofline", 2009.
"""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from engine.runtime.engine import AsyncPravahaEngine


@dataclass(frozen=True, slots=True)
class StepWork:
    """The least that a step does.

    Attributes:
        nbytes: read.
        operations: with weights; a multiplication and an addition are two.
    """

    nbytes: int
    operations: float


@dataclass(frozen=True, slots=True)
class ModelWork:
    """What a model asks of a step.

    Attributes:
        weight_bytes: as packed in memory.
        kv_bytes_per_token: all layers.
        parameters: all weights.
        head_parameters: those of lm_head, which only tokens with logits need.
        integer: weights are integers, multiplied as such.
    """

    weight_bytes: int
    kv_bytes_per_token: float
    parameters: int
    head_parameters: int
    integer: bool

    @classmethod
    def of(cls, engine: "AsyncPravahaEngine") -> Self:
        """Those of a ready engine's model."""
        info, spec, blocks = engine.model_info, engine.spec, engine.snapshot().blocks
        return cls(
            weight_bytes=info.weight_bytes,
            kv_bytes_per_token=blocks.block_bytes / blocks.block_size,
            parameters=info.parameters,
            head_parameters=spec.vocab_size * spec.hidden_size,
            integer=info.weight_format.upper().startswith("Q"),
        )

    def decode(self, streams: int, context: float) -> StepWork:
        """A step of one token for each stream; each holds `context` tokens."""
        nbytes = int(self.weight_bytes + streams * context * self.kv_bytes_per_token)
        return StepWork(nbytes, 2.0 * self.parameters * streams)

    def prefill(self, tokens: int) -> StepWork:
        """Prompts of so many tokens together; lm_head runs for the last ones only and is left out."""
        return StepWork(self.weight_bytes, 2.0 * (self.parameters - self.head_parameters) * tokens)

    def to_dict(self) -> dict[str, Any]:
        """Plain data, as the constructor takes it."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Ceilings:
    """What this machine reaches at most, measured.

    Attributes:
        read_bytes_per_second: by footprint in bytes, all compute threads together.
        int8_ops_per_second: multiplies and adds counted apart; None where weights are not integers.
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
        """Measure them now.

        Raises:
            MemoryError: a footprint does not fit.
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
        """The higher ceiling of each kind: no measurement can be too fast."""
        mine, theirs = self.read_bytes_per_second, other.read_bytes_per_second
        read = {size: max(mine.get(size, 0.0), theirs.get(size, 0.0)) for size in {*mine, *theirs}}
        peaks = [p for p in (self.int8_ops_per_second, other.int8_ops_per_second) if p is not None]
        return Ceilings(dict(sorted(read.items())), max(peaks, default=None))

    def seconds(self, work: StepWork) -> float:
        """Time that the work cannot beat; bandwidth is that of the nearest footprint."""
        nearest = min(self.read_bytes_per_second, key=lambda size: abs(size - work.nbytes))
        by_bytes = work.nbytes / self.read_bytes_per_second[nearest]
        if self.int8_ops_per_second is None:
            return by_bytes
        return max(by_bytes, work.operations / self.int8_ops_per_second)
