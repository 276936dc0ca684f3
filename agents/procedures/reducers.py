"""Reducers: code that joins the outputs of several nodes of a pipeline. Agents do not talk to each other.

A plugin adds reducers by the hook `pravaha_reducers`.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType

from agents.api.finding import Finding, finding_from_fields, merge_findings
from agents.outputs.answer import Answer
from agents.outputs.base import Output
from agents.outputs.choice import Choice
from agents.outputs.findings import FindingRecord, Findings

Reducer = Callable[[Mapping[str, Output]], Output]
"""From the outputs of nodes by name, in the order of the pipeline, to the joined one. Deterministic."""

_TEXT_MEMBERS = ("text", "answer", "summary", "label", "diff", "reason")


def findings(outputs: Mapping[str, Output]) -> Findings:
    """All findings without duplicates, worst first; equal ones merge by file, line and rule."""
    return joined_findings(one for output in outputs.values() for one in findings_of(output))


def vote(outputs: Mapping[str, Output]) -> Choice:
    """The most frequent text; ties go to the first."""
    texts = [text for output in outputs.values() if (text := text_of(output))]
    if not texts:
        return Choice(abstained=True)
    counts = Counter(_ballot(text) for text in texts)
    winner, votes = counts.most_common(1)[0]
    label = next(text for text in texts if _ballot(text) == winner)
    shares = {ballot: count / len(texts) for ballot, count in counts.items()}
    return Choice(label=label[:80], probabilities=shares, abstained=votes * 2 <= len(texts))


def concatenate(outputs: Mapping[str, Output]) -> Answer:
    """The texts under their nodes' names."""
    parts = [f"## {name}\n{text}" for name, output in outputs.items() if (text := text_of(output))]
    return Answer(text="\n\n".join(parts)[:4_000])


REDUCERS: Mapping[str, Reducer] = MappingProxyType(
    {"findings": findings, "vote": vote, "concatenate": concatenate}
)


def findings_of(output: Output) -> list[Finding]:
    """The findings of an output; empty if its schema has none."""
    records = getattr(output, "findings", None) or ()
    return [finding_from_fields(record.model_dump()) for record in records]


def joined_findings(found: Iterable[Finding]) -> Findings:
    """Findings without duplicates, worst first."""
    return Findings(findings=[FindingRecord.of(one) for one in merge_findings(list(found))])


def text_of(output: Output) -> str:
    """The text that an output is mainly made of; empty if it has none."""
    for member in _TEXT_MEMBERS:
        value = getattr(output, member, None)
        if isinstance(value, str) and value:
            return value
    return ""


def _ballot(text: str) -> str:
    """Texts that count as the same vote have the same ballot."""
    return " ".join(text.split()).casefold()[:80]
