"""Hot spots that the source shows and, on request, those that a profile of a command shows.

A task such as `profile: -m pytest -q` runs Python with these arguments under cProfile, through the tool `shell`:
after an approval, in the sandbox. Functions of the project that take a tenth of the time or more become findings.
"""

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from agents.api.errors import InvalidTask, PermissionDenied
from agents.api.finding import Finding, Severity, merge_findings
from agents.outputs.findings import FindingRecord, Findings
from agents.procedures.procedure import AgentTask, ProcedureContext
from agents.project_tests.plan import environments_for
from agents.project_tests.python_search import OWN
from agents.workspace.workspace import Workspace

PROFILE_S = 300
MIN_SHARE = 0.1
"""Share of the whole time from which a function is reported."""
_REQUEST = re.compile(r"^\s*profile:\s*(?P<arguments>\S.*?)\s*$", re.IGNORECASE | re.DOTALL)
_TOTAL = re.compile(r"function calls.* in (?P<seconds>\d+(\.\d+)?) seconds")
_ROW = re.compile(
    r"^\s*(?P<calls>\d+)(/\d+)?\s+(?P<own>\d+\.\d+)\s+\S+\s+(?P<cumulative>\d+\.\d+)\s+\S+\s+"
    r"(?P<file>\S.*):(?P<line>\d+)\((?P<name>[^()]+)\)$",
    re.MULTILINE,
)


@dataclass(frozen=True, slots=True)
class HotFunction:
    """A row of a profile.

    Attributes:
        file: as the profile names it.
        line: of its definition.
        name: its name.
        calls: how often it was called.
        own_s: seconds in it without what it calls.
        share: `own_s` of the whole.
    """

    file: str
    line: int
    name: str
    calls: int
    own_s: float
    share: float


async def run(task: AgentTask, context: ProcedureContext) -> Findings:
    """The findings of the source and, if the task begins with `profile:`, of a profile."""
    if not len(task.workspace):
        return Findings(cannot_do="There are no text files to look at.")
    found = await context.detect()
    request = _REQUEST.match(task.text)
    if request is not None:
        found = merge_findings([*found, *await _profiled(request["arguments"], task, context)])
    return Findings(findings=[FindingRecord.of(finding) for finding in found])


async def _profiled(arguments: str, task: AgentTask, context: ProcedureContext) -> list[Finding]:
    try:
        words = shlex.split(arguments)
    except ValueError as error:
        raise InvalidTask(f"The command to profile cannot be parsed: {error}.") from error
    command = shlex.join(["python", "-m", "cProfile", "-s", "tottime", *words])
    try:
        done = await context.tool("shell", command=command, seconds=PROFILE_S)
    except PermissionDenied as error:
        context.note(f"Nothing was profiled: {error}")
        return []
    if "output" not in done:
        context.note(f"Nothing was profiled: {done['text']}"[:300])
        return []
    found = await context.in_thread(environments_for, task.workspace.root, "python")
    used = f"{found[0].name}, because {found[0].why}" if found else OWN
    context.note(f"Profiled with {used}.")
    rows = list(hot_functions(done["output"]))
    if not rows and _TOTAL.search(done["output"]) is None:
        context.note("Nothing was profiled: the command printed no profile.")
    return list(_findings(rows, task.workspace))


def hot_functions(output: str) -> Iterator[HotFunction]:
    """The functions of cProfile's table that take `MIN_SHARE` of the time or more, the hottest first."""
    total = _TOTAL.search(output)
    if total is None or not float(total["seconds"]):
        return
    seconds = float(total["seconds"])
    for row in _ROW.finditer(output, total.end()):
        share = float(row["own"]) / seconds
        if share < MIN_SHARE:
            return
        yield HotFunction(
            row["file"], int(row["line"]), row["name"], int(row["calls"]), float(row["own"]), share
        )


def _findings(rows: list[HotFunction], workspace: Workspace) -> Iterator[Finding]:
    for row in rows:
        path = _below(row.file, workspace.root)
        file = workspace.get(path) if path else None
        if file is None:
            continue  # a library
        lines = file.text.splitlines()
        yield Finding(
            file=path,
            line=row.line,
            end_line=row.line,
            rule="hot-function",
            severity=Severity.LOW if row.share >= 0.3 else Severity.INFO,
            message=f"{row.name} takes {row.share:.0%} of the profiled time: {row.own_s:.2f} s of its own in "
            f"{row.calls:,} calls.",
            evidence=lines[row.line - 1].strip() if 0 < row.line <= len(lines) else "",
            detector="profile",
        )


def _below(name: str, root: Path) -> str:
    """The path relative to the workspace, or empty if it lies elsewhere."""
    path = Path(name)
    if not path.is_absolute():
        return path.as_posix()
    try:
        return path.relative_to(root.resolve()).as_posix()
    except ValueError:
        return ""
