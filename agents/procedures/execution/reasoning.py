"""`reasoning`: expressions and conversions, computed exactly."""

import re

from agents.outputs.steps import SolutionStep, Steps
from agents.procedures.procedure import AgentTask, ProcedureContext
from agents.procedures.task_text import bounded, checks_output, findings_of
from agents.text.expressions import evaluate_in_steps
from agents.text.quantity import InvalidExpression

_ASKED = re.compile(
    r"^\s*(?:please\s+)?(?:what(?:'s| is| are| does)?|calculate|compute|evaluate|solve|convert|how much is|"
    r"work out|find)\s+(?:the (?:value|result) of\s+)?",
    re.IGNORECASE,
)
_HOW_MANY = re.compile(
    r"how many "
    r"([A-Za-zµ°/]+(?: (?!are |is |fit |in )[a-z]+)?) (?:are there |are |is |fit )?"
    r"in (?:an? |one )?(.+?)\s*\??\s*$",
    re.IGNORECASE,
)
_MAX_PROBLEM = 2_000


async def run(task: AgentTask, context: ProcedureContext) -> Steps:
    """Check the equations of a given output, or solve the task."""
    if checks_output(task) or (not task.text and (task.document or len(task.workspace))):
        found = await findings_of(context)
        return Steps(findings=found, answer="" if found else "No wrong equation was found.")
    return await context.in_thread(solve_task, f"{task.text}\n{task.document}".strip())


def solve_task(problem: str) -> Steps:
    """The steps and answer of an expression or a conversion, or why there are none."""
    problem = problem.strip()
    if len(problem) > _MAX_PROBLEM:
        return Steps(cannot_do="The problem is too long to be solved without a model.")
    expression = _ASKED.sub("", problem).rstrip(" ?=.")
    match = _HOW_MANY.fullmatch(problem)
    if match:
        amount = match[2] if re.match(r"[\d(]", match[2]) else f"1 {match[2]}"
        expression = f"{amount} in {match[1]}"
    try:
        value, steps = evaluate_in_steps(expression)
    except InvalidExpression as error:
        # Only what looks like an expression gets the parser's reason.
        is_expression = re.fullmatch(r"[\s\d.,+\-*/^()%×÷·−=]+|.*\bin\b.*\d.*|\d.*", expression)
        reason = f"{error} " if is_expression else ""
        return Steps(
            cannot_do=bounded(
                f"{reason}Without a model only expressions and unit conversions are solved.", 300
            )
        )
    computed = [SolutionStep(expression=f"{a:.300}", result=f"{b:.300}") for a, b in steps[:100]]
    return Steps(steps=computed, answer=bounded(value.show(), 300))
