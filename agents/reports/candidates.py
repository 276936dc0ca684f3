"""The candidates of a run, read from its events (`agents.width`): written, checked, chosen, and why.

The trace draws them while they are written; in a conversation each becomes a branch.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from agents.api.events import RunEvent, RunEventType
from engine.text.fenced import fenced

_TYPES = frozenset(
    (
        RunEventType.WIDTH_STARTED,
        RunEventType.CANDIDATE_WRITTEN,
        RunEventType.CANDIDATE_CHECKED,
        RunEventType.CANDIDATE_CHOSEN,
    )
)


@dataclass(slots=True)
class CheckResult:
    """What one check says about a candidate."""

    name: str
    passed: bool
    detail: str = ""


@dataclass(slots=True)
class CandidateReport:
    """One candidate.

    Attributes:
        number: from 0.
        temperature: it was sampled at.
        round: 1 for a repair of a failed one.
        code: its code; empty if the answer has none.
        tokens: generated ones.
        same_as: number of an equal one before, whose checks it shares.
        checks: in the order in which they were made.
    """

    number: int
    temperature: float = 0.0
    round: int = 0
    code: str = ""
    tokens: int = 0
    same_as: int | None = None
    checks: list[CheckResult] = field(default_factory=list)

    @property
    def failed(self) -> CheckResult | None:
        """The check that it failed."""
        return next((one for one in self.checks if not one.passed), None)


@dataclass(slots=True)
class WidthReport:
    """The candidates of one piece of code.

    Attributes:
        goal: a few words.
        most: so many are written at most.
        checks: their names.
        candidates: those that are written.
        finished: whether the choice was made.
        chosen: number of the chosen one; None if none was.
        verified: whether the chosen one passed a check that decides.
        decided_by: name of what decided.
        reason: why it was chosen, in a sentence.
        diff: what it changes; empty for code that is no change.
    """

    goal: str = ""
    most: int = 0
    checks: tuple[str, ...] = ()
    candidates: list[CandidateReport] = field(default_factory=list)
    finished: bool = False
    chosen: int | None = None
    verified: bool = False
    decided_by: str = ""
    reason: str = ""
    stopped: int = 0
    diff: str = ""

    def checks_of(self, candidate: CandidateReport) -> list[CheckResult]:
        """The checks of a candidate; those of its equal if it shares them."""
        if candidate.same_as is not None and not candidate.checks:
            for one in self.candidates:
                if one.number == candidate.same_as and one is not candidate:
                    return one.checks
        return candidate.checks

    def failed_check(self, candidate: CandidateReport) -> CheckResult | None:
        """The check that a candidate, or its equal, failed."""
        return next((one for one in self.checks_of(candidate) if not one.passed), None)

    def is_checked(self, candidate: CandidateReport) -> bool:
        """Whether nothing more is said about a candidate."""
        made = self.checks_of(candidate)
        needed = [one for one in self.checks if one != "agreement"]
        return self.finished or self.failed_check(candidate) is not None or len(made) >= len(needed)


def is_of_width(event: RunEvent) -> bool:
    """Whether an event is about candidates."""
    return event.type in _TYPES


def read_widths(events: Iterable[RunEvent]) -> list[WidthReport]:
    """The widenings of a run, in the order in which they began."""
    found: dict[tuple[str, str, object], WidthReport] = {}
    for event in events:
        if event.type not in _TYPES:
            continue
        data = event.data
        key = (event.node, event.agent, data.get("width"))
        report = found.setdefault(key, WidthReport())
        _take(report, event.type, data)
    return list(found.values())


def _take(report: WidthReport, kind: RunEventType, data: Mapping[str, Any]) -> None:
    match kind:
        case RunEventType.WIDTH_STARTED:
            report.goal = str(data.get("goal", ""))
            report.most = int(data.get("candidates") or 0)
            report.checks = tuple(map(str, data.get("checks") or ()))
        case RunEventType.CANDIDATE_WRITTEN:
            same = data.get("same_as")
            report.candidates.append(
                CandidateReport(
                    int(data.get("candidate") or 0),
                    float(data.get("temperature") or 0.0),
                    int(data.get("round") or 0),
                    str(data.get("code") or ""),
                    int(data.get("tokens") or 0),
                    same if isinstance(same, int) else None,
                )
            )
        case RunEventType.CANDIDATE_CHECKED:
            for one in report.candidates:
                if one.number == data.get("candidate"):
                    detail = str(data.get("detail") or "")
                    passed = bool(data.get("passed"))
                    one.checks.append(CheckResult(str(data.get("check", "")), passed, detail))
        case _:
            number = data.get("candidate")
            report.finished = True
            report.chosen = number if isinstance(number, int) else None
            report.verified = bool(data.get("verified"))
            report.decided_by = str(data.get("decided_by") or "")
            report.reason = str(data.get("reason") or "")
            report.stopped = int(data.get("stopped") or 0)
            report.diff = str(data.get("diff") or "")


def candidate_markdown(report: WidthReport, candidate: CandidateReport) -> str:
    """A candidate that was not chosen, as the text of a message: what it fails, or passes, and its code."""
    number, count = candidate.number + 1, len(report.candidates)
    failed = report.failed_check(candidate)
    if failed is not None:
        told = f"fails {failed.name}"
    elif report.checks_of(candidate):
        told = f"passes {_names(report.checks_of(candidate))}, and was not chosen"
    else:
        told = "was not checked: another one passed before"
    written = "greedy" if not candidate.temperature else f"temperature {candidate.temperature:g}"
    parts = [f"Candidate {number} of {count} ({written}) {told}."]
    if failed is not None and failed.detail:
        parts.append(failed.detail)
    parts.append(
        fenced(candidate.code.rstrip(), "python") if candidate.code.strip() else "It has no code."
    )
    return "\n\n".join(parts)


def decision_markdown(report: WidthReport, said: str = "") -> str:
    """Why the chosen candidate was chosen, and what decided against the others, in a line each.

    Args:
        said: text that stands above it: a reason that it gives is not repeated.
    """
    chosen = next((one for one in report.candidates if one.number == report.chosen), None)
    lines: list[str] = []
    if report.reason and report.reason in said:
        pass
    elif chosen is not None:
        details = [one.detail for one in report.checks_of(chosen) if one.passed and one.detail]
        count = len(report.candidates)
        which = f"Candidate {chosen.number + 1} of {count}" if count > 1 else "The first candidate"
        why = report.reason or " ".join(details)
        lines.append(f"- {which} was chosen: {why}" + ("" if why.endswith(".") else "."))
    elif report.reason:
        lines.append(f"- No candidate was chosen: {report.reason}")
    for one in report.candidates:
        failed = report.failed_check(one)
        if failed is not None and one is not chosen:
            detail = f": {_one_line(failed.detail)}" if failed.detail else ""
            lines.append(f"- Candidate {one.number + 1} fails {failed.name}{detail}")
    return "\n".join(lines)


def _names(checks: Iterable[CheckResult]) -> str:
    return ", ".join(one.name for one in checks)


def _one_line(text: str) -> str:
    return " ".join(text.split())
