"""What is refused about a change before anything of it runs.

A repair changes the finding's file only, never tests or configuration; the file parses; nothing silences a
detector; the finding is gone and no other one has come. A change that is no known rewrite must also keep the
rest of the program (`kept_code`) and bring nothing that could reach the tests (`new_names`).
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from agents.api.errors import InvalidTask
from agents.api.finding import Finding, Severity
from agents.detectors.audit.python_module import module_of
from agents.detectors.audit.regression.weakened_tests import test_changes
from agents.detectors.detector import Detector, DetectorContext
from agents.repair.kept_code import lost_code
from agents.repair.new_names import new_name
from agents.repair.protected_files import is_protected
from agents.repair.silencers import num_silencers
from agents.workspace.source_file import SourceFile
from agents.workspace.workspace import Workspace

Counts = Counter[tuple[str, str]]
"""Findings by detector and rule."""
MAX_KEPT = 4


class Findings:
    """What the auditors' detectors find, not merged: merging would hide how many report a place.

    The last few results are kept, because many patches are tried on one state of a file.
    """

    def __init__(self, detectors: Sequence[Detector]) -> None:
        # A selection reports what its parts find, under their names.
        flat = [part for one in detectors for part in (one.parts or (one,))]
        self._detectors = list({one.name: one for one in flat}.values())
        self._kept: dict[tuple[tuple[str, bytes], ...], list[Finding]] = {}

    def of(self, workspace: Workspace) -> list[Finding]:
        """The findings over these files.

        Raises:
            InvalidTask: a detector failed, so that nothing is known.
        """
        key = tuple((file.path, file.data) for file in workspace)
        if key not in self._kept:
            if len(self._kept) >= MAX_KEPT:
                del self._kept[next(iter(self._kept))]
            self._kept[key] = [
                replace(one, detector=detector.name)
                for detector in self._detectors
                for one in _run(detector, workspace)
            ]
        return self._kept[key]


def _run(detector: Detector, workspace: Workspace) -> list[Finding]:
    try:
        return list(detector.detect(workspace, DetectorContext()))
    except Exception as error:  # a patch must not pass because a detector fails on it
        raise InvalidTask(f"The detector {detector.name} failed: {error!s:.200}") from error


def refusal_of(
    finding: Finding, before: Workspace, after: Workspace, found: Findings, *, known: bool
) -> str:
    """Why the change is refused, as a sentence; empty if it may be tried.

    Args:
        finding: what the change is to repair.
        before: the files before the change.
        after: the files after it.
        found: runs the auditors' detectors on the changed file before and after.
        known: whether the change is a known rewrite (`agents.procedures.audit.fixers`).
    """
    old, new = before.get(finding.file), after.get(finding.file)
    return (
        _misplaced(finding, before, after)
        or _unreadable(old, new, finding)
        or ("" if known else _untrusted(before, old, new, finding))
        or _still_found(finding, before, after, found)
    )


def _misplaced(finding: Finding, before: Workspace, after: Workspace) -> str:
    weakened = list(test_changes(before, after, DetectorContext()))
    if weakened:
        return f"A test was weakened: {weakened[0].message}"
    changed = sorted(
        {
            *(one.path for one in after if _data(before, one.path) != one.data),
            *(one.path for one in before if after.get(one.path) is None),
        }
    )
    for path in changed:
        if is_protected(path):
            return f"The change touches {path}: a repair changes no tests and no configuration of tools."
        if path != finding.file:
            return f"The change touches {path}, which the finding is not in."
    if after.get(finding.file) is None:
        return f"The change removes {finding.file}."
    return "" if changed else "The patch changes nothing."


def _data(workspace: Workspace, path: str) -> bytes | None:
    file = workspace.get(path)
    return None if file is None else file.data


def _unreadable(old: SourceFile | None, new: SourceFile | None, finding: Finding) -> str:
    if old is None or new is None:
        return f"There is no file {finding.file}."
    if new.language == "python" and new.python is None and old.python is not None:
        return f"{new.path} does not parse after the change."
    if num_silencers(new) > num_silencers(old):
        return "The change silences a detector instead of repairing the code."
    return ""


def _untrusted(
    before: Workspace, old: SourceFile | None, new: SourceFile | None, finding: Finding
) -> str:
    """What a change that is no known rewrite loses or brings."""
    if old is None or new is None:
        return ""
    first, second = module_of(old), module_of(new)
    if first is None or second is None:
        return ""  # no test can prove a change of another language: a person is asked
    lost = lost_code(first, second, finding.line, max(finding.line, finding.end_line))
    if lost:
        return lost
    project = {file.path.split("/")[0].removesuffix(".py") for file in before.of("python")}
    name = new_name(first, second, project)
    return f"The change brings {name} into the file, which a repair may not use." if name else ""


def _still_found(finding: Finding, before: Workspace, after: Workspace, found: Findings) -> str:
    """Whether the finding is still there, or another one came."""
    own = (finding.detector, finding.rule)
    alone = [_only(one, finding.file) for one in (before, after)]
    old, new = (found.of(one) for one in alone)
    if not _count(old, own):  # only the files together show it
        old, new = found.of(before), found.of(after)
    was, now = _count(old, own), _count(new, own)
    if finding.detector and not was:
        return f"{finding.detector} does not report {finding.rule} in this state of the files."
    if now and now >= was:
        return f"{finding.rule} is still reported."
    if finding.cwe is not None:
        same = [
            sum(one.cwe == finding.cwe and one.severity.at_least(Severity.MEDIUM) for one in many)
            for many in (old, new)
        ]
        if same[1] and same[1] >= same[0]:
            return f"CWE-{finding.cwe} is still reported."
    before_counts, after_counts = _counts(old), _counts(new)
    for one in new:
        key = (one.detector, one.rule)
        if after_counts[key] > before_counts[key] and one.severity.at_least(finding.severity):
            return f"The change brings a new finding: {one.rule} at {one.file}:{one.line}."
    return ""


def _only(workspace: Workspace, path: str) -> Workspace:
    file = workspace.get(path)
    return Workspace(workspace.root, [] if file is None else [file])


def _count(findings: Sequence[Finding], own: tuple[str, str]) -> int:
    detector, rule = own
    return sum(one.rule == rule and (not detector or one.detector == detector) for one in findings)


def _counts(findings: Sequence[Finding]) -> Counts:
    return Counter((one.detector, one.rule) for one in findings)
