"""`translator`: checks a given translation. Translating prose itself needs a model."""

import re

from agents.outputs.text import Text
from agents.procedures.execution.task_text import (
    checks_output,
    findings_of,
    inputs_of,
    pairs_a_folder,
    source_text,
)
from agents.procedures.procedure import AgentTask, ProcedureContext
from agents.text.language import NAMES, language_of_text

_TO = re.compile(r"\b(?:in)?to ([A-Za-z]+)|\b([A-Za-z]+) translation\b", re.IGNORECASE)


async def run_translator(task: AgentTask, context: ProcedureContext) -> Text:
    """Check the input `output` against the source, or say that a model is needed."""
    by_name = pairs_a_folder(task, "translation")
    if not by_name and not checks_output(task):
        source = source_text(task)
        language = language_of_text(source)
        target = _target(task.text)
        if target and language == target and source.strip():
            return Text(text=source[:60_000], changes=["The text is already in that language."])
        return Text(
            cannot_do="Translating prose needs a model; a given translation (input `output`) is checked "
            "without one."
        )
    if not by_name and "source" not in inputs_of(task) and not task.document:
        return Text(cannot_do="The source of the translation is missing: give it as `source`.")
    found = await findings_of(context)
    return Text(findings=found, changes=[] if found else ["Nothing that must be kept was changed."])


def _target(task: str) -> str | None:
    """The code of the language that a task asks for."""
    codes = [NAMES.get(name.lower()) for match in _TO.findall(task) for name in match if name]
    return next((code for code in codes if code), None)
