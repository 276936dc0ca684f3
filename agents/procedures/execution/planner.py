"""`planner`: a task as steps of known agents, with dependencies, gates and risks; or the check of a plan."""

from agents.api.budget import Budget
from agents.outputs.plan import Plan, PlanStep
from agents.procedures.execution.plan_task import (
    MAX_STEPS,
    DraftStep,
    draft_steps,
    files_of,
    writes,
)
from agents.procedures.procedure import AgentTask, ProcedureContext
from agents.procedures.task_text import bounded, findings_of
from agents.specs.packaged import GATES, packaged_agents
from agents.workspace.workspace import Workspace

_TOKENS_PER_STEP = Budget().tokens


async def run(task: AgentTask, context: ProcedureContext) -> Plan:
    """Plan the task; without one, check the plans of the workspace."""
    if not task.text.strip():
        found = await findings_of(context)
        reason = "" if found else "Say what to plan, or give a plan to check."
        return Plan(findings=found, cannot_do=reason)
    plan = make_plan(task.text, task.workspace, task.inputs.get("budget"))
    if len(plan.steps) == MAX_STEPS:
        context.note(f"The plan is cut off after {MAX_STEPS} steps.")
    return plan


def make_plan(text: str, workspace: Workspace, budget: object = None) -> Plan:
    """The steps of a task; steps that write files are followed by the three gates."""
    drafted = draft_steps(text)
    if not drafted:
        return Plan(cannot_do="The task names nothing that an agent does.")
    risks = _risks(drafted, workspace, budget)
    drafted += _gates(drafted)
    steps = [
        PlanStep(
            id=step.id,
            agent=step.agent,
            input=bounded(step.text, 300),
            needs=step.needs,
            done_when=packaged_agents()[step.agent].plan.done_when,
        )
        for step in drafted
    ]
    return Plan(
        steps=steps,
        risks=[bounded(risk, 300) for risk in risks],
        fallback="Stop at the first failed step, keep the results so far, and ask the user.",
    )


def _gates(drafted: list[DraftStep]) -> list[DraftStep]:
    writing = [step.id for step in drafted if writes(step.agent)]
    if not writing:
        return []
    present = {step.agent for step in drafted}
    gates: list[DraftStep] = []
    for agent in GATES:
        if agent in present:
            continue
        needs = writing if agent != "output_verifier" else [step.id for step in [*drafted, *gates]]
        number = len(drafted) + len(gates) + 1
        text = "the changed files" if agent != "output_verifier" else "all results"
        gates.append(DraftStep(f"s{number}", agent, text, list(needs)))
    return gates


def _risks(drafted: list[DraftStep], workspace: Workspace, budget: object) -> list[str]:
    risks = []
    known = {file.path for file in workspace}
    for step in drafted:
        if not step.certain:
            risks.append(
                f"{step.id}: the task does not clearly name an agent; {step.agent} is a guess."
            )
        risks.extend(
            f"{step.id}: there is no file {name}."
            for name in files_of(step.text)
            if known and not any(path == name or path.endswith(f"/{name}") for path in known)
        )
    tokens = budget.get("tokens") if isinstance(budget, dict) else None
    needed = len(drafted) * _TOKENS_PER_STEP
    if isinstance(tokens, int) and needed > tokens:
        risks.append(f"The budget of {tokens:,} tokens may not suffice: up to {needed:,} are used.")
    return risks[:20]
