"""`narrator`: prose from facts by templates. Each fact is used once, and no number is added.

Facts are sentences, JSON or YAML objects, or CSV rows. Sentences are joined; a record becomes a sentence.
"""

import csv
import io
import re
from collections.abc import Mapping
from typing import Any

from agents.detectors.text.facts import unused_facts
from agents.detectors.text.given import given_files
from agents.outputs.text import Text
from agents.procedures.execution.task_text import (
    MAX_DOCUMENT_CHARS,
    bounded,
    checks_output,
    findings_of,
    text_input,
)
from agents.procedures.procedure import AgentTask, ProcedureContext
from agents.text.located import read_located

MAX_FACTS = 500
_SUBJECTS = ("name", "title", "subject", "item", "id", "key", "product")
_SENTENCE_END = (".", "!", "?", "。", "।", "…")
_PHRASES: Mapping[str, str] = {
    "born": "was born in {}",
    "died": "died in {}", "built": "was built in {}", "founded": "was founded in {}",
    "opened": "opened in {}", "closed": "closed in {}", "price": "costs {}", "cost": "costs {}",
    "weight": "weighs {}", "length": "is {} long", "height": "is {} high", "width": "is {} wide",
    "age": "is {} years old", "location": "is located in {}", "city": "is in {}", "country": "is in {}",
    "author": "is by {}", "owner": "belongs to {}", "count": "numbers {}", "status": "is {}",
    "state": "is {}",
    "colour": "is {}", "color": "is {}", "type": "is of the type {}", "year": "dates from {}",
}  # fmt: skip


async def run_narrator(task: AgentTask, context: ProcedureContext) -> Text:
    """Check a given narration against its facts, or narrate the facts."""
    if checks_output(task, "text"):
        return Text(findings=await findings_of(context))
    given = _given(task)
    if not given.strip():
        return Text(
            cannot_do="There are no facts to narrate: give JSON, CSV or a list of sentences."
        )
    facts = await context.in_thread(read_facts, given)
    if not facts:
        return Text(cannot_do="No fact could be read: give JSON, CSV or a list of sentences.")
    if len(facts) > MAX_FACTS:
        return Text(cannot_do=f"There are more than {MAX_FACTS} facts.")
    text = narrate(facts)
    if len(text) > MAX_DOCUMENT_CHARS:
        return Text(cannot_do=f"The text would be longer than {MAX_DOCUMENT_CHARS:,} characters.")
    missing = unused_facts(text, facts)
    if missing:
        context.note(f"{len(missing)} facts are not used: {missing[0]:.120}")
    return Text(text=text, changes=[bounded(fact, 300) for fact in facts[:200]])


def _given(task: AgentTask) -> str:
    for name in ("facts", "source", "table"):
        if name in task.inputs:
            return "\n".join(f.text for f in given_files(task.workspace, task.inputs, name))
    return (
        task.document
        or text_input(task.inputs, "text")
        or "\n".join(
            file.text for file in task.workspace if file.language in ("json", "yaml", "csv", "text")
        )
    )


def read_facts(text: str) -> list[str]:
    """The facts of a text as sentences: those of JSON or YAML, of CSV with a header, or its lines."""
    stripped = text.strip()
    if stripped.startswith(("{", "[")):
        located = read_located(stripped)
        if located is not None:
            return _of_value(located.value)
    rows = _rows(stripped)
    if rows:
        return [sentence for row in rows for sentence in _of_record(row)]
    located = read_located(stripped) if re.match(r"[\w\s-]{1,60}:\s", stripped) else None
    if located is not None and isinstance(located.value, dict):
        return _of_value(located.value)
    lines = (re.sub(r"^\s*(?:[-*•]|\d{1,3}[.)])\s+", "", line) for line in stripped.split("\n"))
    return [_ended(line) for line in lines if line.strip() and not line.startswith("#")]


def _rows(text: str) -> list[dict[str, str]]:
    """The rows of a CSV table with a header and at least two columns, or none."""
    first, _, rest = text.partition("\n")
    separator = next((mark for mark in ("\t", ";", ",", "|") if mark in first), None)
    if separator is None or not rest.strip() or first.rstrip().endswith("."):
        return []
    try:
        rows = list(csv.reader(io.StringIO(text.strip("|\n ")), delimiter=separator))
    except csv.Error:
        return []
    header = [name.strip() for name in rows[0]]
    body = [row for row in rows[1:] if row and not set("".join(row)) <= set("-: ")]
    if not all(header) or any(len(row) != len(header) for row in body):
        return []
    return [{name: value.strip() for name, value in zip(header, row, strict=True)} for row in body]


def _of_value(value: Any) -> list[str]:
    if isinstance(value, list):
        return [sentence for one in value[:MAX_FACTS] for sentence in _of_value(one)]
    if isinstance(value, dict):
        lists = [one for one in value.values() if isinstance(one, list)]
        if len(value) == 1 and lists:
            return _of_value(lists[0])
        return _of_record({str(name): member for name, member in value.items()})
    return [_ended(str(value))] if str(value).strip() else []


def _of_record(record: Mapping[str, Any], owner: str = "") -> list[str]:
    """The sentences of one record: its subject, then a clause for each member."""
    named = next((name for name in record if name.lower() in _SUBJECTS), None)
    subject = str(record[named]).strip() if named else owner
    sentences = []
    for name, value in record.items():
        if name == named or value is None or str(value).strip() == "":
            continue
        label = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name).replace("_", " ").strip()
        whose = f"{subject}: {label}" if subject else label
        if isinstance(value, dict):
            sentences += _of_record({str(k): v for k, v in value.items()}, whose)
        elif isinstance(value, list) and any(isinstance(one, dict | list) for one in value):
            sentences += [s for one in value for s in _of_value(one)]
        else:
            shown = _shown(value)
            verb = "are" if isinstance(value, list) and len(value) > 1 else "is"
            phrase = _PHRASES.get(label.lower())
            if phrase and subject:
                sentences.append(_ended(f"{subject} {phrase.format(shown)}"))
            elif subject:
                sentences.append(_ended(f"The {label} of {subject} {verb} {shown}"))
            else:
                sentences.append(_ended(f"The {label} {verb} {shown}"))
    if not sentences and subject:
        sentences.append(_ended(f"There is {subject}"))
    return sentences


def _shown(value: Any) -> str:
    if isinstance(value, list):
        parts = [str(one) for one in value]
        return ", ".join(parts[:-1]) + (" and " if len(parts) > 1 else "") + "".join(parts[-1:])
    if isinstance(value, bool):
        return "yes" if value else "no"
    return str(value).strip()


def _ended(text: str) -> str:
    text = " ".join(text.split())
    return text if text.endswith(_SENTENCE_END) else f"{text}."


def narrate(facts: list[str]) -> str:
    """One paragraph. A fact that begins with the subject of the one before says `It` instead."""
    parts: list[str] = []
    previous = ""
    for fact in facts:
        subject = _subject(fact)
        if subject and subject == previous:
            parts.append("It" + fact[len(subject) :])
        else:
            parts.append(fact[0].upper() + fact[1:] if fact[:1].islower() else fact)
        previous = subject
    return " ".join(parts)


def _subject(fact: str) -> str:
    """`The mill` of `The mill was built in 1787.`; empty where `It` might mean something else."""
    match = re.match(r"(The \w+(?: \w+)?) (?:is|was|has|had|costs|weighs|opened|closed)\b", fact)
    return match[1] if match and " of " not in match[1] else ""
