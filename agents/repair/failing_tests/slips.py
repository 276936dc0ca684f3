"""`usual_slips`: candidates by small changes of the suspects (`operators`), tried on the failing test."""

import ast
import asyncio
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from time import monotonic

from agents.detectors.audit.python_module import PythonModule, module_of
from agents.repair.failing_tests.candidates import PatchCandidate, Refuse
from agents.repair.failing_tests.operators import Change, Place, small_changes
from agents.repair.failing_tests.suspects import Suspect, functions_of
from agents.repair.failing_tests.test_bench import Drop, TestBench

MAX_TRIED = 400
SLIPS_S = 120.0
LEAST_S = 10.0
_RAISED = re.compile(
    r"^E\s+(?:[\w.]+\.)?([A-Z]\w*(?:Error|Exception|Exit|Iteration|[a-z]\w*))(?::|$)", re.M
)
_WANTED = re.compile(r"raises\(\s*\(?([\w., ]+)")


@dataclass(slots=True)
class Slips:
    """What came of it.

    Attributes:
        passed: the candidates with which the failing test and all tests pass, of the best tier that has any.
        tried: how many changes were tried.
        complete: whether there was time to try all changes of the last tier.
        dropped: how many each check dropped.
        near: candidates with which the failing test passes and another one fails, with the reason.
    """

    passed: list[PatchCandidate] = field(default_factory=list)
    tried: int = 0
    complete: bool = True
    dropped: Counter[str] = field(default_factory=Counter)
    near: list[tuple[PatchCandidate, Drop]] = field(default_factory=list)


async def usual_slips(
    bench: TestBench,
    suspects: Sequence[Suspect],
    test: str,
    refuse: Refuse,
    *,
    total_s: float = SLIPS_S,
) -> Slips:
    """Try the small changes of all suspects, tier by tier, until some pass.

    Args:
        bench: where they are tried.
        suspects: the most suspicious first.
        test: node id of the failing test.
        refuse: drops a candidate that passes and may not be a repair.
        total_s: seconds, about.
    """
    found = Slips()
    by_tier = await asyncio.to_thread(_by_tier, bench, suspects, test)
    end = monotonic() + total_s
    for tier in sorted(by_tier):
        tried = by_tier[tier][: MAX_TRIED - found.tried]
        left = end - monotonic()
        if left < LEAST_S or not tried:
            break
        found.tried += len(tried)
        drops = await bench.failing(tried, test, total_s=left)
        found.complete = not any(drop is not None and drop.late for drop in drops)
        alive = _kept(tried, drops, found)
        drops = await bench.whole(alive, total_s=max(LEAST_S, end - monotonic()))
        found.near += [
            (one, drop) for one, drop in zip(alive, drops, strict=True) if drop is not None
        ]
        alive = _kept(alive, drops, found)
        for one in alive:
            if await asyncio.to_thread(refuse, one):
                found.dropped["rules"] += 1
            else:
                found.passed.append(one)
        if found.passed:
            break
    return found


def _by_tier(
    bench: TestBench, suspects: Sequence[Suspect], test: str
) -> dict[int, list[PatchCandidate]]:
    """The small changes of all suspects by tier, those of the most suspicious first."""
    found: dict[int, list[PatchCandidate]] = {}
    for suspect in suspects:
        for change, text in changes_of(bench, suspect, test):
            found.setdefault(change.tier, []).append(
                bench.candidate(suspect, text, change.what, change.tier)
            )
    return found


def _kept(
    candidates: Sequence[PatchCandidate], drops: Sequence[Drop | None], found: Slips
) -> list[PatchCandidate]:
    found.dropped.update(drop.check for drop in drops if drop is not None)
    return [one for one, drop in zip(candidates, drops, strict=True) if drop is None]


def changes_of(bench: TestBench, suspect: Suspect, test: str) -> Iterator[tuple[Change, str]]:
    """The small changes of a suspect at lines that the failing test runs, with the file's text after each."""
    file = bench.workspace.get(suspect.path)
    module = None if file is None else module_of(file)
    node = None if module is None else node_of(module, suspect)
    if file is None or module is None or node is None:
        return
    text = file.text
    failure = bench.spectrum.texts.get(test, "")
    raised = frozenset(_RAISED.findall(failure))
    wanted = frozenset(
        name.strip().rpartition(".")[2]
        for one in _WANTED.findall(failure)
        for name in one.split(",")
    )
    ran = _ran(node, suspect)
    for change in small_changes(Place(module, text, node, raised, wanted)):
        if change.line in ran:
            yield change, change.applied(text)


def node_of(module: PythonModule, suspect: Suspect) -> ast.stmt | None:
    """The function or the assignment of a suspect."""
    if suspect.is_function:
        return next((one for name, one in functions_of(module.tree) if name == suspect.name), None)
    kinds = ast.Assign | ast.AnnAssign
    return next(
        (one for one in module.nodes if isinstance(one, kinds) and one.lineno == suspect.first),
        None,
    )


def _ran(node: ast.stmt, suspect: Suspect) -> set[int]:
    """The lines of the statements that the failing test runs, and those before the body."""
    if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        return set(range(suspect.first, suspect.last + 1))
    ran = set(range(suspect.first, node.body[0].lineno))
    for statement in ast.walk(node):
        if not isinstance(statement, ast.stmt | ast.ExceptHandler) or statement is node:
            continue
        body = getattr(statement, "body", None)
        end = statement.end_lineno or statement.lineno
        if isinstance(body, list) and body:
            end = max(statement.lineno, body[0].lineno - 1)
        own = range(statement.lineno, end + 1)
        if any(line in suspect.lines for line in own):
            ran |= set(own)
    return ran
