"""`Agreement`: candidates compared by what they return for generated inputs.

Where neither an example nor a test says what is right, wrong candidates err differently and right ones agree
(as in CodeT, Chen et al. 2022, and execution-based minimum Bayes risk, Shi et al. 2022). A candidate's score
is the share of the candidates that did the same, averaged over the inputs that any of them takes; equal
candidates vote as often as they were written.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from agents.width.probe_run import Call, CallOutcome, Run, Setting, run_calls


@dataclass(frozen=True, slots=True)
class Votes:
    """How candidates agree.

    Attributes:
        scores: per candidate, 0–1; 0 for one that cannot be loaded.
        sizes: per candidate, how many did the same on every input, itself included.
        inputs: on how many inputs that is based.
        telling: an input on which the best candidates differ from others, or empty.
    """

    scores: tuple[float, ...]
    sizes: tuple[int, ...]
    inputs: int
    telling: str = ""


@dataclass(frozen=True, slots=True)
class Agreement:
    """Calls with generated inputs, run on all candidates in one process.

    Attributes:
        setting: where they run.
        calls: without expected values.
    """

    setting: Setting
    calls: tuple[Call, ...]
    _runs: dict[str, Run] = field(default_factory=dict, repr=False, compare=False)

    async def votes(self, codes: Sequence[str]) -> Votes:
        """Compare candidates; each text is run once.

        Raises:
            ProbeFailed, SandboxUnavailable, SandboxFailed: they could not be run.
        """
        new = [code for code in dict.fromkeys(codes) if code not in self._runs]
        if new:
            runs = await run_calls(self.setting, new, self.calls)
            self._runs.update(zip(new, runs, strict=True))
        return votes_of([self._runs[code] for code in codes], self.calls)


def votes_of(runs: Sequence[Run], calls: Sequence[Call]) -> Votes:
    """The votes of candidates' runs."""
    loaded = [at for at, run in enumerate(runs) if not run.problem]
    totals = [0.0] * len(runs)
    alike = {at: set(loaded) for at in loaded}
    used = 0
    differing: list[tuple[int, list[list[int]]]] = []
    for number in range(len(calls)):
        groups = _groups(runs, loaded, number)
        for group in groups:
            for at in group:
                alike[at] &= set(group)
        if all(runs[group[0]].outcomes[number].error for group in groups):
            continue  # an input that no candidate takes says nothing about values
        used += 1
        for group in groups:
            failed = bool(runs[group[0]].outcomes[number].error)
            for at in group:
                # Exceptions on inputs that others take are no agreement.
                totals[at] += 0.0 if failed else len(group) / len(loaded)
        if len(groups) > 1:
            differing.append((number, groups))
    scores = tuple(total / used if used else 0.0 for total in totals)
    sizes = tuple(len(alike[at]) if at in alike else 0 for at in range(len(runs)))
    return Votes(scores, sizes, used, _telling(scores, differing, calls))


def _groups(runs: Sequence[Run], loaded: Sequence[int], number: int) -> list[list[int]]:
    """The candidates by equal outcome of one call."""
    groups: list[tuple[CallOutcome, list[int]]] = []
    for at in loaded:
        outcome = runs[at].outcomes[number]
        for first, members in groups:
            if outcome.same(first):
                members.append(at)
                break
        else:
            groups.append((outcome, [at]))
    return [members for _, members in groups]


def _telling(
    scores: Sequence[float],
    differing: Sequence[tuple[int, list[list[int]]]],
    calls: Sequence[Call],
) -> str:
    """An input on which the best candidate's group is the largest but not the only one."""
    if not differing:
        return ""
    best = max(range(len(scores)), key=lambda at: scores[at])
    for number, groups in differing:
        if best in max(groups, key=len):
            return calls[number].shown or calls[number].expression
    return ""
