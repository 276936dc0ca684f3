"""`write_change`: a change that a person, a finding or a failure describes, as a patch that was checked."""

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from agents.model.session import ModelSession
from agents.outputs.patch import Patch
from agents.procedures.execution.plan_task import files_of
from agents.steps.code.change import Changes
from agents.steps.code.change_agreement import change_agreement
from agents.steps.code.change_checks import ChangeExamples, DeclaredTypes, Fits, KnownNames
from agents.steps.code.shown_files import (
    ShownFile,
    chosen_files,
    named_definitions,
    named_files,
    shown_files,
)
from agents.steps.code.tried_tests import TestsPass, TriedTests
from agents.steps.react import StepRun
from agents.steps.shared_document import is_private
from agents.width import Chosen, CodePrompt, widen
from agents.width.check import Check
from agents.width.checks.parses import Parses
from agents.width.missing_imports import bound_names, with_imports
from agents.workspace.source_file import SourceFile
from agents.workspace.workspace import Workspace

MAX_SHOWN_TOKENS = 6_000
MIN_ANSWER_TOKENS = 512
MAX_ANSWER_TOKENS = 3_072
MAX_DIFF_CHARS = 60_000
_SIGNATURE = re.compile(
    r"\b(?:parameters?|arguments?|signature|options?|keyword|rename|accepts?|takes?|pass(?:es)?|default)\b",
    re.I,
)
"""Words of tasks that may change how a function is called."""
_TESTS = re.compile(r"\btests?\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class ChangeTask:
    """What is to be changed.

    Attributes:
        text: the task in words.
        workspace: the files.
        files: those that the change is about; empty chooses by the text.
        tests: the project's tests, started; None if there are none or they may not run.
        wanted: tests that failed and must pass.
    """

    text: str
    workspace: Workspace
    files: tuple[SourceFile, ...] = ()
    tests: TriedTests | None = None
    wanted: frozenset[str] = field(default_factory=frozenset)


@dataclass(frozen=True, slots=True)
class Written:
    """What the model wrote.

    Attributes:
        patch: the change, or why there is none.
        chosen: the candidates; None if nothing was asked.
        changes: makes the edits of a candidate's code.
    """

    patch: Patch
    chosen: Chosen | None = None
    changes: Changes | None = None


async def write_change(
    task: ChangeTask,
    run: StepRun,
    session: ModelSession,
    *,
    more: Callable[[Changes], Sequence[Check]] = lambda changes: (),
) -> Written:
    """Write a change in several candidates and keep the best.

    Args:
        task: what is to be changed.
        run: pays, and is told.
        session: the engine.
        more: further checks of the changes that code makes, behind the cheap ones.

    Raises:
        BudgetExhausted, ModelFailure, InvalidRequest, AgentError: as `agents.width.widen`.
    """
    client = session.client

    def count(text: str) -> int:
        return len(client.tokenize(text))

    creates = _new_path(task.text, task.workspace) if not task.files else ""
    if task.files:
        files = list(task.files)
    elif creates:
        files = named_files(task.text, task.workspace)
    else:
        files = chosen_files(task.text, task.workspace)
    private = next((one.path for one in files if is_private(one)), "")
    if private:
        return Written(Patch(cannot_do=f"{private} holds private data, which no model is shown."))
    context = session.model().context_length
    shown = shown_files(
        task.text,
        files,
        room=min(MAX_SHOWN_TOKENS, context // 2),
        count=count,
        check=run.check_input,
    )
    if not shown and not creates:
        if files:
            return Written(Patch(cannot_do=f"{files[0].path} is too long for the model."))
        creates = "main.py" if not len(task.workspace) else ""
        if not creates:
            return Written(Patch(cannot_do="No file of the project is about this task: name one."))
    stored = {file.path: file.data for file in files if any(file.path == s.path for s in shown)}
    changes = Changes(stored, creates=creates)
    kept = _kept_signatures(task.text, files)
    root = project_of(task.workspace)
    checks: list[Check] = [
        Parses(),
        Fits(changes.of, tests_too=bool(_TESTS.search(task.text)), signatures=kept),
        KnownNames(changes.of),
        *more(changes),
        ChangeExamples(changes.of, task.text, root),
        DeclaredTypes(changes.of),
    ]
    if task.tests is not None:
        checks.append(TestsPass(task.tests, changes.of, task.wanted))
    agreement = None
    if not any(check.decides for check in checks):
        agreement = await change_agreement(task.text, files, changes.of, root)
    largest = max((count(one.text) for one in shown), default=0)
    chosen = await widen(
        session,
        prompt_of(run.check_input("the task", task.text), shown, creates),
        checks,
        agreement=agreement,
        max_tokens=max(MIN_ANSWER_TOKENS, min(MAX_ANSWER_TOKENS, math.ceil(1.3 * largest) + 128)),
        record=run.record,
        meter=run.meter,
        diff_of=lambda code: changes.of(code).diff,
        completed=partial(with_imports, known=_known_names(files)),
    )
    run.usage = run.usage.plus(chosen.usage)
    return Written(_patch(chosen, changes, task), chosen, changes)


def prompt_of(text: str, shown: Sequence[ShownFile], creates: str) -> CodePrompt:
    """The question; the answer begins with a comment that names its file."""
    parts = []
    for one in shown:
        cut = "" if one.is_whole else " (outline; `...` stands for code that is not shown)"
        parts.append(f"File {one.path}{cut}:\n```python\n{one.text.rstrip()}\n```")
    parts.append(f"Task: {text.strip()}")
    if creates and not shown:
        parts.append(f"Write the whole file {creates}.")
    else:
        where = f" or the new file {creates}" if creates else ""
        parts.append(
            f"Write each function, method or class that changes or is new, whole{where}, and nothing "
            "that stays as it is. A method stands in its class."
        )
    only = creates if not shown else shown[0].path if len(shown) == 1 and not creates else ""
    opening = f"```python\n# {only}\n" if only else "```python\n# "
    if not only:
        parts.append("The first line is a comment with the path of the file.")
    return CodePrompt.ask(
        "\n\n".join(parts), opening=opening, goal=text.strip().partition("\n")[0][:80]
    )


def _known_names(files: Sequence[SourceFile]) -> frozenset[str]:
    """All names that the files bind: what they mean there is not for an import to say."""
    trees = [tree for file in files if (tree := file.python) is not None]
    return frozenset(name for tree in trees for name in bound_names(tree))


def _new_path(text: str, workspace: Workspace) -> str:
    """The path of a Python file that the task names and that does not exist."""
    for name in files_of(text):
        known = any(file.path == name or file.path.endswith(f"/{name}") for file in workspace)
        if name.endswith(".py") and not known and ".." not in name and not name.startswith("/"):
            return name
    return ""


def _kept_signatures(text: str, files: Sequence[SourceFile]) -> tuple[str, ...]:
    """The functions that the task names and whose parameters it does not speak of."""
    if _SIGNATURE.search(text):
        return ()
    return tuple(name for file in files for name in named_definitions(text, file))


def _patch(chosen: Chosen, changes: Changes, task: ChangeTask) -> Patch:
    if chosen.candidate is None or not chosen.passed:
        return Patch(cannot_do=chosen.reason[:300])
    change = changes.of(chosen.code)
    diff = change.diff
    if not diff or len(diff) > MAX_DIFF_CHARS:
        return Patch(cannot_do="The change is too long to be shown as a diff.")
    count = len(chosen.candidates)
    written = (
        f"Candidate {chosen.candidate.number + 1} of {count}"
        if count > 1
        else "The first candidate"
    )
    unsure = ""
    if not chosen.verified:
        unsure = " No test or example shows that it does what was asked."
    elif chosen.decided_by == "tests" and not (task.wanted or _has_examples(chosen)):
        unsure = " The tests show that nothing broke, not that it does what was asked."
    ran = task.tests.before.command if task.tests is not None else None
    used = f" The tests ran with {ran.name}." if ran is not None else ""
    return Patch(diff=diff, reason=f"{written}: {chosen.reason}{used}{unsure}"[:4_000])


def _has_examples(chosen: Chosen) -> bool:
    """Whether examples of the task or tests that failed before speak for the chosen candidate."""
    outcomes = chosen.candidate.outcomes if chosen.candidate is not None else []
    return any(
        (one.check == "examples" and one.detail.endswith("examples hold."))
        or (one.check == "tests" and "failed before" in one.detail)
        for one in outcomes
    )


def project_of(workspace: Workspace) -> Path | None:
    """The folder of a workspace's project, or None for texts without one."""
    return workspace.root if len(workspace) and workspace.root.is_dir() else None
