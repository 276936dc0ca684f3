"""`RecentRates`: speeds and percentiles of now, worked out by whoever looks.

Percentiles take a tenth of a millisecond and more, which between two steps nobody has to spare. And an
idle engine publishes nothing, while its speeds still fall with time.
"""

from collections.abc import Callable
from dataclasses import replace

from engine.api.snapshot import EngineSnapshot
from engine.observability.counters import EngineCounters


class RecentRates:
    """Adds the rates to published snapshots. Any thread."""

    def __init__(self, counters: EngineCounters, clock: Callable[[], float]) -> None:
        """Take rates from `counters` at the instant that `clock` tells, in seconds."""
        self._counters = counters
        self._clock = clock
        self._last: tuple[EngineSnapshot, EngineSnapshot] | None = None  # published, as shown

    def apply(self, published: EngineSnapshot) -> EngineSnapshot:
        """The snapshot with its rates; the same object for as long as nothing changes.

        While requests run they are those of the first look at it, for it will be replaced soon.
        """
        last = self._last
        if last is None or last[0] is not published:
            rates = self._counters.rates(self._clock(), fresh=not published.running)
        elif published.running:
            return last[1]
        else:
            rates = last[1].rates
            prefill, decode = self._counters.tokens_per_second(self._clock())
            if (prefill, decode) == (
                rates.prefill_tokens_per_second,
                rates.decode_tokens_per_second,
            ):
                return last[1]
            rates = replace(
                rates, prefill_tokens_per_second=prefill, decode_tokens_per_second=decode
            )
        shown = replace(published, rates=rates)
        self._last = (published, shown)
        return shown
