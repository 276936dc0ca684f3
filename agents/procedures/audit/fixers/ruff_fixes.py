"""Ruff's own fix of one message: the edits of that message alone, so that the diff stays minimal."""

from agents.api.finding import Finding
from agents.detectors.audit.logic.ruff_bugs import ruff_messages
from agents.detectors.detector import DetectorContext
from agents.procedures.audit.fixers.edits import Edit, Fix, apply_edits
from agents.workspace.source_file import SourceFile
from agents.workspace.workspace import Workspace

_UNSAFE_ALLOWED = frozenset(["E711", "E712", "F841", "B006", "F632", "PLW1510"])
"""Rules whose fix ruff calls unsafe, though it keeps the meaning wherever the finding is right."""


def fix_by_ruff(file: SourceFile, finding: Finding) -> Fix | None:
    """The edits that ruff proposes for the finding, or None if it proposes none."""
    workspace = Workspace(Workspace.of_texts({}).root, [file])
    for record in ruff_messages(workspace, DetectorContext()):
        fix = record.get("fix") or {}
        row = (record.get("location") or {}).get("row")
        if record.get("code") != finding.rule or row != finding.line or not fix.get("edits"):
            continue
        if fix.get("applicability") != "safe" and finding.rule not in _UNSAFE_ALLOWED:
            return None
        starts = [0]
        for line in file.lines:
            starts.append(starts[-1] + len(line) + 1)
        edits: list[Edit] = []
        for edit in fix["edits"]:
            places = [edit["location"], edit["end_location"]]
            start, end = (
                min(starts[place["row"] - 1] + place["column"] - 1, len(file.text)) for place in places
            )
            edits.append((start, end, str(edit["content"])))
        reason = str(fix.get("message") or "ruff's fix").rstrip(".")
        return Fix(apply_edits(file.text, edits), f"{reason} ({finding.rule}).")
    return None
