"""Runs of agents in the shapes of the recorded traces: shared heads, turns with results of tools, pauses.

A run is a conversation that only grows: a head, then turns. A turn adds tokens (a task, or the results of
tools), the model answers, and the client comes back after the pause of its tools. Turns have the sizes of
`tests/traces`, heads a tenth of theirs. Everything is drawn from a seed.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

SHARED_HEADS = 3
OWN_HEAD_EVERY = 4
"""Of so many runs one has a head that no other run has."""
HEAD_TOKENS = (1000, 3000)
TASK_TOKENS = (60, 400)
RESULT_TOKENS = (100, 1500)
ANSWER_TOKENS = (30, 160)
TURNS = (8, 12)
MEDIAN_PAUSE_S = 1.5
"""Of the tools of a turn: reading and searching take less, tests more."""
PAUSE_SPREAD = 1.0
"""Sigma of the log-normal distribution of pauses."""
START_WITHIN_S = 20.0
FIRST_ID = 100
"""Token ids from here on are drawn; those before it are control tokens of some models."""


@dataclass(frozen=True, slots=True)
class Turn:
    """One request of a run.

    Attributes:
        added: [n] int32, tokens that the client adds.
        answer: number of tokens that the model generates.
        pause_s: seconds from the answer to the next request.
    """

    added: NDArray[np.int32]
    answer: int
    pause_s: float


@dataclass(frozen=True, slots=True)
class Run:
    """A run of an agent.

    Attributes:
        name: names its session.
        start_s: when it begins.
        head: [n] int32, its system prompt and tools; the same object in the runs that share it.
        turns: its requests.
    """

    name: str
    start_s: float
    head: NDArray[np.int32]
    turns: tuple[Turn, ...]


def make_runs(count: int, *, seed: int, scale: float = 1.0, vocabulary: int = 10_000) -> list[Run]:
    """`count` runs; sizes in tokens are multiplied by `scale`."""
    rng = np.random.default_rng(seed)

    def size(bounds: tuple[int, int]) -> int:
        low, high = np.log(bounds[0] * scale), np.log(bounds[1] * scale)
        return max(1, round(float(np.exp(rng.uniform(low, high)))))

    def text(bounds: tuple[int, int]) -> NDArray[np.int32]:
        return rng.integers(FIRST_ID, vocabulary, size(bounds)).astype(np.int32)

    def turn(bounds: tuple[int, int]) -> Turn:
        pause = float(rng.lognormal(np.log(MEDIAN_PAUSE_S), PAUSE_SPREAD))
        return Turn(text(bounds), size(ANSWER_TOKENS), pause)

    shared = [text(HEAD_TOKENS) for _ in range(SHARED_HEADS)]
    runs = []
    for number in range(count):
        own = number % OWN_HEAD_EVERY == OWN_HEAD_EVERY - 1
        head = text(HEAD_TOKENS) if own else shared[number % SHARED_HEADS]
        further = int(rng.integers(TURNS[0], TURNS[1] + 1)) - 1
        turns = (turn(TASK_TOKENS), *(turn(RESULT_TOKENS) for _ in range(further)))
        start = float(rng.uniform(0, START_WITHIN_S)) if number else 0.0
        runs.append(Run(f"run-{number}", start, head, turns))
    return runs


def ideal_tokens(runs: Sequence[Run]) -> int:
    """The prompt tokens that must be computed: each head once, and what the clients add."""
    heads = {id(one.head): len(one.head) for one in runs}
    return sum(heads.values()) + sum(len(turn.added) for one in runs for turn in one.turns)


def end_tokens(runs: Sequence[Run]) -> int:
    """The tokens whose KV all runs together have at their end, that of a shared head once."""
    return ideal_tokens(runs) + sum(turn.answer for one in runs for turn in one.turns)


def longest(runs: Sequence[Run]) -> int:
    """The tokens of the longest run at its end."""
    return max(
        len(one.head) + sum(len(turn.added) + turn.answer for turn in one.turns) for one in runs
    )
