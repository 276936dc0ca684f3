"""A small registry and roster of toy agents, so that tests do not depend on the built-in ones."""

import asyncio
from collections.abc import Iterator

import pytest

from agents.api.agent_spec import AgentSpec
from agents.api.errors import InvalidTask
from agents.api.finding import Finding, Severity
from agents.detectors.detector import Detector, DetectorContext, Rule
from agents.outputs.answer import Answer
from agents.outputs.findings import Findings
from agents.outputs.verdict import Verdict
from agents.plugins.registry import Registry
from agents.procedures.procedure import AgentTask, ProcedureContext
from agents.procedures.reducers import REDUCERS
from agents.roster.roster import Roster
from agents.workspace.workspace import Workspace

BAD_WORD = Rule("bad-word", Severity.HIGH, "A bad word", cwe=1)


def find_bad_words(workspace: Workspace, context: DetectorContext) -> Iterator[Finding]:
    for file in workspace:
        for number, line in enumerate(file.lines, 1):
            if "bad" in line:
                yield BAD_WORD.at(file, number, "Remove the bad word.")


def fail(workspace: Workspace, context: DetectorContext) -> Iterator[Finding]:
    raise RuntimeError("a bug in a detector")
    yield


async def echo(task: AgentTask, context: ProcedureContext) -> Answer:
    return Answer(text=task.text or task.document)


async def broken(task: AgentTask, context: ProcedureContext) -> Answer:
    raise InvalidTask("There is nothing to do.")


async def endless(task: AgentTask, context: ProcedureContext) -> Answer:
    await asyncio.Event().wait()
    raise AssertionError


def spec(key: str, *, output: str = "Answer", detectors: tuple[str, ...] = (), **more) -> AgentSpec:
    return AgentSpec(key, "audit", f"Does {key}.", f"You do {key}.", (), detectors, output, **more)


@pytest.fixture
def registry() -> Registry:
    return Registry(
        detectors={
            "bad_words": Detector("bad_words", "Finds bad words.", find_bad_words, (BAD_WORD,)),
            "failing": Detector("failing", "Fails.", fail),
        },
        outputs={one.__name__: one for one in (Answer, Findings, Verdict)},
        procedures={"echo": echo, "broken": broken, "endless": endless},
        reducers=dict(REDUCERS),
    )


@pytest.fixture
def roster() -> Roster:
    specs = [
        spec("words", output="Findings", detectors=("bad_words",)),
        spec("unlucky", output="Findings", detectors=("failing", "bad_words")),
        spec("echo"),
        spec("broken"),
        spec("endless"),
    ]
    return Roster({one.key: one for one in specs})
