"""`DecayingRates`: speeds of an idle engine, which publishes nothing, still fall with time."""

from collections.abc import Callable
from dataclasses import replace

from engine.observability.counters import EngineCounters
from engine.snapshot import EngineSnapshot


class DecayingRates:
    """Brings the speeds of a published snapshot up to now. Any thread."""

    def __init__(self, counters: EngineCounters, clock: Callable[[], float]) -> None:
        """Take speeds from `counters` at the instant that `clock` tells, in seconds."""
        self._counters = counters
        self._clock = clock
        self._last: tuple[EngineSnapshot, EngineSnapshot] | None = None  # published, as shown

    def apply(self, published: EngineSnapshot) -> EngineSnapshot:
        """The snapshot with the speeds of now; the same object for as long as nothing changes."""
        rates = published.rates
        speeds = (rates.prefill_tokens_per_second, rates.decode_tokens_per_second)
        if published.running or not any(speeds):
            return published
        speeds = self._counters.tokens_per_second(self._clock())
        last = self._last
        if last is not None and last[0] is published:
            shown = last[1]
            rates = shown.rates
            if speeds == (rates.prefill_tokens_per_second, rates.decode_tokens_per_second):
                return shown
        rates = replace(
            published.rates,
            prefill_tokens_per_second=speeds[0],
            decode_tokens_per_second=speeds[1],
        )
        shown = replace(published, rates=rates)
        self._last = (published, shown)
        return shown
