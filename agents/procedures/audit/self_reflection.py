"""The lesson of a run: repeats, failures and the use of its budget, counted from its events."""

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from agents.outputs.lesson import Lesson
from agents.procedures.procedure import AgentTask, ProcedureContext

MAX_EVENTS = 100_000
_GOOD = "ok"


async def run(task: AgentTask, context: ProcedureContext) -> Lesson:
    """The lesson from `inputs["events"]`, or from a trajectory (one JSON event a line) as the document or a file."""
    events = _events(task)
    if not events:
        return Lesson(cannot_do="There are no events of a run: give its trajectory.")
    context.check_cancelled()
    return lesson_of(events)


def _events(task: AgentTask) -> list[Mapping[str, Any]]:
    given = task.inputs.get("events")
    if isinstance(given, list):
        return [event for event in given[:MAX_EVENTS] if _is_event(event)]
    texts = [task.document] + [f.text for f in task.workspace if f.path.endswith(".jsonl")]
    return [event for text in texts for event in _parsed(text)][:MAX_EVENTS]


def _parsed(text: str) -> Iterable[Mapping[str, Any]]:
    for line in text.split("\n"):
        try:
            event = json.loads(line) if line.strip() else None
        except (ValueError, RecursionError):
            continue
        if isinstance(event, Mapping) and _is_event(event):
            yield event


def _is_event(event: Any) -> bool:
    return isinstance(event, Mapping) and isinstance(event.get("type"), str)


def lesson_of(events: Iterable[Mapping[str, Any]]) -> Lesson:
    """The lesson of a run's events in their order."""
    calls: Counter[tuple[str, str, str]] = Counter()
    failures: Counter[tuple[str, str]] = Counter()
    first_reason: dict[tuple[str, str], str] = {}
    budget: list[str] = []
    outcome = ""
    rejected = 0
    for event in events:
        kind = event["type"]
        raw = event.get("data")
        data: Mapping[str, Any] = raw if isinstance(raw, Mapping) else {}
        agent = str(event.get("agent") or "")
        if kind == "tool_started":
            calls[agent, str(data.get("tool", "")), str(data.get("arguments", ""))] += 1
        elif kind == "tool_finished" and data.get("failed"):
            key = ("tool " + str(data.get("tool", "")), agent)
            failures[key] += 1
            first_reason.setdefault(key, str(data.get("text", "")))
        elif kind == "error":
            key = ("error", agent)
            failures[key] += 1
            first_reason.setdefault(key, str(data.get("text", "")))
        elif kind == "budget":
            budget.append(_budget_text(data))
        elif kind == "patch_rejected":
            rejected += 1
        elif kind in ("run_state", "node_state"):
            state = str(data.get("state", ""))
            outcome = state if kind == "run_state" else outcome
            if state in ("failed", "timed_out", "denied", "exhausted"):
                key = (f"{kind.split('_')[0]} {event.get('node') or agent} {state}".strip(), agent)
                failures[key] += 1
                first_reason.setdefault(key, str(data.get("error", "")))
    repeats = [
        f"{tool} was called {count} times with {arguments:.120}"
        for (_, tool, arguments), count in calls.most_common()
        if count > 1
    ]
    failed = [
        f"{what} ({count}×): {first_reason.get((what, agent), '') or 'no reason given'}"[:300]
        for (what, agent), count in failures.most_common(20)
    ]
    return Lesson(
        lesson=" ".join(_advice(repeats, failures, budget, outcome, rejected))[:4000],
        outcome=outcome or "unknown",
        repeats=[text[:300] for text in repeats[:20]],
        failures=failed,
        budget=[text[:300] for text in budget[-20:]],
    )


def _budget_text(data: Mapping[str, Any]) -> str:
    return ", ".join(f"{key} {value}" for key, value in sorted(data.items()))


def _advice(
    repeats: list[str],
    failures: Counter[tuple[str, str]],
    budget: list[str],
    outcome: str,
    rejected: int,
) -> list[str]:
    advice = []
    if repeats:
        advice.append(f"Keep results instead of calling again: {repeats[0]}.")
    tools = [what.removeprefix("tool ") for (what, _) in failures if what.startswith("tool ")]
    if tools:
        advice.append(f"Check the arguments of {tools[0]} before calling it: it failed.")
    if any("denied" in what for what, _ in failures):
        advice.append("Ask for approval early, or do without the denied action.")
    if outcome == "exhausted" or any("exhausted" in what for what, _ in failures):
        advice.append("The budget ended first: split the task or raise the budget.")
    if any("timed_out" in what for what, _ in failures):
        advice.append("A step took too long: give it less to do or more time.")
    if rejected:
        advice.append(
            f"{rejected} patches were rejected: look at the reasons before the next round."
        )
    if any(what == "error" for what, _ in failures):
        advice.append("An agent raised an error: report it.")
    if not advice:
        advice.append(
            "The run went through without repeats or failures."
            if outcome == _GOOD
            else f"The run ended as {outcome or 'unknown'} without a recorded failure."
        )
    return advice
