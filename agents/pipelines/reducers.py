"""Reducers: code that joins the outputs of several nodes. Agents do not talk to each other."""

from collections import Counter
from collections.abc import Mapping

from agents.api.finding import Finding, merge_findings
from agents.detectors.security.leaked_secrets import redacted, secrets_in_line
from agents.outputs.answer import Answer
from agents.outputs.base import Output
from agents.outputs.choice import Choice
from agents.outputs.findings import FindingRecord, Findings
from agents.outputs.patch import Patch
from agents.outputs.text import Text
from agents.outputs.verdict import Verdict
from agents.pipelines.pipeline import Reducer
from agents.reports.markdown import finding_markdown
from agents.runs.result import RunResult
from agents.tools.bounded_text import bounded

MAX_REPORT = 50_000
_TEXT_MEMBERS = ("text", "answer", "summary", "label", "diff", "reason")


def reduce_outputs(reducer: Reducer, results: Mapping[str, RunResult]) -> Output:
    """The joined output of nodes by name.

    `findings` merges findings by file, line and rule, the worst severity staying. `vote` takes the most
    frequent text, ties to the first. `concatenate` joins texts under their nodes' names. `report` writes
    findings, verdicts, patches and notes as Markdown for people, without credentials.
    """
    if reducer == "findings":
        return merged_findings(results)
    if reducer == "report":
        return Text(text=report_of(results))
    texts = {name: text_of(result.output) for name, result in results.items()}
    if reducer == "vote":
        return _vote([text for text in texts.values() if text])
    parts = [f"## {name}\n{text}" for name, text in texts.items() if text]
    return Answer(text="\n\n".join(parts)[:4_000])


def merged_findings(results: Mapping[str, RunResult]) -> Findings:
    """All findings of several results, without duplicates, worst first."""
    found: list[Finding] = [one for result in results.values() for one in result.findings]
    return Findings(findings=[FindingRecord.of(one) for one in merge_findings(found)])


def report_of(results: Mapping[str, RunResult]) -> str:
    """The Markdown report of several nodes: a verdict first, then findings and patches, notes last."""
    found = merged_findings(results).model_dump(mode="json")["findings"]
    verdicts = [one.output for one in results.values() if isinstance(one.output, Verdict)]
    patches = [one.output for one in results.values() if isinstance(one.output, Patch)]
    notes = dict.fromkeys(note for one in results.values() for note in one.notes)
    parts = ["# Review"]
    for verdict in verdicts:
        passed = "Passed" if verdict.passed else "Not passed"
        parts.append("\n".join([f"**{passed}.**", *(f"- {reason}" for reason in verdict.reasons)]))
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
    return bounded("\n".join(map(_without_secrets, text.split("\n"))), MAX_REPORT)


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


def _vote(texts: list[str]) -> Choice:
    if not texts:
        return Choice(abstained=True)
    counts = Counter(" ".join(text.split()).casefold()[:80] for text in texts)
    winner, votes = counts.most_common(1)[0]
    label = next(text for text in texts if " ".join(text.split()).casefold()[:80] == winner)
    shares = {label_: count / len(texts) for label_, count in counts.items()}
    return Choice(label=label[:80], probabilities=shares, abstained=votes * 2 <= len(texts))
