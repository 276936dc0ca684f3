"""`Detector`: a named function from a workspace to findings, with the rules that it can report."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from agents.api.errors import Cancelled
from agents.api.finding import Finding, FindingSource, Severity
from agents.workspace.source_file import SourceFile
from agents.workspace.workspace import Workspace


@dataclass(frozen=True, slots=True)
class Rule:
    """One kind of defect; documentation and SARIF list it.

    Attributes:
        id: unique within its detector, such as `sql-injection`.
        severity: that of its findings unless a detector says otherwise.
        title: what is wrong, as a short noun phrase.
        cwe: number in the Common Weakness Enumeration, or None.
        reference: id in another catalogue, or None.
        message: what its findings say unless a detector says something else.
    """

    id: str
    severity: Severity
    title: str
    cwe: int | None = None
    reference: str | None = None
    message: str = ""

    def at(
        self,
        file: SourceFile,
        line: int,
        message: str = "",
        *,
        end_line: int | None = None,
        severity: Severity | None = None,
        confidence: float = 0.9,
        evidence: str | None = None,
        source: FindingSource = "detector",
    ) -> Finding:
        """A finding of this rule. `evidence` is the quoted lines unless it is given."""
        end_line = max(line, end_line or line)
        return Finding(
            file=file.path,
            line=line,
            end_line=end_line,
            rule=self.id,
            severity=severity or self.severity,
            message=message or self.message,
            evidence=file.quote(line, min(end_line, line + 4)) if evidence is None else evidence,
            confidence=confidence,
            cwe=self.cwe,
            reference=self.reference,
            source=source,
        )


@dataclass(slots=True)
class DetectorContext:
    """What a detector may ask while it runs.

    Attributes:
        task: the user's words, for detectors that check against them; may be empty.
        cancelled: whether to stop; called between files.
        notes: what the user should know, such as a missing tool. Append through `note`.
        network: whether the detector may use the network.
        base: root of the state before the change, for comparisons; None if there is none.
        document: a text given beside the workspace; may be empty.
        inputs: structured inputs by name, as JSON values.
    """

    task: str = ""
    cancelled: Callable[[], bool] = lambda: False
    notes: list[str] = field(default_factory=list)
    network: bool = False
    base: Path | None = None
    document: str = ""
    inputs: Mapping[str, Any] = field(default_factory=dict)

    def note(self, text: str) -> None:
        """Tell the user something once."""
        if text not in self.notes:
            self.notes.append(text)

    def check_cancelled(self) -> None:
        """Stop here if the run was cancelled.

        Raises:
            Cancelled: it was.
        """
        if self.cancelled():
            raise Cancelled("The run was cancelled.")


class LazyRules(Collection[Rule]):
    """Rules that are computed at the first use: those of files are not read when a module is imported."""

    def __init__(self, make: Callable[[], Iterable[Rule]]) -> None:
        """Note how to compute them; of several with one id the last counts."""
        self._make = make

    @cached_property
    def _rules(self) -> dict[str, Rule]:
        return {rule.id: rule for rule in self._make()}

    def __contains__(self, rule: object) -> bool:
        return rule in self._rules.values()

    def __iter__(self) -> Iterator[Rule]:
        return iter(self._rules.values())

    def __len__(self) -> int:
        return len(self._rules)


DetectFunction = Callable[[Workspace, DetectorContext], Iterable[Finding]]


@dataclass(frozen=True, slots=True)
class Detector:
    """A detector. `detect` runs on a worker thread; it reads the workspace and executes none of its code.

    Attributes:
        name: unique, such as `source_to_sink`.
        description: one sentence.
        detect: yields findings; their `detector` is filled in by the caller.
        rules: all rules it can report; empty for external tools, whose rules are their own.
        parts: for a selection (`selected`), the detectors that it selects from; a run computes those once,
            however many selections name them.
    """

    name: str
    description: str
    detect: DetectFunction
    rules: Collection[Rule] = ()
    parts: tuple["Detector", ...] = ()


def selected(name: str, description: str, wanted: Iterable[str], *parts: Detector) -> Detector:
    """A detector that reports what others find, of these rules only.

    Args:
        name: unique, as any detector's.
        description: one sentence.
        wanted: ids of rules.
        parts: the detectors that find them.
    """
    ids = frozenset(wanted)

    def detect(workspace: Workspace, context: DetectorContext) -> Iterator[Finding]:
        for part in parts:
            yield from (one for one in part.detect(workspace, context) if one.rule in ids)

    rules = LazyRules(lambda: (rule for part in parts for rule in part.rules if rule.id in ids))
    return Detector(name, description, detect, rules, parts)
