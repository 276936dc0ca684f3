"""Reducers: code that joins the outputs of several nodes of a pipeline. Agents do not talk to each other.

A plugin adds reducers by the hook `pravaha_reducers`.
"""

from collections import Counter
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Protocol

from agents.api.finding import Finding, merge_findings
from agents.detectors.security.leaked_secrets import redacted, secrets_in_line
from agents.outputs.answer import Answer
from agents.outputs.base import Output
from agents.outputs.choice import Choice
from agents.outputs.finding_markdown import finding_markdown
from agents.outputs.findings import FindingRecord, Findings
from agents.outputs.patch import Patch
from agents.outputs.text import Text
from agents.outputs.verdict import Verdict
from agents.tools.bounded_text import bounded


class NodeResult(Protocol):
    """What a reducer sees of a node; `agents.runs.result.RunResult` is one."""

    @property
    def output(self) -> Output | None:
        """Its output; None if it has none."""
        ...

    @property
    def notes(self) -> tuple[str, ...]:
        """What the user should know."""
        ...

    @property
    def findings(self) -> list[Finding]:
        """The findings of its output."""
        ...


Reducer = Callable[[Mapping[str, NodeResult]], Output]
"""From the results of nodes by name, in the order of the pipeline, to the joined output. Deterministic."""

MAX_REPORT = 50_000
_TEXT_MEMBERS = ("text", "answer", "summary", "label", "diff", "reason")


def findings(results: Mapping[str, NodeResult]) -> Findings:
    """All findings without duplicates, worst first; equal ones merge by file, line and rule."""
    found: list[Finding] = [one for result in results.values() for one in result.findings]
    return Findings(findings=[FindingRecord.of(one) for one in merge_findings(found)])


def vote(results: Mapping[str, NodeResult]) -> Choice:
    """The most frequent text; ties go to the first."""
    texts = [text for result in results.values() if (text := text_of(result.output))]
    if not texts:
        return Choice(abstained=True)
    counts = Counter(_ballot(text) for text in texts)
    winner, votes = counts.most_common(1)[0]
    label = next(text for text in texts if _ballot(text) == winner)
    shares = {ballot: count / len(texts) for ballot, count in counts.items()}
    return Choice(label=label[:80], probabilities=shares, abstained=votes * 2 <= len(texts))


def concatenate(results: Mapping[str, NodeResult]) -> Answer:
    """The texts under their nodes' names."""
    texts = {name: text_of(result.output) for name, result in results.items()}
    parts = [f"## {name}\n{text}" for name, text in texts.items() if text]
    return Answer(text="\n\n".join(parts)[:4_000])


def report(results: Mapping[str, NodeResult]) -> Text:
    """A Markdown report for people, without credentials: verdicts first, findings, patches, notes last."""
    found = findings(results).model_dump(mode="json")["findings"]
    verdicts = [one.output for one in results.values() if isinstance(one.output, Verdict)]
    patches = [one.output for one in results.values() if isinstance(one.output, Patch)]
    notes = dict.fromkeys(note for one in results.values() for note in one.notes)
    parts = ["# Review"]
    for verdict in verdicts:
        lines = [f"- {reason}" for reason in verdict.reasons]
        parts.append("\n".join([f"**{verdict.headline()}**", "", *lines]))
    parts.append("\n\n".join(["## Findings", *map(finding_markdown, found)]))
    if not found:
        parts[-1] += "\n\nNone."
    parts += [
        f"## Proposed change\n\n{patch.reason}\n\n```diff\n{patch.diff}\n```"
        for patch in patches
        if patch.diff
    ]
    if notes:
        parts.append("\n".join(["## Notes", "", *(f"- {note}" for note in notes)]))
    text = "\n\n".join(parts) + "\n"
    return Text(text=bounded("\n".join(map(_without_secrets, text.split("\n"))), MAX_REPORT))


REDUCERS: Mapping[str, Reducer] = MappingProxyType(
    {"findings": findings, "vote": vote, "concatenate": concatenate, "report": report}
)


def _without_secrets(line: str) -> str:
    """The line with credentials redacted: the diff that takes one out of a file quotes it."""
    for _, _, value in secrets_in_line(line, None):
        line = line.replace(value, redacted(value))
    return line


def text_of(output: Output | None) -> str:
    """The text that an output is mainly made of; empty if it has none."""
    for member in _TEXT_MEMBERS:
        value = getattr(output, member, None)
        if isinstance(value, str) and value:
            return value
    return ""


def _ballot(text: str) -> str:
    """Texts that count as the same vote have the same ballot."""
    return " ".join(text.split()).casefold()[:80]
