"""Arrival traces for the simulator: arrival times, prompts, output lengths and deadlines.

Times are in seconds from the start of the trace. A trace is determined by its seed.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import count

import numpy as np
from numpy.typing import NDArray

VOCABULARY = 32_000


@dataclass(frozen=True, slots=True)
class Arrival:
    """One request of a trace.

    Attributes:
        at: seconds from the start of the trace.
        kind: the name of its kind, for reports.
        tokens: [n] int32, the prompt.
        answer: number of output tokens.
        deadline_ms: deadline of its first token, relative to `at`; None for no deadline.
        priority: lower goes first.
    """

    at: float
    kind: str
    tokens: NDArray[np.int32]
    answer: int
    deadline_ms: float | None
    priority: int


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of request: its fraction, median lengths with their log-normal sigma, and deadline."""

    name: str
    share: float
    prompt: int
    answer: int
    deadline_ms: float | None
    priority: int
    spread: float = 0.6

    def draw(self, rng: np.random.Generator, at: float) -> Arrival:
        """A random request of this kind; lengths are log-normal and bounded."""
        prompt, answer = (
            int(np.clip(rng.lognormal(np.log(median), self.spread), median / 5, median * 4))
            for median in (self.prompt, self.answer)
        )
        tokens = rng.integers(0, VOCABULARY, prompt, np.int32)
        return Arrival(at, self.name, tokens, answer, self.deadline_ms, self.priority)


KINDS = (
    Kind("chat", 0.65, prompt=120, answer=60, deadline_ms=1_000, priority=0),
    Kind("document", 0.25, prompt=900, answer=40, deadline_ms=6_000, priority=1),
    Kind("batch", 0.10, prompt=400, answer=120, deadline_ms=None, priority=2),
)


def draw_kind(rng: np.random.Generator, at: float) -> Arrival:
    """A request of a random kind."""
    index = int(rng.choice(len(KINDS), p=[kind.share for kind in KINDS]))
    return KINDS[index].draw(rng, at)


def poisson(rng: np.random.Generator, rate: float) -> Iterator[Arrival]:
    """A Poisson process with `rate` requests per second."""
    at = 0.0
    while True:
        at += float(rng.exponential(1 / rate))
        yield draw_kind(rng, at)


def bursts(rng: np.random.Generator, rate: float) -> Iterator[Arrival]:
    """The same mean rate in bursts: four times the rate for 5 s, then none for 15 s."""
    for arrival in poisson(rng, 4 * rate):
        busy, within = divmod(arrival.at, 5.0)
        yield replace(arrival, at=20.0 * busy + within)


def shared_prefix(rng: np.random.Generator, rate: float) -> Iterator[Arrival]:
    """Agent workload: 80 % of the requests start with one of three prefixes of 800 tokens."""
    prefixes = [rng.integers(0, VOCABULARY, 800, np.int32) for _ in range(3)]
    for arrival in poisson(rng, rate):
        if rng.random() < 0.8:
            prefix = prefixes[int(rng.integers(len(prefixes)))]
            own = arrival.tokens[: max(8, len(arrival.tokens) // 4)]
            arrival = replace(arrival, tokens=np.concatenate([prefix, own]))
        yield arrival


Trace = Callable[[np.random.Generator, float], Iterator[Arrival]]

TRACES: dict[str, Trace] = {"poisson": poisson, "bursts": bursts, "shared-prefix": shared_prefix}


def take(trace: Trace, *, seed: int, rate: float, seconds: float) -> list[Arrival]:
    """The arrivals in the first `seconds` of a trace."""
    arrivals = trace(np.random.default_rng(seed), rate)
    return [one for one, _ in zip(_until(arrivals, seconds), count(), strict=False)]


def _until(arrivals: Iterator[Arrival], seconds: float) -> Iterator[Arrival]:
    for arrival in arrivals:
        if arrival.at >= seconds:
            return
        yield arrival
