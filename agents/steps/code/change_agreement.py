"""`change_agreement`: the candidates of a changed function, compared on generated inputs.

Where neither the project's tests nor an example of the task can decide, what most candidates do is the best
sign of what was asked (`agents.width.agreement`).
"""

import ast
from collections.abc import Sequence
from pathlib import Path

from agents.sandbox.sandbox import SandboxUnavailable
from agents.steps.code.change import Change
from agents.steps.code.change_checks import ChangeOf, setting_of
from agents.steps.code.shown_files import named_definitions
from agents.width.agreement import Agreement
from agents.width.examples import examples_in
from agents.width.inputs import generated_calls
from agents.width.probe_run import run_calls
from agents.width.signature import definition_in, parameters_of
from agents.workspace.source_file import SourceFile

_MIN_CALLS = 4
"""With fewer inputs agreement says little."""


async def change_agreement(
    task: str, files: Sequence[SourceFile], change_of: ChangeOf, root: Path | None
) -> Agreement | None:
    """The comparison, if the task names one function that can be called by itself; else None.

    A function whose file cannot be loaded here, or for which no inputs can be made, is not compared. Nothing
    is run outside of the sandbox: without one, the likeliest candidate is taken.

    Args:
        task: the user's words.
        files: those that the change may be in.
        change_of: what code changes.
        root: the project, for imports.

    Raises:
        ProbeFailed, SandboxFailed: nothing can be run.
    """
    named = [(file, name) for file in files for name in named_definitions(task, file)]
    if len(named) != 1:
        return None
    file, name = named[0]
    node = None if file.python is None else definition_in(file.python, name)
    if "." in name or not isinstance(node, ast.FunctionDef):
        return None
    docstring = ast.get_docstring(node, clean=False) or ""
    examples = examples_in(docstring, name, parameters_of(node))
    if not examples and any(one.annotation is None for one in node.args.args):
        return None  # nothing says what its arguments are
    calls = generated_calls(node, name, [one.call for one in examples])
    if len(calls) < _MIN_CALLS:
        return None
    setting = setting_of(file.path, root, module_text=lambda code: _text(change_of(code), file))
    try:
        (loaded,) = await run_calls(setting_of(file.path, root), [file.text], [])
    except SandboxUnavailable:
        return None
    return None if loaded.problem else Agreement(setting, tuple(calls))


def _text(change: Change, file: SourceFile) -> str:
    """The file as the change leaves it."""
    after = next((one.after for one in change.edits if one.path == file.path), file.data)
    return after.decode("utf-8", "replace")
