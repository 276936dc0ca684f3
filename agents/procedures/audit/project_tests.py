"""Running a project's own tests through the shell, which asks for an approval of the exact command."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from agents.api.errors import BudgetExhausted, InvalidTask, PermissionDenied
from agents.procedures.procedure import AgentTask, ProcedureContext
from agents.project_tests.plan import TestCommand, find_test_plan
from agents.project_tests.results import TestResults, fields_of
from agents.project_tests.run import Execution, first_outcome, own_names

TESTS_S = 600


async def project_tests(task: AgentTask, context: ProcedureContext) -> Mapping[str, Any]:
    """How the project's tests went, as the members of `fields_of`; `problem` says why there is no outcome.

    The members `tests` of the inputs stand for a run that somebody else made.
    """
    given = task.inputs.get("tests")
    if isinstance(given, Mapping):
        return given
    names = [file.path for file in task.workspace]
    plan = await context.in_thread(lambda: find_test_plan(task.workspace.root, names=names))
    if plan.missing:
        return fields_of(TestResults(problem=plan.missing))
    if "shell" not in context.available_tools:
        return fields_of(TestResults(problem=f"The agent {context.spec.key} may not run commands."))
    try:
        found = await first_outcome(plan, lambda one: _execute(one, context), own_names(names))
    except (PermissionDenied, BudgetExhausted, InvalidTask) as error:
        found = TestResults(problem=f"They were not run ({plan.commands[0].line}): {error}")
    for text in (found.used, found.problem and f"The tests could not be judged: {found.problem}"):
        if text:
            context.note(text)
    return fields_of(found)


async def _execute(command: TestCommand, context: ProcedureContext) -> Execution:
    done = await context.tool("shell", command=command.line, seconds=TESTS_S, keep=True)
    status, file = done.get("status"), done.get("artifact")
    text = str(done.get("output") or done["text"])
    if not isinstance(status, int):
        return Execution(-1, text, ended_by=text[:300])
    ended_by = done.get("ended_by")
    return Execution(
        status,
        text,
        f"The tests were ended by {ended_by}." if ended_by else "",
        output=Path(file) if isinstance(file, str) else None,
    )
