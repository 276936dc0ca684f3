"""`write_test`: a pytest file that passes on the code and notices faults in it."""

import re
from dataclasses import dataclass

from agents.api.finding import Finding
from agents.detectors.audit.python_module import module_of
from agents.edits import FileEdit
from agents.model.session import ModelSession
from agents.outputs.test_file import TestFile
from agents.procedures.audit.reproducers.calls import function_at
from agents.procedures.audit.test_generator import package_of
from agents.procedures.procedure import AgentTask
from agents.steps.code.mutants import mutants
from agents.steps.code.shown_files import (
    chosen_files,
    definitions_of,
    is_test_path,
    named_definitions,
    shown_files,
)
from agents.steps.code.test_file_checks import HasTests, NoticesFaults
from agents.steps.code.tried_tests import TriedTests
from agents.steps.react import StepRun
from agents.steps.shared_document import is_private
from agents.width import CodePrompt, widen
from agents.width.check import Check
from agents.width.checks.parses import Parses
from agents.workspace.source_file import SourceFile
from agents.workspace.workspace import Workspace

MAX_TOKENS = 1_024
_SHOWN_TOKENS = 4_000


@dataclass(frozen=True, slots=True)
class _Target:
    """The function that is tested.

    Attributes:
        file: where it is.
        name: dotted.
        module: the dotted name that a test imports.
        mutants: edits of its file with a fault each.
    """

    file: SourceFile
    name: str
    module: str
    mutants: tuple[FileEdit, ...]


async def write_test(
    task: AgentTask,
    finding: Finding | None,
    tests: TriedTests,
    run: StepRun,
    session: ModelSession,
) -> TestFile:
    """Write a test in several candidates; kept is one that passes now and fails with a fault in the code.

    Raises:
        BudgetExhausted, ModelFailure, InvalidRequest, AgentError: as `agents.width.widen`.
    """
    target = _target(task, finding)
    if target is None:
        return TestFile(cannot_do="No Python function of the project is named in the task.")
    if is_private(target.file):
        return TestFile(
            cannot_do=f"{target.file.path} holds private data, which no model is shown."
        )
    client = session.client
    shown = shown_files(
        target.name,
        [target.file],
        room=min(_SHOWN_TOKENS, session.model().context_length // 2),
        count=lambda text: len(client.tokenize(text)),
        check=run.check_input,
    )
    if not shown:
        return TestFile(cannot_do=f"{target.file.path} is too long for the model.")
    path = _path(target, task.workspace)
    top = target.name.partition(".")[0]
    opening = f"```python\nimport pytest\n\nfrom {target.module} import {top}\n\n\ndef test_"
    asked = run.check_input("the task", task.text).strip()
    prompt = CodePrompt.ask(
        f"File {target.file.path}:\n```python\n{shown[0].text.rstrip()}\n```\n\n"
        f"Write a pytest file that tests `{target.name}` as it is meant to work: ordinary values, limits and "
        "errors, each with the exact result. Small test functions, no mocks, no files, no network."
        + (f"\n{asked}" if asked else ""),
        opening=opening,
        goal=f"a test of {target.name}",
    )
    notices = NoticesFaults(tests, path, target.name, target.mutants)
    checks: list[Check] = [Parses(), HasTests(), notices]
    chosen = await widen(
        session, prompt, checks, max_tokens=MAX_TOKENS, record=run.record, meter=run.meter
    )
    run.usage = run.usage.plus(chosen.usage)
    if not chosen.passed:
        return TestFile(cannot_do=chosen.reason[:300])
    return TestFile(
        path=path,
        code=notices.kept.get(chosen.code, chosen.code),
        kind="behaviour",
        finding_ids=[finding.id] if finding else [],
        reason=f"By the model. {chosen.reason}",
    )


def _target(task: AgentTask, finding: Finding | None) -> _Target | None:
    """The function of the finding, or the one that the task names."""
    workspace = task.workspace
    if finding is not None:
        file = workspace.get(finding.file)
        module = None if file is None else module_of(file)
        node = None if module is None else function_at(module, finding.line)
        if file is not None and node is not None:
            name = next(
                (k for k, one in definitions_of(file).items() if one.lineno == node.lineno), ""
            )
            return _made(file, name, workspace) if name else None
    files = [file for file in chosen_files(task.text, workspace) if not is_test_path(file.path)]
    for file in files:
        names = named_definitions(task.text, file)
        if names:
            return _made(file, names[0], workspace)
    for file in files:
        public = [
            name for name in definitions_of(file) if not name.startswith("_") and "." not in name
        ]
        if public:
            return _made(file, public[0], workspace)
    return None


def _made(file: SourceFile, name: str, workspace: Workspace) -> _Target:
    node = definitions_of(file)[name]
    folder, module = package_of(file.path, workspace)
    if folder not in (".", "src"):
        module = ".".join([*folder.split("/"), module])
    changed = mutants(file.text, node.lineno, node.end_lineno or node.lineno)
    edits = tuple(FileEdit(file.path, file.data, text.encode(), (name,)) for text in changed)
    return _Target(file, name, module, edits)


def _path(target: _Target, workspace: Workspace) -> str:
    """A new file beside the project's tests."""
    folders = [
        folder
        for folder, _, name in (file.path.rpartition("/") for file in workspace)
        if name.startswith("test_") and name.endswith(".py")
    ]
    folder = min(folders, key=len) if folders else "tests"
    base = f"test_{re.sub(r'[^a-z0-9]+', '_', target.name.lower()).strip('_')}"
    number, name = 2, base
    while workspace.get(f"{folder}/{name}.py".lstrip("/")) is not None:
        number, name = number + 1, f"{base}_{number}"
    return f"{folder}/{name}.py".lstrip("/")
