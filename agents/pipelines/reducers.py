"""Reducers: code that joins the outputs of several nodes. Agents do not talk to each other."""

from collections import Counter
from collections.abc import Mapping

from agents.api.finding import Finding, merge_findings
from agents.outputs.answer import Answer
from agents.outputs.base import Output
from agents.outputs.choice import Choice
from agents.outputs.findings import FindingRecord, Findings
from agents.pipelines.pipeline import Reducer
from agents.runs.result import RunResult

_TEXT_MEMBERS = ("text", "answer", "summary", "label", "diff", "reason")


def reduce_outputs(reducer: Reducer, results: Mapping[str, RunResult]) -> Output:
    """The joined output of nodes by name.

    `findings` merges findings by file, line and rule, the worst severity staying. `vote` takes the most
    frequent text, ties to the first. `concatenate` joins texts under their nodes' names.
    """
    if reducer == "findings":
        return merged_findings(results)
    texts = {name: text_of(result.output) for name, result in results.items()}
    if reducer == "vote":
        return _vote([text for text in texts.values() if text])
    parts = [f"## {name}\n{text}" for name, text in texts.items() if text]
    return Answer(text="\n\n".join(parts)[:4_000])


def merged_findings(results: Mapping[str, RunResult]) -> Findings:
    """All findings of several results, without duplicates, worst first."""
    found: list[Finding] = [one for result in results.values() for one in result.findings]
    return Findings(findings=[FindingRecord.of(one) for one in merge_findings(found)])


def text_of(output: Output | None) -> str:
    """The text that an output is mainly made of; empty if it has none."""
    for member in _TEXT_MEMBERS:
        value = getattr(output, member, None)
        if isinstance(value, str) and value:
            return value
    return ""


def _vote(texts: list[str]) -> Choice:
    if not texts:
        return Choice(abstained=True)
    counts = Counter(" ".join(text.split()).casefold()[:80] for text in texts)
    winner, votes = counts.most_common(1)[0]
    label = next(text for text in texts if " ".join(text.split()).casefold()[:80] == winner)
    shares = {label_: count / len(texts) for label_, count in counts.items()}
    return Choice(label=label[:80], probabilities=shares, abstained=votes * 2 <= len(texts))
