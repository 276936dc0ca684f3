"""`plan_structure`: plans with cycles, unknown agents or steps, missing inputs, or too small a budget.

A plan is a mapping with `steps`, each with `id`, `agent`, `input` and `needs`, in YAML or JSON.
"""

import re
from collections.abc import Container, Iterator, Mapping, Sequence
from typing import Any

from agents.api.finding import Finding, Severity
from agents.detectors.detector import Detector, DetectorContext, Rule
from agents.detectors.text.given import given_files, named_inputs
from agents.specs.packaged import packaged_files
from agents.text.located import Located, read_located
from agents.text.near import near_matches
from agents.workspace.source_file import SourceFile
from agents.workspace.workspace import Workspace

CYCLE = Rule("plan-cycle", Severity.HIGH, "steps that wait for each other")
UNKNOWN_AGENT = Rule("unknown-agent", Severity.HIGH, "step of an agent that does not exist")
MISSING_INPUT = Rule("missing-input", Severity.MEDIUM, "input or step that nothing provides")
OVER_BUDGET = Rule("over-budget", Severity.MEDIUM, "steps that need more than the plan's budget")
DUPLICATE_STEP = Rule("duplicate-step", Severity.HIGH, "two steps of the same id")

_NAME = re.compile(r"[A-Za-z_][\w-]{0,63}")
_MAX_STEPS = 1_000
_BUDGETS = ("tokens", "seconds", "tools")


def _detect(workspace: Workspace, context: DetectorContext) -> Iterator[Finding]:
    inputs = named_inputs(workspace, context.inputs, context.task)
    given = "output" in inputs or bool(context.document)
    named = given_files(workspace, inputs, "output", context.document)
    files = named if given else list(workspace.of("yaml", "json"))
    extra = context.inputs.get("agents")
    known = {*packaged_files(), *(map(str, extra) if isinstance(extra, list) else ())}
    for file in files:
        context.check_cancelled()
        located = read_located(file.text)
        if located is not None and _is_plan(located.value):
            yield from check_plan(file, located, known)


def _is_plan(value: Any) -> bool:
    steps = value.get("steps") if isinstance(value, dict) else None
    return (
        isinstance(steps, list)
        and bool(steps)
        and all(isinstance(step, dict) and "agent" in step and "id" in step for step in steps)
    )


def check_plan(file: SourceFile, located: Located, known: Container[str]) -> Iterator[Finding]:
    """The defects of a plan, each at the line of its step."""
    plan = located.value
    steps: list[Mapping[str, Any]] = plan["steps"][:_MAX_STEPS]
    ids = [str(step["id"]) for step in steps]
    needs = {str(step["id"]): _names(step.get("needs")) for step in steps}
    inputs = _names(plan.get("inputs"))
    lines = [located.line(("steps", i)) for i in range(len(steps))]
    for i, step in enumerate(steps):
        agent = str(step["agent"])
        if agent not in known:
            near = near_matches(agent, packaged_files())
            hint = f" Did you mean {near[0]}?" if near else ""
            yield UNKNOWN_AGENT.at(file, lines[i], f"There is no agent {agent!r:.60}.{hint}")
        if ids[i] in ids[:i]:
            yield DUPLICATE_STEP.at(file, lines[i], f"There is another step {ids[i]!r:.60}.")
        missing = _missing_input(step, needs, inputs)
        if missing:
            yield MISSING_INPUT.at(file, lines[i], missing, confidence=0.85)
    for cycle in find_cycles(needs):
        first = min(ids.index(one) for one in cycle)
        path = " → ".join([*cycle, cycle[0]])
        yield CYCLE.at(file, lines[first], f"The steps wait for each other: {path:.300}.")
    yield from _over_budget(file, plan, steps, lines)


def find_cycles(needs: Mapping[str, Sequence[str]]) -> list[list[str]]:
    """Groups of steps that need each other (strongly connected components), in the order of the steps.

    Iterative form of Tarjan, "Depth-First Search and Linear Graph Algorithms" (1972).
    """
    order: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    on_stack: set[str] = set()
    found: list[list[str]] = []
    for root in needs:
        if root in order:
            continue
        work: list[tuple[str, Iterator[str]]] = [(root, iter(needs[root]))]
        order[root] = low[root] = len(order)
        stack.append(root)
        on_stack.add(root)
        while work:
            node, following = work[-1]
            target = next((one for one in following if one in needs), None)
            if target is None:
                work.pop()
                if work:
                    parent = work[-1][0]
                    low[parent] = min(low[parent], low[node])
                if low[node] == order[node]:
                    group = [stack.pop()]
                    while group[-1] != node:
                        group.append(stack.pop())
                    on_stack -= set(group)
                    if len(group) > 1 or node in needs[node]:
                        found.append(group[::-1])
            elif target not in order:
                order[target] = low[target] = len(order)
                stack.append(target)
                on_stack.add(target)
                work.append((target, iter(needs[target])))
            elif target in on_stack:
                low[node] = min(low[node], order[target])
    return found


def _missing_input(
    step: Mapping[str, Any], needs: Mapping[str, Sequence[str]], inputs: Sequence[str]
) -> str:
    """Why a step cannot get what it asks for; empty if it can."""
    for need in _names(step.get("needs")):
        if need not in needs:
            return f"There is no step {need!r:.60} to wait for."
    wanted = [one for one in _names(step.get("input")) if _NAME.fullmatch(one)]
    before = _ancestors(str(step["id"]), needs)
    for name in wanted:
        if name in inputs or name in before:
            continue
        if name in needs:
            return f"The step uses the result of {name!r:.60} and does not wait for it."
        return f"No step and no input provides {name!r:.60}."
    return ""


def _ancestors(step: str, needs: Mapping[str, Sequence[str]]) -> set[str]:
    found: set[str] = set()
    waiting = list(needs.get(step, ()))
    while waiting:
        one = waiting.pop()
        if one not in found:
            found.add(one)
            waiting.extend(needs.get(one, ()))
    return found


def _over_budget(
    file: SourceFile,
    plan: Mapping[str, Any],
    steps: Sequence[Mapping[str, Any]],
    lines: Sequence[int],
) -> Iterator[Finding]:
    total = plan.get("budget")
    for name in _BUDGETS:
        bound = _amount(total, name)
        if bound is None:
            continue
        used = 0.0
        for step, line in zip(steps, lines, strict=True):
            amount = _amount(step.get("budget"), name) or 0.0
            used += amount
            if amount > bound or used > bound:
                what = "The step needs" if amount > bound else "The steps up to this one need"
                message = f"{what} {max(amount, used):g} {name}; the plan has {bound:g}."
                yield OVER_BUDGET.at(file, line, message)
                break


def _amount(budget: Any, name: str) -> float | None:
    amount = budget.get(name) if isinstance(budget, dict) else None
    return float(amount) if isinstance(amount, int | float) and abs(amount) < 1e15 else None


def _names(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    if isinstance(value, dict):
        return [str(name) for name in value]
    return [str(one) for one in value] if isinstance(value, list) else []


PLAN_STRUCTURE = Detector(
    "plan_structure",
    "Plans with cycles, unknown agents, missing inputs or too small a budget.",
    _detect,
    (CYCLE, UNKNOWN_AGENT, MISSING_INPUT, OVER_BUDGET, DUPLICATE_STEP),
)
