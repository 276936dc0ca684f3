"""The smallest fix for one finding, by a deterministic fixer.

A patch is proposed only if it applies, the file still parses and the detector that reported the finding no
longer does. Whether the program still works is decided by tests (`agents.repair`).
"""

from agents.api.errors import InvalidTask
from agents.api.finding import Finding
from agents.detectors.audit import DETECTORS as AUDIT
from agents.detectors.design import DETECTORS as DESIGN
from agents.detectors.detector import DetectorContext
from agents.detectors.security import DETECTORS as SECURITY
from agents.outputs.patch import Patch
from agents.procedures.audit.fixers import fix_for
from agents.procedures.audit.fixers.edits import Fix
from agents.procedures.audit.given_findings import findings_to_repair
from agents.procedures.procedure import AgentTask, ProcedureContext
from agents.text.unified_diff import apply_diff, make_diff
from agents.workspace.source_file import SourceFile
from agents.workspace.workspace import Workspace


async def run(task: AgentTask, context: ProcedureContext) -> Patch:
    """A patch for the worst finding that has a fixer, of those given or found."""
    findings = await findings_to_repair(task, context)
    if not findings:
        return Patch(cannot_do="There is no finding to fix.")
    refused = ""
    for finding in findings:
        context.check_cancelled()
        patch = await context.in_thread(patch_of, finding, task.workspace)
        if not patch.cannot_do:
            return patch
        refused = refused or patch.cannot_do
    return Patch(cannot_do=refused)


def patch_of(finding: Finding, workspace: Workspace) -> Patch:
    """The patch of one finding; `cannot_do` says why there is none."""
    file = workspace.get(finding.file)
    if file is None:
        return Patch(cannot_do=f"There is no file {finding.file}."[:300])
    fix = fix_for(file, finding)
    if fix is None:
        return Patch(cannot_do=f"There is no fixer for {finding.rule} that applies here."[:300])
    diff = diff_of(file, fix)
    refusal = _refusal(finding, workspace, file, fix, diff)
    if refusal:
        return Patch(cannot_do=refusal[:300])
    return Patch(diff=diff, reason=fix.reason, finding_ids=[finding.id])


def diff_of(file: SourceFile, fix: Fix) -> str:
    """The unified diff over the file as it is stored, its byte-order mark and CRLF line ends kept."""
    stored = file.data.decode("utf-8", "replace")
    text = fix.text
    if "\r\n" in stored:
        text = text.replace("\n", "\r\n")
    if stored.startswith("\ufeff"):
        text = "\ufeff" + text
    return make_diff(file.path, stored, text)


def _refusal(
    finding: Finding, workspace: Workspace, file: SourceFile, fix: Fix, diff: str
) -> str | None:
    """Why a fix is not proposed, or None."""
    stored = file.data.decode("utf-8", "replace")
    if stored.encode("utf-8") != file.data:
        return f"{file.path} is not UTF-8."
    try:
        after = apply_diff(diff, {file.path: stored})[file.path]
    except InvalidTask as error:
        return f"The fix does not apply: {error}"
    changed = SourceFile(file.path, (after or "").encode("utf-8"))
    if file.language == "python" and changed.python is None:
        return "The fix would break the file's syntax."
    if still_fires(finding, workspace, changed):
        return f"{finding.rule} would still be reported after the fix."
    return None


def still_fires(finding: Finding, workspace: Workspace, changed: SourceFile) -> bool:
    """Whether the finding's detector reports its rule as often in the changed file as before.

    Findings whose detector is unknown count as gone: the caller's tests decide.
    """
    detector = next((d for d in (*AUDIT, *SECURITY, *DESIGN) if d.name == finding.detector), None)
    before = workspace.get(changed.path)
    if detector is None or before is None:
        return False
    counts = []
    for file in (before, changed):
        alone = Workspace(workspace.root, [file])
        found = detector.detect(alone, DetectorContext())
        counts.append(sum(one.rule == finding.rule and one.file == file.path for one in found))
    return counts[1] >= counts[0] > 0
