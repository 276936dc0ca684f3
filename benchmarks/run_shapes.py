"""Runs of agents in the shapes of the recorded traces: shared heads, turns with results of tools, pauses.

A run is a conversation that only grows: a head, then turns. A turn adds tokens (a task, or the results of
tools), the model answers, and the client comes back after the pause of its tools. Turns have the sizes of
`tests/traces`, heads a tenth of theirs. Everything is drawn from a seed.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

SHARED_HEADS = 3
OWN_HEAD_EVERY = 4
"""Of so many runs one has a head that no other run has."""
HEAD_TOKENS = (1000, 3000)
TASK_TOKENS = (60, 400)
RESULT_TOKENS = (100, 1500)
ANSWER_TOKENS = (30, 160)
RUN_TURNS = (8, 13)
EXPLORERS = 3
EXPLORER_TURNS = (3, 6)
EXPLORING_TURNS = (1, 5)
MEDIAN_PAUSE_S = 1.5
"""Of the tools of a turn: reading and searching take less, tests more."""
PAUSE_SPREAD = 1.0
"""Sigma of the log-normal distribution of pauses."""
START_WITHIN_S = 20.0
FIRST_ID, END_ID = 100, 10_000
"""Drawn token ids are from the first one to below the end; lower ones are control tokens of some models."""


@dataclass(frozen=True, slots=True)
class Turn:
    """One request of a run.

    Attributes:
        added: [n] int32, tokens that the client adds.
        answer: number of tokens that the model generates.
        pause_s: seconds from the answer to the next request.
        starts: runs of sub-agents that begin with the pause; it lasts until they have ended.
    """

    added: NDArray[np.int32]
    answer: int
    pause_s: float
    starts: "tuple[Run, ...]" = ()


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

    @property
    def tokens(self) -> int:
        """Its tokens at its end."""
        return len(self.head) + sum(len(turn.added) + turn.answer for turn in self.turns)


def with_sub_agents(runs: Sequence[Run]) -> list[Run]:
    """These runs, and those of their sub-agents."""
    below = [other for one in runs for turn in one.turns for other in turn.starts]
    return [*runs, *(with_sub_agents(below) if below else ())]


def make_runs(count: int, *, seed: int, scale: float = 1.0) -> list[Run]:
    """`count` runs; sizes in tokens are multiplied by `scale`.

    The first one starts sub-agents twice, three at a time, as the recorded runs of Claude Code and
    opencode do.
    """
    rng = np.random.default_rng(seed)

    def size(bounds: tuple[int, int]) -> int:
        low, high = np.log(bounds[0] * scale), np.log(bounds[1] * scale)
        return max(1, round(float(np.exp(rng.uniform(low, high)))))

    def text(bounds: tuple[int, int]) -> NDArray[np.int32]:
        return rng.integers(FIRST_ID, END_ID, size(bounds)).astype(np.int32)

    def turn(bounds: tuple[int, int]) -> Turn:
        pause = float(rng.lognormal(np.log(MEDIAN_PAUSE_S), PAUSE_SPREAD))
        return Turn(text(bounds), size(ANSWER_TOKENS), pause)

    def run(name: str, head: NDArray[np.int32], start_s: float, turns: int) -> Run:
        further = (turn(RESULT_TOKENS) for _ in range(turns - 1))
        return Run(name, start_s, head, (turn(TASK_TOKENS), *further))

    def explorers(name: str) -> tuple[Run, ...]:
        return tuple(
            run(f"{name}.{number}", explorer, 0.0, int(rng.integers(*EXPLORER_TURNS)))
            for number in range(EXPLORERS)
        )

    shared = [text(HEAD_TOKENS) for _ in range(SHARED_HEADS)]
    explorer = text(HEAD_TOKENS)
    runs = []
    for number in range(count):
        own = number % OWN_HEAD_EVERY == OWN_HEAD_EVERY - 1
        head = text(HEAD_TOKENS) if own else shared[number % SHARED_HEADS]
        start = float(rng.uniform(0, START_WITHIN_S)) if number else 0.0
        one = run(f"run-{number}", head, start, int(rng.integers(*RUN_TURNS)))
        if number == 0:
            turns = list(one.turns)
            for index in EXPLORING_TURNS:
                turns[index] = replace(turns[index], starts=explorers(f"{one.name}.{index}"))
            one = replace(one, turns=tuple(turns))
        runs.append(one)
    return runs


def ideal_tokens(runs: Sequence[Run]) -> int:
    """The prompt tokens that must be computed: each head once, and what the clients add."""
    runs = with_sub_agents(runs)
    heads = {id(one.head): len(one.head) for one in runs}
    return sum(heads.values()) + sum(len(turn.added) for one in runs for turn in one.turns)


def end_tokens(runs: Sequence[Run]) -> int:
    """The tokens whose KV all runs together have at their end, that of a shared head once."""
    answers = sum(turn.answer for one in with_sub_agents(runs) for turn in one.turns)
    return ideal_tokens(runs) + answers


def longest(runs: Sequence[Run]) -> int:
    """The tokens of the longest run at its end."""
    return max(one.tokens for one in with_sub_agents(runs))


def half_pool(runs: Sequence[Run], block_size: int) -> int:
    """Blocks for half of what all runs together have at their end, but for the longest run at least."""
    return max(end_tokens(runs) // 2, longest(runs) + 2 * block_size) // block_size
