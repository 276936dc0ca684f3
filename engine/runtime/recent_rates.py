"""`RecentRates`: current throughput and latency percentiles, computed on the reader's thread.

Percentiles take 0.1 ms or more, too long to compute between two steps. Also, an idle engine publishes
no snapshots although its throughput falls with time.
"""

from collections.abc import Callable
from dataclasses import replace

from engine.api.snapshot import EngineSnapshot
from engine.observability.counters import EngineCounters


class RecentRates:
    """Adds rates to published snapshots. Any thread."""

    def __init__(self, counters: EngineCounters, clock: Callable[[], float]) -> None:
        """Read rates from `counters`; `clock` returns monotonic seconds."""
        self._counters = counters
        self._clock = clock
        self._last: tuple[EngineSnapshot, EngineSnapshot] | None = (
            None  # the published snapshot, and with rates
        )

    def apply(self, published: EngineSnapshot) -> EngineSnapshot:
        """The snapshot with rates; the same object while nothing changes.

        While requests run the rates are those of the first call for this snapshot, because it is
        replaced soon.
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
