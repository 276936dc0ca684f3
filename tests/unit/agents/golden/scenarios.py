"""One scenario for each agent of the roster: its seeded input, and what a scripted model does in it."""

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agents.api.agent_spec import Capability
from agents.api.budget import Budget
from agents.api.events import RunEvent, RunEventType
from agents.cluster import Cluster
from agents.model.profile import CapabilityProfile
from agents.model.session import ModelSession
from agents.outputs.base import Output
from agents.plugins.registry import Registry
from agents.roster.roster import Roster
from agents.runs.result import RunResult
from agents.runs.run_memory import RunMemory
from agents.specs.packaged import packaged_agents
from agents.steps.answer_forms import answer_schema
from agents.steps.model_phase import StepsPhase
from agents.workspace.workspace import Workspace
from engine.clients.engine_client import EngineClient
from tests.unit.agents.roster_cases.case import task_of
from tests.unit.agents.roster_cases.cases import CASES

ABLE = CapabilityProfile(
    "scripted",
    dict.fromkeys(list(Capability)[1:], 1.0),
    frozenset(["confirm_finding"]),
)
"""A model that can do everything, so that every part of the model phase is in some scenario."""


@dataclass(frozen=True)
class Steps:
    """What the scripted model does in steps: calls of tools, then an answer.

    Attributes:
        calls: tool and input of each step.
        answer: members of the final answer; the others keep their defaults.
    """

    calls: tuple[tuple[str, dict[str, Any]], ...]
    answer: dict[str, Any] = field(default_factory=dict)


STEPS: dict[str, Steps] = {
    "planner": Steps(
        (("glob", {"pattern": "**/*.py"}), ("todo", {})),
        {"steps": [{"id": "s1", "agent": "debugger", "input": "the crash", "needs": [],
                    "done_when": "its line is known"}], "fallback": "ask"},
    ),
    "ui_designer": Steps(
        (("glob", {"pattern": "*.html"}),),
        {"title": "Sign in", "components": [{"name": "mail", "kind": "email"}]},
    ),
    "layout_designer": Steps((("glob", {"pattern": "*.html"}),), {"layouts": []}),
    "component_builder": Steps((("glob", {"pattern": "*.html"}),), {"reason": "a form"}),
}  # fmt: skip
"""Agents that require steps with tools."""
PAGE = "<!doctype html><html lang='en'><title>Pay</title><main><h1>Pay</h1></main></html>"
MEAN = "def mean(values):\n    return sum(values) / len(values) if values else 0.0\n"
TEXTS = {
    "debugger": [MEAN] * 8,
    "prototype_builder": [f"```html\n{PAGE}\n```"],
    "expander": ["The mill stands by the river and has ground corn for two hundred years."] * 9,
}
"""Agents that write whole texts."""


def script_of(key: str, form: type[Output]) -> list[str]:
    """The texts that the model writes: its steps, or whole texts."""
    if key in TEXTS:
        return list(TEXTS[key])
    if key not in STEPS:
        return []
    steps = STEPS[key]
    texts = [
        json.dumps({"thought": "look", "action": tool, "input": arguments})
        for tool, arguments in steps.calls
    ]
    members = form(**steps.answer).model_dump(mode="json")
    asked = answer_schema(form, Workspace.of_texts({}))["properties"]
    answer = json.dumps(
        {name: members[name] for name in asked if not isinstance(members[name], dict)},
        separators=(",", ":"),
    )
    return [*texts, f'{{"thought": "done", "action": "final_answer", "input": {answer}}}']


async def run_scenario(
    key: str,
    registry: Registry,
    folder: Path,
    client: EngineClient,
    profile: CapabilityProfile | None = ABLE,
    budget: Budget | None = None,
) -> tuple[RunResult, list[RunEvent]]:
    """Run an agent on its seeded input with a model; its result and its events."""
    phase = StepsPhase(ModelSession(client), tuple(registry.tools.values()), profile=profile)
    cluster = Cluster(
        registry=registry,
        roster=Roster({key: packaged_agents()[key]}),
        model=phase,
        memory=RunMemory(folder.parent / "memory" / "memory.db", records=False),
    )
    events: list[RunEvent] = []
    result = await cluster.run(
        key,
        **task_of(CASES[key], folder),
        budget=budget,
        on_start=lambda run: run.log.follow(events.append) and None,
    )
    return result, events


def trace_of(events: list[RunEvent], folder: Path) -> list[str]:
    """The events, a line each, without times and ids of runs."""
    return [_line(event).replace(str(folder), "ROOT") for event in events]


def _line(event: RunEvent) -> str:
    data = event.data
    match event.type:
        case RunEventType.STEP_STARTED:
            return f"step {data['step']} of {', '.join(data['actions'])}"
        case RunEventType.STEP_FINISHED:
            return f"  thought {data['thought']!r}, {data['n_gen']} tokens"
        case RunEventType.ACTION_CHOSEN:
            return f"  action {data['action']} {json.dumps(data['input'], ensure_ascii=False)}"
        case RunEventType.TOOL_STARTED:
            return f"  call {data['tool']} {data['arguments']}"
        case RunEventType.TOOL_FINISHED:
            failed = " failed" if data["failed"] else ""
            return f"  observed{failed} {data['text'][:200]!r} {'+'.join(data['taint'])}"
        case RunEventType.DECISION:
            abstained = " abstained" if data["abstained"] else ""
            return f"decided {data['question']}: {data['label']}{abstained}"
        case RunEventType.FINDING:
            place = f"{data['file']}:{data['line']}"
            sure = data["confidence"]
            return f"found {data['severity']} {data['rule']} {place} {sure} {data['source']}"
        case RunEventType.BUDGET if "max_tokens" in data:
            limits = data["max_tokens"], data["max_seconds"], data["max_tools"], data["max_steps"]
            return f"budget {limits}"
        case RunEventType.BUDGET:
            return f"used {data['computed_tokens']} computed, {data['generated_tokens']} generated"
        case RunEventType.APPROVAL_REQUESTED:
            return f"asks for {data['tool']} {data['target']}"
        case RunEventType.APPROVAL_RESOLVED:
            return f"  {'allowed' if data['allowed'] else 'denied'}: {data['reason']}"
        case RunEventType.WIDTH_STARTED:
            return f"width of {data['candidates']}: {data['goal']}; {', '.join(data['checks'])}"
        case RunEventType.CANDIDATE_WRITTEN:
            return f"  candidate {data['candidate']} at {data['temperature']} {data['code']!r}"
        case RunEventType.CANDIDATE_CHECKED:
            verdict = "passes" if data["passed"] else "fails"
            return f"  candidate {data['candidate']} {verdict} {data['check']}: {data['detail']}"
        case RunEventType.CANDIDATE_CHOSEN:
            return f"chosen {data['candidate']} by {data['decided_by']}: {data['reason']}"
        case RunEventType.RUN_STATE:
            return f"state {data['state']} {data.get('error', '')}".rstrip()
        case RunEventType.NOTE:
            return f"note {data['text'].partition(':')[0]}"
        case _:
            return f"{event.type.value} {data.get('text', data)}"
