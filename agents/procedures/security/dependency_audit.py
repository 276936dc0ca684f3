"""`dependency_audit`: the detector's findings, and published advisories where http_fetch may ask for them.

Advisories of Python packages with an exact version come from the JSON interface of pypi.org, one page a
package. Each page is asked like any call of http_fetch. Only identifiers and versions of an answer are
used: its texts are untrusted.
"""

import json
import re
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

from agents.api.errors import BudgetExhausted, PermissionDenied
from agents.api.finding import Finding, merge_findings
from agents.detectors.security.dependencies import VULNERABLE, Dependency, dependencies_of
from agents.outputs.findings import FindingRecord, Findings
from agents.procedures.procedure import AgentTask, ProcedureContext
from agents.workspace.source_file import SourceFile
from agents.workspace.workspace import Workspace

MAX_LOOKUPS = 20
"""Packages that are looked up; each is a call that somebody may have to allow."""
MAX_ADVISORIES = 10
_INDEX = "https://pypi.org/pypi"
_EXACT = re.compile(r"={2,3}\s*([A-Za-z0-9][A-Za-z0-9.!+_-]{0,40})")
_ID = re.compile(r"[A-Z][A-Z0-9]*-[A-Za-z0-9-]{1,60}")
_VERSION = re.compile(r"[A-Za-z0-9][A-Za-z0-9.!+_-]{0,40}")
Pinned = dict[tuple[str, str], tuple[SourceFile, Dependency]]


async def run(task: AgentTask, context: ProcedureContext) -> Findings:
    """Findings of the detectors, with those of advisories."""
    if not len(task.workspace):
        return Findings(cannot_do="There are no text files to look at.")
    found = await context.detect()
    pinned = await context.in_thread(_pinned, task.workspace)
    if pinned:
        # Of findings on one line with one rule, the first stays: the one with the advisories' names.
        found = merge_findings([*await _looked_up(pinned, context), *found])
    return Findings(findings=[FindingRecord.of(finding) for finding in found])


def _pinned(workspace: Workspace) -> Pinned:
    """Python packages with an exact version, by name and version, where each is named first."""
    pinned: Pinned = {}
    for file in workspace:
        for one in dependencies_of(file):
            exact = _EXACT.fullmatch(one.version)
            if one.ecosystem == "python" and exact:
                pinned.setdefault((one.name, exact[1]), (file, one))
    return pinned


async def _looked_up(pinned: Pinned, context: ProcedureContext) -> list[Finding]:
    tool = context.available_tools.get("http_fetch")
    if tool is None:
        return []
    if tool.unavailable:
        context.note(f"Published advisories were not asked for: {tool.unavailable}")
        return []
    found: list[Finding] = []
    asked = 0
    for (name, version), (file, dependency) in list(pinned.items())[:MAX_LOOKUPS]:
        context.check_cancelled()
        try:
            answer = await context.tool("http_fetch", url=f"{_INDEX}/{name}/{version}/json")
        except (PermissionDenied, BudgetExhausted) as error:
            context.note(f"Advisories are missing from {name} on: {error}")
            break
        if answer["failed"] and answer.get("status") != 404:
            context.note(f"Advisories are missing from {name} on: {answer['text']:.300}")
            break
        asked += 1
        found += _finding(file, dependency, version, answer)
    else:
        if len(pinned) > MAX_LOOKUPS:
            context.note(
                f"Advisories were asked for the first {MAX_LOOKUPS} of {len(pinned)} packages."
            )
    if asked:
        today = datetime.now(UTC).date().isoformat()
        context.note(f"Advisories of {asked} packages were read from pypi.org on {today}.")
    return found


def _finding(
    file: SourceFile, dependency: Dependency, version: str, answer: dict[str, Any]
) -> list[Finding]:
    """One finding that names the advisories of a package; none without any."""
    labels = []
    for advisory in _listed(str(answer.get("content", ""))):
        number = advisory.get("id")
        if not isinstance(number, str) or not _ID.fullmatch(number) or advisory.get("withdrawn"):
            continue
        fixed = _texts(advisory.get("fixed_in"), _VERSION)
        more = _texts(advisory.get("aliases"), _ID) + ([f"fixed in {fixed[-1]}"] if fixed else [])
        labels.append(f"{number} ({', '.join(more)})" if more else number)
    if not labels:
        return []
    left_out = len(labels) - MAX_ADVISORIES
    shown = "; ".join(labels[:MAX_ADVISORIES]) + (f"; {left_out} more" if left_out > 0 else "")
    message = f"{dependency.name} {version} has published advisories: {shown}."
    return [VULNERABLE.at(file, dependency.line, message)]


def _listed(text: str) -> list[dict[str, Any]]:
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        return []
    found = data.get("vulnerabilities") if isinstance(data, dict) else None
    return [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []


def _texts(values: Any, form: re.Pattern[str]) -> list[str]:
    given: Iterable[Any] = values if isinstance(values, list) else ()
    return [one for one in given if isinstance(one, str) and form.fullmatch(one)][:5]
