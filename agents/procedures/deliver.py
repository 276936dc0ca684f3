"""`deliver`: what an agent returns without a model."""

from collections.abc import Mapping

from agents.outputs.base import Output
from agents.outputs.findings import Findings
from agents.procedures.procedure import AgentTask, Procedure, ProcedureContext
from agents.procedures.task_text import checks_output, findings_of, inputs_of


async def deliver(
    procedure: Procedure | None,
    forms: Mapping[str, type[Output]],
    task: AgentTask,
    context: ProcedureContext,
) -> Output:
    """The agent's output.

    A task that gives what the agent checks gets the findings of its detectors. For any other its procedure
    runs. Without one, the findings over the workspace are the output; one that is more than findings needs a
    model, which `cannot_do` then says.

    Args:
        procedure: the agent's own, or None.
        forms: output models by name.
        task: what to do.
        context: what procedures may use.
    """
    spec = context.spec
    if spec.checks and checks_output(task, spec.checks):
        if spec.checks != "output" and not _has_source(task):
            reason = "There is nothing to check the output against: give its source as `source`."
            return forms[spec.output_schema](cannot_do=reason)
        return forms[spec.output_schema].model_validate({"findings": await findings_of(context)})
    if procedure is not None:
        return await procedure(task, context)
    form = forms[spec.output_schema]
    if issubclass(form, Findings):
        if not len(task.workspace):
            return form(cannot_do="There are no text files to look at.")
        return form(findings=await findings_of(context))
    checks = "; without one it only checks a given `output`" if spec.checks else ""
    reason = f"{spec.key} needs a model{checks}."
    if "findings" in form.model_fields and spec.detectors and len(task.workspace):
        return form.model_validate({"findings": await findings_of(context), "cannot_do": reason})
    return form(cannot_do=reason)


def _has_source(task: AgentTask) -> bool:
    """Whether there is more than the output."""
    return bool(set(inputs_of(task)) - {"output"} or task.document or len(task.workspace))
