"""`facts_used`: facts of the source that a text leaves out."""

from collections.abc import Iterator

from agents.api.finding import Finding, Severity
from agents.detectors.detector import Detector, DetectorContext, Rule
from agents.detectors.text.faithfulness import plain_text
from agents.detectors.text.given import output_and_source
from agents.text.sentences import sentences
from agents.text.words import terms
from agents.workspace.workspace import Workspace

UNUSED_FACT = Rule("unused-fact", Severity.LOW, "fact that the text leaves out")
_USED = 0.5
"""Share of a fact's terms that the text must have."""


def unused_facts(text: str, facts: list[str]) -> list[str]:
    """The facts of which a text has less than half the terms; a fact without terms is used."""
    known = set(terms(text))
    unused = []
    for fact in facts:
        own = set(terms(fact))
        if own and len(own & known) / len(own) < _USED:
            unused.append(fact)
    return unused


def _detect(workspace: Workspace, context: DetectorContext) -> Iterator[Finding]:
    output, files = output_and_source(workspace, context)
    facts = [one.text for file in files for one in sentences(plain_text(file)) if not one.heading]
    for file in output:
        unused = unused_facts(file.text, facts)
        if unused:
            shown = "; ".join(f"{fact:.80}" for fact in unused[:5])
            message = f"The text leaves out {len(unused)} of {len(facts)} facts: {shown}"
            yield UNUSED_FACT.at(file, 1, message, confidence=0.7)


FACTS_USED = Detector(
    "facts_used", "Facts of the source that a text leaves out.", _detect, (UNUSED_FACT,)
)
