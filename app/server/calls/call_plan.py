"""`CallPlanner`: how the answer of a turn with tools is generated.

Whether it calls a tool is decided by probabilities (`engine.text.tool_calls.decision`) in rows behind the
same prompt as the answer, so the prompt is read once. Calls are then begun in the form of the model and
constrained by a grammar.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from app.server.calls.chat_form import ChatForm
from app.server.calls.model import LoadedModel
from app.server.calls.prompts import template_messages
from app.server.calls.tool_calling import TurnTools
from app.server.wire.schemas import ChatCompletionRequest
from engine.api.grammar import Grammar
from engine.api.request import FinishReason, RequestOutput, SamplingParams
from engine.grammar.call_grammar import call_grammar
from engine.text.answer_parser import AnswerParser, PlainText
from engine.text.tool_calls.decision import (
    NO_CALL,
    NO_FURTHER_CALL,
    CallDecider,
    CallDecision,
    Row,
)
from engine.text.tool_calls.equal_calls import WithoutEqualCalls
from engine.text.tool_calls.last_speaker import follows_result
from engine.text.tool_calls.thresholds import call_thresholds

_ROOM = 128
"""Tokens of the context for what is asked and written after the prompt."""


@dataclass(frozen=True, slots=True)
class CallPlan:
    """How the answer is generated.

    Attributes:
        suffix: token ids after the conversation's prompt.
        begun: the text of the answer that the suffix has already.
        reads_calls: whether calls in the answer are recognised.
        calls: their number if the answer is calls and nothing else; 0 if it is not.
    """

    suffix: tuple[int, ...] = ()
    begun: str = ""
    reads_calls: bool = True
    calls: int = 0


@dataclass
class CallPlanner:
    """Plans one turn.

    Attributes:
        tools: of the turn.
        model: the model.
        decider: asks the model; None if the number of calls is not decided on.
        follows_result: whether the answer is about a tool's result.
        constrains: whether a grammar may constrain the calls.
        plan: the plan, once it is made.
    """

    tools: TurnTools
    model: LoadedModel
    decider: CallDecider | None
    follows_result: bool
    constrains: bool = True
    plan: CallPlan = CallPlan()

    def rows(self, prompt: Sequence[int]) -> list[Row]:
        """The rows that `decide` needs, each a prompt to be continued by one token."""
        if self.decider is None:
            return []
        return self.decider.rows(prompt, self.tools.callable, follows_result=self.follows_result)

    def decide(self, outputs: Sequence[RequestOutput]) -> CallPlan:
        """Make the plan from the outputs of the rows; rows that failed decide nothing."""
        decision = CallDecision("call" if self.tools.is_forced else "free")
        finished = (FinishReason.STOP, FinishReason.LENGTH)
        if self.decider is not None and all(one.finish_reason in finished for one in outputs):
            decision = self.decider.decision(
                outputs,
                len(self.tools.callable),
                follows_result=self.follows_result,
                must_call=self.tools.is_forced,
                parallel=self.tools.choice.parallel,
            )
        self.plan = self._plan(decision)
        return self.plan

    def sampling(self, sampling: SamplingParams) -> SamplingParams:
        """The parameters of the planned answer: calls have a grammar of their own."""
        if not self.plan.calls:
            return sampling
        return replace(sampling, grammar=self.grammar(self.plan.calls))

    def grammar(self, calls: int) -> Grammar | None:
        """The grammar of a number of calls; None if they are only begun."""
        if not self.constrains:
            return None
        return call_grammar(
            self.tools.form,
            self.tools.offered,
            self.tools.choice,
            self.model.tokenizer.control_tokens,
            calls=calls,
            begun=self.tools.form.begun,
        )

    def parser(self) -> AnswerParser:
        """A parser for one choice of the planned answer."""
        if not self.plan.reads_calls:
            return PlainText()
        parser = self.tools.parser()
        # The parser of a forced answer knows the opening.
        known = self.tools.form.opening if self.tools.is_forced else ""
        parser.feed(self.plan.begun.removeprefix(known))
        return WithoutEqualCalls(parser) if self.plan.calls > 1 else parser

    def _plan(self, decision: CallDecision) -> CallPlan:
        if decision.kind == "free":
            return CallPlan()
        if decision.kind == "call":
            text = self.tools.form.opening + self.tools.form.begun
            ids = self.model.tokenizer.encode(text, special=True)
            return CallPlan(tuple(ids), text, calls=decision.calls)
        if self.decider is None:
            raise AssertionError("only a decider decides against a call")
        note = NO_FURTHER_CALL if self.follows_result else NO_CALL
        return CallPlan(tuple(self.decider.turn(note)), reads_calls=False)


def call_planner(
    body: ChatCompletionRequest,
    model: LoadedModel,
    tools: TurnTools,
    form: ChatForm,
    prompt: Sequence[int],
) -> CallPlanner | None:
    """The planner of a turn with tools; None if the model decides itself.

    It does if nothing may be called, if the request or the server says so, if the model was not measured, and
    if the template has begun its reasoning in the prompt.
    """
    measured = None
    if tools.callable and tools.decision != "model" and body.prompt_logprobs is None:
        measured = call_thresholds(model.info, model.tokenizer)
    if measured is None:
        return None
    opening = model.tokenizer.encode(tools.form.opening, special=True)
    reasons = tools.opening_ids(prompt) != tuple(opening)
    if reasons or len(prompt) + _ROOM > model.info.context_length:
        return None
    decider = None
    if not tools.is_forced or tools.choice.parallel:
        decider = CallDecider(model.tokenizer, tools.form, measured, variables=form.variables)
    is_about_result = not tools.is_forced and follows_result(template_messages(body.messages))
    return CallPlanner(tools, model, decider, is_about_result, constrains=not body.ignore_eos)
