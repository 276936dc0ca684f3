"""`run_project_tests`: runs the project's tests through the tool `shell`, as far as permissions let it."""

import re
from typing import Any

from agents.api.errors import PermissionDenied
from agents.procedures.procedure import ProcedureContext

COMMAND = "python -m pytest -q -p no:cacheprovider --tb=no"
TESTS_S = 600
_COUNTS = re.compile(r"(\d+) (passed|failed|errors?)\b")
_NO_TESTS = 5
"""Exit status of pytest when it collected nothing."""


async def run_project_tests(context: ProcedureContext) -> dict[str, Any]:
    """The outcome: `passed`, `failed`, `ok`, and `problem` if the tests could not be run."""
    try:
        done = await context.tool("shell", command=COMMAND, seconds=TESTS_S)
    except PermissionDenied as error:
        return {"passed": 0, "failed": 0, "ok": False, "problem": str(error)}
    if "status" not in done:
        return {"passed": 0, "failed": 0, "ok": False, "problem": str(done["text"])[:300]}
    counts = {"passed": 0, "failed": 0, "error": 0}
    last = (done["output"].strip().splitlines() or [""])[-1]
    for number, kind in _COUNTS.findall(last):
        counts[kind.removesuffix("s")] += int(number)
    problem = ""
    if done["ended_by"]:
        problem = f"The tests were ended by {done['ended_by']}."
    elif done["status"] not in (0, 1, _NO_TESTS):
        problem = f"pytest did not run: {last[:200] or 'no output'}"
    return {
        "passed": counts["passed"],
        "failed": counts["failed"] + counts["error"],
        "ok": done["status"] == 0,
        "problem": problem,
    }
