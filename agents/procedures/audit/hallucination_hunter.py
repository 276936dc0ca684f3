"""Claims of a text, checked against given sources: quotes and numbers must occur in them."""

import re
from collections.abc import Mapping
from typing import Any

from agents.outputs.findings import Claim, FindingRecord, Findings
from agents.procedures.procedure import AgentTask, ProcedureContext

MAX_CLAIMS = 100
_QUOTE = re.compile(r"[\"“„»]([^\"”“«]{12,300})[\"”“«]")
_NUMBER = re.compile(r"(?<![\w.])\d[\d,.]*\d|(?<![\w.])\d(?![\w.])")
_SENTENCE = re.compile(r"(?<=[.!?。।])\s+|\n{2,}")


async def run(task: AgentTask, context: ProcedureContext) -> Findings:
    """The detectors' findings, and the document's quotes and numbers with whether a source has them.

    The sources are the texts among the inputs, and the files if a document is given beside them.
    """
    found = await context.detect() if len(task.workspace) else []
    claims = await context.in_thread(_claims, task) if task.document else []
    if not found and not claims and not len(task.workspace):
        return Findings(cannot_do="There is neither a file nor a text with claims to check.")
    return Findings(findings=[FindingRecord.of(one) for one in found], claims=claims)


def _claims(task: AgentTask) -> list[Claim]:
    sources = {name: text for name, value in task.inputs.items() if (text := _text_of(value))}
    sources |= {file.path: file.text for file in task.workspace if file.text != task.document}
    if not sources:
        return []
    plain = {name: _plain(text) for name, text in sources.items()}
    claims: list[Claim] = []
    for sentence in _SENTENCE.split(task.document):
        for quote in _QUOTE.findall(sentence):
            source = next((name for name, text in plain.items() if _plain(quote) in text), "")
            claims.append(Claim(text=quote[:300], supported=bool(source), source=source[:300]))
        for number in dict.fromkeys(_NUMBER.findall(sentence)):
            wanted = number.replace(",", "").rstrip(".")
            source = next((name for name, text in sources.items() if _has_number(text, wanted)), "")
            if len(wanted) > 1:
                text = f"{number}: {' '.join(sentence.split())}"[:300]
                claims.append(Claim(text=text, supported=bool(source), source=source[:300]))
    return claims[:MAX_CLAIMS]


def _has_number(text: str, wanted: str) -> bool:
    return any(one.replace(",", "").rstrip(".") == wanted for one in _NUMBER.findall(text))


def _text_of(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, Mapping):
        return "\n".join(filter(None, (_text_of(one) for one in value.values())))
    if isinstance(value, list):
        return "\n".join(filter(None, (_text_of(one) for one in value)))
    return ""


def _plain(text: str) -> str:
    return " ".join(text.casefold().split())
