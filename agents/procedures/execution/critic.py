"""`critic`: weaknesses of a draft, its coverage of a checklist, and its statistics."""

from agents.detectors.detector import DetectorContext
from agents.detectors.text.checklist import check_items, checklist_items, checklist_name
from agents.detectors.text.given import given_files, prose_files
from agents.outputs.critique import ChecklistItem, Critique, TextStatistics
from agents.procedures.procedure import AgentTask, ProcedureContext
from agents.procedures.task_text import bounded, findings_of, inputs_of
from agents.text.statistics import measure


async def run(task: AgentTask, context: ProcedureContext) -> Critique:
    """Criticise the input `output`, or the document, or the prose of the workspace."""
    drafts = prose_files(
        task.workspace,
        DetectorContext(task=task.text, document=task.document, inputs=task.inputs),
    )
    text = "\n\n".join(draft.text for draft in drafts)
    if not text.strip():
        return Critique(cannot_do="There is no draft to criticise.")
    found = await findings_of(context)
    items = await context.in_thread(_coverage, task, text)
    measured = await context.in_thread(measure, text)
    rules = sorted({finding.rule for finding in found})
    open_items = sum(1 for item in items if not item.covered)
    summary = f"{len(found)} weaknesses" + (f" ({', '.join(rules)})" if rules else "")
    if items:
        summary += f"; {open_items} of {len(items)} checklist items are not covered"
    return Critique(
        summary=bounded(summary + ".", 300),
        findings=found,
        checklist=items,
        statistics=TextStatistics(
            words=measured.words,
            sentences=measured.sentences,
            words_per_sentence=round(measured.words_per_sentence, 1),
            passive_share=round(measured.passive_share, 3),
            reading_ease=measured.reading_ease,
        ),
    )


def _coverage(task: AgentTask, text: str) -> list[ChecklistItem]:
    inputs = inputs_of(task)
    lists = given_files(task.workspace, inputs, checklist_name(inputs))
    items = [item for file in lists for item in checklist_items(file.text)][:200]
    return [
        ChecklistItem(text=bounded(item.text, 300), covered=bool(item.line), line=item.line)
        for item in check_items(items, text)
    ]
