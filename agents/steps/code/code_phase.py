"""`written_output`: what the model writes where an agent's procedure knows no answer.

    coder            a change that a person describes, written to the files after an approval
    patch_applier    the fix of a finding that no fixer knows
    debugger         the fix of a failure, as the diff of its diagnosis
    test_generator   a test that passes and fails with a fault in the code

Each candidate is run, as far as the project has tests or the task has examples.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from agents.api.errors import AgentError, InvalidTask, PermissionDenied
from agents.api.finding import Finding
from agents.model.session import ModelSession
from agents.outputs.base import Output
from agents.outputs.diagnosis import Diagnosis
from agents.outputs.patch import Patch
from agents.outputs.test_file import TestFile
from agents.procedures.audit.given_findings import given_findings
from agents.procedures.audit.patch_applier import still_fires
from agents.procedures.procedure import AgentTask
from agents.project_tests.plan import TestCommand, find_test_plan
from agents.project_tests.results import TestResults
from agents.project_tests.run import run_tests
from agents.steps.code.change import Changes
from agents.steps.code.tried_tests import TriedTests
from agents.steps.code.write_change import ChangeTask, Written, project_of, write_change
from agents.steps.code.write_test import write_test
from agents.steps.react import StepRun
from agents.steps.shared_document import shared_taint
from agents.width.candidate import Outcome
from agents.workspace.source_file import SourceFile
from agents.workspace.workspace import Workspace

TESTS_COMMAND = "python -m pytest -q"
"""What a person is asked for where the project has no tests yet."""
TESTS_S = 120.0
_COPIES = "the project's tests run in a copy of it, once for each candidate"


@runtime_checkable
class AskingTools(Protocol):
    """The tools of a run that can ask for an approval (`agents.runs.tool_executor`)."""

    async def permit(self, name: str, arguments: Mapping[str, Any], *, reason: str) -> None:
        """Ask what a call would ask, without calling.

        Raises:
            PermissionDenied: the agent may not call it, or an approver denied it.
            InvalidTask: the arguments do not match the tool's schema.
        """
        ...


Writer = Callable[[AgentTask, Output, StepRun, ModelSession], Awaitable[Output]]


async def written_output(
    task: AgentTask, output: Output, run: StepRun, session: ModelSession
) -> Output | None:
    """The output with what the model wrote; None where it is not code that is missing (`writes_code`).

    Raises:
        BudgetExhausted, ModelFailure, InvalidRequest, AgentError: as `agents.width.widen`.
    """
    if not writes_code(run.spec.key, output):
        return None
    writer = _WRITERS[run.spec.key]
    run.tools.add_taint(shared_taint(task.document, task.workspace))
    return await writer(task, output, run, session)


def writes_code(key: str, output: Output) -> bool:
    """Whether code is what a model would add to an output of an agent.

    A failure whose place is not known is diagnosed first, which is no code.
    """
    unknown = isinstance(output, Diagnosis) and bool(output.cannot_do)
    return key in _WRITERS and not unknown


async def _coder(task: AgentTask, output: Output, run: StepRun, session: ModelSession) -> Output:
    if not isinstance(output, Patch) or not output.cannot_do or not task.text.strip():
        return output
    tests = await started_tests(task.workspace, run)
    written = await write_change(ChangeTask(task.text, task.workspace, tests=tests), run, session)
    if written.patch.cannot_do:
        return written.patch
    await _apply(written, task.workspace, run)
    return written.patch


async def _apply(written: Written, workspace: Workspace, run: StepRun) -> None:
    """Write the change to the user's files, each after an approval that shows it."""
    if project_of(workspace) is None or written.chosen is None or written.changes is None:
        return
    for edit in written.changes.of(written.chosen.code).edits:
        try:
            if edit.before is not None:
                await run.tools.call("read", {"path": edit.path})
            if not edit.before:
                arguments = {"path": edit.path, "content": edit.after.decode()}
                done = await run.tools.call("write", arguments)
            else:
                old, new = _differing(edit.before.decode(), edit.after.decode())
                done = await run.tools.call("edit", {"path": edit.path, "old": old, "new": new})
        except (PermissionDenied, InvalidTask, UnicodeDecodeError) as error:
            run.note(f"{edit.path} was not changed: {error}")
            return
        if done.failed:
            run.note(f"{edit.path} was not changed: {done.text}")
            return
        run.note(f"{edit.path} was changed.")


def _differing(before: str, after: str) -> tuple[str, str]:
    """The passage that differs with as many lines around it as make it unique, before and after.

    `before` is not empty: the whole of it is unique.
    """
    old, new = before.splitlines(keepends=True), after.splitlines(keepends=True)
    start = 0
    while start < min(len(old), len(new)) and old[start] == new[start]:
        start += 1
    end = 0
    while end < min(len(old), len(new)) - start and old[-1 - end] == new[-1 - end]:
        end += 1
    while True:
        passage = "".join(old[start : len(old) - end])
        if passage and before.count(passage) == 1:
            return passage, "".join(new[start : len(new) - end])
        start, end = max(0, start - 1), max(0, end - 1)


async def _patch_applier(
    task: AgentTask, output: Output, run: StepRun, session: ModelSession
) -> Output:
    finding = _finding(task)
    if not isinstance(output, Patch) or not output.cannot_do or finding is None:
        return output
    file = task.workspace.get(finding.file)
    if file is None or file.language != "python":
        return output
    tests = await started_tests(task.workspace, run)
    text = f"Repair this defect with the smallest change: {_described(finding)}"
    change = ChangeTask(text, task.workspace, (file,), tests=tests)
    gone = partial(_Gone, finding, task.workspace)
    written = await write_change(change, run, session, more=lambda changes: [gone(changes)])
    if written.patch.cannot_do:
        return written.patch
    return written.patch.model_copy(update={"finding_ids": [finding.id]})


class _Gone:
    """The detector of a finding no longer reports it."""

    name = "detector"
    decides = False

    def __init__(self, finding: Finding, workspace: Workspace, changes: Changes) -> None:
        self._finding = finding
        self._workspace = workspace
        self._changes = changes

    async def judge(self, code: str) -> Outcome:
        """See `agents.width.check.Check`."""
        for edit in self._changes.of(code).edits:
            changed = SourceFile(edit.path, edit.after)
            if await asyncio.to_thread(still_fires, self._finding, self._workspace, changed):
                return Outcome(self.name, False, f"{self._finding.rule} is still reported.")
        return Outcome(self.name, True, f"{self._finding.rule} is no longer reported.", 1.0)


def _finding(task: AgentTask) -> Finding | None:
    """The finding that is meant, or the worst of those given."""
    found = given_findings(task.inputs)
    wanted = str(task.inputs.get("finding_id") or "")
    return next(
        (one for one in found if one.id == wanted), found[0] if found and not wanted else None
    )


def _described(finding: Finding) -> str:
    where = f"{finding.file}:{finding.line}"
    return f"{where} {finding.rule}: {finding.message}\nThe code there is: {finding.evidence}"


async def _debugger(task: AgentTask, output: Output, run: StepRun, session: ModelSession) -> Output:
    if not isinstance(output, Diagnosis) or output.diff:
        return output
    file = task.workspace.get(output.file)
    if file is None or file.language != "python":
        return output
    tests = await started_tests(task.workspace, run)
    wanted = frozenset[str]() if tests is None else _failing(output, tests.before)
    text = _failure(output, task)
    written = await write_change(
        ChangeTask(text, task.workspace, (file,), tests=tests, wanted=wanted), run, session
    )
    if written.patch.cannot_do:
        run.note(f"The model has no fix: {written.patch.cannot_do}")
        return output
    run.note(f"The fix is the model's. {written.patch.reason}")
    return output.model_copy(update={"diff": written.patch.diff})


def _failure(output: Diagnosis, task: AgentTask) -> str:
    """The failure in words, with its frames."""
    frames = "\n".join(
        f"{one.file}:{one.line} in {one.function}: {one.source}" for one in output.frames[-6:]
    )
    said = f"{task.text.strip()}\n" if task.text.strip() and "Traceback" not in task.text else ""
    return (
        f"{said}The program fails with {output.error}: {output.message:.500}\n{frames}\n"
        f"The cause is probably in {output.file}, line {output.line}. {output.cause:.500}\n"
        "Correct the function that is wrong, so that it works as it is meant to; do not hide the error."
    )


def _failing(output: Diagnosis, results: TestResults) -> frozenset[str]:
    """The failing tests that the trace goes through; none if it goes through none."""
    functions = {one.function for one in output.frames if one.function.startswith("test")}
    through = {
        name for name in results.failed if name.rpartition("::")[2].partition("[")[0] in functions
    }
    return frozenset(through)


async def _test_generator(
    task: AgentTask, output: Output, run: StepRun, session: ModelSession
) -> Output:
    if not isinstance(output, TestFile) or not output.cannot_do:
        return output
    tests = await started_tests(task.workspace, run)
    if tests is None:
        run.note("The model wrote no test: tests may not run, so that none could be tried.")
        return output
    return await write_test(task, _finding(task), tests, run, session)


async def started_tests(workspace: Workspace, run: StepRun) -> TriedTests | None:
    """The project's tests after a first run; None if there is no project or they may not run."""
    root = project_of(workspace)
    if root is None:
        return None
    if not isinstance(run.tools, AskingTools):
        return None
    plan = await asyncio.to_thread(find_test_plan, root)
    line = plan.commands[0].line if plan.commands else TESTS_COMMAND
    try:
        await run.tools.permit("shell", {"command": line}, reason=_COPIES)
    except (PermissionDenied, InvalidTask) as error:
        run.note(f"The project's tests were not run: {error}")
        return None
    tests = TriedTests(root, partial(_run_tests, root))
    try:
        before = await tests.start()
    except AgentError as error:
        run.note(f"The project's tests were not run: {error}")
        return None
    if before.problem:
        run.note(f"The project's tests could not be run: {before.problem}")
    elif before.used:
        run.note(before.used)
    return tests


async def _run_tests(
    origin: Path, copy: Path, paths: Sequence[str], command: TestCommand | None
) -> TestResults:
    return await run_tests(copy, paths, origin=origin, command=command, timeout_s=TESTS_S)


_WRITERS: Mapping[str, Writer] = {
    "coder": _coder,
    "patch_applier": _patch_applier,
    "debugger": _debugger,
    "test_generator": _test_generator,
}
