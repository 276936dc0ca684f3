"""`react`: steps of thought, action and observation until the final answer.

Every step has its own grammar (`step_grammar`), so it can be parsed, names a tool that may be called and
values that exist. A step is made only if the final answer fits behind it: into the turns, the context and
the budget. So a run ends with an answer by its schema, or raises because not even that fits.
"""

import time
from collections.abc import Callable, Container, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import orjson
from pydantic import ValidationError

from agents.api.agent_spec import AgentSpec
from agents.api.budget import BudgetMeter
from agents.api.errors import BudgetExhausted, InvalidTask, ModelFailure, PermissionDenied
from agents.api.events import RunEventType
from agents.api.usage import Usage
from agents.model.layout import SharedLayout, SharedPrompt
from agents.model.session import Generation, ModelSession, usage_of
from agents.steps.actions import possible_actions
from agents.steps.bounded_schema import Bounds, fitting_schema
from agents.steps.repeats import Repeats, canonical_call
from agents.steps.step_grammar import FINAL_ANSWER, Action, step_grammar
from agents.tools.tool import Taint, Tool, ToolOutput
from agents.workspace.workspace import Workspace
from engine.api.grammar import Grammar
from engine.api.request import FinishReason, Request, SamplingParams
from engine.text.clipped import clipped

OBSERVATION_TOKENS = 512
"""Most tokens of an observation that the model reads; head and tail are kept."""
_TURN_TOKENS = 64
"""Room for what the template writes between two turns."""


class StepTools(Protocol):
    """The tools of a run (`agents.runs.tool_executor`)."""

    def permitted(self) -> list[Tool]:
        """The tools that may be called now, by permission, taint and budget."""
        ...

    def add_taint(self, labels: frozenset[Taint]) -> None:
        """Note that the model reads data with these labels beside the outputs of tools."""
        ...

    async def call(self, name: str, arguments: Mapping[str, Any]) -> ToolOutput:
        """Call one.

        Raises:
            PermissionDenied: the agent may not call it, or an approver denied it.
            BudgetExhausted: no tool call is left.
            InvalidTask: the arguments do not match the tool's schema.
        """
        ...


class StepRun(Protocol):
    """The run that steps belong to (`agents.runs.agent_run`)."""

    @property
    def spec(self) -> AgentSpec:
        """The agent."""
        ...

    @property
    def meter(self) -> BudgetMeter:
        """Its budget."""
        ...

    @property
    def tools(self) -> StepTools:
        """Its tools."""
        ...

    usage: Usage

    @property
    def card(self) -> str:
        """The role card, after the memories that the run recalled."""
        ...

    def check_input(self, where: str, text: str) -> str:
        """A text as the model may read it; `where` is what it is, in a few words."""
        ...

    def record(self, kind: RunEventType, **data: Any) -> None:
        """Append an event to the log."""
        ...

    def note(self, text: str) -> None:
        """Tell the user something once."""
        ...

    def check_cancelled(self) -> None:
        """Raise `Cancelled` or `BudgetExhausted` if the run must end."""
        ...


@dataclass(frozen=True, slots=True)
class Step:
    """A step as the model wrote it."""

    action: str
    input: Mapping[str, Any]
    thought: str = ""


@dataclass(slots=True)
class ReactLoop:
    """The steps of one run.

    Attributes:
        session, layout: of the loaded model.
        run: the run.
        workspace: the files that arguments may name.
        answer: JSON schema of the final answer.
        answer_reserve: most tokens that the final answer may take.
        thought: whether steps have a thought.
        sampling: the run's sampling parameters, without grammar and limits.
        max_text: most characters of free text in an argument.
    """

    session: ModelSession
    layout: SharedLayout
    run: StepRun
    workspace: Workspace
    answer: Mapping[str, Any]
    answer_reserve: int = 1024
    thought: bool = True
    sampling: SamplingParams = field(default_factory=lambda: SamplingParams(temperature=0.0))
    max_text: int = 400
    clock: Callable[[], float] = time.monotonic
    steps: list[Step] = field(default_factory=list)
    _repeats: Repeats = field(default_factory=Repeats)
    _observed: dict[str, tuple[str, ...]] = field(default_factory=dict)
    _denied: set[str] = field(default_factory=set)

    async def answer_of(self, shared: SharedPrompt, card: str) -> Mapping[str, Any]:
        """Run steps behind a shared prompt until the final answer; the answer's members.

        Raises:
            BudgetExhausted: the budget has no room for a final answer.
            Cancelled: the run was cancelled.
            ModelFailure: the engine failed.
        """
        final, _ = fitting_schema(self.answer, self.answer_reserve)
        ids = (*shared.token_ids, *self.layout.tail(shared, card))
        turn = 0
        while True:
            turn += 1
            self.run.check_cancelled()
            grammar, longest, actions = await self._grammar(ids, final, turn)
            step, generation = await self._generate(ids, grammar, longest, actions, turn)
            self.steps.append(step)
            if step.action == FINAL_ANSWER:
                return step.input
            output = await self._act(step)
            answered = _without_end(generation, self.session.client.control_tokens().ids)
            ids = (*ids, *answered, *self.layout.turn(generation.text, self._clipped(output.text)))

    async def _grammar(
        self, ids: tuple[int, ...], final: Mapping[str, Any], turn: int
    ) -> tuple[Grammar, int, list[Action]]:
        """The step's grammar, its most tokens, and the actions that it offers beside the answer."""
        answering, needed = step_grammar([], final, thought=self.thought)
        context = self.session.model().context_length - len(ids)
        budget = self.run.meter.tokens_left - await self.session.missing_tokens(ids)
        left = min(context, budget)
        if needed > left:
            what = "context" if context < budget else "budget"
            raise BudgetExhausted(
                f"The final answer may take {needed} tokens, and {max(0, left)} of the {what} are left."
            )
        if turn >= self.run.spec.max_turns:
            return answering, needed, []
        tools = [tool for tool in self.run.tools.permitted() if tool.name not in self._denied]
        bounds = Bounds(characters=self.max_text)
        actions = possible_actions(tools, self.workspace, self._observed, self._repeats, bounds)
        grammar, longest = step_grammar(actions, final, thought=self.thought)
        if longest + OBSERVATION_TOKENS + _TURN_TOKENS + needed > left:
            return answering, needed, []
        return grammar, longest, actions

    async def _generate(
        self,
        ids: tuple[int, ...],
        grammar: Grammar,
        longest: int,
        actions: list[Action],
        turn: int,
    ) -> tuple[Step, Generation]:
        run = self.run
        offered = [action.name for action in actions]
        run.record(
            RunEventType.STEP_STARTED,
            step=turn,
            n_prompt=len(ids),
            actions=[*offered, FINAL_ANSWER],
        )
        start = self.clock()
        sampling = replace(self.sampling, max_tokens=longest, grammar=grammar)
        generation = await self.session.generate(Request(ids, sampling), run.meter)
        run.usage = run.usage.plus(usage_of([generation]))
        if generation.finish_reason is not FinishReason.STOP:
            raise ModelFailure(f"Step {turn} was cut after {len(generation.token_ids)} tokens.")
        step = parse_step(generation.text)
        run.record(
            RunEventType.STEP_FINISHED,
            step=turn,
            start=start,
            end=self.clock(),
            n_prompt=generation.prompt_tokens,
            n_cached=generation.cached_tokens,
            n_gen=len(generation.token_ids),
            thought=step.thought,
            text=generation.text,
        )
        run.record(
            RunEventType.ACTION_CHOSEN, step=turn, action=step.action, input=dict(step.input)
        )
        return step, generation

    async def _act(self, step: Step) -> ToolOutput:
        """The observation of a step: the tool's output, an earlier one, or why there is none."""
        tool = next((one for one in self.run.tools.permitted() if one.name == step.action), None)
        if tool is None:  # its permission ended while the step was generated
            return ToolOutput(f"{step.action} may not be called any more.", failed=True)
        try:
            call = canonical_call(tool, step.input)
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            return ToolOutput(f"The input is not valid: {first['msg']}.", failed=True)
        earlier = self._repeats.earlier(tool, call)
        if earlier is not None:
            return ToolOutput(f"The same call was made before; its result:\n{earlier.text}")
        try:
            output = await self.run.tools.call(step.action, step.input)
        except (PermissionDenied, InvalidTask) as error:
            self._denied.add(step.action)
            return ToolOutput(str(error), failed=True)
        except BudgetExhausted as error:
            self._denied |= {one.name for one in self.run.tools.permitted()}
            return ToolOutput(str(error), failed=True)
        self._repeats.add(tool, call, step.input, output)
        if Taint.UNTRUSTED in output.taint and Taint.LOCAL not in output.taint:
            return (
                output  # text from elsewhere chooses no arguments; names of files and own ids may
            )
        for name, values in output.choices.items():
            self._observed[name] = tuple(dict.fromkeys((*values, *self._observed.get(name, ()))))
        return output

    def _clipped(self, text: str) -> str:
        """The text with at most `OBSERVATION_TOKENS` tokens; the middle of a longer one is left out."""
        client = self.session.client
        return clipped(text, OBSERVATION_TOKENS, client.tokenize, client.detokenize) or "(empty)"


def parse_step(text: str) -> Step:
    """The step that a text of the grammar spells.

    Raises:
        ModelFailure: the text is no step.
    """
    try:
        value = orjson.loads(text)
        return Step(value["action"], value["input"], value.get("thought", ""))
    except (orjson.JSONDecodeError, KeyError, TypeError, AttributeError) as error:
        raise ModelFailure(f"The model's step cannot be read: {text!r:.200}.") from error


def _without_end(generation: Generation, control_ids: Container[int]) -> tuple[int, ...]:
    """The tokens without the end of the turn, which the template writes."""
    ids = generation.token_ids
    return ids[:-1] if ids and ids[-1] in control_ids else ids
