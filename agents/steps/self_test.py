"""The self-test that fills a model's capability profile: a few seconds with a small model.

It uses the same decisions, grammars and steps as the agents, on items with one right answer.
"""

from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from agents.api.agent_spec import AgentSpec, Capability
from agents.api.budget import Budget, BudgetMeter
from agents.api.errors import AgentError
from agents.api.events import RunEventType
from agents.api.usage import Usage
from agents.model.ask_all import Structured, ask_all
from agents.model.decisions import Decider
from agents.model.layout import SharedLayout, system_text
from agents.model.profile import PASS, CapabilityProfile, load_scores, save_scores
from agents.model.question import Question
from agents.model.question_table import helpful_questions
from agents.model.session import ModelSession
from agents.steps.react import ReactLoop
from agents.tools.tool import Effect, Taint, Tool, ToolContext, ToolOutput
from agents.workspace.workspace import Workspace

_YES_NO = Question("self_test", "{subject}", ("yes", "no"))
_LABEL_ITEMS = (
    ("Is Paris the capital of France?", "yes"),
    ("Is Paris the capital of Japan?", "no"),
    ("Do fish live in water?", "yes"),
    ("Do stones grow on trees?", "no"),
    ("Is ice cold?", "yes"),
    ("Is fire cold?", "no"),
    ("Is 7 larger than 3?", "yes"),
    ("Is 2 larger than 9?", "no"),
    ("Is a dog an animal?", "yes"),
    ("Is a table an animal?", "no"),
    ("Does Python have functions?", "yes"),
    ("Is a password safe when everybody knows it?", "no"),
)
_SLOT_ITEMS = (
    ("Maria is 34 years old and lives in Lisbon.", "What is the person's name?", "Maria"),
    ("The oldest player is Kofi, who is 41.", "Who is the oldest player?", "Kofi"),
    ("Our neighbour Ingrid turned 67 last week.", "What is the neighbour's name?", "Ingrid"),
    ("Tom, aged 12, won the race.", "Who won the race?", "Tom"),
    ("The server runs on port 8443 behind a proxy.", "On which port does it run?", "8443"),
    ("The meeting moved from Monday to Thursday.", "On which day is it now?", "Thursday"),
    ("The library is licensed under Apache-2.0.", "Which licence is it?", "Apache"),
    ("Parsing fails with KeyError in load().", "Which error is raised?", "KeyError"),
)
_REACT_ITEMS = ((4821, "vault"), (307, "garage"), (9556, "archive"))
_WRITE_ITEMS = (
    (
        "def add(a, b):\n    return a - b\n",
        "return a - b",
        "return a + b",
    ),
    (
        "def is_even(n):\n    return n % 2 == 1\n",
        "return n % 2 == 1",
        "return n % 2 == 0",
    ),
    (
        "def last(items):\n    return items[len(items)]\n",
        "return items[len(items)]",
        "return items[len(items) - 1]",
    ),
)
_LINE_SCHEMA = {
    "type": "object",
    "properties": {"line": {"type": "string", "maxLength": 60}},
    "required": ["line"],
    "additionalProperties": False,
}


async def measured_profile(session: ModelSession, layout: SharedLayout) -> CapabilityProfile:
    """The profile of the loaded model: the kept one, or the result of the test.

    Raises:
        ModelFailure: no model is loaded, or the engine failed.
    """
    identity = session.identity()
    scores = load_scores(identity)
    if scores is None:
        scores = await run_self_test(session, layout)
        save_scores(identity, scores)
    return CapabilityProfile(identity, scores, helpful_questions(identity))


async def run_self_test(session: ModelSession, layout: SharedLayout) -> dict[Capability, float]:
    """Score the capabilities; those above one that failed are not tested, but for `text` above `labels`."""
    decider = Decider(session, layout)
    scores: dict[Capability, float] = {}
    for capability, test in _TESTS.items():
        scores[capability] = score = await test(session, layout, decider)
        if score < PASS[capability] and capability is not Capability.LABELS:
            break
    return scores


async def _labels(session: ModelSession, layout: SharedLayout, decider: Decider) -> float:
    shared = layout.shared(document="Answer the question.")
    decisions, _ = await decider.decide(shared, [(_YES_NO, text) for text, _ in _LABEL_ITEMS])
    right = sum(one.label == label for one, (_, label) in zip(decisions, _LABEL_ITEMS, strict=True))
    return right / len(_LABEL_ITEMS)


async def _slots(session: ModelSession, layout: SharedLayout, decider: Decider) -> float:
    right = 0
    for sentence, question, value in _SLOT_ITEMS:
        given = await ask_all(session, layout, decider, sentence, [question], max_tokens=16)
        right += value in given.replies[0].text
    return right / len(_SLOT_ITEMS)


async def _corrections(session: ModelSession, layout: SharedLayout, decider: Decider) -> float:
    questions = [
        Structured(
            f"This function is wrong:\n{code}\nWrite the line that must replace `{wrong}`.",
            _LINE_SCHEMA,
        )
        for code, wrong, _ in _WRITE_ITEMS
    ]
    given = await ask_all(session, layout, decider, "You correct Python code.", questions)
    right = 0
    for reply, (_, _, line) in zip(given.replies, _WRITE_ITEMS, strict=True):
        if reply.value is not None:
            right += reply.value["line"].split() == line.split()
    return right / len(_WRITE_ITEMS)


class _LookUp(BaseModel):
    model_config = ConfigDict(extra="forbid")
    room: str = Field(max_length=20)


_ANSWER = {
    "type": "object",
    "properties": {"code": {"type": "integer", "minimum": 0, "maximum": 9999}},
}


async def _two_steps(session: ModelSession, layout: SharedLayout, decider: Decider) -> float:
    right = 0
    for code, room in _REACT_ITEMS:
        tool = _code_tool(code, room)
        run = _TestRun(tool)
        loop = ReactLoop(session, layout, run, Workspace.of_texts({}), _ANSWER, thought=False)
        shared = layout.shared(task=f"What is the code of the {room}?", system=system_text([tool]))
        try:
            answer = await loop.answer_of(
                shared, "Look the code up with a tool, then give it as the final answer."
            )
        except AgentError:
            continue
        right += answer == {"code": code}
    return right / len(_REACT_ITEMS)


def _code_tool(code: int, room: str) -> Tool:
    async def look_up(arguments: Any, context: ToolContext) -> ToolOutput:
        text = f"The code of the {room} is {code}." if arguments.room == room else "Unknown room."
        return ToolOutput(text)

    return Tool("look_up", "Tells the code of a room.", _LookUp, frozenset({Effect.READ}), look_up)


class _TestRun:
    """The run of the self-test: one tool, nothing is logged."""

    def __init__(self, tool: Tool) -> None:
        self.spec = AgentSpec(
            "self_test", "execution", "", "", (tool.name,), (), "Answer", max_turns=2
        )
        self.meter = BudgetMeter(Budget(tokens=20_000), started=0.0)
        self.usage = Usage()
        self.tools = self
        self._tool = tool

    @property
    def card(self) -> str:
        return self.spec.card

    def check_input(self, where: str, text: str) -> str:
        return text

    def permitted(self) -> list[Tool]:
        return [self._tool]

    def add_taint(self, labels: frozenset[Taint]) -> None:
        pass  # its only tool reads what the test itself made up

    async def call(self, name: str, arguments: Mapping[str, Any]) -> ToolOutput:
        checked = self._tool.arguments.model_validate(dict(arguments))
        return await self._tool.call(checked, ToolContext(root=Path()))

    def record(self, kind: RunEventType, **data: Any) -> None:
        pass

    def note(self, text: str) -> None:
        pass

    def check_cancelled(self) -> None:
        pass


_TESTS: dict[Capability, Callable[[ModelSession, SharedLayout, Decider], Awaitable[float]]] = {
    Capability.LABELS: _labels,
    Capability.TEXT: _slots,
    Capability.REACT: _two_steps,
    Capability.WRITE: _corrections,
}
