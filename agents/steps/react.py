"""`react`: steps of thought, action and observation until the final answer.

Every step has its own grammar (`step_grammar`), so it can be parsed, names a tool that may be called and
values that exist. A step is begun only if the final answer will fit behind it: into the turns, the context
and the budget, by the estimate of `agents.steps.room`. An answer that takes more than was left is closed by
program, so a run ends with an answer by its schema, or raises because there is no room to begin one.
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
from agents.steps.closed_json import closed_json
from agents.steps.repeats import Repeats, canonical_call
from agents.steps.room import answer_tokens, tokens_of, tokens_per_character
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
_MIN_ANSWER_TOKENS = 48
"""Room below which no answer is begun, unless its longest form is known to fit."""
_MAX_TOKENS_PER_CHARACTER = 4
"""A character has at most four bytes, and a token at least one."""
_INPUT = '"input": '


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
        ends_with_tool: whether the first tool call that does not fail ends the run without an answer: its
            output is what was asked for.
        max_turns: most steps, the answer included; None takes the agent's.
        thought: whether steps have a thought.
        sampling: the run's sampling parameters, without grammar and limits.
        max_text: most characters of free text in an argument.
        clock: monotonic seconds.
        steps: what the model wrote so far.
        last_output: of the last tool that was called.
        cut_answer: whether the answer took all room that was left, and was closed by program.
        ids: tokens of the whole conversation, once it has ended with an answer.
        answer_text: the step with that answer.
    """

    session: ModelSession
    layout: SharedLayout
    run: StepRun
    workspace: Workspace
    answer: Mapping[str, Any]
    ends_with_tool: bool = False
    max_turns: int | None = None
    thought: bool = True
    sampling: SamplingParams = field(default_factory=lambda: SamplingParams(temperature=0.0))
    max_text: int = 400
    clock: Callable[[], float] = time.monotonic
    steps: list[Step] = field(default_factory=list)
    last_output: ToolOutput | None = None
    cut_answer: bool = False
    ids: tuple[int, ...] = ()
    answer_text: str = ""
    _repeats: Repeats = field(default_factory=Repeats)
    _observed: dict[str, tuple[str, ...]] = field(default_factory=dict)
    _denied: set[str] = field(default_factory=set)

    async def answer_of(self, shared: SharedPrompt, card: str) -> Mapping[str, Any]:
        """Run steps behind a shared prompt until the final answer; the answer's members.

        Raises:
            BudgetExhausted: context or budget have no room for a final answer.
            Cancelled: the run was cancelled.
            ModelFailure: the engine failed.
        """
        ids = (*shared.token_ids, *self.layout.tail(shared, card))
        rate = tokens_per_character(
            self.session.client.tokenize, self.session.client.detokenize(ids)
        )
        final, _ = fitting_schema(self.answer, await self._left(ids) // 2, rate)
        turn, answers = 0, False
        while True:
            turn += 1
            self.run.check_cancelled()
            grammar, room, actions = await self._grammar(ids, final, turn, rate, answers=answers)
            step, generation = await self._generate(ids, grammar, room, actions, turn, final)
            if step is None:  # it took all room that a step may take: only an answer is left
                answers = True
                continue
            self.steps.append(step)
            answered = _without_end(generation, self.session.client.control_tokens().ids)
            ids = (*ids, *answered)
            if step.action == FINAL_ANSWER:
                self.ids, self.answer_text = ids, generation.text
                return step.input
            output = self.last_output = await self._act(step)
            if self.ends_with_tool and not output.failed:
                return {}
            ids = (*ids, *self.layout.turn(generation.text, self._clipped(output.text)))

    async def _left(self, ids: tuple[int, ...]) -> int:
        """Tokens that may be generated behind a prompt: the rest of the context, or of the budget."""
        context = self.session.model().context_length - len(ids)
        budget = self.run.meter.tokens_left - await self.session.missing_tokens(ids)
        return max(0, min(context, budget))

    async def _grammar(
        self,
        ids: tuple[int, ...],
        final: Mapping[str, Any],
        turn: int,
        rate: float,
        *,
        answers: bool,
    ) -> tuple[Grammar, int, list[Action]]:
        """The step's grammar, its most tokens, and the actions that it offers beside the answer."""
        answering, characters = step_grammar([], final, thought=self.thought)
        left = await self._left(ids)
        needed = answer_tokens(characters, rate)
        most = _MAX_TOKENS_PER_CHARACTER * characters
        if left < min(needed, _MIN_ANSWER_TOKENS):
            raise BudgetExhausted(
                f"The final answer may take {needed} tokens, and {left} of context and budget are left."
            )
        most_turns = self.run.spec.max_turns if self.max_turns is None else self.max_turns
        if answers or turn >= most_turns:
            return answering, min(left, most), []
        tools = [tool for tool in self.run.tools.permitted() if tool.name not in self._denied]
        bounds = Bounds(characters=self.max_text)
        actions = possible_actions(tools, self.workspace, self._observed, self._repeats, bounds)
        grammar, longest = step_grammar(actions, final, thought=self.thought)
        rest = left - OBSERVATION_TOKENS - _TURN_TOKENS - needed
        if tokens_of(longest, rate) > rest or not actions:
            return answering, min(left, most), []
        return grammar, min(rest, _MAX_TOKENS_PER_CHARACTER * longest), actions

    async def _generate(
        self,
        ids: tuple[int, ...],
        grammar: Grammar,
        room: int,
        actions: list[Action],
        turn: int,
        final: Mapping[str, Any],
    ) -> tuple[Step | None, Generation]:
        """The step; None if it was cut before it was an answer."""
        run = self.run
        offered = [action.name for action in actions]
        run.record(
            RunEventType.STEP_STARTED,
            step=turn,
            n_prompt=len(ids),
            actions=[*offered, FINAL_ANSWER],
        )
        start = self.clock()
        sampling = replace(self.sampling, max_tokens=room, grammar=grammar)
        generation = await self.session.generate(Request(ids, sampling), run.meter)
        run.usage = run.usage.plus(usage_of([generation]))
        if generation.finish_reason is FinishReason.STOP:
            step: Step | None = parse_step(generation.text)
        else:
            step = cut_step(generation.text, final)
            self.cut_answer = step is not None
            if step is None and not actions:
                raise BudgetExhausted(
                    f"The answer was cut after {len(generation.token_ids)} tokens."
                )
        run.record(
            RunEventType.STEP_FINISHED,
            step=turn,
            start=start,
            end=self.clock(),
            n_prompt=generation.prompt_tokens,
            n_cached=generation.cached_tokens,
            n_gen=len(generation.token_ids),
            thought="" if step is None else step.thought,
            text=generation.text,
        )
        if step is not None:
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


def cut_step(text: str, final: Mapping[str, Any]) -> Step | None:
    """The final answer that a cut text began, closed by program; None if it had not begun one.

    Args:
        text: the beginning of a step.
        final: bounded schema of the answer.
    """
    head, begun, written = text.partition(f'"action": "{FINAL_ANSWER}", {_INPUT}')
    if not begun or not written:
        return None
    thought = head.removeprefix('{"thought": "').removesuffix('", ')
    return Step(FINAL_ANSWER, closed_json(written, final), thought if thought != "{" else "")


def _without_end(generation: Generation, control_ids: Container[int]) -> tuple[int, ...]:
    """The tokens without the end of the turn, which the template writes."""
    ids = generation.token_ids
    return ids[:-1] if ids and ids[-1] in control_ids else ids
