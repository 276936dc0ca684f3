"""`CallPlanner`: how the answer of a turn with tools is generated, in the server's chats and in the screen's.

```
rows ──▶ decide ─┬─ call: begun in the form of the model, and constrained by a grammar
                 ├─ text: a turn that asks for words, which is not kept
                 └─ free: what the model writes
```

Whether it calls a tool is decided by probabilities (`engine.text.tool_calls.decision`) in rows behind the
same prompt as the answer, so the prompt is read once. An answer that may have no call (`in_words`) needs no
rows: words are asked for, and a grammar keeps it from beginning like a call.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from engine.api.grammar import Grammar
from engine.api.request import FinishReason, SamplingParams
from engine.api.snapshot import ModelInfo
from engine.grammar.call_grammar import call_grammar
from engine.grammar.turn_tools import TurnTools
from engine.text.answer_parser import AnswerParser, PlainText
from engine.text.continued_message import Render
from engine.text.tool_calls.decision import (
    NO_CALL,
    NO_FURTHER_CALL,
    CallDecider,
    CallDecision,
    Row,
    RowOutput,
    further_turn,
)
from engine.text.tool_calls.equal_calls import WithoutEqualCalls
from engine.text.tool_calls.thresholds import CallThresholds, Threshold

_ROOM = 128
"""Tokens of the context for what is asked and written after the prompt."""

_LOOP_TOOLS = 5
"""In a loop a call needs no more evidence than with so many tools: one that was not needed costs a moment and
is followed by words, a missing one is a wrong answer. Of 11 everyday questions to the 1.5B with one tool, 5
were decided wrongly without this, all of them calls that were missed."""

WORDS = Grammar.regex(r"(``?[^`{\[<]|[^\s`{\[<])(.|\n)*")
"""Text that does not begin like a call: with a brace, a bracket, a tag or a fence."""

NO_WORDS = "The model wrote no answer in words."
"""What is shown in place of an answer that has no words although they were asked for."""


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
        decider: asks the model; None if there is nothing to ask.
        render: the chat template.
        follows_result: whether the answer is about a tool's result.
        in_loop: whether the calls are made between the rounds of one answer: a call that the model writes
            although it was asked for words is made then, too.
        in_words: whether the answer may have no call.
        constrains: whether a grammar may constrain the answer.
        plan: the plan, once it is made.
    """

    tools: TurnTools
    decider: CallDecider | None
    render: Render
    follows_result: bool
    in_loop: bool = False
    in_words: bool = False
    constrains: bool = True
    plan: CallPlan = CallPlan()

    def rows(self, prompt: Sequence[int]) -> list[Row]:
        """The rows that `decide` needs, each a prompt to be continued by one token."""
        if self.decider is None:
            return []
        return self.decider.rows(prompt, self.tools.callable, follows_result=self.follows_result)

    def decide(self, outputs: Sequence[RowOutput]) -> CallPlan:
        """Make the plan from the outputs of the rows; rows that failed decide nothing."""
        decision = CallDecision("call" if self.tools.is_forced else "free")
        finished = (FinishReason.STOP, FinishReason.LENGTH)
        if self.in_words:
            decision = CallDecision("text", 0)
        elif self.decider is not None and all(one.finish_reason in finished for one in outputs):
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
        """The parameters of the planned answer: calls, and words that must be, have a grammar."""
        if self.plan.calls:
            return replace(sampling, grammar=self.grammar(self.plan.calls))
        if self.in_words and self.constrains and sampling.grammar is None:
            return replace(sampling, grammar=WORDS)
        return sampling

    def grammar(self, calls: int) -> Grammar | None:
        """The grammar of a number of calls; None if they are only begun, or none can be planned."""
        if self.in_words or not self.constrains:
            return None
        return call_grammar(
            self.tools.form,
            self.tools.offered,
            self.tools.choice,
            self.tools.tokenizer.control_tokens,
            calls=calls,
            begun=self.tools.form.begun,
        )

    def parser(self) -> AnswerParser:
        """A parser for one choice of the planned answer, which has read what the plan begins it with."""
        parser = self.whole_parser()
        if self.plan.reads_calls:
            # The parser of a forced answer knows the opening.
            known = self.tools.form.opening if self.tools.is_forced else ""
            parser.feed(self.plan.begun.removeprefix(known))
        return parser

    def whole_parser(self) -> AnswerParser:
        """A parser that has read nothing; that of a forced answer knows the opening."""
        if not self.plan.reads_calls:
            return PlainText()
        parser = self.tools.parser()
        return WithoutEqualCalls(parser) if self.plan.calls > 1 else parser

    def _plan(self, decision: CallDecision) -> CallPlan:
        if decision.kind == "free":
            return CallPlan()
        if decision.kind == "call":
            text = self.tools.form.opening + self.tools.form.begun
            ids = self.tools.tokenizer.encode(text, special=True)
            return CallPlan(tuple(ids), text, calls=decision.calls)
        note = NO_FURTHER_CALL if self.follows_result else NO_CALL
        turn = further_turn(self.tools.tokenizer, note, self.render)
        return CallPlan(tuple(turn), reads_calls=self.in_loop)


def call_planner(
    tools: TurnTools,
    info: ModelInfo,
    thresholds: CallThresholds | None,
    prompt: Sequence[int],
    *,
    render: Render,
    follows_result: bool,
    in_loop: bool = False,
    in_words: bool = False,
    constrains: bool = True,
) -> CallPlanner | None:
    """The planner of a turn with tools; None if the model decides itself.

    It does if nothing may be called, if the caller says so, if the model was not measured, and if the
    template has begun its reasoning in the prompt. Words can be asked for without a measurement.

    Args:
        tools: of the turn.
        info: the model.
        thresholds: of the model; None if it was not measured.
        prompt: of the turn, up to the beginning of the answer.
        render: the chat template.
        follows_result: whether the answer is about a tool's result.
        in_loop, in_words, constrains: as in `CallPlanner`.
    """
    if not tools.callable or len(prompt) + _ROOM > info.context_length:
        return None
    opening = tools.tokenizer.encode(tools.form.opening, special=True)
    reasons = tools.opening_ids(prompt) != tuple(opening)
    if in_words:
        return CallPlanner(
            tools, None, render, follows_result,
            in_loop=in_loop, in_words=True, constrains=constrains and not reasons,
        )  # fmt: skip
    if thresholds is None or tools.decision == "model" or reasons:
        return None
    if in_loop:
        fits = thresholds.fits.of(max(len(tools.callable), _LOOP_TOOLS))
        thresholds = replace(thresholds, fits=Threshold(fits))
    decider = None
    if not tools.is_forced or tools.choice.parallel:
        decider = CallDecider(tools.tokenizer, tools.form, thresholds, render=render)
    return CallPlanner(
        tools, decider, render, follows_result and not tools.is_forced,
        in_loop=in_loop, constrains=constrains,
    )  # fmt: skip
